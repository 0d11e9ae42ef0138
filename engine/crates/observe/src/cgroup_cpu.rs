//! The CPU time of a control group, which the kernel keeps as one running sum.
//!
//! For a process the kernel adds up all threads at each read, without a break. A control group's sum costs nothing to
//! read. If the group holds one tree only, its sum is the tree's CPU time. It includes children that the kernel reaped
//! itself.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};

use crate::parse;
use crate::procfs::Procfs;

/// The open `cpu.stat` of a control group of version 2. It needs no controller.
pub struct CgroupCpu {
    file: OwnedFd,
    /// Time in user mode and in the kernel, in microseconds.
    used_us: (u64, u64),
}

impl CgroupCpu {
    /// Opens the control group in `folder`.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, folder.join("cpu.stat"), flags, Mode::empty())?;
        Ok(Self { file, used_us: (0, 0) })
    }

    /// Reads the file again. Keeps the last value if the group is gone.
    pub fn read(&mut self, procfs: &mut Procfs) {
        let used = procfs.read_again(&self.file).ok().and_then(parse_us);
        self.used_us = used.unwrap_or(self.used_us);
    }

    /// Returns the CPU time in user mode and in the kernel.
    pub fn cpu_s(&self) -> (f64, f64) {
        let (user_us, system_us) = self.used_us;
        (user_us as f64 / 1e6, system_us as f64 / 1e6)
    }
}

fn parse_us(text: &[u8]) -> Option<(u64, u64)> {
    let value = |name: &[u8]| parse::number(parse::named_value(text, name)?);
    Some((value(b"user_usec")?, value(b"system_usec")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_any_line() {
        let text = b"usage_usec 7\nuser_usec 4\nsystem_usec 3\nnice_usec 0\n";
        assert_eq!(parse_us(text), Some((4, 3)));
        assert_eq!(parse_us(b"nr_periods 1\nuser_usec 4\n"), None);
    }
}
