//! What one sweep is to read, and what it must not cost.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// After so long at work the observer offers its CPU to whoever waits for it: the load generator may be on the same one.
const SLICE: Duration = Duration::from_micros(40);

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
    /// Proportional memory, and the context switches of every thread that ran.
    pub full: bool,
}

/// Slices a sweep.
pub struct Pace {
    since: Instant,
}

impl Pace {
    pub fn start() -> Self {
        Self {
            since: Instant::now(),
        }
    }

    /// To be called between short readings.
    pub fn breathe(&mut self) {
        if self.since.elapsed() >= SLICE {
            rustix::thread::sched_yield();
            self.since = Instant::now();
        }
    }
}

/// Whose turn it is where there are too many threads to look at all of them in one sweep: every `of`-th.
#[derive(Clone, Copy, Default)]
pub struct Turn {
    number: u64,
    of: u64,
}

impl Turn {
    /// The next turn, so that about `most` of `wanting` threads have it.
    pub fn next(self, wanting: u64, most: u64) -> Self {
        Self {
            number: self.number.wrapping_add(1),
            of: wanting.div_ceil(most).max(1),
        }
    }

    /// Of everybody.
    pub fn of_all() -> Self {
        Self { number: 0, of: 1 }
    }

    pub fn is_of(self, thread: i32) -> bool {
        u64::from(thread.unsigned_abs()).wrapping_add(self.number) % self.of == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybodys_turn_comes_within_as_many_turns_as_there_are_shares() {
        let mut turn = Turn::default();
        let mut had: Vec<i32> = Vec::new();
        for _ in 0..3 {
            turn = turn.next(700, 300);
            let having: Vec<i32> = (1..=700).filter(|&thread| turn.is_of(thread)).collect();
            assert!(having.len() <= 300, "{}", having.len());
            had.extend(having);
        }
        had.sort_unstable();
        assert_eq!(had, (1..=700).collect::<Vec<i32>>());
        assert!((1..9).all(|thread| turn.next(20, 300).is_of(thread)));
    }
}
