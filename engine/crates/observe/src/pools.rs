//! Thread pools, recognised by the threads' names, and the times of their states.

use crate::sample::PoolTimes;
use crate::thread_state::{STATES, ThreadState};

/// Maximum number of pools. Threads with further names share one more pool.
const MAX_POOLS: usize = 64;
const REST: &str = "(others)";

/// The pools of one tree.
#[derive(Default)]
pub struct Pools(Vec<Pool>);

struct Pool {
    name: String,
    spent_ns: [u64; STATES],
}

impl Pools {
    /// Returns the pool of a thread with this name.
    pub fn index_of(&mut self, thread_name: &[u8]) -> usize {
        let mut name = pool_name(&String::from_utf8_lossy(thread_name.trim_ascii()));
        if self.0.len() >= MAX_POOLS && !self.0.iter().any(|pool| pool.name == name) {
            REST.clone_into(&mut name);
        }
        if let Some(index) = self.0.iter().position(|pool| pool.name == name) {
            return index;
        }
        self.0.push(Pool { name, spent_ns: [0; STATES] });
        self.0.len() - 1
    }

    /// Adds a thread's time to a pool.
    pub fn credit(&mut self, pool: usize, state: ThreadState, nanoseconds: u64) {
        self.0[pool].spent_ns[state as usize] += nanoseconds;
    }

    /// Returns the times of all pools. `alive`: the pool of each live thread.
    pub fn times(&self, alive: impl Iterator<Item = usize>) -> Vec<PoolTimes> {
        let mut threads = vec![0; self.0.len()];
        alive.for_each(|pool| threads[pool] += 1);
        let times = |(pool, threads): (&Pool, u64)| {
            let seconds = |state: ThreadState| pool.spent_ns[state as usize] as f64 / 1e9;
            PoolTimes {
                pool: pool.name.clone(),
                threads,
                on_cpu_s: seconds(ThreadState::OnCpu),
                runnable_s: seconds(ThreadState::Runnable),
                socket_io_s: seconds(ThreadState::SocketIo),
                event_wait_s: seconds(ThreadState::EventWait),
                lock_s: seconds(ThreadState::Lock),
                accept_s: seconds(ThreadState::Accept),
                disk_s: seconds(ThreadState::Disk),
                sleep_s: seconds(ThreadState::Sleep),
                other_s: seconds(ThreadState::Other),
            }
        };
        self.0.iter().zip(threads).map(times).collect()
    }
}

/// Removes the numbers from a thread's name: those at its end, and those that are whole words. Digits within a word
/// stay, so the JVM's compilers C1 and C2 are two pools.
fn pool_name(thread_name: &str) -> String {
    let parts = thread_name.split_inclusive(|sign: char| !sign.is_alphanumeric());
    let mut name = String::new();
    for part in parts {
        let word = part.trim_end_matches(|sign: char| !sign.is_alphanumeric());
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            name.push_str(part);
        }
    }
    let separator = |sign: char| !sign.is_alphanumeric() && sign != ')' && sign != ']';
    let name =
        name.trim_end_matches(|sign: char| sign.is_ascii_digit() || separator(sign)).trim_start_matches(separator);
    if name.is_empty() { thread_name.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_threads_share_a_pool() {
        for (thread, pool) in [
            ("http-nio-8080-exec-12", "http-nio-exec"),
            ("http-ni..exec-1", "http-ni..exec"),
            ("pool-1-thread-3", "pool-thread"),
            ("GC Thread#0", "GC Thread"),
            ("C2 CompilerThread0", "C2 CompilerThread"),
            ("G1 Conc#1", "G1 Conc"),
            ("tokio-runtime-w", "tokio-runtime-w"),
            ("python3.11", "python"),
            ("worker7", "worker"),
            ("42", "42"),
            ("", ""),
        ] {
            assert_eq!(pool_name(thread), pool);
        }
    }

    #[test]
    fn further_names_share_one_pool() {
        let mut pools = Pools::default();
        let name = |index: usize| "x".repeat(index + 1);
        for index in 0..MAX_POOLS {
            assert_eq!(pools.index_of(name(index).as_bytes()), index);
        }
        assert_eq!(pools.index_of(b"another"), MAX_POOLS);
        assert_eq!(pools.index_of(b"yet another"), MAX_POOLS);
        assert_eq!(pools.index_of(name(3).as_bytes()), 3);
        let times = pools.times([3, MAX_POOLS, MAX_POOLS].into_iter());
        assert_eq!(times[MAX_POOLS].pool, REST);
        assert_eq!(times[MAX_POOLS].threads, 2);
    }
}
