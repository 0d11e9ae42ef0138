//! Control groups: limits of a server's CPU time and memory, and the kernel's sum of its CPU time.
//!
//! A *parent* is the group below which the host makes groups. The host *owns* a group while it holds a lock on its
//! folder; the kernel releases the lock when the host ends. The host removes a group after its processes. The groups of
//! a killed host stay, empty, until the next host removes them.
//!
//! Limits use version 2 if it has the controllers `cpu` and `memory`, else version 1, which has a hierarchy per
//! controller. Version 1 stays supported: many machines still mount these two controllers there, for example under
//! systemd's hybrid mode.
//!
//! A server without limits in version 2 gets a group of version 2 without controllers, which only sums CPU time. If the
//! host cannot make one, the observer adds up the processes.

mod folder;
mod parents;

use std::fs;
use std::path::{Path, PathBuf};

use folder::{Folder, name};
use parents::cpu_sum_parent;
pub use parents::{Parents, sweep_leftovers};

use crate::command::Limits;
use crate::launch::Failure;
use crate::record;
use weir_observe::hierarchies::counter;

const HINT: &str = "run as root where /sys/fs/cgroup is writable, or leave [cpus] quota and memory out; `weir doctor` shows what is possible";

/// The control groups of one host. It looks for the parents when it needs the first group.
#[derive(Default)]
pub struct Cgroups {
    parents: Option<Result<Parents, String>>,
    /// Parent of groups without limits. The inner `None`: the host cannot make such groups.
    cpu_sum_parent: Option<Option<PathBuf>>,
    count: u64,
}

impl Cgroups {
    /// Makes a group with `limits`. Without limits, makes a group that only sums CPU time, if possible.
    pub fn make(&mut self, limits: Option<Limits>) -> Result<Cgroup, Failure> {
        self.count += 1;
        let name = name(self.count);
        let limited = limits.map(|limits| self.make_limited(&name, limits)).transpose()?;
        // A process is in one group of version 2.
        let has_cpu_sum = limited.as_ref().is_some_and(|group| group.version == 2);
        let cpu_sum = if has_cpu_sum { None } else { self.make_cpu_sum(&name) };
        Ok(Cgroup { limited, cpu_sum })
    }

    fn make_limited(&mut self, name: &str, limits: Limits) -> Result<Limited, Failure> {
        let parents = self.parents.get_or_insert_with(Parents::find);
        let parents = parents.as_ref().map_err(|why| {
            let message = format!("limits: no control group can be made: {why}");
            Failure::new(message, HINT)
        })?;
        Limited::create(parents, name, limits)
    }

    /// Returns `None` if the host cannot make such a group.
    fn make_cpu_sum(&mut self, name: &str) -> Option<Folder> {
        let parent = self.cpu_sum_parent.get_or_insert_with(cpu_sum_parent);
        Folder::create(parent.as_deref()?, name).ok()
    }
}

/// The control groups of one server.
#[derive(Debug, Default)]
pub struct Cgroup {
    limited: Option<Limited>,
    /// A group of version 2 without controllers. `None` if `limited` sums CPU time, or if the host cannot make such a
    /// group.
    cpu_sum: Option<Folder>,
}

impl Cgroup {
    /// Returns the `cgroup.procs` files. A process joins a group by writing `0` to its file.
    pub fn procs_files(&self) -> Vec<PathBuf> {
        let limited = self.limited.iter().flat_map(Limited::folders);
        let cpu_sum = self.cpu_sum.iter().map(|folder| folder.path.as_path());
        limited.chain(cpu_sum).map(|folder| folder.join("cgroup.procs")).collect()
    }

    /// Returns the number of processes that the kernel killed at the memory limit. Returns `None` without that limit.
    pub fn oom_kills(&self) -> Option<u64> {
        self.limited.as_ref()?.oom_kills()
    }

    /// Returns the groups with limits for a record. Returns `None` without limits.
    pub fn record(&self) -> Option<record::Cgroup> {
        self.limited.as_ref().map(Limited::record)
    }

    /// Returns the folder whose `cpu.stat` sums the CPU time of the server. Returns `None` if there is none.
    pub fn cpu_folder(&self) -> Option<PathBuf> {
        let limited = self.limited.as_ref().filter(|group| group.version == 2);
        let folder = self.cpu_sum.as_ref().or(limited.map(|group| &group.cpu))?;
        Some(folder.path.clone())
    }
}

/// A group with limits.
#[derive(Debug)]
struct Limited {
    limits: Limits,
    version: u8,
    cpu: Folder,
    /// `None` if `cpu` has both controllers.
    memory: Option<Folder>,
}

impl Limited {
    fn create(parents: &Parents, name: &str, limits: Limits) -> Result<Self, Failure> {
        let folder = |parent: &Path| {
            Folder::create(parent, name).map_err(|error| {
                let path = parent.join(name);
                Failure::new(format!("limits: {} cannot be made: {error}", path.display()), HINT)
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
            // A missing file means that the group cannot swap.
            let _ = group.memory().set(swap, swap_value);
        }
        Ok(group)
    }

    fn memory(&self) -> &Folder {
        self.memory.as_ref().unwrap_or(&self.cpu)
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.cpu).chain(&self.memory).map(|folder| folder.path.as_path())
    }

    fn oom_kills(&self) -> Option<u64> {
        self.limits.memory_bytes?;
        let file = if self.version == 2 { "memory.events" } else { "memory.oom_control" };
        counter(&fs::read_to_string(self.memory().path.join(file)).ok()?, "oom_kill")
    }

    fn record(&self) -> record::Cgroup {
        record::Cgroup { version: self.version, cpu: self.cpu.path.clone(), memory: self.memory().path.clone() }
    }
}
