//! Reproducible random numbers: the same seed makes the same load.

/// A stream of random numbers (SplitMix64: Steele, Lea and Flood, 2014). It has eight bytes, so each user has its own,
/// independent of the order in which users run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Random(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Returns stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(mix(mix(seed.wrapping_add(STEP)) ^ stream.wrapping_mul(STEP)))
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Returns a number below `count`, which must not be 0. The bias is less than `count` / 2^64.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }

    /// Returns a number above 0 and at most 1, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number from the exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_the_numbers() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.unit(), random.unit(), random.unit()]
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
    }

    #[test]
    fn neighbouring_streams_are_uncorrelated() {
        // The correlation of two independent streams of n numbers is within 4 / sqrt(n) of 0.
        let (mut a, mut b) = (Random::new(7, 0), Random::new(7, 1));
        let n = 100_000;
        let sum: f64 = (0..n).map(|_| (a.unit() - 0.5) * (b.unit() - 0.5)).sum();
        let correlation = sum / f64::from(n) * 12.0;
        assert!(correlation.abs() < 4.0 / f64::from(n).sqrt(), "{correlation}");
    }

    #[test]
    fn numbers_below_are_uniform() {
        let mut random = Random::new(7, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        // Five standard deviations of a binomial count of 10,000.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 475), "{counts:?}");
    }

    #[test]
    fn exponential_numbers_have_mean_and_deviation_1() {
        let mut random = Random::new(3, 0);
        let n = 100_000;
        let drawn: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(n);
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
        assert!(drawn.iter().all(|x| x.is_finite() && *x >= 0.0));
    }
}
