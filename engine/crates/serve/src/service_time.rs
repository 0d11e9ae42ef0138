//! Random service times with a known distribution.

use std::time::Duration;

/// A distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Always the same.
    Constant(Duration),
    /// Uniform between these two.
    Uniform(Duration, Duration),
    /// Exponential with this mean.
    Exponential(Duration),
}

/// A sequence of random numbers from a seed: splitmix64 (Steele, Lea and Flood, OOPSLA 2014), which is good enough for service times.
#[derive(Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self, distribution: Distribution) -> Duration {
        match distribution {
            Distribution::Constant(time) => time,
            Distribution::Uniform(low, high) => low + (high - low).mul_f64(self.fraction()),
            // 1 − u is above 0, so its logarithm exists.
            Distribution::Exponential(mean) => mean.mul_f64(-(1.0 - self.fraction()).ln()),
        }
    }

    /// Returns true with probability `share`.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.fraction() < share
    }

    /// Returns a number from 0 to below 1, with 53 bits.
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Duration = Duration::from_millis(5);

    fn sorted(distribution: Distribution) -> Vec<f64> {
        let mut draws = Draws::new(7);
        let mut times: Vec<f64> = (0..100_000)
            .map(|_| draws.next(distribution).as_secs_f64() * 1e3)
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }

    #[test]
    fn quantiles_match_the_distribution() {
        let exponential = sorted(Distribution::Exponential(MEAN));
        let uniform = sorted(Distribution::Uniform(MEAN, 3 * MEAN));
        for quantile in [0.1, 0.5, 0.9, 0.99] {
            let at = (quantile * 100_000.0) as usize;
            let expected = -5.0 * f64::ln(1.0 - quantile);
            assert!(
                (exponential[at] / expected - 1.0).abs() < 0.03,
                "{quantile}"
            );
            assert!((uniform[at] / (5.0 + 10.0 * quantile) - 1.0).abs() < 0.01);
        }
        assert!(uniform[0] >= 5.0 && uniform[99_999] < 15.0);
        assert!(
            sorted(Distribution::Constant(MEAN))
                .iter()
                .all(|&ms| ms == 5.0)
        );
    }

    #[test]
    fn seed_determines_the_times() {
        let first = |seed| Draws::new(seed).next(Distribution::Exponential(MEAN));
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
