//! The records of the NDJSON stream; see `docs/reference/engine.md`.

use serde::Serialize;

use crate::{ErrorCounts, IntervalStatistics, SlowRequest, Summary};

/// One line of the stream.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub enum Record {
    /// The connections of a held load are open.
    Ready {
        /// Number of connections.
        connected: u64,
        /// Earliest start, which gives the server time to accept all connections.
        soonest_monotonic_ns: u64,
    },
    /// The load has started.
    Hello(Hello),
    /// An interval has ended.
    Interval(Interval),
    /// Something noteworthy happened.
    Event(Event),
    /// The load has ended.
    End {
        /// Reason of the end.
        stopped: StopReason,
        /// Summary of the load.
        summary: Box<Summary>,
        /// Histograms of the load.
        histograms: EncodedHistograms,
        /// The slowest requests, the slowest first.
        slowest: Vec<SlowRequest>,
    },
}

/// How the engine makes the load.
#[derive(Debug, Clone, Serialize)]
pub struct Hello {
    /// Version of the records: [`crate::SCHEMA`].
    pub schema: u32,
    /// Version of the engine.
    pub version: String,
    /// PID of the engine.
    pub pid: u32,
    /// Back end of the sockets.
    pub backend: &'static str,
    /// How threads wait for due times.
    pub wait: &'static str,
    /// Whether a response arrives when the kernel receives it, or when the engine reads it.
    pub kernel_timestamps: bool,
    /// Number of load threads.
    pub threads: usize,
    /// CPUs of the load threads.
    pub cpus: Vec<usize>,
    /// Number of open connections at the start.
    pub connected: u64,
    /// CLOCK_MONOTONIC at the start.
    pub start_monotonic_ns: u64,
    /// Time of day at the start.
    pub start_unix_ns: u64,
}

/// The counts and times of one interval.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Interval {
    pub index: u64,
    pub start_s: f64,
    pub end_s: f64,
    pub due: u64,
    pub sent: u64,
    pub completed: u64,
    pub ok: u64,
    pub failed: u64,
    pub errors: ErrorCounts,
    pub in_flight: u64,
    pub queued: u64,
    pub oldest_age_us: f64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub response_time_us: IntervalStatistics,
    pub histogram: String,
}

/// A noteworthy event. Each thread reports each kind at most once a second.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// Time since the start of the load.
    pub t_s: f64,
    /// Kind of the event: an error's kind, `stalled`, `clock` or `records`.
    pub kind: &'static str,
    /// Details in words.
    pub detail: String,
}

/// The reason why a load ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The duration was over.
    Duration,
    /// All requests or all users were done.
    Complete,
    /// A request failed, and the plan ends the load at the first failure.
    FirstFailure,
    /// SIGINT or SIGTERM.
    Signal,
    /// Standard input closed.
    Input,
}

/// The histograms of a load in HdrHistogram's V2 format, as base64.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct EncodedHistograms {
    pub response_time_ns: String,
    pub service_time_ns: String,
    pub schedule_lag_ns: String,
    pub connect_time_ns: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_handshake_ns: Option<String>,
    pub time_to_first_byte_ns: String,
    pub unanswered_age_ns: String,
}
