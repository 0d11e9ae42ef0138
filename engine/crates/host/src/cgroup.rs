//! Control groups: how much CPU and memory a started process gets, with everything below it.
//!
//! Version 2 is taken where it has the controllers `cpu` and `memory`, else version 1, whose groups lie in a hierarchy for each. Words: a
//! *parent* is the group below which groups are made; a group is *owned* while the host that made it holds a lock on its folder, which the
//! kernel lets go of however that host ends.
//!
//! A group is removed when its processes are gone; what a killed host leaves is removed by its [keeper](crate::keeper), or by the next host.

mod tables;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use tables::{Mount, counter, mounts, own_group};

use crate::command::Limits;
use crate::keeper::Keeper;
use crate::launch::Failure;
use crate::record;

/// What the names of all our groups begin with.
const PREFIX: &str = "weir-";
/// A process is in its group for a moment after it was reaped, since it is still on its way off the CPU.
const REMOVAL_TRIES: u32 = 50;
const REMOVAL_INTERVAL: Duration = Duration::from_millis(1);
const HINT: &str = "run as root where /sys/fs/cgroup is writable, or leave [cpus] quota and memory out; `weir doctor` shows what is possible";

/// Where groups are made.
#[derive(Debug, PartialEq)]
pub enum Parents {
    V1 { cpu: PathBuf, memory: PathBuf },
    V2(PathBuf),
}

impl Parents {
    /// Finds out where this process may make groups, by making one.
    pub fn find() -> Result<Self, String> {
        let (mounts, own) = tables()?;
        v2(&mounts, &own, &["cpu", "memory"]).or_else(|why_not_v2| {
            v1(&mounts, &own).map_err(|why_not_v1| format!("{why_not_v2}; {why_not_v1}"))
        })
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        let (one, other) = match self {
            Self::V1 { cpu, memory } => (cpu, (memory != cpu).then_some(memory)),
            Self::V2(folder) => (folder, None),
        };
        std::iter::once(one).chain(other).map(PathBuf::as_path)
    }

    fn version(&self) -> u8 {
        if matches!(self, Self::V2(_)) { 2 } else { 1 }
    }

    /// What is possible, in words.
    pub fn detail(&self) -> String {
        let folders: Vec<_> = self
            .folders()
            .map(|path| path.display().to_string())
            .collect();
        format!("cgroup v{} below {}", self.version(), folders.join(" and "))
    }
}

fn tables() -> Result<(Vec<Mount>, String), String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    Ok((
        mounts(&read("/proc/self/mountinfo")?),
        read("/proc/self/cgroup")?,
    ))
}

/// Removes what hosts have left that are gone, wherever this one would make groups.
pub fn sweep_leftovers() {
    let Ok((mounts, own)) = tables() else { return };
    for mount in &mounts {
        let groups: Vec<_> = match &mount.controllers {
            None => own_group(&own, None).into_iter().collect(),
            Some(names) => names
                .iter()
                .filter_map(|name| own_group(&own, Some(name)))
                .take(1)
                .collect(),
        };
        for folder in groups.into_iter().filter_map(|group| mount.folder(group)) {
            folder
                .ancestors()
                .take_while(|path| path.starts_with(&mount.point))
                .for_each(sweep);
        }
    }
}

/// The hierarchies of version 1 with the two controllers, below the own groups.
fn v1(mounts: &[Mount], own: &str) -> Result<Parents, String> {
    let parent = |controller: &str| {
        let mount = mounts.iter().find(|mount| {
            let controllers = mount.controllers.as_deref().unwrap_or_default();
            controllers.iter().any(|one| one == controller)
        });
        let folder = own_group(own, Some(controller)).zip(mount);
        let folder = folder
            .and_then(|(group, mount)| mount.folder(group))
            .ok_or_else(|| format!("cgroup v1: the controller {controller} is not mounted"))?;
        try_out(&folder).map_err(|error| format!("cgroup v1: {}: {error}", folder.display()))?;
        Ok::<_, String>(folder)
    };
    Ok(Parents::V1 {
        cpu: parent("cpu")?,
        memory: parent("memory")?,
    })
}

