//! How long CPU quotas held processes back, from the cgroups that they are in: version 1's `cpu` hierarchy where there is one, else version 2.
//!
//! A cgroup counts for every process in it, whoever it belongs to, and only what its own quota did: not what the cgroups around it did.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::parse;

/// What a cgroup's quota has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttled {
    pub periods: u64,
    pub seconds: f64,
}

/// Where the cgroups that have CPU quotas are mounted.
pub struct Cgroups(Option<Mount>);

struct Mount {
    point: PathBuf,
    /// What of the hierarchy is mounted there.
    root: PathBuf,
    is_version_1: bool,
}

/// The cgroups that the processes of one tree have been in, those that are gone too.
#[derive(Default)]
pub struct SeenCgroups(HashMap<PathBuf, Throttled>);

impl Cgroups {
    /// Finds the mount; without one nothing is ever counted.
    pub fn find() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self(mount_in(&mounts))
    }

    /// The folder of the cgroup that a process with this `/proc/PID/cgroup` is in.
    pub fn folder_of(&self, cgroup: &[u8]) -> Option<PathBuf> {
        let mount = self.0.as_ref()?;
        let cgroup = String::from_utf8_lossy(cgroup);
        let path = path_in(&cgroup, mount.is_version_1)?;
        let below = path.strip_prefix(&mount.root).ok()?;
        Some(mount.point.join(below))
    }
}

impl SeenCgroups {
    /// Reads a cgroup, once more or for the first time.
    pub fn read(&mut self, folder: PathBuf) {
        let Ok(text) = std::fs::read(folder.join("cpu.stat")) else {
            return;
        };
        if let Some(throttled) = throttled(&text) {
            self.0.insert(folder, throttled);
        }
    }

    /// All of them together; what those that are gone had is in it. None: none of them counts.
    pub fn total(&self) -> Option<Throttled> {
        let add = |sum: Throttled, one: &Throttled| Throttled {
            periods: sum.periods + one.periods,
            seconds: sum.seconds + one.seconds,
        };
        (!self.0.is_empty()).then(|| self.0.values().fold(Throttled::default(), add))
    }
}

fn mount_in(mountinfo: &str) -> Option<Mount> {
    let mut version_2 = None;
    for line in mountinfo.lines() {
        // proc_pid_mountinfo(5): behind a lone `-` come the file system and its own options.
        let Some((mount, kind)) = line.split_once(" - ") else {
            continue;
        };
        let (mount, kind): (Vec<&str>, Vec<&str>) =
            (mount.split(' ').collect(), kind.split(' ').collect());
        let (Some(&root), Some(&point)) = (mount.get(3), mount.get(4)) else {
            continue;
        };
        let mut options = kind.get(2).copied().unwrap_or_default().split(',');
        let is_version_1 = kind[0] == "cgroup" && options.any(|option| option == "cpu");
        if !is_version_1 && kind[0] != "cgroup2" {
            continue;
        }
        let found = Mount {
            point: PathBuf::from(point),
            root: PathBuf::from(root),
            is_version_1,
        };
        if is_version_1 {
            return Some(found);
        }
        version_2.get_or_insert(found);
    }
    version_2
}

/// Lines `number:controllers:path`; version 2 has number 0 and no controllers.
fn path_in(cgroup: &str, is_version_1: bool) -> Option<&Path> {
    cgroup.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match is_version_1 {
            true => controllers.split(',').any(|controller| controller == "cpu"),
            false => controllers.is_empty(),
        };
        is_it.then(|| Path::new(path))
    })
}

/// A `cpu.stat`: in version 1 `throttled_time` in nanoseconds, in version 2 `throttled_usec`; neither where the cgroup has no CPU controller.
fn throttled(text: &[u8]) -> Option<Throttled> {
    let value = |name: &[u8]| parse::number(parse::named_value(text, name)?);
    let nanoseconds = value(b"throttled_time").map(|time| time as f64);
    let microseconds = value(b"throttled_usec").map(|time| time as f64);
    Some(Throttled {
        periods: value(b"nr_throttled")?,
        seconds: nanoseconds
            .map(|time| time / 1e9)
            .or(microseconds.map(|time| time / 1e6))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
        33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";

    #[test]
    fn version_1_is_taken_where_it_has_the_cpu_controller() {
        let cgroups = Cgroups(mount_in(MIXED));
        let folder = cgroups.folder_of(b"2:cpuacct:/no\n1:cpu:/weir/app\n0::/other\n");
        assert_eq!(
            folder.as_deref(),
            Some(Path::new("/sys/fs/cgroup/cpu/weir/app"))
        );
    }

    #[test]
    fn version_2_mounted_from_a_part_of_the_hierarchy_is_found_below_its_mount() {
        let cgroups = Cgroups(mount_in(
            "30 23 0:26 /user /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
        ));
        assert_eq!(
            cgroups.folder_of(b"0::/user/a b\n").as_deref(),
            Some(Path::new("/sys/fs/cgroup/a b"))
        );
        assert_eq!(cgroups.folder_of(b"0::/elsewhere\n"), None);
    }

    #[test]
    fn both_versions_of_cpu_stat_are_read() {
        let expected = Some(Throttled {
            periods: 3,
            seconds: 1.5,
        });
        let version_1 = b"nr_periods 9\nnr_throttled 3\nthrottled_time 1500000000\n";
        let version_2 = b"usage_usec 7\nnr_periods 9\nnr_throttled 3\nthrottled_usec 1500000\n";
        assert_eq!(throttled(version_1), expected);
        assert_eq!(throttled(version_2), expected);
        assert_eq!(throttled(b"usage_usec 7\nuser_usec 7\n"), None);
    }

    #[test]
    fn a_cgroup_that_is_gone_keeps_its_share() {
        let mut seen = SeenCgroups::default();
        assert_eq!(seen.total(), None);
        let one = Throttled {
            periods: 2,
            seconds: 0.5,
        };
        seen.0.insert(PathBuf::from("/gone"), one);
        seen.read(PathBuf::from("/gone"));
        assert_eq!(seen.total(), Some(one));
    }
}
