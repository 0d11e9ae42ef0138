//! Which files a server writes outside its folder and leaves there.
//!
//! Listens on every mount of the server's own mount namespace, so that nobody else's writing is heard of; that takes root. What is gone again
//! when the server has ended is nobody's concern.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::command::Start;
use weir_sys::process::Fanotify;

/// Where the kernel's own files are, and what ends with the namespace.
const NOT_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];
/// As many as anybody reads.
const MOST_TOLD: usize = 16;

/// What is written while a server runs.
pub struct Writes {
    events: Fanotify,
    /// Its own folder, and that of its log.
    own: Vec<PathBuf>,
    written: BTreeSet<PathBuf>,
}

impl Writes {
    /// Begins to listen. To be called in the namespace of the mounts that the server is going to have.
    pub fn of(start: &Start) -> io::Result<Self> {
        let events = Fanotify::new()?;
        let table = std::fs::read_to_string("/proc/self/mountinfo")?;
        for point in table.lines().filter_map(|line| line.split(' ').nth(4)) {
            if NOT_FILES
                .iter()
                .any(|top| Path::new(point).starts_with(top))
            {
                continue;
            }
            // Blanks are written \040; a mount that cannot be listened on, or is hidden by another one, is left out.
            let point = point.replace("\\040", " ");
            if let Ok(point) = CString::new(point) {
                let listened = events.listen_on_mount(&point);
                if point.as_bytes() == b"/" {
                    listened?;
                }
            }
        }
        let folders = [Some(start.cwd.as_path()), start.log.parent()];
        let own = folders.into_iter().flatten();
        Ok(Self {
            events,
            own: own
                .map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
                .collect(),
            written: BTreeSet::new(),
        })
    }

    /// Takes what has been written since the last time.
    pub fn take(&mut self) {
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

    /// What was written and is still there.
    pub fn left(&mut self) -> Vec<PathBuf> {
        self.take();
        let there = self.written.iter().filter(|path| path.is_file());
        there.take(MOST_TOLD).cloned().collect()
    }
}

impl AsFd for Writes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}
