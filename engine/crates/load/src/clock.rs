//! The clocks of the machine and of this process.

use rustix::time::{ClockId, clock_gettime};
use weir_record::Moment;

/// CLOCK_MONOTONIC in nanoseconds: the time axis of everything measured.
#[inline]
pub(crate) fn now_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// The time of day in nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    read_ns(ClockId::Realtime)
}

/// CPU time of all threads of this process.
pub(crate) fn process_cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

/// The clocks that say whether this process ran all the time.
pub(crate) fn moment() -> Moment {
    Moment {
        monotonic_ns: now_ns(),
        boot_ns: read_ns(ClockId::Boottime),
        cpu_ns: process_cpu_ns(),
    }
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
