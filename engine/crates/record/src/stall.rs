//! Detects stalls of the generator, which measures nothing while it is stopped (Ctrl-Z, SIGSTOP, a frozen container) or
//! the machine sleeps. Without this check the target would be blamed for the gap. Arithmetic on clock readings, without
//! I/O.

/// Maximum time between two checks.
pub const CHECK_INTERVAL_NS: u64 = 100_000_000;
/// A check later than this shows a stall. Shorter delays occur because the checking thread shares its CPU.
const LIMIT_NS: u64 = 250_000_000;

/// A reading of three clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// CLOCK_MONOTONIC, which excludes the machine's sleep.
    pub monotonic_ns: u64,
    /// CLOCK_BOOTTIME, which includes the machine's sleep.
    pub boot_ns: u64,
    /// CPU time of the generator's process.
    pub cpu_ns: u64,
}

/// The sums of all stalls so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StallDetector {
    last: ClockReading,
    threads: u64,
    stopped_ns: u64,
    slept_ns: u64,
}

impl StallDetector {
    /// Returns a detector for a generator with this number of threads.
    pub fn new(start: ClockReading, threads: usize) -> Self {
        Self { last: start, threads: threads as u64, ..Self::default() }
    }

    /// Compares the clocks with the last check. Returns the length of the stall in between. Returns `None` if there was
    /// none.
    pub fn check(&mut self, now: ClockReading) -> Option<u64> {
        let passed_ns = now.monotonic_ns.saturating_sub(self.last.monotonic_ns);
        let used_ns = now.cpu_ns.saturating_sub(self.last.cpu_ns);
        let since_boot_ns = now.boot_ns.saturating_sub(self.last.boot_ns);
        self.last = now;
        let mut stall_ns = 0;
        let late_ns = passed_ns.saturating_sub(CHECK_INTERVAL_NS);
        // If only this check was late, the load threads used more CPU time than fits between the last check and a stop.
        if late_ns >= LIMIT_NS && used_ns <= CHECK_INTERVAL_NS * self.threads + late_ns / 10 {
            self.stopped_ns += late_ns;
            stall_ns += late_ns;
        }
        let slept_ns = since_boot_ns.saturating_sub(passed_ns);
        if slept_ns >= LIMIT_NS {
            self.slept_ns += slept_ns;
            stall_ns += slept_ns;
        }
        (stall_ns > 0).then_some(stall_ns)
    }

    /// Returns the reasons why the load is invalid, with their kinds. Returns an empty list without stalls.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        let mut reasons = Vec::new();
        if self.stopped_ns > 0 {
            let reason = format!(
                "the generator stalled for {:.2} s (limit {:.2} s at a time): it was stopped, or the machine gave it no CPU time; requests that were due meanwhile say nothing about the target",
                self.stopped_ns as f64 / 1e9,
                LIMIT_NS as f64 / 1e9
            );
            reasons.push(("stalled", reason));
        }
        if self.slept_ns > 0 {
            let reason = format!(
                "the machine slept for {:.1} s during the load (limit 0): generator and target were away together; measure again",
                self.slept_ns as f64 / 1e9
            );
            reasons.push(("slept", reason));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn after(last: ClockReading, monotonic_ms: u64, boot_ms: u64, cpu_ms: u64) -> ClockReading {
        ClockReading {
            monotonic_ns: last.monotonic_ns + monotonic_ms * MS,
            boot_ns: last.boot_ns + boot_ms * MS,
            cpu_ns: last.cpu_ns + cpu_ms * MS,
        }
    }

    fn start() -> ClockReading {
        ClockReading { monotonic_ns: 5_000 * MS, boot_ns: 9_000 * MS, cpu_ns: 10 * MS }
    }

    #[test]
    fn timely_checks_find_no_stall() {
        let mut standstill = StallDetector::new(start(), 1);
        let mut now = start();
        for late_ms in [0, 3, 120, 249] {
            now = after(now, 100 + late_ms, 100 + late_ms, 0);
            assert_eq!(standstill.check(now), None);
        }
        assert!(standstill.reasons().is_empty());
    }

    #[test]
    fn stopped_process_is_a_stall() {
        let mut standstill = StallDetector::new(start(), 1);
        // The process was busy until it was stopped.
        let now = after(start(), 1_000, 1_000, 95);
        assert_eq!(standstill.check(now), Some(900 * MS));
        let now = after(now, 600, 600, 0);
        assert_eq!(standstill.check(now), Some(500 * MS));
        let reasons = standstill.reasons();
        assert_eq!(reasons.len(), 1);
        assert!(reasons[0].1.starts_with("the generator stalled for 1.40 s"), "{reasons:?}");
    }

    #[test]
    fn late_check_alone_is_no_stall() {
        let mut standstill = StallDetector::new(start(), 2);
        assert_eq!(standstill.check(after(start(), 1_000, 1_000, 900)), None);
        assert!(standstill.reasons().is_empty());
    }

    #[test]
    fn sleep_is_the_difference_of_two_clocks() {
        let mut standstill = StallDetector::new(start(), 1);
        let now = after(start(), 100, 3_600_100, 50);
        assert_eq!(standstill.check(now), Some(3_600_000 * MS));
        // The two clocks are not read at the same time.
        assert_eq!(standstill.check(after(now, 100, 104, 50)), None);
        let reasons = standstill.reasons();
        assert_eq!(reasons.len(), 1);
        assert!(reasons[0].1.starts_with("the machine slept for 3600.0 s"), "{reasons:?}");
    }
}
