//! Reproducible randomness: the same seed gives the same load.

/// A stream of numbers (SplitMix64: Steele, Lea and Flood, 2014). Eight bytes, so that every user can have one of its own, and
/// what one user draws does not depend on when the others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Random(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(mix(mix(seed.wrapping_add(STEP)) ^ stream.wrapping_mul(STEP)))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `count`, which is not 0. What is unequal about them is less than `count` / 2^64.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }

    /// A number above 0 and at most 1, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A number from an exponential distribution with mean 1.
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
    fn a_seed_gives_the_same_numbers_and_another_gives_others() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.unit(), random.unit(), random.unit()]
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
    }

    #[test]
    fn the_streams_of_neighbours_are_not_alike() {
        // The correlation of two independent streams of n numbers is within 4 / sqrt(n) of 0.
        let (mut a, mut b) = (Random::new(7, 0), Random::new(7, 1));
        let n = 100_000;
        let sum: f64 = (0..n).map(|_| (a.unit() - 0.5) * (b.unit() - 0.5)).sum();
        let correlation = sum / f64::from(n) * 12.0;
        assert!(
            correlation.abs() < 4.0 / f64::from(n).sqrt(),
            "{correlation}"
        );
    }

    #[test]
    fn every_number_below_is_about_as_frequent() {
        let mut random = Random::new(7, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        // Five standard deviations of a binomial count of 10,000.
        assert!(
            counts.iter().all(|&count| count.abs_diff(10_000) < 475),
            "{counts:?}"
        );
    }

    #[test]
    fn exponential_numbers_have_the_mean_and_the_deviation_of_their_distribution() {
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
