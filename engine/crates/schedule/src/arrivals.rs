//! Arrivals of an open load: the due time of each request.
//!
//! A cursor over the arrivals is a few numbers. So a queue of due requests needs no memory: it is the distance between
//! two cursors over the same stream. Each due time is the inverse of the cumulative rate. Its argument is an index for
//! constant arrivals, and a sum of exponential numbers with mean 1 for a Poisson process.

use std::sync::Arc;

use crate::{Curve, Random, Shard};

/// First number of the random streams of arrivals. Those of users start at 0.
const STREAMS: u64 = 1 << 62;

/// A cursor over the arrivals of one shard.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    rate: Arc<Curve>,
    shard: Shard,
    process: Sequence,
    segment: usize,
    taken: u64,
    next_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Sequence {
    Constant,
    /// The shard's own stream with 1/n of the rate. All n streams together have the whole rate.
    Poisson {
        random: Random,
        area: f64,
    },
}

impl Arrivals {
    /// Returns a cursor over constant arrivals. The shard has the indices ≡ k (mod n).
    pub fn constant(rate: Arc<Curve>, shard: Shard) -> Self {
        Self::new(rate, shard, Sequence::Constant)
    }

    /// Returns a cursor over the shard's part of a Poisson process.
    pub fn poisson(rate: Arc<Curve>, shard: Shard, seed: u64) -> Self {
        let random = Random::new(seed, STREAMS + shard.index(0));
        Self::new(rate, shard, Sequence::Poisson { random, area: 0.0 })
    }

    fn new(rate: Arc<Curve>, shard: Shard, process: Sequence) -> Self {
        let mut arrivals = Self { rate, shard, process, segment: 0, taken: 0, next_ns: 0 };
        arrivals.advance();
        arrivals
    }

    /// Returns the due time of the next arrival, or `u64::MAX` if there is none.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Returns the number of passed arrivals.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Passes the next arrival. Returns its due time.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let due_ns = self.next_ns;
        self.taken += 1;
        self.advance();
        due_ns
    }

    #[inline]
    fn advance(&mut self) {
        let area = match &mut self.process {
            Sequence::Constant => self.shard.index(self.taken) as f64,
            Sequence::Poisson { random, area } => {
                *area += random.exponential() * self.shard.of() as f64;
                *area
            }
        };
        self.next_ns = self.rate.inverse_integral_ns(area, &mut self.segment);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn curve(points: &[(f64, f64)]) -> Arc<Curve> {
        Arc::new(Curve::new(points).unwrap())
    }

    /// Returns the due times of all shards before `end_s`, in order.
    fn moments(rate: &Arc<Curve>, n: u64, end_s: f64, seed: Option<u64>) -> Vec<f64> {
        let mut all = Vec::new();
        for k in 0..n {
            let shard = Shard::new(k, n).unwrap();
            let mut arrivals = match seed {
                None => Arrivals::constant(Arc::clone(rate), shard),
                Some(seed) => Arrivals::poisson(Arc::clone(rate), shard, seed),
            };
            while (arrivals.next_ns() as f64) < end_s * 1e9 {
                all.push(arrivals.take() as f64 / 1e9);
            }
        }
        all.sort_by(f64::total_cmp);
        all
    }

    /// Returns the Kolmogorov statistic against the uniform distribution on 0..1. It is above 1.95 once in a thousand.
    fn kolmogorov(values: &mut [f64]) -> f64 {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let distance = values
            .iter()
            .enumerate()
            .map(|(i, &value)| (value - i as f64 / n).max((i as f64 + 1.0) / n - value))
            .fold(0.0, f64::max);
        distance * n.sqrt()
    }

    /// Maps the gaps, which are exponential in cumulative rate, to the uniform distribution.
    fn uniform_gaps(moments: &[f64], rate: &Curve) -> Vec<f64> {
        let areas: Vec<f64> = moments.iter().map(|&t_s| rate.integral(t_s)).collect();
        areas.windows(2).map(|pair| 1.0 - (pair[0] - pair[1]).exp()).collect()
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let ramp = curve(&[(0.0, 100.0), (5.0, 2000.0), (10.0, 0.0), (12.0, 1000.0)]);
        for (rate, end_s) in [(curve(&[(0.0, 1000.0)]), 20.0), (ramp, 20.0)] {
            for n in [1, 3] {
                let moments = moments(&rate, n, end_s, Some(42));
                let statistic = kolmogorov(&mut uniform_gaps(&moments, &rate));
                assert!(statistic < 1.95, "{n} shards: {statistic}");
            }
        }
    }

    #[test]
    fn constant_arrivals_fail_the_poisson_test() {
        let rate = curve(&[(0.0, 1000.0)]);
        let even = moments(&rate, 1, 20.0, None);
        assert!(kolmogorov(&mut uniform_gaps(&even, &rate)) > 10.0);
    }

    #[test]
    fn poisson_counts_have_variance_equal_to_mean() {
        let rate = curve(&[(0.0, 1000.0)]);
        let moments = moments(&rate, 2, 100.0, Some(7));
        let mut counts = vec![0.0; 1000];
        for moment in &moments {
            counts[(moment * 10.0) as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 1000.0;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 999.0;
        // 100,000 arrivals: the mean of a window is 100 ± 0.32, variance ÷ mean 1 ± 0.045.
        assert!((mean - 100.0).abs() < 1.3, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.18, "{}", variance / mean);
    }

    #[test]
    fn poisson_arrivals_follow_a_profile() {
        let rate = curve(&[(0.0, 0.0), (10.0, 2000.0)]);
        let moments = moments(&rate, 1, 10.0, Some(1));
        // 10,000 expected, a quarter of them in the first half.
        let first = moments.iter().filter(|&&t_s| t_s < 5.0).count() as f64;
        assert!((moments.len() as f64 - 10_000.0).abs() < 400.0);
        assert!((first - 2_500.0).abs() < 200.0, "{first}");
    }

    #[test]
    fn poisson_shards_differ() {
        let rate = curve(&[(0.0, 1000.0)]);
        let moments = moments(&rate, 4, 10.0, Some(1));
        let alike = moments.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(alike <= 1, "{alike}");
    }

    #[test]
    fn cursors_over_a_stream_agree() {
        let rate = curve(&[(0.0, 10.0), (1.0, 100.0)]);
        let mut ahead = Arrivals::poisson(rate, Shard::WHOLE, 5);
        let mut behind = ahead.clone();
        let seen: Vec<u64> = (0..1000).map(|_| ahead.take()).collect();
        assert_eq!(ahead.taken() - behind.taken(), 1000);
        assert!(seen.iter().all(|&due_ns| behind.take() == due_ns));
    }

    proptest! {
        #[test]
        fn shards_add_up_to_the_stream(from in 1.0f64..1e5, to in 1.0f64..1e5, n in 1u64..9) {
            let rate = curve(&[(0.0, from), (0.01, to)]);
            let whole = moments(&rate, 1, 0.02, None);
            prop_assert_eq!(moments(&rate, n, 0.02, None), whole);
        }
    }
}
