//! Where intervals end, and where the load does.

use weir_net::{Driver, Slot};
use weir_record::Ending;

use super::{LoadThread, ThreadEnd};
use crate::connection::Phase;
use crate::demand::Source;
use crate::kernel_clock::KernelClock;
use crate::request_log::Moments;
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
        self.note_unanswered(end_ns);
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
            answers: self.tally.answers,
            status: self.tally.status,
            lost_records: self.log.map_or(0, |log| log.finish()),
        }
    }

    /// Requests that are in flight at the end of the load.
    fn note_unanswered(&mut self, end_ns: u64) {
        let all = (0..self.connections.len() as Slot).zip(&self.connections);
        let waiting = all
            .filter(|(_, connection)| connection.phase == Phase::Waiting)
            .map(|(slot, connection)| (slot, Moments::of(connection)));
        let pipelined = self.pipelines.iter().flat_map(|all| all.all_unanswered());
        let mut last = None;
        let pipelined = pipelined.map(|(slot, asked)| {
            // Only the first of a connection can have a part of its answer.
            let is_first = last.replace(slot) != Some(slot);
            let first_byte_ns = self.connections[slot as usize].first_byte_ns;
            let first_byte_ns = if is_first { first_byte_ns } else { 0 };
            (slot, Moments::of_pipelined(asked, first_byte_ns))
        });
        for (slot, moments) in waiting.chain(pipelined) {
            let age_ns = end_ns.saturating_sub(moments.intended_ns);
            self.tally.clocks.unanswered_age.saturating_record(age_ns);
            if let Some(log) = &mut self.log {
                let origin = self.requests.origin(slot);
                log.ended(slot, origin, moments, None, Ending::Unanswered);
            }
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
