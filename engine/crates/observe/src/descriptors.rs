//! The observer's limit on open files. Two files per thread stay open, which saves a third of its work.

use rustix::process::Rlimit;
use weir_sys::limits;

/// Descriptors for the other files of the process.
const RESERVE: u64 = 256;
/// A million open files would take 100 MB of kernel memory.
const MAX_OPEN_FILES: u64 = 65_536;

/// Raises this process's limit on open files. Returns the limits before, which started servers must get back.
pub fn raise_open_files() -> Rlimit {
    // If this fails, the observer opens the files beyond the limit at each read.
    limits::raise_open_files(MAX_OPEN_FILES)
}

/// Returns the first descriptor number that does not stay open.
pub fn descriptor_limit() -> i32 {
    let current = limits::max_open_files().unwrap_or(MAX_OPEN_FILES);
    i32::try_from(current.min(MAX_OPEN_FILES).saturating_sub(RESERVE)).unwrap_or(i32::MAX)
}
