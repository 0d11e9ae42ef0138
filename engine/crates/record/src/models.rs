//! What single requests and single connections have to tell, beside the sums: the slowest requests, how evenly connections were
//! served, and what was reached before the first failure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use serde::Serialize;

use crate::{ErrorKind, Interval};

/// One request's time line. Moments are nanoseconds since the load began; in records, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct TimeLine {
    /// Last byte − intended start: first, since it is what these are compared by.
    pub response_ns: u64,
    pub intended_ns: u64,
    pub written_ns: u64,
    pub first_byte_ns: u64,
    pub last_byte_ns: u64,
    pub status: u16,
    /// The connection's place among all of the load.
    pub connection: u64,
}

/// A [`TimeLine`] as records give it: microseconds since the clock started.
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

/// The slowest requests. To refuse one that is not costs a comparison; memory is that of so many requests.
#[derive(Debug)]
pub struct Slowest {
    most: usize,
    /// What a request must exceed to be among them.
    threshold_ns: u64,
    heap: BinaryHeap<Reverse<TimeLine>>,
}

impl Slowest {
    /// The `most` slowest.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            threshold_ns: if most == 0 { u64::MAX } else { 0 },
            heap: BinaryHeap::with_capacity(most + 1),
        }
    }

    /// Whether a request that took so long is among the slowest so far.
    #[inline]
    pub fn wants(&self, response_ns: u64) -> bool {
        response_ns > self.threshold_ns
    }

    /// Keeps a request, and forgets the fastest if there are too many.
    pub fn keep(&mut self, line: TimeLine) {
        self.heap.push(Reverse(line));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
        if self.heap.len() == self.most {
            self.threshold_ns = self
                .heap
                .peek()
                .map_or(u64::MAX, |Reverse(line)| line.response_ns);
        }
    }

    /// Adds another thread's.
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

    /// Tells where the connections of these, counted within a thread, are among all.
    pub fn place(&mut self, place: impl Fn(u64) -> u64) {
        let lines = std::mem::take(&mut self.heap).into_iter();
        self.heap = lines
            .map(|Reverse(mut line)| {
                line.connection = place(line.connection);
                Reverse(line)
            })
            .collect();
    }

    /// The slowest first.
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

/// Requests written on each connection that took part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Fairness {
    pub min: u64,
    pub median: f64,
    pub max: u64,
}

impl Fairness {
    /// Of the numbers of requests, in any order.
    pub fn of(mut requests: Vec<u32>) -> Self {
        requests.sort_unstable();
        let n = requests.len();
        let (Some(&min), Some(&max)) = (requests.first(), requests.last()) else {
            return Self::default();
        };
        Self {
            min: u64::from(min),
            median: f64::from(requests[(n - 1) / 2]).midpoint(f64::from(requests[n / 2])),
            max: u64::from(max),
        }
    }
}

/// What was reached before the first failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct UntilFailure {
    /// Right answers.
    pub requests_before: u64,
    /// Of the best stretch of a second.
    pub highest_throughput_rps: f64,
    pub mean_response_time_us: Option<f64>,
    /// When the first failure was; none came if null.
    pub at_s: Option<f64>,
    pub kind: Option<&'static str>,
}

/// The first failure that a thread saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstFailure {
    /// When, since the load began.
    pub at_ns: u64,
    /// What it was.
    pub kind: ErrorKind,
}

/// The best second: right answers in a window of whole intervals that is moved over the load.
#[derive(Debug)]
pub struct BestSecond {
    /// Intervals of a second.
    length: usize,
    interval_s: f64,
    window: VecDeque<(f64, u64)>,
    highest_rps: f64,
    ok: u64,
    lasted_s: f64,
}

impl BestSecond {
    /// For intervals of this length.
    pub fn new(interval_s: f64) -> Self {
        let length = (1.0 / interval_s).round().max(1.0) as usize;
        Self {
            length,
            interval_s,
            window: VecDeque::with_capacity(length + 1),
            highest_rps: 0.0,
            ok: 0,
            lasted_s: 0.0,
        }
    }

