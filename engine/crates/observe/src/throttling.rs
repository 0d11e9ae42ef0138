//! Throttling by CPU quotas, from the processes' cgroups: version 1's `cpu` hierarchy if it is mounted, else version 2.
//! Many machines still mount the controllers in version 1.
//!
//! A cgroup counts the throttling of all its processes by its own quota, not by quotas of its ancestors.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::hierarchies::{Mount, mounts, own_group};
use crate::parse;

const CONTROLLER: &str = "cpu";

/// The throttling of a cgroup so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttled {
    pub periods: u64,
    pub seconds: f64,
}

/// The mounted hierarchy whose cgroups have CPU quotas, if there is one.
pub struct QuotaHierarchy(Option<Mount>);

/// The throttling of all cgroups that a tree's processes have been in, removed ones included.
#[derive(Default)]
pub struct SeenCgroups(HashMap<PathBuf, Throttled>);

impl QuotaHierarchy {
    /// Finds the hierarchy. Without one, nothing is ever counted.
    pub fn find() -> Self {
        let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self(find_quotas(&mountinfo))
    }

    /// Returns the folder of a process's cgroup from its `/proc/PID/cgroup`.
    pub fn folder(&self, cgroup: &[u8]) -> Option<PathBuf> {
        let mount = self.0.as_ref()?;
        let controller = mount.controllers.as_ref().map(|_| CONTROLLER);
        mount.folder(own_group(&String::from_utf8_lossy(cgroup), controller)?)
    }
}

/// Returns version 1's hierarchy with the CPU controller, else version 2's.
fn find_quotas(mountinfo: &str) -> Option<Mount> {
    let mut found = mounts(mountinfo);
    let is_version_1 = |mount: &Mount| mount.has_controller(CONTROLLER);
    let index =
        found.iter().position(is_version_1).or_else(|| found.iter().position(|mount| mount.controllers.is_none()))?;
    Some(found.swap_remove(index))
}

impl SeenCgroups {
    /// Reads a cgroup.
    pub fn read(&mut self, folder: PathBuf) {
        let Ok(text) = std::fs::read(folder.join("cpu.stat")) else {
            return;
        };
        if let Some(throttled) = parse_throttled(&text) {
            self.0.insert(folder, throttled);
        }
    }

    /// Returns the sum over all cgroups seen, removed ones included. Returns `None` if none reports its throttling.
    pub fn total(&self) -> Option<Throttled> {
        let add = |sum: Throttled, one: &Throttled| Throttled {
            periods: sum.periods + one.periods,
            seconds: sum.seconds + one.seconds,
        };
        (!self.0.is_empty()).then(|| self.0.values().fold(Throttled::default(), add))
    }
}

/// Parses a `cpu.stat`. Version 1 has `throttled_time` in nanoseconds, version 2 `throttled_usec`. Returns `None`
/// without a CPU controller.
fn parse_throttled(text: &[u8]) -> Option<Throttled> {
    let value = |name: &[u8]| parse::number(parse::named_value(text, name)?);
    let nanoseconds = value(b"throttled_time").map(|time| time as f64);
    let microseconds = value(b"throttled_usec").map(|time| time as f64);
    Some(Throttled {
        periods: value(b"nr_throttled")?,
        seconds: nanoseconds.map(|time| time / 1e9).or(microseconds.map(|time| time / 1e6))?,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const MIXED: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
        33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";

    #[test]
    fn v1_cpu_controller_is_preferred() {
        let cgroups = QuotaHierarchy(find_quotas(MIXED));
        let folder = cgroups.folder(b"2:cpuacct:/no\n1:cpu:/weir/app\n0::/other\n");
        assert_eq!(folder.as_deref(), Some(Path::new("/sys/fs/cgroup/cpu/weir/app")));
    }

    #[test]
    fn v2_folder_is_below_its_mount() {
        let cgroups = QuotaHierarchy(find_quotas(
            "30 23 0:26 /user /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
        ));
        assert_eq!(cgroups.folder(b"0::/user/a b\n").as_deref(), Some(Path::new("/sys/fs/cgroup/a b")));
        assert_eq!(cgroups.folder(b"0::/elsewhere\n"), None);
    }

    #[test]
    fn mount_point_with_space_is_found() {
        let cgroups = QuotaHierarchy(find_quotas("30 23 0:26 / /sys/fs/my\\040groups rw - cgroup2 cgroup2 rw\n"));
        assert_eq!(cgroups.folder(b"0::/app\n").as_deref(), Some(Path::new("/sys/fs/my groups/app")));
    }

    #[test]
    fn cpu_stat_of_both_versions_parses() {
        let expected = Some(Throttled { periods: 3, seconds: 1.5 });
        let version_1 = b"nr_periods 9\nnr_throttled 3\nthrottled_time 1500000000\n";
        let version_2 = b"usage_usec 7\nnr_periods 9\nnr_throttled 3\nthrottled_usec 1500000\n";
        assert_eq!(parse_throttled(version_1), expected);
        assert_eq!(parse_throttled(version_2), expected);
        assert_eq!(parse_throttled(b"usage_usec 7\nuser_usec 7\n"), None);
    }

    #[test]
    fn removed_cgroup_keeps_its_share() {
        let mut seen = SeenCgroups::default();
        assert_eq!(seen.total(), None);
        let one = Throttled { periods: 2, seconds: 0.5 };
        seen.0.insert(PathBuf::from("/gone"), one);
        seen.read(PathBuf::from("/gone"));
        assert_eq!(seen.total(), Some(one));
    }
}
