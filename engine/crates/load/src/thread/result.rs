//! The ends of intervals, and the end of a load thread.

use weir_http::Protocol;
use weir_net::Driver;
use weir_record::{
    Clocks, FirstFailure, KernelTimestamps, RequestOutcome, Responses, Slowest, StatusCounts, StepOutcome,
};

use super::LoadThread;
use crate::connections::Connections;
use crate::in_flight::InFlight;
use crate::recorder::Gauges;
use crate::workload::Workload;

/// The records of a thread beside its intervals.
#[derive(Debug)]
pub(crate) struct ThreadResult {
    pub(crate) clocks: Clocks,
    pub(crate) responses: Responses,
    pub(crate) status: StatusCounts,
    pub(crate) unanswered: u64,
    pub(crate) unsent: u64,
    pub(crate) busy_ns: u64,
    /// Duration of the load on this thread.
    pub(crate) lasted_ns: u64,
    /// Number of intervals on this thread.
    pub(crate) intervals: u64,
    /// Whether it ended because the whole load was done.
    pub(crate) is_complete: bool,
    pub(crate) first_failure: Option<FirstFailure>,
    /// Whether a connection could not be made because this machine had no free port.
    pub(crate) ports_used_up: bool,
    pub(crate) slowest: Slowest,
    /// The outcome of each step of a scenario.
    pub(crate) steps: Vec<StepOutcome>,
    /// The outcome of each target, if there are several.
    pub(crate) targets: Vec<StepOutcome>,
    pub(crate) kernel_timestamps: KernelTimestamps,
    /// Records of the request log for which there was no room.
    pub(crate) lost_records: u64,
    /// Requests of each connection that took part.
    pub(crate) requests: Vec<u32>,
}

impl<D: Driver, P: Protocol> LoadThread<D, P> {
    pub(super) fn finish(mut self, now: u64, busy_ns: u64) -> ThreadResult {
        let end_ns = now.min(self.window.end_ns);
        // Requests that were due before the end are sent, however late this thread woke up for them.
        while self.recorder.first_failure.is_none() && self.send_due(end_ns) {}
        let is_complete = self.is_complete();
        self.split().1.cross_boundary(end_ns);
        let gauges = gauges(&self.connections, &self.in_flight, &self.workload);
        self.recorder.tally.end_interval(end_ns, gauges(end_ns));
        self.note_unanswered(end_ns);
        let (steps, targets) = self.workload.requests.take_outcomes();
        let may_be_absent = self.workload.may_have_absent_users();
        let requests = self.connections.requests();
        let requests = requests.filter(|&requests| requests > 0 || !may_be_absent);
        let unsent = self.connections.parked() + self.workload.demand.queue();
        let recorder = self.recorder;
        let mut tally = recorder.tally;
        tally.complete_clocks();
        let shard = self.connections.shard();
        tally.slowest.place(|own| shard.index(own));
        ThreadResult {
            unanswered: self.in_flight.len(),
            unsent,
            busy_ns,
            lasted_ns: end_ns - self.window.start_ns,
            intervals: tally.intervals(),
            is_complete,
            first_failure: recorder.first_failure,
            ports_used_up: recorder.ports_used_up,
            requests: requests.collect(),
            slowest: tally.slowest,
            kernel_timestamps: tally.kernel_timestamps,
            steps,
            targets,
            clocks: tally.clocks,
            responses: tally.responses,
            status: tally.status,
            lost_records: recorder.log.map_or(0, |log| log.finish()),
        }
    }

    /// Records the requests that are in flight at the end of the load.
    fn note_unanswered(&mut self, end_ns: u64) {
        for (slot, request) in self.in_flight.iter() {
            let age_ns = end_ns.saturating_sub(request.intended_ns);
            let ages = &mut self.recorder.tally.clocks.unanswered_age;
            ages.saturating_record(age_ns);
            let connect_ns = std::mem::take(&mut self.connections.get(slot).connect_ns);
            let outcome = RequestOutcome::Unanswered;
            self.recorder.log_failure(slot, request, outcome, connect_ns);
        }
    }
}

/// Returns the gauges of a thread at a moment.
pub(super) fn gauges<S: Default>(
    connections: &Connections<S>,
    in_flight: &InFlight,
    workload: &Workload,
) -> impl Fn(u64) -> Gauges + use<S> {
    // The request that was written first is, but for the queue of a full connection, also the one that was due first.
    let written = in_flight.oldest().map(|request| request.intended_ns);
    let moments = [written, connections.oldest_parked_ns(), workload.oldest_queued_ns()];
    let oldest_ns = moments.into_iter().flatten().min().unwrap_or(u64::MAX);
    let (in_flight, queued) = (in_flight.len(), connections.parked() + workload.demand.queue());
    move |at_ns| Gauges { in_flight, queued, oldest_age_ns: at_ns.saturating_sub(oldest_ns) }
}
