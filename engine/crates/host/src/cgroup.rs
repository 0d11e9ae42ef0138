//! Control groups: how much CPU and memory a started process gets, with everything below it.
//!
//! Version 2 is taken where it has the controllers `cpu` and `memory`, else version 1, whose groups lie in a hierarchy for each. Words: a
//! *parent* is the group below which groups are made; a group is *owned* while the host that made it holds a lock on its folder, which the
//! kernel lets go of however that host ends.
//!
//! A group is removed when its processes are gone; what a killed host leaves is removed by its [keeper](crate::keeper), or by the next host.

mod folder;
mod parents;
mod tables;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use folder::remove;
use folder::{Folder, name};
pub use parents::{Parents, sweep_leftovers};
use tables::counter;

use crate::command::Limits;
use crate::keeper::Keeper;
use crate::launch::Failure;
use crate::record;

const HINT: &str = "run as root where /sys/fs/cgroup is writable, or leave [cpus] quota and memory out; `weir doctor` shows what is possible";

/// The groups of one host. Where they can be made is found out when the first is wanted.
pub struct Cgroups {
    /// The program that runs [`crate::run_keeper`] when its argument is `keeper`.
    program: PathBuf,
    parents: Option<Result<Parents, String>>,
    keeper: Option<Keeper>,
    count: u64,
}

impl Cgroups {
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            parents: None,
            keeper: None,
            count: 0,
        }
    }

    /// Makes a group with `limits`.
    pub fn make(&mut self, limits: Limits) -> Result<Cgroup, Failure> {
        let parents = self.parents.get_or_insert_with(Parents::find);
        let parents = parents.as_ref().map_err(|why| {
            let message = format!("limits: no control group can be made: {why}");
            Failure::new(message, HINT)
        })?;
        self.count += 1;
        let name = name(self.count);
        for parent in parents.folders() {
            keep(&mut self.keeper, &self.program, &parent.join(&name)).map_err(|error| {
                let message = format!("limits: the keeper of control groups cannot run: {error}");
                Failure::new(
                    message,
                    "`ulimit -a` shows how many processes and files there may be",
                )
            })?;
        }
        Cgroup::create(parents, &name, limits)
    }

    /// The keeper, which is none of a server's processes.
    pub fn keeper(&self) -> Option<i32> {
        self.keeper.as_ref().map(Keeper::pid)
    }
}

/// Tells the keeper of a group; a first one, or another where somebody has killed it.
fn keep(keeper: &mut Option<Keeper>, program: &Path, group: &Path) -> io::Result<()> {
    if let Some(living) = keeper {
        if living.keep(group).is_ok() {
            return Ok(());
        }
    }
    keeper.insert(Keeper::start(program)?).keep(group)
}

/// The group of one started process.
#[derive(Debug)]
pub struct Cgroup {
    limits: Limits,
    version: u8,
    cpu: Folder,
    /// None where `cpu` has both controllers.
    memory: Option<Folder>,
}

impl Cgroup {
    fn create(parents: &Parents, name: &str, limits: Limits) -> Result<Self, Failure> {
        let folder = |parent: &Path| {
            Folder::create(parent, name).map_err(|error| {
                let path = parent.join(name);
                Failure::new(
                    format!("limits: {} cannot be made: {error}", path.display()),
                    HINT,
                )
            })
        };
        let mut folders = parents.folders().map(folder);
        let group = Self {
            limits,
            version: parents.version(),
            cpu: folders.next().expect("every version has a folder")?,
            memory: folders.next().transpose()?,
        };
        if let Some((time_us, period_us)) = limits.quota_us() {
            if group.version == 2 {
                group.cpu.set("cpu.max", format!("{time_us} {period_us}"))?;
            } else {
                group.cpu.set("cpu.cfs_period_us", period_us)?;
                group.cpu.set("cpu.cfs_quota_us", time_us)?;
            }
        }
        if let Some(bytes) = limits.memory_bytes {
            let [limit, swap, swap_value] = if group.version == 2 {
                ["memory.max", "memory.swap.max", "0"]
            } else {
                ["memory.limit_in_bytes", "memory.swappiness", "0"]
            };
            group.memory().set(limit, bytes)?;
            // Not there: nothing is swapped for the group.
            let _ = group.memory().set(swap, swap_value);
        }
        Ok(group)
    }

    fn memory(&self) -> &Folder {
        self.memory.as_ref().unwrap_or(&self.cpu)
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.cpu)
            .chain(&self.memory)
            .map(|folder| folder.path.as_path())
    }

    /// The files that a process joins the group by, writing `0`.
    pub fn doors(&self) -> Vec<PathBuf> {
        self.folders()
            .map(|folder| folder.join("cgroup.procs"))
            .collect()
    }

    /// How many of its processes the kernel has killed for want of memory; None without a limit.
    pub fn oom_kills(&self) -> Option<u64> {
        self.limits.memory_bytes?;
        let file = if self.version == 2 {
            "memory.events"
        } else {
            "memory.oom_control"
        };
        counter(
            &fs::read_to_string(self.memory().path.join(file)).ok()?,
            "oom_kill",
        )
    }

    /// As records tell it.
    pub fn record(&self) -> record::Cgroup {
        record::Cgroup {
            version: self.version,
            cpu: self.cpu.path.clone(),
            memory: self.memory().path.clone(),
        }
    }
}
