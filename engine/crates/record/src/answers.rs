//! What is known of answers altogether, beside their clocks: how long they are, and how long they came.

use serde::Serialize;

/// Whole answers, right or wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// Bytes of their bodies.
    pub body_bytes: u64,
    /// Answers whose body is not as long as that of the load's first.
    pub other_length: u64,
    /// From the first byte of an answer to its last.
    pub read_time: Spread,
}

impl Answers {
    /// Adds another thread's.
    pub fn add(&mut self, other: &Self) {
        self.body_bytes += other.body_bytes;
        self.other_length += other.other_length;
        self.read_time.add(other.read_time);
    }
}

/// Times of which the mean and the ends are asked for and no more: counting one costs a few instructions and touches no histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl Spread {
    /// Counts one more.
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

    /// As records give it.
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

/// A [`Spread`] in microseconds; none without samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct SpreadStatistics {
    pub mean: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

/// The first whole answer of the load, whichever thread had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstAnswer {
    /// Its status.
    pub status: u16,
    /// Its Server header; empty without.
    pub server: String,
    /// Bytes of its body.
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
    fn a_spread_is_its_mean_and_its_ends_however_it_was_split() {
        let mut parts = spread(&[4_000, 1_000]);
        parts.add(spread(&[]));
        parts.add(spread(&[10_000]));
        assert_eq!(parts, spread(&[1_000, 4_000, 10_000]));
        let statistics = parts.statistics();
        assert_eq!(
            (statistics.mean, statistics.min, statistics.max),
            (Some(5.0), Some(1.0), Some(10.0))
        );
    }

    #[test]
    fn a_spread_of_nothing_has_no_figures() {
        assert_eq!(spread(&[]).statistics(), SpreadStatistics::default());
    }
}
