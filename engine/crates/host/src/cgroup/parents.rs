//! Where control groups can be made: found out by doing it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::folder::{Folder, name, sweep};
use weir_observe::hierarchies::{Mount, mounts, own_group};

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

    /// The one of both controllers, or that of `cpu` and that of `memory`.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        let (one, other) = match self {
            Self::V1 { cpu, memory } => (cpu, (memory != cpu).then_some(memory)),
            Self::V2(folder) => (folder, None),
        };
        std::iter::once(one).chain(other).map(PathBuf::as_path)
    }

    /// Of control groups.
    pub fn version(&self) -> u8 {
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

/// The own group of version 2, where groups can be made below it that have no controller `cpu`: with it the scheduler would weigh them
/// against each other.
pub fn account_parent() -> Option<PathBuf> {
    let (mounts, own) = tables().ok()?;
    let mount = mounts.iter().find(|mount| mount.controllers.is_none())?;
    let folder = mount.folder(own_group(&own, None)?)?;
    let handed_down = fs::read_to_string(folder.join("cgroup.subtree_control")).ok()?;
    let is_weighed = handed_down.split_whitespace().any(|one| one == "cpu");
    // The topmost group has no type. Below one of threads no process can be.
    let has_processes =
        fs::read_to_string(folder.join("cgroup.type")).map_or(true, |kind| kind.trim() == "domain");
    (!is_weighed && has_processes && try_out(&folder).is_ok()).then_some(folder)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    /// The machinery of version 2, with a controller that a machine of version 1 has left to it.
    #[test]
    fn version_2_hands_a_controller_down_and_what_nobody_owns_is_swept() {
        let Ok((mounts, own)) = tables() else {
            panic!("/proc cannot be read");
        };
        let Some(mount) = mounts.iter().find(|mount| mount.controllers.is_none()) else {
            return;
        };
        let handed_down = mount.point.join("cgroup.subtree_control");
        let before = read(&handed_down);
        let available = read(&mount.point.join("cgroup.controllers"));
        let Some(controller) = available.split_whitespace().last() else {
            return;
        };
        let Ok(Parents::V2(parent)) = v2(&mounts, &own, &[controller]) else {
            return;
        };
        let owned = Folder::create(&parent, &name(1)).expect("the parent was tried out");
        let path = owned.path.clone();
        assert!(read(&path.join("cgroup.controllers")).contains(controller));
        assert!(Folder::own(path.clone()).is_err(), "it has an owner");
        sweep(&parent);
        assert!(path.is_dir(), "what is owned is not swept");
        drop(owned);
        assert!(!path.exists());
        fs::create_dir(&path).expect("the parent was tried out");
        sweep(&parent);
        assert!(!path.exists(), "what nobody owns is swept");
        if !before.contains(controller) {
            let _ = fs::write(&handed_down, format!("-{controller}"));
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = v2(&[], "0::/\n", &["cpu"]);
        assert_eq!(error, Err("cgroup v2 is not mounted".to_owned()));
        let error = v1(&[], "4:memory:/\n");
        let expected = "cgroup v1: the controller cpu is not mounted";
        assert_eq!(error, Err(expected.to_owned()));
    }
}
