//! The records of the NDJSON stream, in the form that `docs/reference/engine.md` describes.

use serde::Serialize;

use crate::{ErrorCounts, IntervalStatistics, SlowRequest, Summary};

/// One line of the stream.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub enum Record {
    /// The connections of a load that is held are open.
    Ready {
        /// How many.
        connected: u64,
        /// When the load could begin, the server having had time to accept them all.
        soonest_monotonic_ns: u64,
    },
    /// The clock has started.
    Hello(Hello),
    /// One slice of time.
    Interval(Interval),
    /// Something worth knowing happened.
    Event(Event),
    /// The load is over.
    End {
        /// What ended it.
        stopped: Stopped,
        /// What came of it.
        summary: Box<Summary>,
        /// The clocks' histograms.
        histograms: EncodedHistograms,
        /// The slowest requests, the slowest first.
        slowest: Vec<SlowRequest>,
    },
}

/// How the load is run.
#[derive(Debug, Clone, Serialize)]
pub struct Hello {
    /// [`crate::SCHEMA`].
    pub schema: u32,
    /// The engine's version.
    pub version: String,
    /// The engine's process.
    pub pid: u32,
    /// How sockets are driven.
    pub backend: &'static str,
    /// How moments are waited for.
    pub wait: &'static str,
    /// Whether answers arrive when the kernel receives them, or when they are read.
    pub kernel_timestamps: bool,
    /// Load threads.
    pub threads: usize,
    /// CPUs bound to.
    pub cpus: Vec<usize>,
    /// Connections open when the clock started.
    pub connected: u64,
    /// CLOCK_MONOTONIC when the clock started.
    pub start_monotonic_ns: u64,
    /// The time of day then.
    pub start_unix_ns: u64,
}

/// What happened in one slice of time.
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

/// Something worth knowing, at most once a second of each kind and thread.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// When, since the clock started.
    pub t_s: f64,
    /// What: an error's kind, `stood still`, `clock` or `records`.
    pub kind: &'static str,
    /// More about it.
    pub detail: String,
}

/// What ended a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// Its time was over.
    Duration,
    /// All its requests, or all its users, were done.
    Complete,
    /// A request failed, and the plan asked for no more after that.
    FirstFailure,
    /// SIGINT or SIGTERM.
    Signal,
    /// Standard input was closed.
    Input,
}

/// The clocks' histograms in HdrHistogram's V2 form and base64.
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
