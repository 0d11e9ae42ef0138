//! Converts the kernel's receive stamps, which are times of day, to CLOCK_MONOTONIC.
//!
//! The offset between the two clocks changes only when the time of day is set: Linux slews both alike. So it is read
//! from time to time, and the tightest of the readings that agree is kept.
//!
//! Hot path. Rules: a stamp costs a subtraction and two comparisons; the clocks are read at the ends of intervals.

use crate::clock::{now_ns, unix_ns};

/// Readings of which the tightest is taken: the first ones find cold caches, and any may be interrupted.
const READINGS: usize = 8;
/// Maximum distance of two readings of an unchanged offset: each clock counts in nanoseconds, rounded down.
const ROUNDING_NS: i64 = 2;

/// How far the time of day lies ahead of CLOCK_MONOTONIC: somewhere in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offset {
    least_ns: i64,
    most_ns: i64,
}

impl Offset {
    /// From a look at the time of day between two looks at CLOCK_MONOTONIC.
    fn between(before_ns: u64, unix_ns: u64, after_ns: u64) -> Self {
        Self { least_ns: unix_ns as i64 - after_ns as i64, most_ns: unix_ns as i64 - before_ns as i64 }
    }

    /// The tightest of several looks.
    fn read() -> Self {
        let look = |_| {
            let before_ns = now_ns();
            let unix_ns = unix_ns();
            Self::between(before_ns, unix_ns, now_ns())
        };
        let first = look(0);
        (1..READINGS).map(look).fold(first, Self::tighter)
    }

    fn width_ns(self) -> i64 {
        self.most_ns - self.least_ns
    }

    fn tighter(self, other: Self) -> Self {
        if other.width_ns() < self.width_ns() { other } else { self }
    }

    fn agrees_with(self, other: Self) -> bool {
        self.least_ns <= other.most_ns + ROUNDING_NS && other.least_ns <= self.most_ns + ROUNDING_NS
    }

    fn middle_ns(self) -> i64 {
        self.least_ns + self.width_ns() / 2
    }
}

/// The offset between the two clocks.
#[derive(Debug)]
pub(crate) struct KernelClock {
    offset: Offset,
}

impl KernelClock {
    /// Returns a clock with the offset of now.
    pub(crate) fn new() -> Self {
        Self { offset: Offset::read() }
    }

    /// Reads the clocks again. Returns by how many nanoseconds the time of day was set forward or back, `None` if it
    /// was not.
    pub(crate) fn renew(&mut self) -> Option<i64> {
        self.take(Offset::read())
    }

    fn take(&mut self, read: Offset) -> Option<i64> {
        let held = self.offset;
        if read.agrees_with(held) {
            self.offset = held.tighter(read);
            return None;
        }
        self.offset = read;
        Some(read.middle_ns() - held.middle_ns())
    }

    /// Returns when stamped bytes arrived. `None` without a stamp, and for one before the write or after the read.
    #[inline]
    pub(crate) fn arrival_ns(&self, stamp_unix_ns: Option<u64>, written_ns: u64, read_ns: u64) -> Option<u64> {
        let at_ns = stamp_unix_ns?.checked_add_signed(-self.offset.middle_ns())?;
        (written_ns <= at_ns && at_ns <= read_ns).then_some(at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: u64 = 86_400_000_000_000;
    /// The time of day when CLOCK_MONOTONIC was zero.
    const BOOT_NS: u64 = 20_000 * DAY_NS;

    /// A reading of a width, after the time of day was set forward by so much.
    fn look(at_ns: u64, width_ns: u64, set_ns: i64) -> Offset {
        let unix_ns = (BOOT_NS + at_ns + width_ns / 2).checked_add_signed(set_ns);
        Offset::between(at_ns, unix_ns.unwrap_or(0), at_ns + width_ns)
    }

    fn clock(offset: Offset) -> KernelClock {
        KernelClock { offset }
    }

    fn arrival(clock: &KernelClock, stamp_ns: u64) -> Option<u64> {
        clock.arrival_ns(Some(BOOT_NS + stamp_ns), 1_000, 2_000)
    }

    #[test]
    fn a_stamp_is_moved_to_the_other_clock_by_the_middle_of_the_look() {
        let clock = clock(look(500, 40, 0));
        assert_eq!(arrival(&clock, 1_500), Some(1_500));
        assert_eq!(clock.arrival_ns(None, 1_000, 2_000), None);
    }

    #[test]
    fn a_stamp_before_the_write_or_after_the_read_is_not_believed() {
        let clock = clock(look(500, 40, 0));
        assert_eq!(arrival(&clock, 999), None);
        assert_eq!(arrival(&clock, 1_000), Some(1_000));
        assert_eq!(arrival(&clock, 2_000), Some(2_000));
        assert_eq!(arrival(&clock, 2_001), None);
        // Nor is one from before the machine was started, or from the end of time.
        assert_eq!(clock.arrival_ns(Some(1), 0, u64::MAX), None);
        assert_eq!(clock.arrival_ns(Some(u64::MAX), 1_000, 2_000), None, "it lies ahead");
    }

    #[test]
    fn of_looks_that_agree_the_tightest_is_kept() {
        let mut clock = clock(look(0, 40, 0));
        assert_eq!(clock.take(look(DAY_NS, 1_000, 300)), None);
        assert_eq!(clock.offset, look(0, 40, 0));
        assert_eq!(clock.take(look(DAY_NS, 20, 5)), None);
        assert_eq!(clock.offset, look(0, 20, 5));
    }

    #[test]
    fn a_step_of_the_time_of_day_is_noticed_and_followed() {
        for step_ns in [-3_600_000_000_000, -100, 100, 3_600_000_000_000] {
            let mut clock = clock(look(0, 40, 0));
            // Stamps before the change is noticed are taken as they are, if they are possible.
            let seems = arrival(&clock, 1_500u64.saturating_add_signed(step_ns));
            let believed = (1_500 + step_ns) as u64;
            assert_eq!(seems, (step_ns.abs() == 100).then_some(believed));
            assert_eq!(clock.take(look(DAY_NS, 1_000, step_ns)), { (step_ns.abs() > 1_000).then_some(step_ns) });
            // A look that wide does not tell so small a step; a tighter one does.
            if step_ns.abs() == 100 {
                assert_eq!(clock.take(look(2 * DAY_NS, 40, step_ns)), Some(step_ns));
            }
            let stamp = BOOT_NS.checked_add_signed(step_ns).map(|ns| ns + 1_500);
            assert_eq!(clock.arrival_ns(stamp, 1_000, 2_000), Some(1_500));
        }
    }

    #[test]
    fn a_drift_between_the_clocks_is_followed_at_a_distance_of_two_looks() {
        let mut clock = clock(look(0, 40, 0));
        // 7 ns from one look to the next: each is within the width of the last, and after some it is not.
        for n in 1..1_000 {
            clock.take(look(n * 1_000_000, 40, 7 * n as i64));
            let behind_ns = look(0, 40, 7 * n as i64).middle_ns() - clock.offset.middle_ns();
            assert!((0..=42).contains(&behind_ns), "{n}: {behind_ns}");
        }
    }

    #[test]
    fn the_clocks_of_this_machine_agree_with_themselves() {
        let mut clock = KernelClock::new();
        let read = unix_ns();
        assert!(clock.arrival_ns(Some(read), 0, u64::MAX).is_some());
        assert_eq!(clock.renew(), None);
    }
}
