//! How many descriptors the observer may have: two for each thread that it watches stay open, which spares a third of its work.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Left for everything else that the process opens.
const RESERVE: u64 = 256;
/// A million open files would be a hundred megabytes of the kernel's memory.
const MOST: u64 = 65_536;

/// Raises this process's limit on open files as far as it may be raised, and gives what it was: processes started from here on are to
/// have that again, since a server may be tuned by it.
pub fn raise_open_files() -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    let raised = before.maximum.unwrap_or(MOST).min(MOST);
    if before.current.is_some_and(|current| current < raised) {
        let wanted = Rlimit {
            current: Some(raised),
            maximum: before.maximum,
        };
        // Refused: what there is will do, and the files that it is too few for are opened each time.
        let _ = setrlimit(Resource::Nofile, wanted);
    }
    before
}

/// The number from which on a descriptor is not kept.
pub fn keep_below() -> i32 {
    let current = getrlimit(Resource::Nofile).current.unwrap_or(MOST);
    i32::try_from(current.min(MOST).saturating_sub(RESERVE)).unwrap_or(i32::MAX)
}
