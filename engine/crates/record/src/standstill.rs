//! Whether the generator ran all the time. One that was stopped (Ctrl-Z, SIGSTOP, a frozen container) or whose machine slept measures
//! nothing meanwhile, and without this the hole would be called the target's. Arithmetic: clocks in, reasons out.

/// How often somebody must look, at least.
pub const LOOK_EVERY_NS: u64 = 100_000_000;
/// A look may be late by less than this, since the thread that looks shares its CPU.
const LIMIT_NS: u64 = 250_000_000;

/// A reading of three clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// CLOCK_MONOTONIC, which stands still while the machine sleeps.
    pub monotonic_ns: u64,
    /// CLOCK_BOOTTIME, which does not.
    pub boot_ns: u64,
    /// CPU time of the generator's process.
    pub cpu_ns: u64,
}

/// How long the generator did not run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standstill {
    last: Moment,
    threads: u64,
    stopped_ns: u64,
    slept_ns: u64,
}

impl Standstill {
    /// Nothing yet, of a generator with so many threads.
    pub fn since(start: Moment, threads: usize) -> Self {
        Self {
            last: start,
            threads: threads as u64,
            ..Self::default()
        }
    }

    /// Takes the next look, and gives how long nothing ran since the one before, if that is long.
    pub fn look(&mut self, now: Moment) -> Option<u64> {
        let passed_ns = now.monotonic_ns.saturating_sub(self.last.monotonic_ns);
        let used_ns = now.cpu_ns.saturating_sub(self.last.cpu_ns);
        let since_boot_ns = now.boot_ns.saturating_sub(self.last.boot_ns);
        self.last = now;
        let mut still_ns = 0;
        let late_ns = passed_ns.saturating_sub(LOOK_EVERY_NS);
        // Where only the looking was held up, the load threads went on and used their CPUs: more than they can have between a look
        // and the stop.
        if late_ns >= LIMIT_NS && used_ns <= LOOK_EVERY_NS * self.threads + late_ns / 10 {
            self.stopped_ns += late_ns;
            still_ns += late_ns;
        }
        let slept_ns = since_boot_ns.saturating_sub(passed_ns);
        if slept_ns >= LIMIT_NS {
            self.slept_ns += slept_ns;
            still_ns += slept_ns;
        }
        (still_ns > 0).then_some(still_ns)
    }

    /// Why nothing that was measured can be believed, each with its kind; nothing where it ran.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        let mut reasons = Vec::new();
        if self.stopped_ns > 0 {
            let reason = format!(
                "the generator stood still for {:.2} s (limit {:.2} s at a time): it was stopped, or the machine gave it no time; what was due meanwhile says nothing about the target",
                self.stopped_ns as f64 / 1e9,
                LIMIT_NS as f64 / 1e9
            );
            reasons.push(("stood_still", reason));
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

    fn after(last: Moment, monotonic_ms: u64, boot_ms: u64, cpu_ms: u64) -> Moment {
        Moment {
            monotonic_ns: last.monotonic_ns + monotonic_ms * MS,
            boot_ns: last.boot_ns + boot_ms * MS,
            cpu_ns: last.cpu_ns + cpu_ms * MS,
        }
    }

    fn start() -> Moment {
        Moment {
            monotonic_ns: 5_000 * MS,
            boot_ns: 9_000 * MS,
            cpu_ns: 10 * MS,
        }
    }

    #[test]
    fn who_looks_in_time_finds_nothing() {
        let mut standstill = Standstill::since(start(), 1);
        let mut now = start();
        for late_ms in [0, 3, 120, 249] {
            now = after(now, 100 + late_ms, 100 + late_ms, 0);
            assert_eq!(standstill.look(now), None);
        }
        assert!(standstill.reasons().is_empty());
    }

    #[test]
    fn a_process_that_was_stopped_stood_still() {
        let mut standstill = Standstill::since(start(), 1);
        // It was busy until it was stopped.
        let now = after(start(), 1_000, 1_000, 95);
        assert_eq!(standstill.look(now), Some(900 * MS));
        let now = after(now, 600, 600, 0);
        assert_eq!(standstill.look(now), Some(500 * MS));
        let reasons = standstill.reasons();
        assert_eq!(reasons.len(), 1);
        assert!(
            reasons[0]
                .1
                .starts_with("the generator stood still for 1.40 s"),
            "{reasons:?}"
        );
    }

    #[test]
    fn a_look_that_was_held_up_alone_is_no_standstill() {
        let mut standstill = Standstill::since(start(), 2);
        assert_eq!(standstill.look(after(start(), 1_000, 1_000, 900)), None);
        assert!(standstill.reasons().is_empty());
    }

    #[test]
    fn a_machine_that_slept_is_known_by_its_two_clocks() {
        let mut standstill = Standstill::since(start(), 1);
        let now = after(start(), 100, 3_600_100, 50);
        assert_eq!(standstill.look(now), Some(3_600_000 * MS));
        // Two clocks are not read at the same moment.
        assert_eq!(standstill.look(after(now, 100, 104, 50)), None);
        let reasons = standstill.reasons();
        assert_eq!(reasons.len(), 1);
        assert!(
            reasons[0].1.starts_with("the machine slept for 3600.0 s"),
            "{reasons:?}"
        );
    }
}
