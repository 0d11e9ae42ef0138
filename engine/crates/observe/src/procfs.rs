//! Reading the files of one mounted /proc, in buffers that are used again.

use std::fmt::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use crate::{Error, parse};

/// Ample for every file read here but a `mountinfo`, which is not.
const TEXT_BYTES: usize = 16 * 1024;
/// A piece of a folder: some twenty entries.
const LISTING_BYTES: usize = 512;
/// After so long at work the observer offers its CPU to whoever waits for it: the load generator may be on the same one. Where the kernel
/// interrupts none of its own work, a send waits for this and for the longest single reading.
const SLICE: Duration = Duration::from_micros(20);

/// One mounted /proc.
pub struct Procfs {
    directory: OwnedFd,
    path: String,
    text: Vec<u8>,
    /// Since when it has not offered its CPU to anybody.
    at_work_since: Instant,
}

impl Procfs {
    /// The /proc mounted at `path`.
    pub fn open_at(path: &str) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let directory = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|error| Error::Unreadable(path.to_owned(), error.into()))?;
        Ok(Self {
            directory,
            path: String::new(),
            text: vec![0; TEXT_BYTES],
            at_work_since: Instant::now(),
        })
    }

    /// Opens a file, `17/stat` for example.
    pub fn open(&mut self, path: fmt::Arguments<'_>) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        self.breathe();
        self.set_path(path);
        rustix::fs::openat(&self.directory, &self.path, flags, Mode::empty())
    }

    /// Opens a file, reads it and closes it.
    pub fn read(&mut self, path: fmt::Arguments<'_>) -> Result<&[u8], Errno> {
        let file = self.open(path)?;
        self.read_again(&file)
    }

    /// Reads an open file from its beginning: the kernel writes it anew.
    pub fn read_again(&mut self, file: &OwnedFd) -> Result<&[u8], Errno> {
        self.breathe();
        let count = rustix::io::pread(file, &mut self.text[..], 0)?;
        Ok(&self.text[..count])
    }

    /// Where a symbolic link points.
    pub fn link(&mut self, path: fmt::Arguments<'_>) -> Result<&[u8], Errno> {
        self.breathe();
        self.set_path(path);
        let buffer: &mut [u8] = &mut self.text;
        let count = rustix::fs::readlinkat_raw(&self.directory, self.path.as_str(), buffer)?;
        Ok(&self.text[..count])
    }

    /// The size that the kernel gives a file.
    pub fn size(&mut self, path: fmt::Arguments<'_>) -> Result<u64, Errno> {
        self.breathe();
        self.set_path(path);
        let found = rustix::fs::statat(&self.directory, self.path.as_str(), AtFlags::empty())?;
        Ok(u64::try_from(found.st_size).unwrap_or(0))
    }

    /// How many folders there are in a folder.
    pub fn subfolders(&mut self, path: fmt::Arguments<'_>) -> Result<u64, Errno> {
        self.breathe();
        self.set_path(path);
        let found = rustix::fs::statat(&self.directory, self.path.as_str(), AtFlags::empty())?;
        // Its own name and its `.` are links as well.
        Ok((found.st_nlink as u64).saturating_sub(2))
    }

    /// The newest PID of the PID namespace that the reader is in, threads included. While it stays the same nobody new has come, there or in
    /// the namespaces below.
    pub fn newest_pid(&mut self) -> Option<u64> {
        let text = self.read(format_args!("loadavg")).ok()?;
        parse::number(parse::words(text).last()?)
    }

    /// Fills `numbers` with the processes there are, ascending, as the kernel gives them.
    pub fn processes(&mut self, numbers: &mut Vec<i32>) -> Result<(), Errno> {
        rustix::fs::seek(&self.directory, SeekFrom::Start(0))?;
        numbers_in(&self.directory, numbers, &mut self.at_work_since)
    }

    /// Fills `numbers` with the entries of a folder whose names are numbers.
    pub fn list(&mut self, path: fmt::Arguments<'_>, numbers: &mut Vec<i32>) -> Result<(), Errno> {
        let folder = self.open(path)?;
        numbers_in(&folder, numbers, &mut self.at_work_since)
    }

    /// Comes before each reading.
    fn breathe(&mut self) {
        breathe(&mut self.at_work_since);
    }

    fn set_path(&mut self, path: fmt::Arguments<'_>) {
        self.path.clear();
        // Writing to a String cannot fail.
        let _ = self.path.write_fmt(path);
    }
}

fn breathe(at_work_since: &mut Instant) {
    if at_work_since.elapsed() >= SLICE {
        rustix::thread::sched_yield();
        *at_work_since = Instant::now();
    }
}

fn numbers_in(
    folder: &OwnedFd,
    numbers: &mut Vec<i32>,
    at_work_since: &mut Instant,
) -> Result<(), Errno> {
    numbers.clear();
    let mut buffer = [MaybeUninit::uninit(); LISTING_BYTES];
    let mut entries = RawDir::new(folder, &mut buffer);
    loop {
        if entries.is_buffer_empty() {
            breathe(at_work_since);
        }
        let Some(entry) = entries.next() else {
            return Ok(());
        };
        let name = parse::number(entry?.file_name().to_bytes());
        numbers.extend(name.and_then(|number| i32::try_from(number).ok()));
    }
}
