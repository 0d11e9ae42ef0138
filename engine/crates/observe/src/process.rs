//! One process of an observed tree.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::counters::Counters;
use crate::parse::{self, Memory, ProcessIo, ProcessStat};
use crate::procfs::Procfs;
use crate::threads::Threads;

/// A process of an observed tree. Its `stat` stays open. Reading the descriptor fails after the process has ended, also
/// if its PID is used again.
pub struct ObservedProcess {
    pub pid: i32,
    /// Index of the tree in [`ProcfsTrees`](crate::procfs_trees::ProcfsTrees).
    pub tree: usize,
    pub stat: ProcessStat,
    /// Whether this process is the root of its tree.
    pub is_root: bool,
    pub threads: Threads,
    /// Whether the last sweep read the sums over the threads.
    pub has_sums: bool,
    stat_file: OwnedFd,
    io: ProcessIo,
    /// Bytes at the first read. They do not count for a root outside its group.
    io_before: Option<ProcessIo>,
}

impl ObservedProcess {
    /// Opens a process. Returns `None` if it has ended.
    pub fn open(procfs: &mut Procfs, pid: i32) -> Option<Self> {
        let stat_file = procfs.open(format_args!("{pid}/stat")).ok()?;
        let stat = parse::process_stat(procfs.read_again(&stat_file).ok()?)?;
        Some(Self {
            pid,
            tree: 0,
            stat,
            is_root: false,
            threads: Threads::default(),
            has_sums: true,
            stat_file,
            io: ProcessIo::default(),
            io_before: None,
        })
    }

    /// Reads `stat` again. Returns false if the process has ended.
    pub fn read(&mut self, procfs: &mut Procfs) -> bool {
        let text = procfs.read_again(&self.stat_file);
        match text.ok().and_then(parse::process_stat) {
            Some(stat) => {
                self.stat = stat;
                self.has_sums = true;
                true
            }
            None => false,
        }
    }

    /// Reads the number of threads and the resident memory, which need no sums over the threads. Returns false if the
    /// process has ended.
    pub fn read_without_sums(&mut self, procfs: &mut Procfs) -> bool {
        let threads = procfs.subfolders(format_args!("{}/task", self.pid));
        let memory = procfs.read(format_args!("{}/statm", self.pid));
        let resident_pages = memory.ok().and_then(parse::resident_pages);
        match (threads, resident_pages) {
            // A process with threads is neither a zombie nor gone.
            (Ok(threads), Some(resident_pages)) if threads > 1 => {
                self.stat.threads = threads;
                self.stat.resident_pages = resident_pages;
                self.has_sums = false;
                true
            }
            _ => self.read(procfs),
        }
    }

    /// Returns the usage of the reaped children and, with `includes_self`, of the process.
    pub fn used(&self, includes_self: bool) -> Counters {
        let mut used = Counters::from_children(&self.stat);
        if includes_self {
            used.add(&Counters::from_process(&self.stat, self.io));
        } else {
            let before = self.io_before.unwrap_or(self.io);
            used.io = ProcessIo {
                rchar: self.io.rchar.saturating_sub(before.rchar),
                wchar: self.io.wchar.saturating_sub(before.wchar),
                disk_read: self.io.disk_read.saturating_sub(before.disk_read),
                disk_written: self.io.disk_written.saturating_sub(before.disk_written),
            };
        }
        used
    }

    /// Reads `/proc/PID/io`. Fails if the file is not permitted; a process that has exited is no error.
    pub fn read_io(&mut self, procfs: &mut Procfs) -> Result<(), Errno> {
        let text = unless_ended(procfs.read(format_args!("{}/io", self.pid)))?;
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.io = parse::process_io(text);
            self.io_before.get_or_insert(self.io);
        }
        Ok(())
    }

    /// Returns the resident memory. The kernel's count may be late by some hundred KiB.
    pub fn rss_bytes(&self) -> u64 {
        self.stat.resident_pages * rustix::param::page_size() as u64
    }

    /// Returns the number of open files.
    pub fn descriptors(&self, procfs: &mut Procfs, listing: &mut Vec<i32>) -> Result<u64, Errno> {
        let path = format_args!("{}/fd", self.pid);
        match unless_ended(procfs.size(path))? {
            None => Ok(0),
            // Before Linux 6.2 the size is 0.
            Some(0) => {
                let listed = unless_ended(procfs.list(format_args!("{}/fd", self.pid), listing))?;
                Ok(listed.map_or(0, |()| listing.len() as u64))
            }
            Some(count) => Ok(count),
        }
    }

    /// Reads the proportional memory. The kernel walks the whole page table, which takes 3 to 4 ms per GiB.
    pub fn memory(&self, procfs: &mut Procfs) -> Result<Memory, Errno> {
        // The text is empty if the process ended after the open, or belongs to the kernel.
        let text = unless_ended(procfs.read(format_args!("{}/smaps_rollup", self.pid)))?;
        Ok(text.map(parse::memory_rollup).unwrap_or_default())
    }
}

/// Returns `None` if the process has ended meanwhile.
fn unless_ended<T>(read: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(error) => Err(error),
    }
}
