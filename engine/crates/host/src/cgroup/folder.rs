//! The folder of a control group in one hierarchy: creation, lock and removal.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};

use crate::launch::Failure;

/// Prefix of the names of all groups that a host makes.
const PREFIX: &str = "weir-";
/// The kernel removes a process from its group some time after its parent has reaped it.
const REMOVAL_TRIES: u32 = 50;
const REMOVAL_INTERVAL: Duration = Duration::from_millis(1);

/// Returns the name of a group of this host.
pub fn name(number: u64) -> String {
    format!("{PREFIX}{}-{number}", std::process::id())
}

/// A group's folder in one hierarchy, with its lock. Dropping it removes the folder.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// Holds the lock on the folder.
    _handle: OwnedFd,
}

impl Folder {
    /// Creates and locks a folder. Tries again if a starting host removes the folder before it is locked.
    pub fn create(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(name);
        for _ in 1..REMOVAL_TRIES {
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            match Self::lock(path.clone()) {
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

    /// Locks an existing folder. Fails if another host holds the lock.
    pub fn lock(path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(CWD, &path, flags, Mode::empty())?;
        rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _handle: handle })
    }

    pub fn set(&self, file: &str, value: impl ToString) -> Result<(), Failure> {
        let path = self.path.join(file);
        fs::write(&path, value.to_string()).map_err(|error| {
            let message = format!("limits: {} to {}: {error}", value.to_string(), path.display());
            Failure::new(message, "the group above may allow less, or have no memory left for it")
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a group. Waits for at most 50 ms until the kernel has removed its processes.
fn remove(path: &Path) {
    for _ in 0..REMOVAL_TRIES {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(REMOVAL_INTERVAL);
            }
            _ => return,
        }
    }
}

/// Removes the groups of hosts that have ended. A group with processes stays: the kernel is still killing them.
pub fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_ours {
            // Dropping the value removes the folder.
            drop(Folder::lock(entry.path()));
        }
    }
}
