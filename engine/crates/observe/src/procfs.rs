//! Reads the files of one mounted /proc into reused buffers.

use std::fmt::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use crate::{Error, parse};

/// Size of the buffer for one file.
const TEXT_BYTES: usize = 16 * 1024;
/// Size of the buffer for a part of a folder: about twenty entries.
const LISTING_BYTES: usize = 512;
/// After this time the observer yields its CPU to other threads, such as a load generator on the same CPU. A
/// non-preemptive kernel delays a send by this time and the longest single read.
const SLICE: Duration = Duration::from_micros(20);

/// One mounted /proc.
pub struct Procfs {
    directory: OwnedFd,
    path: String,
    text: Vec<u8>,
    /// Time of the last yield.
    last_yield: Instant,
}

impl Procfs {
    /// Opens the /proc mounted at `path`.
    pub fn open_at(path: &str) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let directory = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|error| Error::Unreadable(path.to_owned(), error.into()))?;
        Ok(Self { directory, path: String::new(), text: vec![0; TEXT_BYTES], last_yield: Instant::now() })
    }

    /// Opens a file, `17/stat` for example.
    pub fn open(&mut self, path: fmt::Arguments<'_>) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        self.yield_cpu_if_due();
        self.set_path(path);
        rustix::fs::openat(&self.directory, &self.path, flags, Mode::empty())
    }

    /// Opens a file, reads it and closes it.
    pub fn read(&mut self, path: fmt::Arguments<'_>) -> Result<&[u8], Errno> {
        let file = self.open(path)?;
        self.read_again(&file)
    }

    /// Reads an open file from its beginning. The kernel writes the text again.
    pub fn read_again(&mut self, file: &OwnedFd) -> Result<&[u8], Errno> {
        self.yield_cpu_if_due();
        let count = rustix::io::pread(file, &mut self.text[..], 0)?;
        Ok(&self.text[..count])
    }

    /// Returns the target of a symbolic link.
    pub fn link(&mut self, path: fmt::Arguments<'_>) -> Result<&[u8], Errno> {
        self.yield_cpu_if_due();
        self.set_path(path);
        let buffer: &mut [u8] = &mut self.text;
        let count = rustix::fs::readlinkat_raw(&self.directory, self.path.as_str(), buffer)?;
        Ok(&self.text[..count])
    }

    /// Returns the size of a file.
    pub fn size(&mut self, path: fmt::Arguments<'_>) -> Result<u64, Errno> {
        self.yield_cpu_if_due();
        self.set_path(path);
        let found = rustix::fs::statat(&self.directory, self.path.as_str(), AtFlags::empty())?;
        Ok(u64::try_from(found.st_size).unwrap_or(0))
    }

    /// Returns the number of folders in a folder.
    pub fn subfolders(&mut self, path: fmt::Arguments<'_>) -> Result<u64, Errno> {
        self.yield_cpu_if_due();
        self.set_path(path);
        let found = rustix::fs::statat(&self.directory, self.path.as_str(), AtFlags::empty())?;
        // The folder's name and its `.` are links too.
        Ok((found.st_nlink as u64).saturating_sub(2))
    }

    /// Returns the newest PID of this process's PID namespace, including threads. As long as it stays the same, no
    /// process or thread was created in this namespace or those below.
    pub fn newest_pid(&mut self) -> Option<u64> {
        let text = self.read(format_args!("loadavg")).ok()?;
        parse::number(parse::words(text).last()?)
    }

    /// Fills `numbers` with the PIDs of all processes, in ascending order.
    pub fn processes(&mut self, numbers: &mut Vec<i32>) -> Result<(), Errno> {
        rustix::fs::seek(&self.directory, SeekFrom::Start(0))?;
        numbers_in(&self.directory, numbers, &mut self.last_yield)
    }

    /// Fills `numbers` with the entries of a folder whose names are numbers.
    pub fn list(&mut self, path: fmt::Arguments<'_>, numbers: &mut Vec<i32>) -> Result<(), Errno> {
        let folder = self.open(path)?;
        numbers_in(&folder, numbers, &mut self.last_yield)
    }

    /// Yields the CPU if this is due. Call this before each read.
    fn yield_cpu_if_due(&mut self) {
        yield_cpu_if_due(&mut self.last_yield);
    }

    fn set_path(&mut self, path: fmt::Arguments<'_>) {
        self.path.clear();
        // Writing to a String cannot fail.
        let _ = self.path.write_fmt(path);
    }
}

fn yield_cpu_if_due(last_yield: &mut Instant) {
    if last_yield.elapsed() >= SLICE {
        rustix::thread::sched_yield();
        *last_yield = Instant::now();
    }
}

fn numbers_in(folder: &OwnedFd, numbers: &mut Vec<i32>, last_yield: &mut Instant) -> Result<(), Errno> {
    numbers.clear();
    let mut buffer = [MaybeUninit::uninit(); LISTING_BYTES];
    let mut entries = RawDir::new(folder, &mut buffer);
    loop {
        if entries.is_buffer_empty() {
            yield_cpu_if_due(last_yield);
        }
        let Some(entry) = entries.next() else {
            return Ok(());
        };
        let name = parse::number(entry?.file_name().to_bytes());
        numbers.extend(name.and_then(|number| i32::try_from(number).ok()));
    }
}
