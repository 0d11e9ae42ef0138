//! A first-come, first-served queue with several servers: arithmetic, without a clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// The servers, each as the time when it becomes free.
#[derive(Debug)]
pub(crate) struct Queue {
    servers: usize,
    busy_until: BinaryHeap<Reverse<Instant>>,
}

impl Queue {
    pub(crate) fn new(servers: usize) -> Self {
        Self { servers, busy_until: BinaryHeap::with_capacity(servers) }
    }

    /// Returns the end of a request that arrives now and takes `service_time`. The first free server serves it. Call
    /// this in order of arrival.
    pub(crate) fn done_at(&mut self, now: Instant, service_time: Duration) -> Instant {
        let begins = if self.busy_until.len() < self.servers {
            now
        } else {
            self.busy_until.pop().map_or(now, |Reverse(free)| free.max(now))
        };
        let done = begins + service_time;
        self.busy_until.push(Reverse(done));
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_for_a_free_server() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut queue = Queue::new(2);
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let done: Vec<Instant> = (0..5).map(|_| queue.done_at(begin, second)).collect();
        assert_eq!(done, [at(1), at(1), at(2), at(2), at(3)]);
        // One server is free from 2 s on, the other from 3 s; after a rest both are.
        assert_eq!(queue.done_at(at(2), second), at(3));
        assert_eq!(queue.done_at(at(9), second), at(10));
        assert_eq!(queue.done_at(at(9), second), at(10));
        assert_eq!(queue.done_at(at(9), second), at(11));
    }
}
