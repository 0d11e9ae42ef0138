//! Histograms of nanoseconds, and their statistics.

use base64::Engine as _;
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use serde::Serialize;

/// A histogram of nanoseconds.
pub type Histogram = hdrhistogram::Histogram<u64>;

/// One hour. Longer times count as this.
pub(crate) const MAX_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
const NS_PER_US: f64 = 1e3;

/// Returns an empty histogram from 1 ns to 1 h with three significant digits. It never grows. Of its 270 kB it only
/// touches the used parts.
pub fn new_histogram() -> Histogram {
    Histogram::new_with_bounds(1, MAX_NS, SIGNIFICANT_DIGITS)
        .unwrap_or_else(|_| unreachable!("the bounds are valid constants"))
}

/// Encodes a histogram in HdrHistogram's V2 format, not compressed, as base64.
pub fn encode(histogram: &Histogram) -> String {
    let mut bytes = Vec::new();
    // Fails only if usize has fewer bits than the lengths of the format.
    if V2Serializer::new().serialize(histogram, &mut bytes).is_err() {
        return String::new();
    }
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Histograms of a load, except those of response times, which each interval has.
#[derive(Debug, Clone)]
pub struct Clocks {
    /// Last byte − actual write.
    pub service_time: Histogram,
    /// Actual write − intended start.
    pub schedule_lag: Histogram,
    /// Time from the call of connect to the connection.
    pub connect_time: Histogram,
    /// Time from the connection to the end of the TLS handshake; empty without TLS.
    pub tls_handshake: Option<Histogram>,
    /// First byte − actual write.
    pub time_to_first_byte: Histogram,
    /// End of the load − intended start, of requests without a response.
    pub unanswered_age: Histogram,
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            service_time: new_histogram(),
            schedule_lag: new_histogram(),
            connect_time: new_histogram(),
            tls_handshake: None,
            time_to_first_byte: new_histogram(),
            unanswered_age: new_histogram(),
        }
    }
}

impl Clocks {
    /// Adds the histograms of another thread.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.service_time, &other.service_time);
        add(&mut self.schedule_lag, &other.schedule_lag);
        add(&mut self.connect_time, &other.connect_time);
        if let Some(other) = &other.tls_handshake {
            add(self.tls_handshake.get_or_insert_with(new_histogram), other);
        }
        add(&mut self.time_to_first_byte, &other.time_to_first_byte);
        add(&mut self.unanswered_age, &other.unanswered_age);
    }
}

/// Adds a histogram with the same range.
pub(crate) fn add(to: &mut Histogram, from: &Histogram) {
    let added = to.add(from);
    debug_assert!(added.is_ok(), "all histograms have the same bounds");
}

/// Statistics of a histogram, in microseconds; null without samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Statistics {
    pub mean: Option<f64>,
    pub stdev: Option<f64>,
    pub min: Option<f64>,
    pub p50: Option<f64>,
    pub p75: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p99_9: Option<f64>,
    pub p99_99: Option<f64>,
    pub max: Option<f64>,
}

impl Statistics {
    /// Returns the statistics of a histogram.
    pub fn of(histogram: &Histogram) -> Self {
        let reading = Microseconds(histogram);
        Self {
            mean: reading.microseconds(histogram.mean()),
            stdev: reading.microseconds(histogram.stdev()),
            min: reading.microseconds(histogram.min() as f64),
            p50: reading.quantile(0.5),
            p75: reading.quantile(0.75),
            p90: reading.quantile(0.9),
            p95: reading.quantile(0.95),
            p99: reading.quantile(0.99),
            p99_9: reading.quantile(0.999),
            p99_99: reading.quantile(0.9999),
            max: reading.microseconds(histogram.max() as f64),
        }
    }
}

/// Statistics of one interval, in microseconds; null without samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct IntervalStatistics {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

impl IntervalStatistics {
    /// Returns the statistics of a histogram.
    pub fn of(histogram: &Histogram) -> Self {
        let reading = Microseconds(histogram);
        Self {
            mean: reading.microseconds(histogram.mean()),
            p50: reading.quantile(0.5),
            p90: reading.quantile(0.9),
            p99: reading.quantile(0.99),
            max: reading.microseconds(histogram.max() as f64),
        }
    }
}

struct Microseconds<'a>(&'a Histogram);

impl Microseconds<'_> {
    fn microseconds(&self, ns: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| ns / NS_PER_US)
    }

    fn quantile(&self, quantile: f64) -> Option<f64> {
        self.microseconds(self.0.value_at_quantile(quantile) as f64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_monotone(values in proptest::collection::vec(0u64..10_000_000_000, 1..500)) {
            let mut histogram = new_histogram();
            for &value in &values {
                histogram.saturating_record(value);
            }
            let statistics = Statistics::of(&histogram);
            let rising = [statistics.min, statistics.p50, statistics.p75, statistics.p90, statistics.p95, statistics.p99, statistics.p99_9, statistics.p99_99, statistics.max];
            prop_assert!(rising.is_sorted(), "{:?}", statistics);
            prop_assert!(statistics.min <= statistics.mean && statistics.mean <= statistics.max);
            let exact_mean = values.iter().sum::<u64>() as f64 / values.len() as f64 / 1e3;
            prop_assert!((statistics.mean.unwrap() - exact_mean).abs() <= exact_mean * 1e-3 + 1e-3);
        }

        #[test]
        fn encoding_round_trips(values in proptest::collection::vec(0u64..10_000_000_000, 0..200)) {
            let mut histogram = new_histogram();
            for &value in &values {
                histogram.saturating_record(value);
            }
            let bytes = base64::engine::general_purpose::STANDARD.decode(encode(&histogram)).unwrap();
            let back: Histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            prop_assert_eq!(back, histogram);
        }
    }

    #[test]
    fn empty_histogram_has_no_statistics() {
        assert_eq!(Statistics::of(&new_histogram()), Statistics::default());
        let text = serde_json::to_string(&IntervalStatistics::of(&new_histogram())).unwrap();
        assert_eq!(text, r#"{"mean":null,"p50":null,"p90":null,"p99":null,"max":null}"#);
    }

    #[test]
    fn times_above_an_hour_saturate() {
        let mut histogram = new_histogram();
        histogram.saturating_record(u64::MAX);
        assert_eq!(histogram.count_at(MAX_NS), 1);
    }
}
