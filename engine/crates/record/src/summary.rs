//! The summary of one load.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::verdict::{Facts, Ramp, Verdict, judge};
use crate::{
    Clocks, Counts, EncodedHistograms, ErrorCounts, Fairness, FirstResponse, Histogram, RequestLogSummary, Responses,
    SCHEMA, SpreadStatistics, StallDetector, Statistics, StatusCounts, UntilFailure, encode, new_histogram,
};

/// The input of the summary.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The URL of the requests.
    pub target: &'a str,
    /// The requested rate of an open loop.
    pub asked_rate_rps: Option<f64>,
    /// The ramp, if users arrive one after the other and leave after a number of requests.
    pub ramp: Option<Ramp>,
    /// Whether each request makes its own connection. The schedule lag then includes making it.
    pub connects_each: bool,
    /// Whether a connection failed because this machine had no free port.
    pub ports_used_up: bool,
    /// The actual duration.
    pub duration_s: f64,
    /// Sums over all intervals and threads.
    pub counts: Counts,
    /// Number of requests in flight at the end of the load.
    pub unanswered: u64,
    /// Number of requests that were due but not written at the end of the load.
    pub unsent: u64,
    /// Responses by status.
    pub status: StatusCounts,
    /// Response times of all completed requests.
    pub response_time: &'a Histogram,
    /// The other histograms.
    pub clocks: &'a Clocks,
    /// Lengths of the responses, and times of reading them.
    pub responses: Responses,
    /// The first response, if there was one.
    pub first_response: Option<FirstResponse>,
    /// The result of the request log, if there is one.
    pub request_log: Option<RequestLogSummary>,
    /// Numbers of requests per connection.
    pub fairness: Fairness,
    /// The results before the first failure, if the load ends there.
    pub until_failure: Option<UntilFailure>,
    /// The outcomes of a scenario's steps, in order.
    pub steps: Option<Vec<StepOutcome>>,
    /// The outcomes of the targets, if there are several.
    pub targets: Option<Vec<StepOutcome>>,
    /// The engine itself.
    pub generator: Generator,
    /// Stalls of the engine.
    pub stalls: StallDetector,
}

/// The outcome of a part of the load: of a scenario's step, or of a target.
#[derive(Debug, Clone)]
pub struct StepOutcome {
    /// Name of the step, or URL of the target.
    pub name: String,
    /// Number of written requests.
    pub sent: u64,
    /// Number of correct responses.
    pub ok: u64,
    /// Number of responses whose check failed.
    pub wrong: u64,
    /// Number of requests without a complete response, except those in flight at the end. For a target also failed
    /// connections.
    pub lost: u64,
    /// Response times of the complete responses.
    pub response_time: Histogram,
}

impl StepOutcome {
    /// Returns an outcome without requests.
    pub fn new(name: String) -> Self {
        Self { name, sent: 0, ok: 0, wrong: 0, lost: 0, response_time: new_histogram() }
    }

    /// Counts a whole response.
    #[inline]
    pub fn complete(&mut self, response_ns: u64, is_right: bool) {
        self.response_time.saturating_record(response_ns);
        self.ok += u64::from(is_right);
        self.wrong += u64::from(!is_right);
    }

    /// Adds the outcome of another thread.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.ok += other.ok;
        self.wrong += other.wrong;
        self.lost += other.lost;
        // Cannot fail: the two histograms have the same range.
        let _ = self.response_time.add(&other.response_time);
    }

    fn summary(&self) -> StepSummary {
        StepSummary {
            sent: self.sent,
            completed: self.ok + self.wrong,
            ok: self.ok,
            failed: self.wrong + self.lost,
            response_time_us: Statistics::of(&self.response_time),
        }
    }
}

/// One step of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct StepSummary {
    pub sent: u64,
    pub completed: u64,
    pub ok: u64,
    pub failed: u64,
    pub response_time_us: Statistics,
}

/// One target of several.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct TargetSummary {
    pub url: String,
    #[serde(flatten)]
    pub outcome: StepSummary,
}

/// Serialises steps as a map by name, in order.
fn by_name<S: Serializer>(steps: &Option<Vec<(String, StepSummary)>>, serializer: S) -> Result<S::Ok, S::Error> {
    match steps {
        Some(steps) => serializer.collect_map(steps.iter().map(|(name, step)| (name, step))),
        None => serializer.serialize_none(),
    }
}

/// Numbers of requests by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Requests {
    pub intended: u64,
    pub sent: u64,
    pub completed: u64,
    pub ok: u64,
    pub failed: u64,
    pub unanswered: u64,
    pub unsent: u64,
    pub retried: u64,
}

/// Bytes on the connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Bytes {
    pub sent: u64,
    pub received: u64,
    pub received_body: u64,
}

/// The engine itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Generator {
    /// Version of the engine.
    pub version: String,
    /// CPU time of the process ÷ (wall time × threads).
    pub cpu_fraction: f64,
    /// Time of handling events ÷ wall time, without spinning, of the busiest thread.
    pub busy_fraction: f64,
    /// Peak resident memory (VmHWM).
    pub peak_rss_bytes: u64,
    /// Number of load threads.
    pub threads: usize,
    /// CPUs of the load threads.
    pub cpus: Vec<usize>,
    /// Use of the kernel's time stamps, if the plan requests them.
    pub kernel_timestamps: Option<KernelTimestamps>,
}

