//! How a load thread waits. The strategy is a part of the result: response times of different strategies are not
//! compared.

use weir_net::Wait;
use weir_plan::Plan;

use crate::clock::now_ns;

/// A sleep ends this much before a due moment, because an idle processor wakes tens of microseconds late, later in a
/// virtual machine.
const SPIN_NS: u64 = 250_000;
/// The longest sleep, so that the thread notices a request to stop.
const LONGEST_NS: u64 = 20_000_000;

/// How often a closed loop polls for responses before it sleeps. A server spends its own CPU time to wake a sleeping
/// client: with 1,024 connections at one response in ten, and a saturated nginx served 5 to 9 % more without it. A
/// count needs no clock.
const LOOKS: u32 = 64;

/// How a load thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitStrategy {
    /// Nothing is due by the clock, and the CPU is shared: sleeps until something happens, as browsers, wrk and hey do.
    Block,
    /// Nothing is due by the clock, and the thread has its own CPU: polls for a moment if responses are due, then
    /// sleeps.
    SpinThenBlock,
    /// Requests are due by the clock, and the CPU is shared: sleeps until the moment, with nanosecond timers and no
    /// slack.
    Sleep,
    /// Requests are due by the clock, and the thread has its own CPU: sleeps until shortly before the moment, then
    /// polls. Polls while responses are due.
    SleepThenSpin,
}

impl WaitStrategy {
    pub(crate) fn of(plan: &Plan) -> Self {
        // `taskset -c 0 weir load` gives the generator a CPU as `--cpus 0` does. A thread that never sleeps would leave no
        // time on this CPU for the caller, whose priority is lower.
        let is_timed = plan.load.is_timed();
        let must_sleep = is_timed && plan.shares_cpu;
        let is_alone = plan.threads == 1 && !must_sleep && weir_sys::limits::is_confined_to_one_cpu();
        match (is_timed, plan.cpus.len() >= plan.threads || is_alone) {
            (false, false) => Self::Block,
            (false, true) => Self::SpinThenBlock,
            (true, false) => Self::Sleep,
            (true, true) => Self::SleepThenSpin,
        }
    }

    /// Returns the name in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::SpinThenBlock => "spin-block",
            Self::Sleep => "sleep",
            Self::SleepThenSpin => "sleep-spin",
        }
    }

    /// Returns how to wait from now until a deadline.
    #[inline]
    pub(crate) fn wait(self, now_ns: u64, deadline_ns: u64, responses_are_due: bool) -> Wait {
        let left_ns = deadline_ns.saturating_sub(now_ns).min(LONGEST_NS);
        match self {
            Self::SleepThenSpin if responses_are_due || left_ns <= SPIN_NS => Wait::Poll,
            Self::SleepThenSpin => Wait::AtMostNs(left_ns - SPIN_NS),
            Self::Sleep => Wait::AtMostNs(left_ns),
            // Only timeouts and ends of intervals are due by the clock here, and both read the clock when they come.
            Self::Block | Self::SpinThenBlock => Wait::AboutNs(left_ns),
        }
    }

    /// Returns how often to poll before a wait.
    #[inline]
    pub(crate) fn looks(self, wait: Wait, responses_are_due: bool) -> u32 {
        match (self, wait) {
            (Self::SpinThenBlock, Wait::AboutNs(1..)) if responses_are_due => LOOKS,
            _ => 0,
        }
    }
}

/// Sleeps until shortly before a moment, then spins. During the sleep a server on the same CPU can run.
pub(crate) fn sleep_until(at_ns: u64) {
    const SPIN_NS: u64 = 500_000;
    let sleep_ns = at_ns.saturating_sub(now_ns()).saturating_sub(SPIN_NS);
    std::thread::sleep(std::time::Duration::from_nanos(sleep_ns));
    while now_ns() < at_ns {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_its_own_cpu_it_sleeps_short_of_the_moment_and_spins_the_rest() {
        let strategy = WaitStrategy::SleepThenSpin;
        assert_eq!(strategy.wait(0, 1_000_000, false), Wait::AtMostNs(750_000));
        assert_eq!(strategy.wait(800_000, 1_000_000, false), Wait::Poll);
        assert_eq!(strategy.wait(0, 1_000_000, true), Wait::Poll);
    }

    #[test]
    fn without_its_own_cpu_it_never_spins() {
        assert_eq!(WaitStrategy::Sleep.wait(999_999, 1_000_000, true), Wait::AtMostNs(1));
        assert_eq!(WaitStrategy::Block.wait(999_999, 1_000_000, true), Wait::AboutNs(1));
    }

    #[test]
    fn a_closed_loop_with_its_own_cpu_is_awake_for_a_moment_while_responses_are_due() {
        let strategy = WaitStrategy::SpinThenBlock;
        let long = strategy.wait(0, 1_000_000, true);
        assert_eq!(long, Wait::AboutNs(1_000_000));
        assert_eq!(strategy.looks(long, true), LOOKS);
        assert_eq!(strategy.looks(long, false), 0);
        assert_eq!(strategy.looks(Wait::AboutNs(0), true), 0);
        assert_eq!(WaitStrategy::Block.looks(long, true), 0);
    }

    #[test]
    fn no_sleep_is_so_long_that_a_stop_is_not_heard() {
        assert_eq!(WaitStrategy::Block.wait(0, u64::MAX, true), Wait::AboutNs(LONGEST_NS));
    }
}
