//! Merges the threads' results into the last record.

use weir_record::{
    BestSecond, Clocks, Fairness, FirstFailure, Generator, Histogram, IntervalMerger, KernelTimestamps, Outcome,
    Record, RequestLogSummary, Responses, Slowest, StallDetector, StatusCounts, StepOutcome, StopReason, UntilFailure,
};

use weir_plan::Until;
use weir_sys::process::peak_rss_bytes;

use super::Collector;
use crate::VERSION;
use crate::ramp::ramp;
use crate::thread::ThreadResult;

impl Collector<'_> {
    /// Returns the `end` record of a load whose process used so much CPU time.
    pub(super) fn end(
        &self,
        merger: &IntervalMerger,
        best: &BestSecond,
        ends: Vec<ThreadResult>,
        request_log: Option<RequestLogSummary>,
        cpu_ns: u64,
        standstill: StallDetector,
    ) -> Record {
        let plan = &self.prepared.plan;
        let (counts, response_time) = merger.totals();
        let mut clocks = Clocks::default();
        let mut responses = Responses::default();
        let mut status = StatusCounts::default();
        let mut slowest = Slowest::new(plan.slowest);
        for end in &ends {
            clocks.add(&end.clocks);
            responses.add(&end.responses);
            status.add(&end.status);
            slowest.add(&end.slowest);
        }
        let first_failure = ends.iter().filter_map(|end| end.first_failure).min_by_key(|failure| failure.at_ns);
        let lasted_ns = ends.iter().map(|end| end.lasted_ns).max().unwrap_or(0);
        let lasted_s = lasted_ns as f64 / 1e9;
        let busy = ends.iter().map(|end| ratio(end.busy_ns, end.lasted_ns).min(1.0)).fold(0.0, f64::max);
        let outcome = Outcome {
            target: &plan.urls().join(" "),
            asked_rate_rps: self.prepared.asked_rate_rps(lasted_s, counts.due),
            ramp: ramp(plan, lasted_s),
            connects_each: !plan.keeps_connections(),
            ports_used_up: ends.iter().any(|end| end.ports_used_up),
            duration_s: lasted_s,
            counts: *counts,
            unanswered: ends.iter().map(|end| end.unanswered).sum(),
            unsent: ends.iter().map(|end| end.unsent).sum(),
            status,
            response_time,
            clocks: &clocks,
            responses,
            first_response: self.first.get().cloned(),
            request_log,
            fairness: Fairness::of(ends.iter().flat_map(|end| &end.requests).copied().collect()),
            until_failure: plan
                .until
                .map(|Until::FirstFailure| until_failure(counts.ok, best, response_time, first_failure)),
            steps: sums(ends.iter().map(|end| &end.steps)),
            targets: sums(ends.iter().map(|end| &end.targets)),
            stalls: standstill,
            generator: Generator {
                version: VERSION.to_owned(),
                cpu_fraction: ratio(cpu_ns, lasted_ns * ends.len() as u64),
                busy_fraction: busy,
                peak_rss_bytes: peak_rss_bytes(),
                kernel_timestamps: plan.kernel_timestamps.then(|| {
                    let all = ends.iter().map(|end| end.kernel_timestamps);
                    all.fold(KernelTimestamps::default(), KernelTimestamps::plus)
                }),
                threads: plan.threads,
                cpus: plan.cpus.clone(),
            },
        };
        let stopped = match self.stop.reason() {
            StopReason::Duration if ends.iter().all(|end| end.is_complete) => StopReason::Complete,
            reason => reason,
        };
        Record::End {
            stopped,
            summary: Box::new(outcome.summary()),
            histograms: outcome.histograms(),
            slowest: slowest.to_records(),
        }
    }
}

/// Returns the sums of the threads' steps or targets, `None` if there are none.
fn sums<'a>(threads: impl Iterator<Item = &'a Vec<StepOutcome>>) -> Option<Vec<StepOutcome>> {
    let mut threads = threads.filter(|parts| !parts.is_empty());
    let mut sums = threads.next()?.clone();
    for parts in threads {
        let pairs = sums.iter_mut().zip(parts);
        pairs.for_each(|(sum, part)| sum.add(part));
    }
    Some(sums)
}

fn until_failure(
    requests_before: u64,
    best: &BestSecond,
    response_time: &Histogram,
    failure: Option<FirstFailure>,
) -> UntilFailure {
    UntilFailure {
        requests_before,
        highest_throughput_rps: best.highest_rps(),
        mean_response_time_us: (!response_time.is_empty()).then(|| response_time.mean() / 1e3),
        at_s: failure.map(|failure| failure.at_ns as f64 / 1e9),
        kind: failure.map(|failure| failure.kind.name()),
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
