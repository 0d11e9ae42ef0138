//! Sums over all responses: their lengths, and the times of reading them.

use serde::Serialize;

/// Sums over complete responses, correct or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Responses {
    /// Bytes of the bodies.
    pub body_bytes: u64,
    /// Number of responses whose body has another length than the first one of the load.
    pub other_length: u64,
    /// Times from the first byte of a response to its last.
    pub read_time: Spread,
}

impl Responses {
    /// Adds the sums of another thread.
    pub fn add(&mut self, other: &Self) {
        self.body_bytes += other.body_bytes;
        self.other_length += other.other_length;
        self.read_time.add(other.read_time);
    }
}

/// Mean, minimum and maximum of times. Recording one costs a few instructions, without a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Spread {
    /// Records one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += ns;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the statistics for a record.
    pub fn statistics(&self) -> SpreadStatistics {
        if self.count == 0 {
            return SpreadStatistics::default();
        }
        let us = |ns: f64| Some(ns / 1e3);
        SpreadStatistics {
            mean: us(self.sum_ns as f64 / self.count as f64),
            min: us(self.min_ns as f64),
            max: us(self.max_ns as f64),
        }
    }
}

/// A [`Spread`] in microseconds; null without samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct SpreadStatistics {
    pub mean: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

/// The first complete response of the load, over all threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstResponse {
    /// Status code.
    pub status: u16,
    /// Value of the Server header field; empty if it is missing.
    pub server: String,
    /// Bytes of the body.
    pub body_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[u64]) -> Spread {
        let mut spread = Spread::default();
        values.iter().for_each(|&ns| spread.record(ns));
        spread
    }

    #[test]
    fn spreads_merge() {
        let mut parts = spread(&[4_000, 1_000]);
        parts.add(spread(&[]));
        parts.add(spread(&[10_000]));
        assert_eq!(parts, spread(&[1_000, 4_000, 10_000]));
        let statistics = parts.statistics();
        assert_eq!((statistics.mean, statistics.min, statistics.max), (Some(5.0), Some(1.0), Some(10.0)));
    }

    #[test]
    fn empty_spread_has_no_statistics() {
        assert_eq!(spread(&[]).statistics(), SpreadStatistics::default());
    }
}