/// Numbers of complete responses with and without a kernel time stamp of the last byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct KernelTimestamps {
    pub used: u64,
    pub missing: u64,
}

impl KernelTimestamps {
    /// Returns the sums of two threads.
    pub fn plus(self, other: Self) -> Self {
        Self { used: self.used + other.used, missing: self.missing + other.missing }
    }
}

/// The summary of one load; see `docs/reference/engine.md`.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Summary {
    pub schema: u32,
    pub target: String,
    pub duration_s: f64,
    pub requests: Requests,
    pub throughput_rps: f64,
    pub status: BTreeMap<String, u64>,
    pub errors: ErrorCounts,
    pub response_time_us: Statistics,
    pub service_time_us: Statistics,
    pub schedule_lag_us: Statistics,
    pub connect_time_us: Statistics,
    pub tls_handshake_us: Option<Statistics>,
    pub time_to_first_byte_us: Statistics,
    pub read_time_us: SpreadStatistics,
    pub bytes: Bytes,
    pub first_response: Option<FirstResponse>,
    pub other_length: u64,
    pub generator: Generator,
    pub fairness: Fairness,
    pub until_failure: Option<UntilFailure>,
    #[serde(serialize_with = "by_name", skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<(String, StepSummary)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<TargetSummary>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_log: Option<RequestLogSummary>,
    pub verdict: Verdict,
}

impl Outcome<'_> {
    /// Computes the summary and its verdict.
    pub fn summary(&self) -> Summary {
        let counts = &self.counts;
        let requests = Requests {
            intended: counts.due,
            sent: counts.sent,
            completed: counts.completed(),
            ok: counts.ok,
            failed: counts.errors.total(),
            unanswered: self.unanswered,
            unsent: self.unsent,
            retried: counts.retried,
        };
        let per_second = |count: u64| {
            if self.duration_s > 0.0 { count as f64 / self.duration_s } else { 0.0 }
        };
        let response_time_us = Statistics::of(self.response_time);
        let schedule_lag_us = Statistics::of(&self.clocks.schedule_lag);
        let verdict = judge(&Facts {
            requests,
            redirects: self.status.redirects(),
            stalls: self.stalls,
            errors: counts.errors,
            ports_used_up: self.ports_used_up,
            is_until_failure: self.until_failure.is_some(),
            asked_rate_rps: self.asked_rate_rps,
            sent_rps: per_second(counts.sent),
            ramp: self.ramp,
            completed_rps: per_second(counts.completed()),
            busy_fraction: self.generator.busy_fraction,
            response_p50_us: response_time_us.p50,
            lag_p99_us: schedule_lag_us.p99.filter(|_| !self.connects_each),
            request_log: self.request_log.as_ref(),
        });
        Summary {
            schema: SCHEMA,
            target: self.target.to_owned(),
            duration_s: self.duration_s,
            requests,
            throughput_rps: per_second(counts.completed()),
            status: self.status.to_map(),
            errors: counts.errors,
            response_time_us,
            service_time_us: Statistics::of(&self.clocks.service_time),
            schedule_lag_us,
            connect_time_us: Statistics::of(&self.clocks.connect_time),
            tls_handshake_us: self.clocks.tls_handshake.as_ref().map(Statistics::of),
            time_to_first_byte_us: Statistics::of(&self.clocks.time_to_first_byte),
            read_time_us: self.responses.read_time.statistics(),
            bytes: Bytes {
                sent: counts.bytes_sent,
                received: counts.bytes_received,
                received_body: self.responses.body_bytes,
            },
            first_response: self.first_response.clone(),
            other_length: self.responses.other_length,
            generator: self.generator.clone(),
            fairness: self.fairness,
            until_failure: self.until_failure.clone(),
            steps: self.steps.as_ref().map(|steps| {
                let named = |step: &StepOutcome| (step.name.clone(), step.summary());
                steps.iter().map(named).collect()
            }),
            targets: self.targets.as_ref().map(|targets| {
                let of_url =
                    |target: &StepOutcome| TargetSummary { url: target.name.clone(), outcome: target.summary() };
                targets.iter().map(of_url).collect()
            }),
            request_log: self.request_log.clone(),
            verdict,
        }
    }

    /// Returns all histograms.
    pub fn histograms(&self) -> EncodedHistograms {
        EncodedHistograms {
            response_time_ns: encode(self.response_time),
            service_time_ns: encode(&self.clocks.service_time),
            schedule_lag_ns: encode(&self.clocks.schedule_lag),
            connect_time_ns: encode(&self.clocks.connect_time),
            tls_handshake_ns: self.clocks.tls_handshake.as_ref().map(encode),
            time_to_first_byte_ns: encode(&self.clocks.time_to_first_byte),
            unanswered_age_ns: encode(&self.clocks.unanswered_age),
        }
    }
}
