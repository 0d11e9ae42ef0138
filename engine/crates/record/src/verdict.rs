//! The verdict on a load. Each reason has a fact, a threshold and a probable cause.

use serde::Serialize;

use crate::{ErrorCounts, ErrorKind, RequestLogSummary, Requests, StallDetector};

/// Above this busy share, the load measures the generator itself.
pub const BUSY_LIMIT: f64 = 0.85;
/// An open loop below this share of the requested rate is suspect.
const RATE_LIMIT: f64 = 0.99;
/// A server that closes more than this share of the connections under requests closes connections that clients reuse.
const RETRIED_LIMIT: f64 = 0.01;
/// Schedule lag beyond this share of the median response time distorts it.
const LAG_LIMIT: f64 = 0.10;

/// From this share of the load's own maximum, the throughput says nothing about the target.
const CAP_LIMIT: f64 = 0.95;

/// Users who arrive one after the other and leave after a number of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramp {
    /// Number of users.
    pub users: f64,
    /// Time from the start of the load to the arrival of the last user.
    pub within_s: f64,
    /// Number of requests per user.
    pub loops: u64,
}

impl Ramp {
    /// Returns the maximum throughput of any target: the load lasts until the last user arrives.
    fn max_rps(&self) -> f64 {
        self.users * self.loops as f64 / self.within_s
    }
}

/// The validity of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    /// The results are valid.
    Valid,
    /// The results may be wrong; read the reasons.
    Suspect,
    /// The results are useless.
    Invalid,
}

/// A verdict with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The worst validity of all reasons.
    pub validity: Validity,
    /// One sentence per reason. A valid load may have reasons, too.
    pub reasons: Vec<String>,
    /// The kind of each reason, by which other programs may judge again.
    pub kinds: Vec<&'static str>,
}

/// The input of a verdict.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) requests: Requests,
    /// Number of redirects.
    pub(crate) redirects: u64,
    pub(crate) stalls: StallDetector,
    pub(crate) errors: ErrorCounts,
    /// Whether a connection failed because this machine had no free port.
    pub(crate) ports_used_up: bool,
    /// Whether the load ends at the first failure.
    pub(crate) is_until_failure: bool,
    /// The requested rate of an open loop.
    pub(crate) asked_rate_rps: Option<f64>,
    pub(crate) sent_rps: f64,
    /// The load's ramp of users, if it has one.
    pub(crate) ramp: Option<Ramp>,
    pub(crate) completed_rps: f64,
    pub(crate) busy_fraction: f64,
    pub(crate) response_p50_us: Option<f64>,
    pub(crate) lag_p99_us: Option<f64>,
    pub(crate) request_log: Option<&'a RequestLogSummary>,
}

pub(crate) fn judge(facts: &Facts<'_>) -> Verdict {
    let mut verdict = Verdict { validity: Validity::Valid, reasons: Vec::new(), kinds: Vec::new() };
    for (kind, reason) in facts.stalls.reasons() {
        verdict.add(kind, Validity::Invalid, reason);
    }
    let requests = &facts.requests;
    if requests.completed == 0 {
        verdict.add(
            "no_response", Validity::Invalid,
            format!("no response arrived ({} requests were sent): the target does not serve, or the load is shorter than its response time", requests.sent),
        );
    }
    if requests.failed > 0 && facts.is_until_failure {
        verdict.add(
            "until_failure",
            Validity::Valid,
            format!("ended at the first failure, as asked: {}", failures(facts)),
        );
    } else if requests.failed > 0 {
        verdict.add(failure_kind(facts), Validity::Suspect, failures(facts));
    }
    if requests.retried as f64 > requests.intended as f64 * RETRIED_LIMIT {
        verdict.add(
            "retried",
            Validity::Suspect,
            format!(
                "{} of {} requests were sent a second time (limit {:.0} %): the server closes connections that clients reuse, without saying so in a response; their response times include a new connection, and a client that does not repeat requests sees errors",
                requests.retried,
                requests.intended,
                RETRIED_LIMIT * 100.0
            ),
        );
    }
    if facts.redirects * 2 > requests.completed {
        verdict.add(
            "redirects",
            Validity::Valid,
            format!("{} responses were redirects, which weir does not follow", facts.redirects),
        );
    }
    match facts.asked_rate_rps {
        Some(asked_rate_rps) => judge_open(facts, asked_rate_rps, &mut verdict),
        None if facts.busy_fraction >= BUSY_LIMIT => verdict.add(
            "busy", Validity::Valid,
            format!(
                "the generator was busy {:.0} % of the time (limit {:.0} %): it may limit the throughput instead of the target; give it more CPUs to see",
                facts.busy_fraction * 100.0,
                BUSY_LIMIT * 100.0
            ),
        ),
        None => {}
    }
    if let Some(ramp) = &facts.ramp {
        judge_ramp(facts, ramp, &mut verdict);
    }
    if let Some(log) = facts.request_log.filter(|log| log.lost > 0) {
        judge_log(log, &mut verdict);
    }
    verdict
}

impl Verdict {
    fn add(&mut self, kind: &'static str, validity: Validity, reason: String) {
        self.validity = self.validity.max(validity);
        self.reasons.push(reason);
        self.kinds.push(kind);
    }
}

