//! The extent of one sweep, and the CPU budget of reading threads.

use std::collections::BTreeSet;
use std::time::Duration;

/// Base CPU share of reading threads.
const BASE_SHARE: f64 = 0.002;
/// Additional CPU share per thread.
const SHARE_PER_THREAD: f64 = 6e-6;
/// Upper bound of the CPU share.
const MAX_SHARE: f64 = 0.02;
/// Maximum number of phases: each thread is read at least once in ten seconds at 10 Hz.
const MAX_PHASES: u64 = 100;
/// Weight of the newest cost in the moving average.
const NEW_WEIGHT: f64 = 0.2;

/// Sentences about values that the observer may not read.
pub type Limits = BTreeSet<&'static str>;

/// The observer may not trace a process, which reading `syscall` needs.
pub const WITHOUT_SYSCALL: &str = "The states of threads come from the kernel's functions (wchan), because syscall is not readable. Sleeps by poll \
    count as event waits. Reads of files, pipes and sockets are harder to distinguish.";
/// A process belongs to another user.
pub const FOREIGN_PROCESS: &str =
    "The memory, bytes and thread states of some processes are not readable: they belong to another user.";
/// The kernel has no CONFIG_SCHED_INFO.
pub const WITHOUT_SCHEDSTAT: &str = "The kernel keeps no schedstat: the states of threads are unknown.";

/// The extent of a sweep, beyond CPU time, faults, processes, threads and resident memory.
#[derive(Clone, Copy)]
pub struct Depth {
    /// States of threads.
    pub threads: bool,
    /// Values with a period of 1 s: bytes, descriptors, context switches, throttling and the network.
    pub slow: bool,
    /// Proportional memory of small processes.
    pub memory: bool,
    /// Proportional memory of all processes, and every thread.
    pub full: bool,
}

/// Above this number of threads a process has its sums read once a second. The kernel adds them up without a break,
/// 0.15 to 0.3 us per thread, and may delay a send that long.
const SUMS_THREADS: u64 = 500;
/// The same limit if a control group sums the CPU time. The sums then hold only the faults and the parent.
const SUMS_THREADS_WITH_CGROUP: u64 = 50;
/// Above this number, with such a control group, only full sweeps read the sums.
const SLOW_SUMS_THREADS_WITH_CGROUP: u64 = 200;

impl Depth {
    /// Returns whether the sweep reads the sums over the threads of a process.
    pub fn reads_sums(self, threads: u64, has_cgroup_cpu: bool) -> bool {
        let (usually, once_a_second) = match has_cgroup_cpu {
            true => (SUMS_THREADS_WITH_CGROUP, SLOW_SUMS_THREADS_WITH_CGROUP),
            false => (SUMS_THREADS, u64::MAX),
        };
        self.full || threads <= usually || self.slow && threads <= once_a_second
    }
}

/// A sampling phase: the sweep reads every `count`-th thread, if reading all of them in one sweep costs too much.
#[derive(Clone, Copy, Debug)]
pub struct SamplingPhase {
    index: u64,
    count: u64,
}

impl SamplingPhase {
    /// The phase in which every thread is read.
    pub const ALL: Self = Self { index: 0, count: 1 };

    /// Returns the next phase, out of `count`.
    pub fn next(self, count: u64) -> Self {
        Self { index: self.index.wrapping_add(1), count: count.max(1) }
    }

    /// Returns whether this phase reads a thread.
    pub fn includes(self, thread: i32) -> bool {
        self.includes_rarely(thread, 1)
    }

    /// Returns whether this phase reads a thread of which only one phase in `rounds` is used.
    pub fn includes_rarely(self, thread: i32, rounds: u64) -> bool {
        u64::from(thread.unsigned_abs()).wrapping_add(self.index) % (self.count * rounds) == 0
    }
}

/// Limits the CPU share of reading threads: the more they cost, the more phases share them.
pub struct ThreadBudget {
    phase: SamplingPhase,
    /// Average CPU time of reading every thread once.
    whole_cost_s: f64,
    /// Number of passes over all threads, with fractions.
    passes: f64,
}

impl ThreadBudget {
    pub fn new() -> Self {
        Self { phase: SamplingPhase::ALL, whole_cost_s: 0.0, passes: 0.0 }
    }

    pub fn phase(&self) -> SamplingPhase {
        self.phase
    }

    /// Returns the number of passes over all threads.
    pub fn passes(&self) -> u64 {
        self.passes as u64
    }

    /// Records a sweep that read every thread.
    pub fn record_full_pass(&mut self) {
        self.passes += 1.0;
    }

    /// Records a sweep of one phase: the number of all threads, the CPU time, and the time since the last sweep.
    pub fn record_phase(&mut self, threads: u64, cost: Duration, period: Duration) {
        self.passes += 1.0 / self.phase.count as f64;
        let whole_s = cost.as_secs_f64() * self.phase.count as f64;
        self.whole_cost_s += NEW_WEIGHT * (whole_s - self.whole_cost_s);
        let share = (BASE_SHARE + SHARE_PER_THREAD * threads as f64).min(MAX_SHARE);
        let count = self.whole_cost_s / (share * period.as_secs_f64()).max(1e-6);
        self.phase = self.phase.next((count.ceil() as u64).min(MAX_PHASES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_reads_its_share_of_threads() {
        let mut phase = SamplingPhase::ALL;
        let mut had: Vec<i32> = Vec::new();
        let mut rarely = 0;
        for round in 0..12 {
            phase = phase.next(3);
            let having: Vec<i32> = (1..=700).filter(|&thread| phase.includes(thread)).collect();
            assert!(having.len() <= 234, "{}", having.len());
            rarely += having.iter().filter(|&&one| phase.includes_rarely(one, 4)).count();
            had.extend(having.iter().filter(|_| round < 3));
        }
        had.sort_unstable();
        assert_eq!(had, (1..=700).collect::<Vec<i32>>());
        assert_eq!(rarely, 700);
        assert!((1..9).all(|thread| phase.next(1).includes(thread)));
    }

    #[test]
    fn sums_over_many_threads_are_read_rarely() {
        let usual = Depth { threads: true, slow: false, memory: false, full: false };
        let slow = Depth { slow: true, ..usual };
        let full = Depth { full: true, ..slow };
        let most = |depth: Depth, has_cgroup_cpu: bool| {
            let mut counts = [50, 51, 200, 201, 500, 501, 9999].into_iter().rev();
            counts.find(|&threads| depth.reads_sums(threads, has_cgroup_cpu))
        };
        assert_eq!([usual, slow, full].map(|depth| most(depth, true)), [Some(50), Some(200), Some(9999)]);
        assert_eq!([usual, slow, full].map(|depth| most(depth, false)), [Some(500), Some(9999), Some(9999)]);
    }

    #[test]
    fn cost_stays_within_the_cpu_share() {
        let period = Duration::from_millis(100);
        let cost_of = |threads: u64, phase: SamplingPhase| Duration::from_micros(4 * threads / phase.count);
        for (threads, max_share) in [(20, 0.01), (300, 0.01), (3000, 0.031)] {
            let mut budget = ThreadBudget::new();
            for _ in 0..100 {
                budget.record_phase(threads, cost_of(threads, budget.phase()), period);
            }
            let cost = cost_of(threads, budget.phase());
            assert!(cost.as_secs_f64() <= max_share * period.as_secs_f64());
            assert_eq!(budget.phase().count == 1, threads == 20);
        }
    }
}
