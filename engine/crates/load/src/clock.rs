//! The clocks that show whether this process ran all the time.

use weir_record::ClockReading;
pub(crate) use weir_sys::clock::{monotonic_ns as now_ns, process_cpu_ns, unix_ns};

/// Reads the three clocks that together show a stall.
pub(crate) fn moment() -> ClockReading {
    ClockReading { monotonic_ns: now_ns(), boot_ns: weir_sys::clock::boot_ns(), cpu_ns: process_cpu_ns() }
}
