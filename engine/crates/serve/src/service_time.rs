//! Random service times with a known distribution.

use std::str::FromStr;
use std::time::Duration;

use weir_schedule::Random;

use crate::behaviour::parse_duration;

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

impl Distribution {
    /// Returns a random service time.
    pub(crate) fn draw(self, random: &mut Random) -> Duration {
        match self {
            Self::Constant(time) => time,
            Self::Uniform(low, high) => low + (high - low).mul_f64(random.unit()),
            Self::Exponential(mean) => mean.mul_f64(random.exponential()),
        }
    }
}

/// Parses `constant:2ms`, `uniform:1ms..3ms` or `exponential:5ms`.
impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a distribution; expected one such as constant:2ms, uniform:1ms..3ms or exponential:5ms"
            )
        };
        match text.split_once(':').ok_or_else(wrong)? {
            ("constant", time) => parse_duration(time).map(Self::Constant),
            ("exponential", mean) => parse_duration(mean).map(Self::Exponential),
            ("uniform", bounds) => {
                let (low, high) = bounds.split_once("..").ok_or_else(wrong)?;
                let (low, high) = (parse_duration(low)?, parse_duration(high)?);
                if low > high {
                    return Err(format!("`{text}`: the first time is above the second"));
                }
                Ok(Self::Uniform(low, high))
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Duration = Duration::from_millis(5);

    fn sorted(distribution: Distribution) -> Vec<f64> {
        let mut random = Random::new(7, 0);
        let mut times: Vec<f64> = (0..100_000).map(|_| distribution.draw(&mut random).as_secs_f64() * 1e3).collect();
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
            assert!((exponential[at] / expected - 1.0).abs() < 0.03, "{quantile}");
            assert!((uniform[at] / (5.0 + 10.0 * quantile) - 1.0).abs() < 0.01);
        }
        assert!(uniform[0] >= 5.0 && uniform[99_999] <= 15.0);
        assert!(sorted(Distribution::Constant(MEAN)).iter().all(|&ms| ms == 5.0));
    }

    #[test]
    fn seed_determines_the_times() {
        let first = |seed| Distribution::Exponential(MEAN).draw(&mut Random::new(seed, 0));
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
