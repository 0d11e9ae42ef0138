//! The results of a load that ends at its first failure.

use std::collections::VecDeque;

use serde::Serialize;

use crate::{ErrorKind, Interval};

/// The results before the first failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct UntilFailure {
    /// Number of correct responses.
    pub requests_before: u64,
    /// Throughput of the best second.
    pub highest_throughput_rps: f64,
    pub mean_response_time_us: Option<f64>,
    /// Time of the first failure; null if there was none.
    pub at_s: Option<f64>,
    pub kind: Option<&'static str>,
}

/// The first failure of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstFailure {
    /// Time since the start of the load.
    pub at_ns: u64,
    /// Kind of the failure.
    pub kind: ErrorKind,
}

/// The best second: the highest throughput of correct responses in a sliding window of complete intervals.
#[derive(Debug)]
pub struct BestSecond {
    /// Number of intervals in a second.
    length: usize,
    interval_s: f64,
    window: VecDeque<(f64, u64)>,
    highest_rps: f64,
    ok: u64,
    lasted_s: f64,
}

impl BestSecond {
    /// Returns a window for intervals of this length.
    pub fn new(interval_s: f64) -> Self {
        let length = (1.0 / interval_s).round().max(1.0) as usize;
        Self { length, interval_s, window: VecDeque::with_capacity(length + 1), highest_rps: 0.0, ok: 0, lasted_s: 0.0 }
    }

    /// Adds the next interval. A shortened one counts only if the load is shorter than a second.
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
            let (time_s, ok) = self.window.iter().fold((0.0, 0), |(t, n), &(dt, dn)| (t + dt, n + dn));
            self.highest_rps = self.highest_rps.max(ok as f64 / time_s);
        }
    }

    /// Returns the throughput of the best second, or of the whole load if that was shorter.
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

    fn interval(duration_s: f64, ok: u64) -> Interval {
        let part = crate::IntervalPart {
            index: 0,
            start_ns: 0,
            end_ns: (duration_s * 1e9) as u64,
            counts: crate::Counts { ok, ..crate::Counts::default() },
            in_flight: 0,
            queued: 0,
            oldest_age_ns: 0,
            response_time: crate::BucketCounts::default(),
        };
        let mut merger = crate::IntervalMerger::new(1);
        merger.take(part, &mut Vec::new()).unwrap_or_else(|| panic!("one thread's part is the interval"))
    }

    #[test]
    fn best_second_is_a_sliding_window() {
        let mut best = BestSecond::new(0.5);
        best.take(&interval(0.5, 10));
        assert_eq!(best.highest_rps(), 20.0);
        for ok in [10, 40, 40, 10] {
            best.take(&interval(0.5, ok));
        }
        // A shortened interval, like the last one of a load.
        best.take(&interval(0.1, 1000));
        assert_eq!(best.highest_rps(), 80.0);
    }
}
