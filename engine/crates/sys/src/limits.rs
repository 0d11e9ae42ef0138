//! Limits and priority of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};
use rustix::thread::sched_getaffinity;

/// Raises the soft limit of open files to `wanted`, or to the hard limit if that is lower. Never lowers it. Returns the
/// limits before.
///
/// A refusal is no error here: the caller reads the new limit, or notices when it cannot open a file.
pub fn raise_open_files(wanted: u64) -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    let raised = before.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if before.current.is_some_and(|current| current < raised) {
        let limits = Rlimit { current: Some(raised), maximum: before.maximum };
        let _ = setrlimit(Resource::Nofile, limits);
    }
    before
}

/// Returns the soft limit of open files. Returns `None` if there is no limit.
pub fn max_open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The lowest priority: every other thread gets the CPU first.
pub const LOWEST_PRIORITY: i32 = 19;

/// Lowers the priority of the calling thread to `nice`. A refusal is no error: lower values than the present one need a
/// capability.
pub fn lower_priority(nice: i32) {
    let _ = setpriority_process(None, nice);
}

/// Returns whether the calling thread may run on one CPU only, of a machine that has several.
pub fn is_confined_to_one_cpu() -> bool {
    let is_one = sched_getaffinity(None).is_ok_and(|cpus| cpus.count() == 1);
    // A list of ranges, such as `0-7`; a single number if there is one CPU.
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    is_one && online.contains(['-', ','])
}
