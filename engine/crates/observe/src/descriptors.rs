//! How many descriptors the observer may have: two for each thread that it watches stay open, which spares a third of its work.

use rustix::process::Rlimit;
use weir_sys::limits;

/// Left for everything else that the process opens.
const RESERVE: u64 = 256;
/// A million open files would be a hundred megabytes of the kernel's memory.
const MAX_OPEN_FILES: u64 = 65_536;

/// Raises this process's limit on open files. Returns the limits before: processes started from here on are to have them again, since
/// a server may be tuned by them.
pub fn raise_open_files() -> Rlimit {
    // Without a higher limit, the files beyond it are opened each time.
    limits::raise_open_files(MAX_OPEN_FILES)
}

/// Returns the number from which on a descriptor is not kept.
pub fn keep_below() -> i32 {
    let current = limits::max_open_files().unwrap_or(MAX_OPEN_FILES);
    i32::try_from(current.min(MAX_OPEN_FILES).saturating_sub(RESERVE)).unwrap_or(i32::MAX)
}
