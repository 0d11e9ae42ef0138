//! The results of a load: histograms, intervals, the summary with its verdict, and the records of the NDJSON stream.
//!
//! Each load thread counts into its own [`Counts`] and histograms, and another thread merges them. This crate computes
//! the summary; other code only formats it. The crate has no I/O: records are values that serialise themselves. Times
//! are nanoseconds in the code and microseconds (`_us`) in records; see `docs/reference/engine.md`.

mod bucket_counts;
mod counts;
mod fairness;
mod histogram;
mod interval;
mod records;
mod request_record;
mod responses;
mod slowest;
mod stall;
mod summary;
mod until_failure;
mod verdict;

pub use bucket_counts::BucketCounts;
pub use counts::{Counts, ErrorCounts, ErrorKind, StatusCounts};
pub use fairness::Fairness;
pub use histogram::{Clocks, Histogram, IntervalStatistics, Statistics, encode, new_histogram};
pub use interval::{IntervalMerger, IntervalPart};
pub use records::{EncodedHistograms, Event, Hello, Interval, Record, StopReason};
pub use request_record::{RequestLogSummary, RequestOutcome, RequestRecord};
pub use responses::{FirstResponse, Responses, Spread, SpreadStatistics};
pub use slowest::{SlowRequest, Slowest, TimeLine};
pub use stall::{CHECK_INTERVAL_NS, ClockReading, StallDetector};
pub use summary::{Bytes, Generator, KernelTimestamps, Outcome, Requests, StepOutcome, StepSummary, Summary};
pub use until_failure::{BestSecond, FirstFailure, UntilFailure};
pub use verdict::{BUSY_LIMIT, Ramp, Validity, Verdict};

/// Version of the records.
pub const SCHEMA: u32 = 1;
