//! The summary of one load, computed once and here.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::verdict::{Facts, Ramp, Verdict, judge};
use crate::{
    Answers, Clocks, Counts, EncodedHistograms, ErrorCounts, Fairness, FirstAnswer, Histogram,
    RequestLogSummary, SCHEMA, SpreadStatistics, Standstill, Statistics, StatusCounts,
    UntilFailure, encode, new_histogram,
};

/// Everything the summary is computed from.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The URL of the requests.
    pub target: &'a str,
    /// The rate asked for, in an open loop.
    pub asked_rate_rps: Option<f64>,
    /// The users who came one after the other, where each left after so many requests.
    pub ramp: Option<Ramp>,
    /// Whether each request makes its own connection: then making it is a part of the schedule lag.
    pub connects_each: bool,
    /// Whether a connection could not be made for want of a port of this machine.
    pub ports_used_up: bool,
    /// The time that really passed.
    pub duration_s: f64,
    /// Sums over all intervals and threads.
    pub counts: Counts,
    /// Written and not answered when the load ended.
    pub unanswered: u64,
    /// Due and not written when the load ended.
    pub unsent: u64,
    /// Answers by status.
    pub status: StatusCounts,
    /// Response times of all that completed.
    pub response_time: &'a Histogram,
    /// The other clocks.
    pub clocks: &'a Clocks,
    /// How long answers were, and how long they came.
    pub answers: Answers,
    /// The first of them, if there was one.
    pub first_answer: Option<FirstAnswer>,
    /// What came of the request log, if there is one.
    pub request_log: Option<RequestLogSummary>,
    /// Requests by connection.
    pub fairness: Fairness,
    /// What was reached before the first failure, where the load was to end there.
    pub until_failure: Option<UntilFailure>,
    /// What came of each step of a scenario, in their order.
    pub steps: Option<Vec<StepOutcome>>,
    /// What came of each target, where there are several.
    pub targets: Option<Vec<StepOutcome>>,
    /// The engine itself.
    pub generator: Generator,
    /// How long it did not run.
    pub standstill: Standstill,
}

/// What one thread, or all of them, saw of a part of the load: a step of a scenario, or a target.
#[derive(Debug, Clone)]
pub struct StepOutcome {
    /// Its name; a target's is its URL.
    pub name: String,
    /// Requests written.
    pub sent: u64,
    /// Whole answers that were right.
    pub ok: u64,
    /// Whole answers that were not.
    pub wrong: u64,
    /// Requests without a whole answer, those in flight at the end excluded; of a target those too that it could not be connected to for.
    pub lost: u64,
    /// Response times of the whole answers.
    pub response_time: Histogram,
}

impl StepOutcome {
    /// Nothing seen.
    pub fn new(name: String) -> Self {
        Self {
            name,
            sent: 0,
            ok: 0,
            wrong: 0,
            lost: 0,
            response_time: new_histogram(),
        }
    }

    /// Counts a whole response.
    #[inline]
    pub fn complete(&mut self, response_ns: u64, is_right: bool) {
        self.response_time.saturating_record(response_ns);
        self.ok += u64::from(is_right);
        self.wrong += u64::from(!is_right);
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.ok += other.ok;
        self.wrong += other.wrong;
        self.lost += other.lost;
        // The two count the same range: this cannot fail.
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

/// Steps by name, as a map that keeps their order.
fn by_name<S: Serializer>(
    steps: &Option<Vec<(String, StepSummary)>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match steps {
        Some(steps) => serializer.collect_map(steps.iter().map(|(name, step)| (name, step))),
        None => serializer.serialize_none(),
    }
}

/// Where the requests went.
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
    /// Its version.
    pub version: String,
    /// CPU of the process ÷ (wall × threads).
    pub cpu_fraction: f64,
    /// Time spent handling events ÷ wall, spinning excluded; of the busiest thread.
    pub busy_fraction: f64,
    /// The most memory it ever had (VmHWM).
    pub peak_rss_bytes: u64,
    /// Load threads.
    pub threads: usize,
    /// CPUs bound to.
    pub cpus: Vec<usize>,
    /// What came of the kernel's stamps, where they were asked for.
    pub kernel_timestamps: Option<KernelTimestamps>,
}

/// Of how many whole answers the kernel's stamp says when the last byte came, and of how many it does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct KernelTimestamps {
    pub used: u64,
    pub missing: u64,
}

impl KernelTimestamps {
    /// The sums of two threads'.
    pub fn plus(self, other: Self) -> Self {
        Self {
            used: self.used + other.used,
            missing: self.missing + other.missing,
        }
    }
}

/// One load, in the form that others rely on.
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
    pub first_answer: Option<FirstAnswer>,
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
        };
        let per_second = |count: u64| {
            if self.duration_s > 0.0 {
                count as f64 / self.duration_s
            } else {
                0.0
            }
        };
        let response_time_us = Statistics::of(self.response_time);
        let schedule_lag_us = Statistics::of(&self.clocks.schedule_lag);
        let verdict = judge(&Facts {
            requests,
            redirects: self.status.redirects(),
            standstill: self.standstill,
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
            read_time_us: self.answers.read_time.statistics(),
            bytes: Bytes {
                sent: counts.bytes_sent,
                received: counts.bytes_received,
                received_body: self.answers.body_bytes,
            },
            first_answer: self.first_answer.clone(),
            other_length: self.answers.other_length,
            generator: self.generator.clone(),
            fairness: self.fairness,
            until_failure: self.until_failure.clone(),
            steps: self.steps.as_ref().map(|steps| {
                let named = |step: &StepOutcome| (step.name.clone(), step.summary());
                steps.iter().map(named).collect()
            }),
            targets: self.targets.as_ref().map(|targets| {
                let of_url = |target: &StepOutcome| TargetSummary {
                    url: target.name.clone(),
                    outcome: target.summary(),
                };
                targets.iter().map(of_url).collect()
            }),
            request_log: self.request_log.clone(),
            verdict,
        }
    }

    /// The histograms of all clocks.
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
