//! Intervals: the part of each thread, and their merging.

use std::collections::BTreeMap;

use crate::histogram::add;
use crate::{BucketCounts, Counts, Histogram, Interval, IntervalStatistics, encode, new_histogram};

/// One thread's part of an interval.
#[derive(Debug)]
pub struct IntervalPart {
    /// Index of the interval, from 0.
    pub index: u64,
    /// Start of the part, since the start of the load.
    pub start_ns: u64,
    /// End of the part.
    pub end_ns: u64,
    /// Counts of the part.
    pub counts: Counts,
    /// Number of requests in flight at the end.
    pub in_flight: u64,
    /// Number of requests that were due but not written at the end.
    pub queued: u64,
    /// Age of the oldest request without a response at the end.
    pub oldest_age_ns: u64,
    /// Response times of the requests that completed.
    pub response_time: BucketCounts,
}

impl IntervalPart {
    fn merge(&mut self, other: &Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.counts.add(&other.counts);
        self.in_flight += other.in_flight;
        self.queued += other.queued;
        self.oldest_age_ns = self.oldest_age_ns.max(other.oldest_age_ns);
        self.response_time.add(&other.response_time);
    }

    fn to_record(&self, response_time: &Histogram) -> Interval {
        Interval {
            index: self.index,
            start_s: self.start_ns as f64 / 1e9,
            end_s: self.end_ns as f64 / 1e9,
            due: self.counts.due,
            sent: self.counts.sent,
            completed: self.counts.completed(),
            ok: self.counts.ok,
            failed: self.counts.errors.total(),
            errors: self.counts.errors,
            in_flight: self.in_flight,
            queued: self.queued,
            oldest_age_us: self.oldest_age_ns as f64 / 1e3,
            bytes_sent: self.counts.bytes_sent,
            bytes_received: self.counts.bytes_received,
            response_time_us: IntervalStatistics::of(response_time),
            histogram: encode(response_time),
        }
    }
}

/// Merges the parts of all threads. An interval is complete with the part of every thread.
#[derive(Debug)]
pub struct IntervalMerger {
    threads: usize,
    /// Number of intervals of each thread that has ended.
    ended: Vec<u64>,
    waiting: BTreeMap<u64, (usize, IntervalPart)>,
    counts: Counts,
    response_time: Histogram,
}

impl IntervalMerger {
    /// Returns a merger for this number of threads.
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            ended: Vec::new(),
            waiting: BTreeMap::new(),
            counts: Counts::default(),
            response_time: new_histogram(),
        }
    }

    /// Adds a part. Returns the interval's record once it is complete. Moves unused counts to `spares` without clearing
    /// them.
    pub fn take(&mut self, part: IntervalPart, spares: &mut Vec<BucketCounts>) -> Option<Interval> {
        self.counts.add(&part.counts);
        let index = part.index;
        let (came, merged) = match self.waiting.remove(&index) {
            None => (1, part),
            Some((came, mut merged)) => {
                merged.merge(&part);
                spares.push(part.response_time);
                (came + 1, merged)
            }
        };
        if came < self.expected(index) {
            self.waiting.insert(index, (came, merged));
            return None;
        }
        let record = self.close(&merged);
        spares.push(merged.response_time);
        Some(record)
    }

    /// Adds a complete interval to the sums. Returns its record.
    fn close(&mut self, part: &IntervalPart) -> Interval {
        let mut response_time = new_histogram();
        part.response_time.add_to(&mut response_time);
        add(&mut self.response_time, &response_time);
        part.to_record(&response_time)
    }

    /// Records the end of a thread with its number of intervals. Returns the intervals that waited only for this
    /// thread, in order.
    pub fn thread_ended(&mut self, intervals: u64) -> Vec<Interval> {
        self.ended.push(intervals);
        let whole: Vec<u64> = self
            .waiting
            .iter()
            .filter(|&(&index, &(came, _))| came >= self.expected(index))
            .map(|(&index, _)| index)
            .collect();
        let parts: Vec<_> = whole.into_iter().filter_map(|index| self.waiting.remove(&index)).collect();
        parts.iter().map(|(_, part)| self.close(part)).collect()
    }

    /// Returns the number of parts of an interval.
    fn expected(&self, index: u64) -> usize {
        let without = self.ended.iter().filter(|&&intervals| intervals <= index);
        self.threads - without.count()
    }

    /// Returns the incomplete intervals, which some threads did not reach, in order.
    pub fn rest(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.waiting).into_values().map(|(_, part)| self.close(&part)).collect()
    }

    /// Returns the sums over all intervals that have a record.
    pub fn totals(&self) -> (&Counts, &Histogram) {
        (&self.counts, &self.response_time)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ErrorKind;

    fn part(index: u64, ok: u64, oldest_age_ns: u64, values: &[u64]) -> IntervalPart {
        let mut response_time = BucketCounts::default();
        values.iter().for_each(|&value| response_time.record(value));
        let mut counts = Counts { due: ok + 1, sent: ok + 1, ok, ..Counts::default() };
        counts.errors.count(ErrorKind::Timeout, 1);
        IntervalPart {
            index,
            start_ns: index * 100,
            end_ns: index * 100 + 100,
            counts,
            in_flight: 2,
            queued: 3,
            oldest_age_ns,
            response_time,
        }
    }

    #[test]
    fn interval_is_complete_with_its_last_part() {
        let mut merger = IntervalMerger::new(2);
        let mut spares = Vec::new();
        assert!(merger.take(part(0, 1, 5, &[1000]), &mut spares).is_none());
        assert!(merger.take(part(1, 1, 5, &[1000]), &mut spares).is_none());
        let interval = merger.take(part(0, 2, 7, &[3000, 3000]), &mut spares).unwrap();
        assert_eq!(spares.len(), 2);
        assert_eq!(
            (interval.index, interval.ok, interval.failed, interval.errors.of(ErrorKind::Timeout)),
            (0, 3, 2, 2)
        );
        assert_eq!((interval.in_flight, interval.queued), (4, 6));
        assert_eq!(interval.oldest_age_us, 0.007);
        assert_eq!(interval.response_time_us.max, Some(3.001));
        assert_eq!(merger.rest().len(), 1);
    }

    #[test]
    fn totals_are_sums_of_intervals() {
        let mut merger = IntervalMerger::new(1);
        for index in 0..10 {
            assert!(merger.take(part(index, index, 0, &[index + 1]), &mut Vec::new()).is_some());
        }
        let (counts, response_time) = merger.totals();
        assert_eq!((counts.ok, counts.errors.total(), counts.due), (45, 10, 55));
        assert_eq!(response_time.len(), 10);
    }

    #[test]
    fn ended_thread_delays_no_interval() {
        let mut merger = IntervalMerger::new(2);
        let mut spares = Vec::new();
        // One thread has only the first interval; the other is ahead of it by one.
        for index in 0..2 {
            assert!(merger.take(part(index, 1, 0, &[1]), &mut spares).is_none());
        }
        assert!(merger.take(part(0, 1, 0, &[1]), &mut spares).is_some());
        let whole = merger.thread_ended(1);
        assert_eq!(whole.len(), 1);
        assert_eq!(whole[0].index, 1);
        assert!(merger.take(part(2, 1, 0, &[1]), &mut spares).is_some());
        assert!(merger.thread_ended(3).is_empty());
    }
}
