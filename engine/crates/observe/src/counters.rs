//! The usage of a process and its reaped children. It only grows, and moves to the parent when the process is reaped.

use crate::parse::{ProcessIo, ProcessStat};

/// Totals since a process or a tree began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub io: ProcessIo,
}

impl Counters {
    /// Returns the usage of the children that a process has reaped.
    pub fn from_children(stat: &ProcessStat) -> Self {
        Self {
            user_ticks: stat.children_user_ticks,
            system_ticks: stat.children_system_ticks,
            minor_faults: stat.children_minor_faults,
            major_faults: stat.children_major_faults,
            io: ProcessIo::default(),
        }
    }

    /// Returns the usage of a process without its children. `io` includes the children: the kernel keeps one sum for
    /// both.
    pub fn from_process(stat: &ProcessStat, io: ProcessIo) -> Self {
        Self {
            user_ticks: stat.user_ticks,
            system_ticks: stat.system_ticks,
            minor_faults: stat.minor_faults,
            major_faults: stat.major_faults,
            io,
        }
    }

    pub fn add(&mut self, other: &Self) {
        *self = self.each_with(other, u64::saturating_add);
    }

    /// Raises each value to that of `other` if that is larger.
    pub fn raise_to(&mut self, other: &Self) {
        *self = self.each_with(other, u64::max);
    }

    fn each_with(&self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            user_ticks: join(self.user_ticks, other.user_ticks),
            system_ticks: join(self.system_ticks, other.system_ticks),
            minor_faults: join(self.minor_faults, other.minor_faults),
            major_faults: join(self.major_faults, other.major_faults),
            io: ProcessIo {
                rchar: join(self.io.rchar, other.io.rchar),
                wchar: join(self.io.wchar, other.io.wchar),
                disk_read: join(self.io.disk_read, other.io.disk_read),
                disk_written: join(self.io.disk_written, other.io.disk_written),
            },
        }
    }
}
