//! What the kernel says a control group has used of CPUs, in one sum that is kept up as it grows.
//!
//! The CPU time of a process is added up over its threads whenever somebody asks for it, in one go. A control group's is not, whatever is in it:
//! and that of a group with nothing but one tree in it is the tree's, processes included that ended without anybody waiting for them.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};

use crate::parse;
use crate::procfs::Procfs;

/// The `cpu.stat` of a control group of version 2, whether or not it has the controller `cpu`.
pub struct Account {
    file: OwnedFd,
    /// In user mode and in the kernel, in microseconds.
    used_us: (u64, u64),
}

impl Account {
    /// Of the control group in `folder`.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, folder.join("cpu.stat"), flags, Mode::empty())?;
        Ok(Self {
            file,
            used_us: (0, 0),
        })
    }

    /// Reads it anew; one that is gone stays at what it was.
    pub fn read(&mut self, procfs: &mut Procfs) {
        let used = procfs.read_again(&self.file).ok().and_then(used_us);
        self.used_us = used.unwrap_or(self.used_us);
    }

    /// In user mode and in the kernel.
    pub fn cpu_s(&self) -> (f64, f64) {
        let (user_us, system_us) = self.used_us;
        (user_us as f64 / 1e6, system_us as f64 / 1e6)
    }
}

fn used_us(text: &[u8]) -> Option<(u64, u64)> {
    let value = |name: &[u8]| parse::number(parse::named_value(text, name)?);
    Some((value(b"user_usec")?, value(b"system_usec")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_found_wherever_they_stand() {
        let text = b"usage_usec 7\nuser_usec 4\nsystem_usec 3\nnice_usec 0\n";
        assert_eq!(used_us(text), Some((4, 3)));
        assert_eq!(used_us(b"nr_periods 1\nuser_usec 4\n"), None);
    }
}