/// The nearest group of version 2, from this process's own upwards, whose children get the `controllers`. The own one gives them to none as
/// long as it holds processes, except where it is the topmost.
fn v2(mounts: &[Mount], own: &str, controllers: &[&str]) -> Result<Parents, String> {
    let mount = mounts.iter().find(|mount| mount.controllers.is_none());
    let mount = mount.ok_or("cgroup v2 is not mounted")?;
    let folder = own_group(own, None).and_then(|group| mount.folder(group));
    let own = folder.ok_or("cgroup v2: this process's own group is not mounted")?;
    let mut why = String::new();
    for folder in own
        .ancestors()
        .take_while(|path| path.starts_with(&mount.point))
    {
        match hand_down(folder, controllers).and_then(|()| try_out(folder)) {
            Ok(()) => return Ok(Parents::V2(folder.to_owned())),
            Err(error) => why = format!("cgroup v2: {}: {error}", folder.display()),
        }
    }
    Err(why)
}

/// Lets the children of a group have the controllers.
fn hand_down(folder: &Path, controllers: &[&str]) -> io::Result<()> {
    let has = |file: &str, controller: &&str| {
        let text = fs::read_to_string(folder.join(file))?;
        Ok::<_, io::Error>(text.split_whitespace().any(|one| one == *controller))
    };
    for controller in controllers {
        if has("cgroup.subtree_control", controller)? {
            continue;
        }
        if !has("cgroup.controllers", controller)? {
            return Err(io::Error::other(format!(
                "it has no controller {controller}"
            )));
        }
        fs::write(
            folder.join("cgroup.subtree_control"),
            format!("+{controller}"),
        )?;
    }
    Ok(())
}

fn try_out(parent: &Path) -> io::Result<()> {
    Folder::create(parent, &name(u64::MAX)).map(drop)
}

fn name(number: u64) -> String {
    format!("{PREFIX}{}-{number}", std::process::id())
}

/// Removes groups whose owner is gone. One that still holds processes stays: they are about to be killed with their namespace.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        if is_ours {
            // Taking the lock of a group that nobody owns; dropping it removes the folder.
            drop(Folder::own(entry.path()));
        }
    }
}

/// A group's folder in one hierarchy, owned.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Holds the lock.
    _handle: OwnedFd,
}

impl Folder {
    /// A host that starts at this very moment may find the new folder without an owner and remove it; then once more.
    fn create(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(name);
        for _ in 1..REMOVAL_TRIES {
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            match Self::own(path.clone()) {
                Ok(folder) if folder.path.is_dir() => return Ok(folder),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(REMOVAL_INTERVAL);
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    fn own(path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(CWD, &path, flags, Mode::empty())?;
        rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self {
            path,
            _handle: handle,
        })
    }

    fn set(&self, file: &str, value: impl ToString) -> Result<(), Failure> {
        let path = self.path.join(file);
        fs::write(&path, value.to_string()).map_err(|error| {
            let message = format!(
                "limits: {} to {}: {error}",
                value.to_string(),
                path.display()
            );
            Failure::new(
                message,
                "the group above may allow less, or have no memory left for it",
            )
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a group, waiting a little for processes that are on their way out; gives whether it is gone.
pub fn remove(path: &Path) -> bool {
    for _ in 0..REMOVAL_TRIES {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(REMOVAL_INTERVAL);
            }
            Ok(()) => return true,
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        }
    }
    false
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The mechanics of version 2 with a controller that the machine's version 1 has left to it.
    #[test]
    fn version_2_hands_its_controllers_down_and_owns_what_it_makes() {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mounts = mounts(&read("/proc/self/mountinfo"));
        let own = read("/proc/self/cgroup");
        let root = mounts.iter().find(|mount| mount.controllers.is_none());
        let free = root.map(|mount| {
            read(
                &mount
                    .point
                    .join("cgroup.subtree_control")
                    .display()
                    .to_string(),
            )
        });
        let free = free.unwrap_or_default();
        let controllers: Vec<_> = free.split_whitespace().take(1).collect();
        let Ok(parents) = v2(&mounts, &own, &controllers) else {
            return;
        };
        let Parents::V2(parent) = &parents else {
            panic!("{parents:?}");
        };
        let owned = Folder::create(parent, &name(1)).expect("the parent was tried out");
        let path = owned.path.clone();
        assert!(Folder::own(path.clone()).is_err(), "it has an owner");
        sweep(parent);
        assert!(path.is_dir(), "what is owned is not swept");
        drop(owned);
        assert!(!path.exists());
        fs::create_dir(&path).expect("the parent was tried out");
        sweep(parent);
        assert!(!path.exists(), "what nobody owns is swept");
    }

    #[test]
    fn a_controller_that_is_not_there_is_named() {
        let error = v2(&[], "0::/\n", &["cpu"]);
        assert_eq!(error, Err("cgroup v2 is not mounted".to_owned()));
    }
}
