//! The distribution of one load over threads and machines, without communication between them.

/// Part `k` of `n` of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    k: u64,
    n: u64,
}

impl Shard {
    /// The whole load as one part.
    pub const WHOLE: Self = Self { k: 0, n: 1 };

    /// Returns part `k` of `n`. Returns `None` unless `k < n`.
    pub fn new(k: u64, n: u64) -> Option<Self> {
        (k < n).then_some(Self { k, n })
    }

    /// Returns the index in the whole load of this shard's request number `own`. A shard has the indices ≡ k (mod n).
    ///
    /// ```
    /// use weir_schedule::Shard;
    /// let second_of_three = Shard::new(1, 3).unwrap();
    /// assert_eq!([0, 1, 2].map(|own| second_of_three.index(own)), [1, 4, 7]);
    /// ```
    pub fn index(self, own: u64) -> u64 {
        own * self.n + self.k
    }

    /// Returns the number of parts.
    pub fn of(self) -> u64 {
        self.n
    }

    /// Returns this shard's number of `total` connections, users or arrivals. The numbers of all shards add up to
    /// `total`.
    pub fn count(self, total: u64) -> u64 {
        total / self.n + u64::from(self.k < total % self.n)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shards_add_up(total in 0u64..1_000_000, n in 1u64..100) {
            let sum: u64 = (0..n).map(|k| Shard::new(k, n).unwrap().count(total)).sum();
            prop_assert_eq!(sum, total);
        }

        #[test]
        fn each_index_has_one_shard(total in 0u64..2_000, n in 1u64..50) {
            let mut owners = vec![0u32; usize::try_from(total).unwrap()];
            for k in 0..n {
                let shard = Shard::new(k, n).unwrap();
                for own in 0..shard.count(total) {
                    owners[usize::try_from(shard.index(own)).unwrap()] += 1;
                }
            }
            prop_assert!(owners.iter().all(|&owner| owner == 1));
        }

        #[test]
        fn counts_differ_by_at_most_one(total in 0u64..1_000_000, n in 1u64..100) {
            let counts: Vec<u64> = (0..n).map(|k| Shard::new(k, n).unwrap().count(total)).collect();
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn shard_outside_the_load_is_none() {
        assert_eq!(Shard::new(3, 3), None);
        assert_eq!(Shard::new(0, 0), None);
    }
}
