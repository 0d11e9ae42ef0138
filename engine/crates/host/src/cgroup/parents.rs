//! Finds the parents of control groups by making a group in each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::folder::{Folder, name, sweep};
use weir_observe::hierarchies::{Mount, mounts, own_group};

/// The groups below which the host makes its groups.
#[derive(Debug, PartialEq)]
pub enum Parents {
    V1 { cpu: PathBuf, memory: PathBuf },
    V2(PathBuf),
}

impl Parents {
    /// Finds the parents by making a group in each.
    pub fn find() -> Result<Self, String> {
        let (mounts, own) = tables()?;
        v2(&mounts, &own, &["cpu", "memory"])
            .or_else(|why_not_v2| v1(&mounts, &own).map_err(|why_not_v1| format!("{why_not_v2}; {why_not_v1}")))
    }

    /// Returns the parent for both controllers, or the parents for `cpu` and for `memory`.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        let (one, other) = match self {
            Self::V1 { cpu, memory } => (cpu, (memory != cpu).then_some(memory)),
            Self::V2(folder) => (folder, None),
        };
        std::iter::once(one).chain(other).map(PathBuf::as_path)
    }

    /// Returns the version of the control groups.
    pub fn version(&self) -> u8 {
        if matches!(self, Self::V2(_)) { 2 } else { 1 }
    }

    /// Describes the parents.
    pub fn detail(&self) -> String {
        let folders: Vec<_> = self.folders().map(|path| path.display().to_string()).collect();
        format!("cgroup v{} below {}", self.version(), folders.join(" and "))
    }
}

fn tables() -> Result<(Vec<Mount>, String), String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    Ok((mounts(&read("/proc/self/mountinfo")?), read("/proc/self/cgroup")?))
}

/// Returns the host's own group of version 2, if its children have no controller `cpu`. With that controller the
/// scheduler would balance the children against each other. Returns `None` if the host cannot make groups there.
pub fn cpu_sum_parent() -> Option<PathBuf> {
    let (mounts, own) = tables().ok()?;
    let mount = mounts.iter().find(|mount| mount.controllers.is_none())?;
    let folder = mount.folder(own_group(&own, None)?)?;
    let enabled = fs::read_to_string(folder.join("cgroup.subtree_control")).ok()?;
    let is_weighed = enabled.split_whitespace().any(|one| one == "cpu");
    // The root group has no type. A threaded group takes no processes.
    let has_processes = fs::read_to_string(folder.join("cgroup.type")).map_or(true, |kind| kind.trim() == "domain");
    (!is_weighed && has_processes && check_creation(&folder).is_ok()).then_some(folder)
}

/// Removes the groups of ended hosts below every possible parent.
pub fn sweep_leftovers() {
    let Ok((mounts, own)) = tables() else { return };
    for mount in &mounts {
        let groups: Vec<_> = match &mount.controllers {
            None => own_group(&own, None).into_iter().collect(),
            Some(names) => names.iter().filter_map(|name| own_group(&own, Some(name))).take(1).collect(),
        };
        for folder in groups.into_iter().filter_map(|group| mount.folder(group)) {
            folder.ancestors().take_while(|path| path.starts_with(&mount.point)).for_each(sweep);
        }
    }
}

/// Returns the host's own groups in version 1's hierarchies of the two controllers.
fn v1(mounts: &[Mount], own: &str) -> Result<Parents, String> {
    let parent = |controller: &str| {
        let mount = mounts.iter().find(|mount| mount.has_controller(controller));
        let folder = own_group(own, Some(controller)).zip(mount);
        let folder = folder
            .and_then(|(group, mount)| mount.folder(group))
            .ok_or_else(|| format!("cgroup v1: the controller {controller} is not mounted"))?;
        check_creation(&folder).map_err(|error| format!("cgroup v1: {}: {error}", folder.display()))?;
        Ok::<_, String>(folder)
    };
    Ok(Parents::V1 { cpu: parent("cpu")?, memory: parent("memory")? })
}

/// Returns the nearest group of version 2, from this process's own group upwards, whose children can have the
/// `controllers`. A group that holds processes, other than the root, cannot enable controllers for its children.
fn v2(mounts: &[Mount], own: &str, controllers: &[&str]) -> Result<Parents, String> {
    let mount = mounts.iter().find(|mount| mount.controllers.is_none());
    let mount = mount.ok_or("cgroup v2 is not mounted")?;
    let folder = own_group(own, None).and_then(|group| mount.folder(group));
    let own = folder.ok_or("cgroup v2: this process's own group is not mounted")?;
    let mut why = String::new();
    for folder in own.ancestors().take_while(|path| path.starts_with(&mount.point)) {
        match enable_controllers(folder, controllers).and_then(|()| check_creation(folder)) {
            Ok(()) => return Ok(Parents::V2(folder.to_owned())),
            Err(error) => why = format!("cgroup v2: {}: {error}", folder.display()),
        }
    }
    Err(why)
}

/// Enables the controllers for the children of a group.
fn enable_controllers(folder: &Path, controllers: &[&str]) -> io::Result<()> {
    let has = |file: &str, controller: &&str| {
        let text = fs::read_to_string(folder.join(file))?;
        Ok::<_, io::Error>(text.split_whitespace().any(|one| one == *controller))
    };
    for controller in controllers {
        if has("cgroup.subtree_control", controller)? {
            continue;
        }
        if !has("cgroup.controllers", controller)? {
            return Err(io::Error::other(format!("it has no controller {controller}")));
        }
        fs::write(folder.join("cgroup.subtree_control"), format!("+{controller}"))?;
    }
    Ok(())
}

fn check_creation(parent: &Path) -> io::Result<()> {
    Folder::create(parent, &name(u64::MAX)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Version 2 with any controller that this machine has there.
    #[test]
    fn v2_enables_controllers_and_sweeps_unlocked_groups() {
        let Ok((mounts, own)) = tables() else {
            panic!("/proc cannot be read");
        };
        let Some(mount) = mounts.iter().find(|mount| mount.controllers.is_none()) else {
            return;
        };
        let enabled = mount.point.join("cgroup.subtree_control");
        let before = read(&enabled);
        let available = read(&mount.point.join("cgroup.controllers"));
        let Some(controller) = available.split_whitespace().last() else {
            return;
        };
        let Ok(Parents::V2(parent)) = v2(&mounts, &own, &[controller]) else {
            return;
        };
        let owned = Folder::create(&parent, &name(1)).expect("the parent was checked");
        let path = owned.path.clone();
        assert!(read(&path.join("cgroup.controllers")).contains(controller));
        assert!(Folder::lock(path.clone()).is_err(), "it is locked");
        sweep(&parent);
        assert!(path.is_dir(), "a locked group stays");
        drop(owned);
        assert!(!path.exists());
        fs::create_dir(&path).expect("the parent was checked");
        sweep(&parent);
        assert!(!path.exists(), "an unlocked group is removed");
        if !before.contains(controller) {
            let _ = fs::write(&enabled, format!("-{controller}"));
        }
    }

    #[test]
    fn missing_hierarchy_is_named() {
        let error = v2(&[], "0::/\n", &["cpu"]);
        assert_eq!(error, Err("cgroup v2 is not mounted".to_owned()));
        let error = v1(&[], "4:memory:/\n");
        let expected = "cgroup v1: the controller cpu is not mounted";
        assert_eq!(error, Err(expected.to_owned()));
    }
}
