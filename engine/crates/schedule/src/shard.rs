//! How one load is shared among threads and machines without any of them talking to another.

/// Part `k` of `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    k: u64,
    n: u64,
}

impl Shard {
    /// The whole load.
    pub const WHOLE: Self = Self { k: 0, n: 1 };

    /// Part `k` of `n`, or nothing unless `k < n`.
    pub fn new(k: u64, n: u64) -> Option<Self> {
        (k < n).then_some(Self { k, n })
    }

    /// The index in the whole load of this shard's request number `own`: the indices ≡ k (mod n), in order.
    ///
    /// ```
    /// use weir_schedule::Shard;
    /// let second_of_three = Shard::new(1, 3).unwrap();
    /// assert_eq!([0, 1, 2].map(|own| second_of_three.index(own)), [1, 4, 7]);
    /// ```
    pub fn index(self, own: u64) -> u64 {
        own * self.n + self.k
    }

    /// How many parts there are.
    pub fn of(self) -> u64 {
        self.n
    }

    /// How many of `total` things (connections, users, arrivals) are this shard's. The shards' counts add up to `total`.
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
        fn the_shards_of_a_load_add_up_to_it(total in 0u64..1_000_000, n in 1u64..100) {
            let sum: u64 = (0..n).map(|k| Shard::new(k, n).unwrap().count(total)).sum();
            prop_assert_eq!(sum, total);
        }

        #[test]
        fn every_index_is_exactly_one_shards(total in 0u64..2_000, n in 1u64..50) {
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
        fn shares_differ_by_at_most_one(total in 0u64..1_000_000, n in 1u64..100) {
            let counts: Vec<u64> = (0..n).map(|k| Shard::new(k, n).unwrap().count(total)).collect();
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn a_shard_outside_its_load_does_not_exist() {
        assert_eq!(Shard::new(3, 3), None);
        assert_eq!(Shard::new(0, 0), None);
    }
}
