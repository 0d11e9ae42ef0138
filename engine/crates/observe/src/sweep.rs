//! What one sweep is to read, and what it must not cost.

use std::collections::BTreeSet;
use std::time::Duration;

/// The share of a CPU that looking at threads may take: of few threads,
const LEAST_SHARE: f64 = 0.002;
/// and so much more for each of them,
const SHARE_PER_THREAD: f64 = 6e-6;
/// up to this one.
const MOST_SHARE: f64 = 0.02;
/// However dear they are, each is read every ten seconds of sweeps at 10 Hz.
const MOST_TURNS: u64 = 100;
/// Of the newest cost in its moving average.
const NEW_WEIGHT: f64 = 0.2;

/// What may not be read, in sentences.
pub type Limits = BTreeSet<&'static str>;

/// Reading `syscall` takes the right to trace the process.
pub const WITHOUT_SYSCALL: &str = "What threads wait for is told by the kernel's functions (wchan), since syscall may not be read: sleeps by poll \
    count as event waits, and reads of files, pipes and sockets are told apart less surely.";
/// Another user's process, and no privilege.
pub const FOREIGN_PROCESS: &str = "There are processes whose memory, bytes and reasons for waiting may not be read: they belong to another user.";
/// A kernel without CONFIG_SCHED_INFO.
pub const WITHOUT_SCHEDSTAT: &str =
    "The kernel keeps no schedstat: what threads spend their time on is unknown.";

/// How deep a sweep goes. CPU, faults, processes, threads and resident size are always read.
#[derive(Clone, Copy)]
pub struct Depth {
    /// What threads do.
    pub threads: bool,
    /// What is read once a second: bytes, descriptors, context switches, throttling, the network.
    pub slow: bool,
    /// Proportional memory, where it is not dear.
    pub memory: bool,
    /// Also that which is dear, and every thread.
    pub full: bool,
}

/// Of a process with more threads than this, figures that the kernel adds up over all of them in one go, 0.15 to 0.3 us a thread, are read once
/// a second: a send may wait for that long.
const MANY_THREADS: u64 = 500;
/// The same of a process whose CPU time is known from its tree's account: only faults, and whose child it is, are to be had there.
const SOME_THREADS: u64 = 50;
/// Of one with more than this they are then read in full sweeps alone.
const ACCOUNTED_THREADS: u64 = 200;

impl Depth {
    /// Whether what the kernel adds up over the threads of a process is read, of one with so many threads.
    pub fn has_sums(self, threads: u64, is_accounted: bool) -> bool {
        let (usually, once_a_second) = match is_accounted {
            true => (SOME_THREADS, ACCOUNTED_THREADS),
            false => (MANY_THREADS, u64::MAX),
        };
        self.full || threads <= usually || self.slow && threads <= once_a_second
    }
}

/// Whose turn it is where there are too many threads to read all of them in one sweep: every `of`-th.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    number: u64,
    of: u64,
}

impl Turn {
    /// Everybody's who is not read more rarely.
    pub const FIRST: Self = Self { number: 0, of: 1 };

    /// The next turn, which has come to every `of`-th.
    pub fn next(self, of: u64) -> Self {
        Self {
            number: self.number.wrapping_add(1),
            of: of.max(1),
        }
    }

    pub fn is_of(self, thread: i32) -> bool {
        self.is_rarely_of(thread, 1)
    }

    /// Once in so many of its turns.
    pub fn is_rarely_of(self, thread: i32, turns: u64) -> bool {
        u64::from(thread.unsigned_abs()).wrapping_add(self.number) % (self.of * turns) == 0
    }
}

/// Keeps what looking at threads costs within a share of a CPU, by giving each of them a turn more rarely.
pub struct ThreadBudget {
    turn: Turn,
    /// What it would cost to read every thread once, on average.
    whole_cost_s: f64,
    /// Passes over all threads, counting parts.
    passes: f64,
}

impl ThreadBudget {
    pub fn new() -> Self {
        Self {
            turn: Turn::FIRST,
            whole_cost_s: 0.0,
            passes: 0.0,
        }
    }

    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// Passes over all threads so far.
    pub fn passes(&self) -> u64 {
        self.passes as u64
    }

    /// Every thread has been read, whosever turn it was.
    pub fn has_read_all(&mut self) {
        self.passes += 1.0;
    }

    /// Those whose turn it was, of so many threads, have been read at this cost, so long after the last time.
    pub fn has_read(&mut self, threads: u64, cost: Duration, period: Duration) {
        self.passes += 1.0 / self.turn.of as f64;
        let whole_s = cost.as_secs_f64() * self.turn.of as f64;
        self.whole_cost_s += NEW_WEIGHT * (whole_s - self.whole_cost_s);
        let share = (LEAST_SHARE + SHARE_PER_THREAD * threads as f64).min(MOST_SHARE);
        let of = self.whole_cost_s / (share * period.as_secs_f64()).max(1e-6);
        self.turn = self.turn.next((of.ceil() as u64).min(MOST_TURNS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybodys_turn_comes_once_in_as_many_turns_as_there_are_shares() {
        let mut turn = Turn::FIRST;
        let mut had: Vec<i32> = Vec::new();
        let mut rarely = 0;
        for round in 0..12 {
            turn = turn.next(3);
            let having: Vec<i32> = (1..=700).filter(|&thread| turn.is_of(thread)).collect();
            assert!(having.len() <= 234, "{}", having.len());
            rarely += having
                .iter()
                .filter(|&&one| turn.is_rarely_of(one, 4))
                .count();
            had.extend(having.iter().filter(|_| round < 3));
        }
        had.sort_unstable();
        assert_eq!(had, (1..=700).collect::<Vec<i32>>());
        assert_eq!(rarely, 700);
        assert!((1..9).all(|thread| turn.next(1).is_of(thread)));
    }

    #[test]
    fn sums_over_many_threads_are_read_more_rarely_and_least_where_there_is_an_account() {
        let usual = Depth {
            threads: true,
            slow: false,
            memory: false,
            full: false,
        };
        let slow = Depth {
            slow: true,
            ..usual
        };
        let full = Depth { full: true, ..slow };
        let most = |depth: Depth, is_accounted: bool| {
            let mut counts = [50, 51, 200, 201, 500, 501, 9999].into_iter().rev();
            counts.find(|&threads| depth.has_sums(threads, is_accounted))
        };
        assert_eq!(
            [usual, slow, full].map(|depth| most(depth, true)),
            [Some(50), Some(200), Some(9999)]
        );
        assert_eq!(
            [usual, slow, full].map(|depth| most(depth, false)),
            [Some(500), Some(9999), Some(9999)]
        );
    }

    #[test]
    fn threads_have_their_turn_as_rarely_as_their_share_of_a_cpu_asks() {
        let period = Duration::from_millis(100);
        let cost_of = |threads: u64, turn: Turn| Duration::from_micros(4 * threads / turn.of);
        for (threads, most_share) in [(20, 0.01), (300, 0.01), (3000, 0.031)] {
            let mut budget = ThreadBudget::new();
            for _ in 0..100 {
                budget.has_read(threads, cost_of(threads, budget.turn()), period);
            }
            let cost = cost_of(threads, budget.turn());
            assert!(cost.as_secs_f64() <= most_share * period.as_secs_f64());
            assert_eq!(budget.turn().of == 1, threads == 20);
        }
    }
}
