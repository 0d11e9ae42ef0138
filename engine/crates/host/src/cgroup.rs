//! Control groups: how much CPU and memory a started process gets, with everything below it, and what it has used of CPUs.
//!
//! For limits version 2 is taken where it has the controllers `cpu` and `memory`, else version 1, whose groups lie in a hierarchy for each. Words: a
//! *parent* is the group below which groups are made; a group is *owned* while the host that made it holds a lock on its folder, which the
//! kernel lets go of however that host ends.
//!
//! What is used is kept in a group of version 2 as well, without a controller: it changes nothing for who is in it. Where there can be none, nothing
//! is said of it: the observer then adds the processes up.
//!
//! A group is removed when its processes are gone; what a killed host leaves is removed by its [keeper](crate::keeper), or by the next host.

mod folder;
mod parents;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use folder::remove;
use folder::{Folder, name};
use parents::account_parent;
pub use parents::{Parents, sweep_leftovers};

use crate::command::Limits;
use crate::keeper::Keeper;
use crate::launch::Failure;
use crate::record;
use weir_observe::hierarchies::counter;

const HINT: &str = "run as root where /sys/fs/cgroup is writable, or leave [cpus] quota and memory out; `weir doctor` shows what is possible";

/// The groups of one host. Where they can be made is found out when the first is wanted.
pub struct Cgroups {
    /// The program that runs [`crate::run_keeper`] when its argument is `keeper`.
    program: PathBuf,
    parents: Option<Result<Parents, String>>,
    /// Where groups without limits are made; None inside: they cannot be.
    account_parent: Option<Option<PathBuf>>,
    keeper: Option<Keeper>,
    count: u64,
}

impl Cgroups {
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            parents: None,
            account_parent: None,
            keeper: None,
            count: 0,
        }
    }

    /// Makes a group with `limits`, or without any one that only counts, where that is possible.
    pub fn make(&mut self, limits: Option<Limits>) -> Result<Cgroup, Failure> {
        self.count += 1;
        let name = name(self.count);
        let limited = limits
            .map(|limits| self.limited(&name, limits))
            .transpose()?;
        // A process is in one group of version 2.
        let has_account = limited.as_ref().is_some_and(|group| group.version == 2);
        let account = if has_account {
            None
        } else {
            self.accounting(&name)
        };
        Ok(Cgroup { limited, account })
    }

    fn limited(&mut self, name: &str, limits: Limits) -> Result<Limited, Failure> {
        let parents = self.parents.get_or_insert_with(Parents::find);
        let parents = parents.as_ref().map_err(|why| {
            let message = format!("limits: no control group can be made: {why}");
            Failure::new(message, HINT)
        })?;
        for parent in parents.folders() {
            keep(&mut self.keeper, &self.program, &parent.join(name)).map_err(|error| {
                let message = format!("limits: the keeper of control groups cannot run: {error}");
                Failure::new(
                    message,
                    "`ulimit -a` shows how many processes and files there may be",
                )
            })?;
        }
        Limited::create(parents, name, limits)
    }

    /// None: there can be no such group.
    fn accounting(&mut self, name: &str) -> Option<Folder> {
        let parent = self.account_parent.get_or_insert_with(account_parent);
        let parent = parent.as_deref()?;
        keep(&mut self.keeper, &self.program, &parent.join(name)).ok()?;
        Folder::create(parent, name).ok()
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

/// The groups of one started process.
#[derive(Debug, Default)]
pub struct Cgroup {
    limited: Option<Limited>,
    /// Of version 2, without controllers. None: there is none, or `limited` counts.
    account: Option<Folder>,
}

impl Cgroup {
    /// The files that a process joins the groups by, writing `0`.
    pub fn doors(&self) -> Vec<PathBuf> {
        let limited = self.limited.iter().flat_map(Limited::folders);
        let account = self.account.iter().map(|folder| folder.path.as_path());
        limited
            .chain(account)
            .map(|folder| folder.join("cgroup.procs"))
            .collect()
    }

    /// How many of its processes the kernel has killed for want of memory; None without a limit.
    pub fn oom_kills(&self) -> Option<u64> {
        self.limited.as_ref()?.oom_kills()
    }

    /// As records tell it; None without limits.
    pub fn record(&self) -> Option<record::Cgroup> {
        self.limited.as_ref().map(Limited::record)
    }

    /// The folder whose `cpu.stat` tells what its processes have used.
    pub fn account(&self) -> Option<PathBuf> {
        let limited = self.limited.as_ref().filter(|group| group.version == 2);
        let folder = self.account.as_ref().or(limited.map(|group| &group.cpu))?;
        Some(folder.path.clone())
    }
}

/// A group with limits.
#[derive(Debug)]
struct Limited {
    limits: Limits,
    version: u8,
    cpu: Folder,
    /// None where `cpu` has both controllers.
    memory: Option<Folder>,
}

impl Limited {
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

    fn oom_kills(&self) -> Option<u64> {
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

    fn record(&self) -> record::Cgroup {
        record::Cgroup {
            version: self.version,
            cpu: self.cpu.path.clone(),
            memory: self.memory().path.clone(),
        }
    }
}
