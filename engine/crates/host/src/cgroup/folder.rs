//! A control group's folder in one hierarchy: made, owned and removed.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};

use crate::launch::Failure;

/// What the names of all our groups begin with.
const PREFIX: &str = "weir-";
/// A process is in its group for a moment after it was reaped, since it is still on its way off the CPU.
const REMOVAL_TRIES: u32 = 50;
const REMOVAL_INTERVAL: Duration = Duration::from_millis(1);

/// What a group of this host is called.
pub fn name(number: u64) -> String {
    format!("{PREFIX}{}-{number}", std::process::id())
}

/// A group's folder in one hierarchy, owned.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// Holds the lock.
    _handle: OwnedFd,
}

impl Folder {
    /// A host that starts at this very moment may find the new folder without an owner and remove it; then once more.
    pub fn create(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(name);
        for _ in 1..REMOVAL_TRIES {
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            match Self::own(path.clone()) {
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

    /// Takes the lock of a group that nobody owns.
    pub fn own(path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(CWD, &path, flags, Mode::empty())?;
        rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self {
            path,
            _handle: handle,
        })
    }

    pub fn set(&self, file: &str, value: impl ToString) -> Result<(), Failure> {
        let path = self.path.join(file);
        fs::write(&path, value.to_string()).map_err(|error| {
            let message = format!(
                "limits: {} to {}: {error}",
                value.to_string(),
                path.display()
            );
            Failure::new(
                message,
                "the group above may allow less, or have no memory left for it",
            )
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a group, waiting a little for processes that are on their way out; gives whether it is gone.
pub fn remove(path: &Path) -> bool {
    for _ in 0..REMOVAL_TRIES {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(REMOVAL_INTERVAL);
            }
            Ok(()) => return true,
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        }
    }
    false
}

/// Removes groups whose owner is gone. One that still holds processes stays: they are about to be killed with their namespace.
pub fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        if is_ours {
            // Dropping it removes the folder.
            drop(Folder::own(entry.path()));
        }
    }
}
