//! The slowest requests of a load, with their time lines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;

/// The times of one request, in nanoseconds since the start of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct TimeLine {
    /// Last byte − intended start. The first field, because it is the key of the order.
    pub response_ns: u64,
    pub intended_ns: u64,
    pub written_ns: u64,
    pub first_byte_ns: u64,
    pub last_byte_ns: u64,
    pub status: u16,
    /// Index of the connection in the load.
    pub connection: u64,
}

/// A [`TimeLine`] in a record, in microseconds since the start of the load.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct SlowRequest {
    pub intended_us: f64,
    pub written_us: f64,
    pub first_byte_us: f64,
    pub last_byte_us: f64,
    pub status: u16,
    pub connection: u64,
}

/// The slowest requests. Rejecting a faster request costs one comparison.
#[derive(Debug)]
pub struct Slowest {
    capacity: usize,
    /// Response time that a request must exceed.
    threshold_ns: u64,
    heap: BinaryHeap<Reverse<TimeLine>>,
}

impl Slowest {
    /// Returns a collection of the `capacity` slowest requests.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            threshold_ns: if capacity == 0 { u64::MAX } else { 0 },
            heap: BinaryHeap::with_capacity(capacity + 1),
        }
    }

    /// Returns whether a request with this response time is among the slowest so far.
    #[inline]
    pub fn wants(&self, response_ns: u64) -> bool {
        response_ns > self.threshold_ns
    }

    /// Adds a request, and removes the fastest one above the capacity.
    pub fn keep(&mut self, line: TimeLine) {
        self.heap.push(Reverse(line));
        if self.heap.len() > self.capacity {
            self.heap.pop();
        }
        if self.heap.len() == self.capacity {
            self.threshold_ns = self.heap.peek().map_or(u64::MAX, |Reverse(line)| line.response_ns);
        }
    }

    /// Adds the requests of another thread.
    pub fn add(&mut self, other: &Self) {
        other
            .heap
            .iter()
            .filter(|Reverse(line)| line.response_ns > self.threshold_ns)
            .copied()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|Reverse(line)| self.keep(line));
    }

    /// Replaces the connections' indices within a thread by their indices in the load.
    pub fn place(&mut self, place: impl Fn(u64) -> u64) {
        let lines = std::mem::take(&mut self.heap).into_iter();
        self.heap = lines
            .map(|Reverse(mut line)| {
                line.connection = place(line.connection);
                Reverse(line)
            })
            .collect();
    }

    /// Returns the requests, the slowest first.
    pub fn to_records(&self) -> Vec<SlowRequest> {
        let mut lines: Vec<TimeLine> = self.heap.iter().map(|Reverse(line)| *line).collect();
        lines.sort_by_key(|&line| Reverse(line));
        let us = |ns: u64| ns as f64 / 1e3;
        lines
            .into_iter()
            .map(|line| SlowRequest {
                intended_us: us(line.intended_ns),
                written_us: us(line.written_ns),
                first_byte_us: us(line.first_byte_ns),
                last_byte_us: us(line.last_byte_ns),
                status: line.status,
                connection: line.connection,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(response_ns: u64, connection: u64) -> TimeLine {
        TimeLine {
            response_ns,
            intended_ns: 1_000,
            written_ns: 2_000,
            first_byte_ns: 3_000,
            last_byte_ns: 1_000 + response_ns,
            status: 200,
            connection,
        }
    }

    fn slowest_of(capacity: usize, times: &[u64]) -> Slowest {
        let mut slowest = Slowest::new(capacity);
        for (connection, &time) in times.iter().enumerate() {
            if slowest.wants(time) {
                slowest.keep(line(time, connection as u64));
            }
        }
        slowest
    }

    fn times(slowest: &Slowest) -> Vec<f64> {
        slowest.to_records().iter().map(|record| record.last_byte_us - record.intended_us).collect()
    }

    #[test]
    fn slowest_are_in_order() {
        let slowest = slowest_of(3, &[5_000, 1_000, 9_000, 7_000, 8_000, 2_000]);
        assert_eq!(times(&slowest), [9.0, 8.0, 7.0]);
        assert_eq!(slowest.to_records()[0].connection, 2);
        assert!(!slowest.wants(7_000));
        assert_eq!(times(&slowest_of(3, &[5_000])), [5.0]);
        assert_eq!(times(&slowest_of(0, &[5_000])), [0.0; 0]);
    }

    #[test]
    fn slowest_of_threads_merge() {
        let mut slowest = slowest_of(2, &[5_000, 1_000]);
        let mut other = slowest_of(2, &[3_000, 9_000, 2_000]);
        other.place(|connection| connection * 2 + 1);
        slowest.add(&other);
        assert_eq!(times(&slowest), [9.0, 5.0]);
        assert_eq!(slowest.to_records()[0].connection, 3);
    }
}
