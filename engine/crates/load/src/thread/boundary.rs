//! Where intervals end, and where the load does.

use weir_net::Driver;

use super::{LoadThread, ThreadEnd};
use crate::connection::Phase;
use crate::demand::Source;
use crate::kernel_clock::KernelClock;
use crate::tally::Gauges;

impl<D: Driver> LoadThread<D> {
    /// Ends the intervals that are over; the last one is left to [`Self::finish`].
    #[cold]
    pub(super) fn cross_boundary(&mut self, now: u64) {
        if let Some(step_ns) = self.kernel_clock.as_mut().and_then(KernelClock::renew) {
            self.tally.clock_was_set(now, step_ns);
        }
        loop {
            let end_ns = self.tally.interval_end_ns();
            self.boundary_ns = end_ns.min(self.end_ns);
            if end_ns > now || end_ns >= self.end_ns {
                return;
            }
            let gauges = self.gauges(end_ns);
            self.tally.end_interval(end_ns, gauges);
        }
    }

    fn gauges(&self, now: u64) -> Gauges {
        // The first to be written is, but for what a full queue of connections makes of it, the first that was due.
        let written = self
            .waiting
            .first()
            .map(|slot| self.connections[slot as usize].intended_ns);
        let oldest = self.pipelines.as_ref().and_then(|all| all.oldest());
        let pipelined = oldest.map(|(_, asked)| asked.intended_ns);
        let asked = self
            .connecting
            .first()
            .map(|slot| &self.connections[slot as usize])
            .filter(|connection| connection.has_request)
            .map(|connection| connection.intended_ns);
        let arrived = self
            .demand
            .oldest_of_queue_ns()
            .map(|due_ns| self.start_ns + due_ns);
        let oldest_ns = [written, pipelined, asked, arrived]
            .into_iter()
            .flatten()
            .fold(now, u64::min);
        Gauges {
            in_flight: self.in_flight(),
            queued: self.demand.queued(),
            oldest_age_ns: now.saturating_sub(oldest_ns),
        }
    }

    pub(super) fn finish(mut self, now: u64, busy_ns: u64) -> ThreadEnd {
        let end_ns = now.min(self.end_ns);
        // Whoever was due before the end is sent, however late this thread woke up for it.
        while self.first_failure.is_none() && self.act_by_the_clock(end_ns) {}
        let is_complete = self.is_complete();
        self.cross_boundary(end_ns);
        let gauges = self.gauges(end_ns);
        self.tally.end_interval(end_ns, gauges);
        let waiting = self.connections.iter();
        let waiting = waiting.filter(|connection| connection.phase == Phase::Waiting);
        let pipelined = self.pipelines.iter().flat_map(|all| all.intended_ns());
        for intended_ns in waiting.map(|one| one.intended_ns).chain(pipelined) {
            let ages = &mut self.tally.clocks.unanswered_age;
            ages.saturating_record(end_ns.saturating_sub(intended_ns));
        }
        let (steps, targets) = self.requests.take_outcomes();
        let shard = self.shard;
        self.tally.slowest.place(|own| shard.index(own));
        ThreadEnd {
            unanswered: self.in_flight(),
            unsent: self.demand.queued() + self.unrendered,
            busy_ns,
            lasted_ns: end_ns - self.start_ns,
            intervals: self.tally.intervals(),
            is_complete,
            first_failure: self.first_failure,
            ports_used_up: self.ports_used_up,
            requests: self.requests_by_connection(),
            slowest: self.tally.slowest,
            kernel_timestamps: self.tally.kernel_timestamps,
            steps,
            targets,
            clocks: self.tally.clocks,
            status: self.tally.status,
        }
    }

    /// Requests of each connection that took part: of all, unless users come and go.
    fn requests_by_connection(&self) -> Vec<u32> {
        let may_be_absent = matches!(self.demand.source, Source::Closed);
        self.connections
            .iter()
            .map(|connection| connection.requests)
            .filter(|&requests| requests > 0 || !may_be_absent || self.demand.users.is_none())
            .collect()
    }
}
