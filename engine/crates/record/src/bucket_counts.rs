//! Counting times in a load thread, in the buckets of a histogram.

use crate::Histogram;
use crate::histogram::MAX_NS;

/// Values below have a bucket each. From there on, each power of two has [`HALF`] buckets.
const EXACT: u64 = 2048;
const HALF: usize = 1024;
const BUCKETS: usize = bucket_of(MAX_NS) + 1;

/// The number of recorded times in each bucket of [`crate::new_histogram`]. Recording takes about 50 instructions fewer
/// than in the histogram, because total, minimum and maximum follow from the counts later.
#[derive(Debug, Clone)]
pub struct BucketCounts(Box<[u64]>);

impl Default for BucketCounts {
    fn default() -> Self {
        Self(vec![0; BUCKETS].into_boxed_slice())
    }
}

impl BucketCounts {
    /// Counts a time. Times above an hour count as one.
    #[inline(always)]
    pub fn record(&mut self, ns: u64) {
        if let Some(count) = self.0.get_mut(bucket_of(ns.min(MAX_NS))) {
            *count += 1;
        }
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, count)| *sum += count);
    }

    /// Adds the counted times to a histogram.
    pub fn add_to(&self, histogram: &mut Histogram) {
        for (bucket, &count) in self.0.iter().enumerate().filter(|&(_, &count)| count > 0) {
            // Every bucket is in the histogram's range.
            let _ = histogram.record_n(lowest_of(bucket), count);
        }
    }

    /// Forgets the counted times.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }
}

const fn bucket_of(ns: u64) -> usize {
    let shift = (EXACT - 1).leading_zeros() - (ns | (EXACT - 1)).leading_zeros();
    shift as usize * HALF + (ns >> shift) as usize
}

/// Returns the smallest time of a bucket.
const fn lowest_of(bucket: usize) -> u64 {
    let shift = (bucket / HALF).saturating_sub(1);
    ((bucket - shift * HALF) as u64) << shift
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::new_histogram;

    fn assert_same_as_histogram(times: &[u64]) {
        let (mut counts, mut expected, mut counted) = (BucketCounts::default(), new_histogram(), new_histogram());
        for &ns in times {
            counts.record(ns);
            expected.saturating_record(ns.min(MAX_NS));
        }
        counts.add_to(&mut counted);
        assert_eq!(counted, expected);
        assert_eq!((counted.min(), counted.max()), (expected.min(), expected.max()));
        counts.clear();
        counts.add_to(&mut counted);
        assert_eq!(counted, expected);
    }

    #[test]
    fn bounds_of_all_buckets_are_those_of_the_histogram() {
        let bounds: Vec<u64> =
            (0..BUCKETS).map(lowest_of).flat_map(|lowest| [lowest, lowest.saturating_sub(1)]).collect();
        assert_same_as_histogram(&bounds);
        assert_same_as_histogram(&[MAX_NS - 1, MAX_NS, MAX_NS + 1, u64::MAX]);
    }

    proptest! {
        #[test]
        fn counts_are_the_histogram_of_the_same_times(
            times in proptest::collection::vec((any::<u64>(), 0u32..64).prop_map(|(ns, shift)| ns >> shift), 0..300)
        ) {
            assert_same_as_histogram(&times);
        }
    }
}
