//! Watches which files a server writes outside its folder and leaves there. `weir stacks check` reports these files.
//!
//! fanotify watches every mount of the server's own mount namespace, so no other process's writes appear. It needs
//! root. Files that are gone when the server has ended do not count.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::command::Start;
use weir_observe::hierarchies::unescape;
use weir_sys::process::Fanotify;

/// Mounts of the kernel, and those that end with the namespace.
const IGNORED_MOUNTS: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Maximum number of files in a record.
const MAX_REPORTED: usize = 16;

/// The files that a server has written so far.
pub struct Writes {
    events: Fanotify,
    /// The server's working folder, and that of its log.
    own: Vec<PathBuf>,
    written: BTreeSet<PathBuf>,
}

impl Writes {
    /// Starts to watch. Call this in the server's mount namespace.
    pub fn watch(start: &Start) -> io::Result<Self> {
        let events = Fanotify::new()?;
        let table = std::fs::read_to_string("/proc/self/mountinfo")?;
        for point in table.lines().filter_map(|line| line.split(' ').nth(4)) {
            if IGNORED_MOUNTS.iter().any(|top| Path::new(point).starts_with(top)) {
                continue;
            }
            // A mount may be hidden by another one, or refuse to be watched. Only the root mount must be watched.
            let point = unescape(point).into_os_string().into_encoded_bytes();
            if let Ok(point) = CString::new(point) {
                let watched = events.watch_mount(&point);
                if point.as_bytes() == b"/" {
                    watched?;
                }
            }
        }
        let folders = [Some(start.cwd.as_path()), start.log.parent()];
        let own = folders.into_iter().flatten();
        Ok(Self {
            events,
            own: own.map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned())).collect(),
            written: BTreeSet::new(),
        })
    }

    /// Reads the pending events.
    pub fn read_events(&mut self) {
        while let Some(files) = self.events.next() {
            for file in files {
                let link = format!("/proc/self/fd/{}", file.as_raw_fd());
                let Ok(path) = std::fs::read_link(link) else {
                    continue;
                };
                if !self.own.iter().any(|folder| path.starts_with(folder)) {
                    self.written.insert(path);
                }
            }
        }
    }

    /// Returns the written files that still exist, at most 16.
    pub fn existing(&mut self) -> Vec<PathBuf> {
        self.read_events();
        let there = self.written.iter().filter(|path| path.is_file());
        there.take(MAX_REPORTED).cloned().collect()
    }
}

impl AsFd for Writes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}
