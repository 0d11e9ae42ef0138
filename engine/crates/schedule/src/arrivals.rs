//! Arrivals of an open load: the moment at which each request is due.
//!
//! A cursor over the arrivals is a few numbers, so that a queue of arrivals that are due and not yet sent needs no memory: it is
//! the distance between two cursors over the same stream. Every moment is the inverse of the cumulative rate, whose argument
//! is an index (constant arrivals) or the sum of exponential numbers of mean 1 (a Poisson process).

use std::sync::Arc;

use crate::{Curve, Random, Shard};

/// Random streams of arrivals are numbered from here on, those of users from 0.
const STREAMS: u64 = 1 << 62;

/// A cursor over one shard's arrivals.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    rate: Arc<Curve>,
    shard: Shard,
    process: Process,
    segment: usize,
    taken: u64,
    next_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Process {
    Constant,
    /// The shard's own stream, of an n-th of the rate: n of them together are one of the whole rate.
    Poisson {
        random: Random,
        area: f64,
    },
}

impl Arrivals {
    /// A cursor before the shard's first of even arrivals: the shard has those with an index ≡ k (mod n).
    pub fn constant(rate: Arc<Curve>, shard: Shard) -> Self {
        Self::new(rate, shard, Process::Constant)
    }

    /// A cursor before the first of the shard's share of a Poisson process.
    pub fn poisson(rate: Arc<Curve>, shard: Shard, seed: u64) -> Self {
        let random = Random::new(seed, STREAMS + shard.index(0));
        Self::new(rate, shard, Process::Poisson { random, area: 0.0 })
    }

    fn new(rate: Arc<Curve>, shard: Shard, process: Process) -> Self {
        let mut arrivals = Self {
            rate,
            shard,
            process,
            segment: 0,
            taken: 0,
            next_ns: 0,
        };
        arrivals.advance();
        arrivals
    }

    /// When the next arrival is due; `u64::MAX` if none is to come.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// How many arrivals the cursor has passed.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Passes the next arrival and gives the moment it was due.
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
            Process::Constant => self.shard.index(self.taken) as f64,
            Process::Poisson { random, area } => {
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

    /// All moments before `end_s` of all shards, in order.
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

    /// The largest distance between the distribution of values and the uniform one on 0..1, times the square root of their
    /// number: above 1.95 once in a thousand (Kolmogorov).
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

    /// Gaps between Poisson arrivals in cumulative rate are exponential with mean 1.
    fn uniform_gaps(moments: &[f64], rate: &Curve) -> Vec<f64> {
        let areas: Vec<f64> = moments.iter().map(|&t_s| rate.integral(t_s)).collect();
        areas
            .windows(2)
            .map(|pair| 1.0 - (pair[0] - pair[1]).exp())
            .collect()
    }

    #[test]
    fn gaps_of_poisson_arrivals_are_exponential_at_any_rate_and_split() {
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
    fn the_goodness_of_fit_test_fails_for_arrivals_that_are_not_poisson() {
        let rate = curve(&[(0.0, 1000.0)]);
        let even = moments(&rate, 1, 20.0, None);
        assert!(kolmogorov(&mut uniform_gaps(&even, &rate)) > 10.0);
    }

    #[test]
    fn counts_of_poisson_arrivals_in_windows_vary_as_much_as_their_mean() {
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
    fn shards_of_a_poisson_process_do_not_repeat_each_other() {
        let rate = curve(&[(0.0, 1000.0)]);
        let moments = moments(&rate, 4, 10.0, Some(1));
        let alike = moments.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(alike <= 1, "{alike}");
    }

    #[test]
    fn two_cursors_over_a_stream_see_the_same() {
        let rate = curve(&[(0.0, 10.0), (1.0, 100.0)]);
        let mut ahead = Arrivals::poisson(rate, Shard::WHOLE, 5);
        let mut behind = ahead.clone();
        let seen: Vec<u64> = (0..1000).map(|_| ahead.take()).collect();
        assert_eq!(ahead.taken() - behind.taken(), 1000);
        assert!(seen.iter().all(|&due_ns| behind.take() == due_ns));
    }

    proptest! {
        #[test]
        fn the_shards_of_a_stream_together_are_the_stream(from in 1.0f64..1e5, to in 1.0f64..1e5, n in 1u64..9) {
            let rate = curve(&[(0.0, from), (0.01, to)]);
            let whole = moments(&rate, 1, 0.02, None);
            prop_assert_eq!(moments(&rate, n, 0.02, None), whole);
        }
    }
}