/// Returns the kind of the failures: `ports` if this machine had no free port, which is no failure of the target.
fn failure_kind(facts: &Facts<'_>) -> &'static str {
    if facts.ports_used_up { "ports" } else { "failed" }
}

fn failures(facts: &Facts<'_>) -> String {
    let by_kind: Vec<String> = ErrorKind::ALL
        .into_iter()
        .filter(|&kind| facts.errors.of(kind) > 0)
        .map(|kind| format!("{} {}", kind.name(), facts.errors.of(kind)))
        .collect();
    let most = ErrorKind::ALL.into_iter().max_by_key(|&kind| facts.errors.of(kind));
    let cause = match most {
        Some(ErrorKind::Connect) if facts.ports_used_up => {
            "this machine's ports towards the target are used up, which is a limit of the generator, not of the target; give it more addresses to connect from (local_addresses, --bind)"
        }
        Some(ErrorKind::Connect) => "the target refuses connections or its accept queue is full",
        Some(ErrorKind::Timeout) => "the target is slower than timeout_s, or stuck",
        Some(ErrorKind::Reset) => {
            "the target closes connections under requests; it may have crashed or restarted, or limits requests per connection without saying so"
        }
        Some(ErrorKind::Protocol) => "the target does not speak HTTP/1.1 on this port, or its framing is broken",
        Some(ErrorKind::Check) | None => "the target responds with a wrong status; look at the statuses",
    };
    format!(
        "{} of {} requests failed ({}; limit 0): {cause}",
        facts.requests.failed,
        facts.requests.intended,
        by_kind.join(", ")
    )
}

fn judge_open(facts: &Facts<'_>, asked_rate_rps: f64, verdict: &mut Verdict) {
    let requests = &facts.requests;
    if requests.unsent > 0 {
        verdict.add(
            "unsent", Validity::Suspect,
            format!(
                "{} of {} requests were due and not sent by the end (limit 0): all connections were waiting for responses; the target cannot carry this rate, or the connections are too few",
                requests.unsent, requests.intended
            ),
        );
    }
    if let Some(quantile) = lowest_bound(requests) {
        verdict.add(
            "lower_bounds", Validity::Valid,
            format!(
                "{quantile} and above are lower bounds: {} of {} requests had no response by the end, and their times are not in the percentiles; a longer load makes their share smaller, unless the target falls behind",
                requests.unanswered + requests.unsent,
                requests.intended
            ),
        );
    }
    if facts.sent_rps < asked_rate_rps * RATE_LIMIT {
        verdict.add(
            "rate", Validity::Suspect,
            format!(
                "{:.1} requests per second were sent, {asked_rate_rps} were requested (limit {:.0} %): the target, the connections or the generator cannot carry this rate",
                facts.sent_rps,
                RATE_LIMIT * 100.0
            ),
        );
    }
    if facts.busy_fraction >= BUSY_LIMIT {
        verdict.add(
            "busy", Validity::Suspect,
            format!(
                "the generator was busy {:.0} % of the time (limit {:.0} %): its own queueing is in the response times; give it more CPUs or request a lower rate",
                facts.busy_fraction * 100.0,
                BUSY_LIMIT * 100.0
            ),
        );
    }
    if let (Some(lag), Some(response)) = (facts.lag_p99_us, facts.response_p50_us) {
        if lag > response * LAG_LIMIT {
            verdict.add(
                "lag", Validity::Suspect,
                format!(
                    "the 99th percentile of the schedule lag is {lag:.1} us, above {:.0} % of the median response time ({response:.1} us): requests waited for a free connection or for the generator's CPU; give it a CPU of its own (cpus) or more connections",
                    LAG_LIMIT * 100.0
                ),
            );
        }
    }
}

fn judge_ramp(facts: &Facts<'_>, ramp: &Ramp, verdict: &mut Verdict) {
    let max_rps = ramp.max_rps();
    if facts.completed_rps < max_rps * CAP_LIMIT {
        return;
    }
    verdict.add(
        "load_cap", Validity::Suspect,
        format!(
            "the load itself caps the throughput: {:.1} requests per second were answered, and {:.0} users who arrive within {:.1} s and send {} requests each bring about {max_rps:.1} to any server (limit {:.0} %); let them arrive faster or send more requests",
            facts.completed_rps,
            ramp.users,
            ramp.within_s,
            ramp.loops,
            CAP_LIMIT * 100.0
        ),
    );
}

/// Reports gaps in the request log. They do not affect other results.
fn judge_log(log: &RequestLogSummary, verdict: &mut Verdict) {
    let cause = match &log.problem {
        Some(problem) => format!("the file took no more ({problem})"),
        None => "the disk, or the CPU left to the writing thread, was slower than the load; put the file on a faster one (/dev/shm)".to_owned(),
    };
    verdict.add(
        "request_log",
        Validity::Valid,
        format!("{} of {} records are missing in the request log (limit 0): {cause}", log.lost, log.lost + log.records),
    );
}

/// Returns the lowest percentile that is a lower bound: more requests have no response than lie above it.
fn lowest_bound(requests: &Requests) -> Option<&'static str> {
    let missing = (requests.unanswered + requests.unsent) as f64;
    [(0.5, "p50"), (0.75, "p75"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99")]
        .into_iter()
        .find(|(quantile, _)| missing > (1.0 - quantile) * requests.intended as f64)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests;
