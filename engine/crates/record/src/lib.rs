//! What a load leaves behind: histograms, intervals, the summary and its verdict, and the records of the NDJSON stream.
//!
//! A load thread counts into its own [`Counts`] and histograms; merging is the reader's business and happens elsewhere. The
//! summary is computed once, here, and only formatted by others. No I/O: records are values that serialise themselves.
//! Times are nanoseconds inside and microseconds in what is written for people (`_us`); see `docs/reference/engine.md`.

mod answers;
mod counts;
mod histogram;
mod interval;
mod models;
mod records;
mod request_record;
mod standstill;
mod summary;
mod verdict;

pub use answers::{Answers, FirstAnswer, Spread, SpreadStatistics};
pub use counts::{Counts, ErrorCounts, ErrorKind, StatusCounts};
pub use histogram::{Clocks, Histogram, IntervalStatistics, Statistics, encode, new_histogram};
pub use interval::{IntervalMerger, IntervalPart};
pub use models::{
    BestSecond, Fairness, FirstFailure, SlowRequest, Slowest, TimeLine, UntilFailure,
};
pub use records::{EncodedHistograms, Event, Hello, Interval, Record, Stopped};
pub use request_record::{Ending, RequestLogSummary, RequestRecord};
pub use standstill::{LOOK_EVERY_NS, Moment, Standstill};
pub use summary::{
    Bytes, Generator, KernelTimestamps, Outcome, Requests, StepOutcome, StepSummary, Summary,
};
pub use verdict::{BUSY_LIMIT, Ramp, Validity, Verdict};

/// The version of the records' form.
pub const SCHEMA: u32 = 1;
