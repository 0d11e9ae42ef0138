//! Parsers for the mounted hierarchies of control groups, and for a process's groups in them, without I/O.

use std::path::{Path, PathBuf};

/// A mounted hierarchy of control groups.
#[derive(Debug, PartialEq)]
pub struct Mount {
    /// The mount point.
    pub point: PathBuf,
    /// The mounted group. In a container this is often not the root group.
    root: PathBuf,
    /// Controllers of a version 1 hierarchy. `None`: version 2, which has all other controllers.
    pub controllers: Option<Vec<String>>,
}

/// Returns the hierarchies in a `/proc/PID/mountinfo`.
pub fn mounts(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_mount).collect()
}

/// Parses `36 35 98:0 /root /point rw,noatime optional… - type source options`, see proc_pid_mountinfo(5).
fn parse_mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let kind = after.next()?;
    let options = after.nth(1)?;
    let controllers = match kind {
        "cgroup2" => None,
        "cgroup" => Some(options.split(',').map(str::to_owned).collect()),
        _ => return None,
    };
    Some(Mount { point: unescape(point), root: unescape(root), controllers })
}

/// Decodes the escapes of spaces, tabs, line ends and backslashes, such as `\040`.
pub fn unescape(field: &str) -> PathBuf {
    let spaces = field.replace("\\040", " ").replace("\\011", "\t");
    PathBuf::from(spaces.replace("\\012", "\n").replace("\\134", "\\"))
}

/// Returns a process's group in a hierarchy from its `/proc/PID/cgroup`: `4:memory:/one` for a controller of version 1,
/// `0::/one` for version 2 (no controller).
pub fn own_group<'a>(cgroup: &'a str, controller: Option<&str>) -> Option<&'a Path> {
    cgroup.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_it = match controller {
            Some(controller) => controllers.split(',').any(|one| one == controller),
            None => number == "0" && controllers.is_empty(),
        };
        is_it.then(|| Path::new(path))
    })
}

impl Mount {
    /// Returns whether this is a version 1 hierarchy with a controller.
    pub fn has_controller(&self, controller: &str) -> bool {
        let names = self.controllers.as_deref().unwrap_or_default();
        names.iter().any(|name| name == controller)
    }

    /// Returns the folder of a group. Returns `None` if the group lies outside the mounted part of the hierarchy.
    pub fn folder(&self, group: &Path) -> Option<PathBuf> {
        let below = group.strip_prefix(&self.root).ok()?;
        // Joining nothing would add a slash.
        Some(self.point.components().chain(below.components()).collect())
    }
}

/// Returns the value of a line `name value`, as in memory.events and memory.oom_control.
pub fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == name).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "30 24 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        34 30 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        40 30 0:36 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const CONTAINER: &str =
        "612 600 0:31 /docker/ab12 /sys/fs/cgroup/my\\040groups ro,nosuid - cgroup2 cgroup rw,nsdelegate\n";

    #[test]
    fn hybrid_mounts_parse() {
        let found = mounts(HYBRID);
        let points: Vec<_> = found.iter().map(|mount| mount.point.to_str()).collect();
        assert_eq!(points, [Some("/sys/fs/cgroup/cpu"), Some("/sys/fs/cgroup/memory"), Some("/sys/fs/cgroup/unified")]);
        let first = found[0].controllers.as_ref().map(|names| names.join(" "));
        assert_eq!(first.as_deref(), Some("rw cpu cpuacct"));
        assert_eq!(found[2].controllers, None);
    }

    #[test]
    fn folder_is_below_the_mounted_group() {
        let mount = &mounts(CONTAINER)[0];
        assert_eq!(
            mount.folder(Path::new("/docker/ab12/below")),
            Some(PathBuf::from("/sys/fs/cgroup/my groups/below"))
        );
        assert_eq!(mount.folder(Path::new("/other")), None);
    }

    #[test]
    fn own_group_is_found_by_controller() {
        let text = "4:memory:/one\n3:cpu,cpuacct:/two\n9:name=systemd:/three\n0::/four\n";
        assert_eq!(own_group(text, Some("memory")), Some(Path::new("/one")));
        assert_eq!(own_group(text, Some("cpu")), Some(Path::new("/two")));
        assert_eq!(own_group(text, Some("pids")), None);
        assert_eq!(own_group(text, None), Some(Path::new("/four")));
        assert_eq!(own_group("4:memory:/one\n", None), None);
    }

    #[test]
    fn counter_is_found_by_name() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(counter(text, "oom_kill"), Some(3));
        assert_eq!(counter(text, "oom"), None);
    }
}
