//! One process of a tree.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::counters::Counters;
use crate::parse::{self, Memory, ProcessIo, ProcessStat};
use crate::procfs::Procfs;
use crate::threads::Threads;

/// A process that belongs to a tree. Its `stat` stays open: the descriptor belongs to that process for ever, so a PID that is used again
/// reads as ended.
pub struct Member {
    pub pid: i32,
    /// Index into the scope's trees.
    pub tree: usize,
    pub stat: ProcessStat,
    /// Its tree hangs from it.
    pub is_root: bool,
    pub threads: Threads,
    /// What the kernel adds up over its threads is as old as the sweep.
    pub has_sums: bool,
    stat_file: OwnedFd,
    io: ProcessIo,
    /// What it had moved before the observation of a group began to which it does not belong itself.
    io_before: Option<ProcessIo>,
}

impl Member {
    /// None: it has ended.
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

    /// Reads its `stat` again. False: it has ended.
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

    /// Counts its threads and reads its resident memory, which the kernel need not add up over its threads. False: it has ended.
    pub fn glance(&mut self, procfs: &mut Procfs) -> bool {
        let threads = procfs.subfolders(format_args!("{}/task", self.pid));
        let memory = procfs.read(format_args!("{}/statm", self.pid));
        let resident_pages = memory.ok().and_then(parse::resident_pages);
        match (threads, resident_pages) {
            // With threads it has memory: it is neither a zombie nor gone.
            (Ok(threads), Some(resident_pages)) if threads > 1 => {
                self.stat.threads = threads;
                self.stat.resident_pages = resident_pages;
                self.has_sums = false;
                true
            }
            _ => self.read(procfs),
        }
    }

    /// What it and its reaped children have used; `counts_itself`: whether its own part belongs to the group.
    pub fn used(&self, counts_itself: bool) -> Counters {
        let mut used = Counters::of_children(&self.stat);
        if counts_itself {
            used.add(&Counters::of_itself(&self.stat, self.io));
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

    /// Reads what it has moved. An error other than that it has ended: it may not be read.
    pub fn read_io(&mut self, procfs: &mut Procfs) -> Result<(), Errno> {
        let text = unless_ended(procfs.read(format_args!("{}/io", self.pid)))?;
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.io = parse::process_io(text);
            self.io_before.get_or_insert(self.io);
        }
        Ok(())
    }

    /// Its resident memory. The kernel may be some hundred KiB behind.
    pub fn rss_bytes(&self) -> u64 {
        self.stat.resident_pages * rustix::param::page_size() as u64
    }

    /// Its open files.
    pub fn descriptors(&self, procfs: &mut Procfs, listing: &mut Vec<i32>) -> Result<u64, Errno> {
        let path = format_args!("{}/fd", self.pid);
        match unless_ended(procfs.size(path))? {
            None => Ok(0),
            // Before Linux 6.2 the folder has no size.
            Some(0) => {
                let listed = unless_ended(procfs.list(format_args!("{}/fd", self.pid), listing))?;
                Ok(listed.map_or(0, |()| listing.len() as u64))
            }
            Some(count) => Ok(count),
        }
    }

    /// Its proportional memory: the kernel walks its whole page table, 3 to 4 ms per GiB.
    pub fn memory(&self, procfs: &mut Procfs) -> Result<Memory, Errno> {
        // Empty: it ended between open and read, or is the kernel's.
        let text = unless_ended(procfs.read(format_args!("{}/smaps_rollup", self.pid)))?;
        Ok(text.map(parse::memory_rollup).unwrap_or_default())
    }
}

/// None for a process that has ended meanwhile.
fn unless_ended<T>(read: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(error) => Err(error),
    }
}