    /// Takes the next interval. One that was cut short counts only where the load was too short for a whole second.
    pub fn take(&mut self, interval: &Interval) {
        let duration_s = interval.end_s - interval.start_s;
        self.ok += interval.ok;
        self.lasted_s += duration_s;
        if duration_s < self.interval_s * 0.999 {
            return;
        }
        self.window.push_back((duration_s, interval.ok));
        if self.window.len() > self.length {
            self.window.pop_front();
        }
        if self.window.len() == self.length {
            let (time_s, ok) = self
                .window
                .iter()
                .fold((0.0, 0), |(t, n), &(dt, dn)| (t + dt, n + dn));
            self.highest_rps = self.highest_rps.max(ok as f64 / time_s);
        }
    }

    /// The throughput in the best second; over the whole load if that was shorter.
    pub fn highest_rps(&self) -> f64 {
        if self.window.len() < self.length && self.lasted_s > 0.0 {
            return self.ok as f64 / self.lasted_s;
        }
        self.highest_rps
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

    fn interval(duration_s: f64, ok: u64) -> Interval {
        let part = crate::IntervalPart {
            index: 0,
            start_ns: 0,
            end_ns: (duration_s * 1e9) as u64,
            counts: crate::Counts {
                ok,
                ..crate::Counts::default()
            },
            in_flight: 0,
            queued: 0,
            oldest_age_ns: 0,
            response_time: crate::new_histogram(),
        };
        let mut merger = crate::IntervalMerger::new(1);
        merger
            .take(part, &mut Vec::new())
            .unwrap_or_else(|| panic!("one thread's part is the interval"))
    }

    fn of(most: usize, times: &[u64]) -> Slowest {
        let mut slowest = Slowest::new(most);
        for (connection, &time) in times.iter().enumerate() {
            if slowest.wants(time) {
                slowest.keep(line(time, connection as u64));
            }
        }
        slowest
    }

    fn times(slowest: &Slowest) -> Vec<f64> {
        slowest
            .to_records()
            .iter()
            .map(|record| record.last_byte_us - record.intended_us)
            .collect()
    }

    #[test]
    fn the_slowest_are_kept_in_order_whatever_order_they_came_in() {
        let slowest = of(3, &[5_000, 1_000, 9_000, 7_000, 8_000, 2_000]);
        assert_eq!(times(&slowest), [9.0, 8.0, 7.0]);
        assert_eq!(slowest.to_records()[0].connection, 2);
        assert!(!slowest.wants(7_000));
        assert_eq!(times(&of(3, &[5_000])), [5.0]);
        assert_eq!(times(&of(0, &[5_000])), [0.0; 0]);
    }

    #[test]
    fn the_slowest_of_threads_are_the_slowest_of_all() {
        let mut slowest = of(2, &[5_000, 1_000]);
        let mut other = of(2, &[3_000, 9_000, 2_000]);
        other.place(|connection| connection * 2 + 1);
        slowest.add(&other);
        assert_eq!(times(&slowest), [9.0, 5.0]);
        assert_eq!(slowest.to_records()[0].connection, 3);
    }

    #[test]
    fn fairness_is_the_least_the_middle_and_the_most() {
        assert_eq!(
            Fairness::of(vec![3, 1, 2]),
            Fairness {
                min: 1,
                median: 2.0,
                max: 3
            }
        );
        assert_eq!(Fairness::of(vec![4, 1, 2, 9]).median, 3.0);
        assert_eq!(Fairness::of(vec![]), Fairness::default());
    }

    #[test]
    fn the_best_second_is_a_window_that_moves() {
        let mut best = BestSecond::new(0.5);
        best.take(&interval(0.5, 10));
        assert_eq!(best.highest_rps(), 20.0);
        for ok in [10, 40, 40, 10] {
            best.take(&interval(0.5, ok));
        }
        // One that was cut short, as the last one is.
        best.take(&interval(0.1, 1000));
        assert_eq!(best.highest_rps(), 80.0);
    }
}
