//! How evenly the connections of a load were served.

use serde::Serialize;

/// Numbers of requests per used connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Fairness {
    pub min: u64,
    pub median: f64,
    pub max: u64,
}

impl Fairness {
    /// Returns the statistics of the numbers of requests, in any order.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_min_median_max() {
        assert_eq!(Fairness::of(vec![3, 1, 2]), Fairness { min: 1, median: 2.0, max: 3 });
        assert_eq!(Fairness::of(vec![4, 1, 2, 9]).median, 3.0);
        assert_eq!(Fairness::of(vec![]), Fairness::default());
    }
}
