//! The clocks of the machine and of this process, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// Returns `CLOCK_MONOTONIC`, the time axis of every record.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Returns the time of day since 1970.
#[inline]
pub fn unix_ns() -> u64 {
    read_ns(ClockId::Realtime)
}

/// Returns the time since the machine started, with the time in suspend.
pub fn boot_ns() -> u64 {
    read_ns(ClockId::Boottime)
}

/// Returns the CPU time of all threads of this process.
pub fn process_cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

/// Returns the CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
