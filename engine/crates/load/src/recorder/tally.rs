//! The counts of one thread: those of the open interval, and the clocks of the whole load.
//!
//! Hot path. Rules: counting never allocates and never locks. At the end of an interval its response times go to the
//! collecting thread, which makes a histogram of them, and cleared counts come from the pool.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};

use weir_http::Response;
use weir_record::{
    BucketCounts, Clocks, Counts, ErrorKind, Event, FirstResponse, IntervalPart, KernelTimestamps, Responses, Slowest,
    StatusCounts, TimeLine,
};

use crate::collect::Message;
use crate::in_flight::InFlightRequest;

const NS_PER_S: u64 = 1_000_000_000;

/// Cleared counts, ready to be filled again.
pub(crate) type Pool = Arc<Mutex<Vec<BucketCounts>>>;

/// The first whole response of any thread.
pub(crate) type First = Arc<OnceLock<FirstResponse>>;

/// The length of the first response before it is known: no body is that long.
const UNKNOWN: u64 = u64::MAX;

/// The gauges at the end of an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) in_flight: u64,
    pub(crate) queued: u64,
    pub(crate) oldest_age_ns: u64,
}

/// The counts and clocks of one thread.
pub(crate) struct Tally {
    /// The counts of the open interval.
    pub(crate) counts: Counts,
    /// The clocks of connections and of unanswered requests. [`Self::complete_clocks`] adds those of responses.
    pub(crate) clocks: Clocks,
    pub(crate) status: StatusCounts,
    pub(crate) slowest: Slowest,
    pub(crate) kernel_timestamps: KernelTimestamps,
    pub(crate) responses: Responses,
    /// Bytes of the first response's body, [`UNKNOWN`] until this thread knows it.
    first_length: u64,
    first: First,
    /// Response times of the open interval.
    response_time: BucketCounts,
    /// Schedule lag of the whole load, as the clocks below.
    schedule_lag: BucketCounts,
    /// Service times of responses in one piece, which are times to the first byte too.
    in_one_piece: BucketCounts,
    service_time: BucketCounts,
    time_to_first_byte: BucketCounts,
    index: u64,
    interval_ns: u64,
    start_ns: u64,
    /// The last event of each kind, so that there is at most one a second.
    last_events_ns: [u64; ErrorKind::ALL.len()],
    pool: Pool,
    messages: Sender<Message>,
}

impl Tally {
    pub(crate) fn new(interval_ns: u64, slowest: Slowest, first: First, pool: Pool, messages: Sender<Message>) -> Self {
        Self {
            counts: Counts::default(),
            clocks: Clocks::default(),
            status: StatusCounts::default(),
            slowest,
            kernel_timestamps: KernelTimestamps::default(),
            responses: Responses::default(),
            first_length: UNKNOWN,
            first,
            response_time: BucketCounts::default(),
            schedule_lag: BucketCounts::default(),
            in_one_piece: BucketCounts::default(),
            service_time: BucketCounts::default(),
            time_to_first_byte: BucketCounts::default(),
            index: 0,
            interval_ns,
            start_ns: 0,
            last_events_ns: [0; ErrorKind::ALL.len()],
            pool,
            messages,
        }
    }

    /// The clock starts.
    pub(crate) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// Forgets connections that were made before the clock started and that no request used.
    pub(crate) fn forget_connections(&mut self) {
        self.clocks.connect_time.reset();
        if let Some(tls_handshake) = &mut self.clocks.tls_handshake {
            tls_handshake.reset();
        }
    }

    /// The load is over: adds the times of responses to the clocks.
    pub(crate) fn complete_clocks(&mut self) {
        let clocks = &mut self.clocks;
        self.schedule_lag.add_to(&mut clocks.schedule_lag);
        for service_time in [&self.service_time, &self.in_one_piece] {
            service_time.add_to(&mut clocks.service_time);
        }
        for time_to_first_byte in [&self.time_to_first_byte, &self.in_one_piece] {
            time_to_first_byte.add_to(&mut clocks.time_to_first_byte);
        }
    }

    /// Returns when the open interval ends.
    pub(crate) fn interval_end_ns(&self) -> u64 {
        self.start_ns + (self.index + 1) * self.interval_ns
    }

    /// Returns how many intervals are over.
    pub(crate) fn intervals(&self) -> u64 {
        self.index
    }

    /// Records the times and the content of a whole response. `server` returns the value of its Server field.
    #[inline(always)]
    pub(crate) fn record_response(
        &mut self,
        connection: u32,
        request: &InFlightRequest,
        response: Response,
        server: impl FnOnce() -> String,
    ) {
        let &InFlightRequest { intended_ns, written_ns, first_byte_ns, last_byte_ns, is_stamped, .. } = request;
        match is_stamped {
            true => self.kernel_timestamps.used += 1,
            false => self.kernel_timestamps.missing += 1,
        }
        let response_ns = request.response_ns();
        self.response_time.record(response_ns);
        if self.slowest.wants(response_ns) {
            self.keep_slow(response.status, request, connection);
        }
        self.schedule_lag.record(written_ns.saturating_sub(intended_ns));
        let service_ns = last_byte_ns.saturating_sub(written_ns);
        let read_ns = last_byte_ns.saturating_sub(first_byte_ns);
        if read_ns == 0 {
            self.in_one_piece.record(service_ns);
        } else {
            self.service_time.record(service_ns);
            self.time_to_first_byte.record(first_byte_ns.saturating_sub(written_ns));
        }
        let responses = &mut self.responses;
        responses.body_bytes += response.body_bytes;
        responses.read_time.record(read_ns);
        if response.body_bytes != self.first_length {
            self.compare_length(response, server);
        }
        self.status.count(response.status);
    }

    /// Compares the length of a body with that of the first response, which this may be.
    #[cold]
    fn compare_length(&mut self, response: Response, server: impl FnOnce() -> String) {
        if self.first_length == UNKNOWN {
            let first = self.first.get_or_init(|| FirstResponse {
                status: response.status,
                server: server(),
                body_bytes: response.body_bytes,
            });
            self.first_length = first.body_bytes;
        }
        self.responses.other_length += u64::from(response.body_bytes != self.first_length);
    }

    #[cold]
    fn keep_slow(&mut self, status: u16, request: &InFlightRequest, connection: u32) {
        let since_start = |at_ns: u64| at_ns.saturating_sub(self.start_ns);
        self.slowest.keep(TimeLine {
            response_ns: request.response_ns(),
            intended_ns: since_start(request.intended_ns),
            written_ns: since_start(request.written_ns),
            first_byte_ns: since_start(request.first_byte_ns),
            last_byte_ns: since_start(request.last_byte_ns),
            status,
            connection: u64::from(connection),
        });
    }

    /// Counts a failed request.
    #[cold]
    pub(crate) fn fail(&mut self, kind: ErrorKind, now_ns: u64, detail: impl FnOnce() -> String) {
        self.counts.errors.count(kind, 1);
        self.event(kind, now_ns, detail);
    }

    /// Reports an event, at most one of each kind in a second.
    pub(crate) fn event(&mut self, kind: ErrorKind, now_ns: u64, detail: impl FnOnce() -> String) {
        let last_ns = &mut self.last_events_ns[kind as usize];
        if *last_ns != 0 && now_ns < *last_ns + NS_PER_S {
            return;
        }
        *last_ns = now_ns;
        let event = Event { t_s: self.since_start_s(now_ns), kind: kind.name(), detail: detail() };
        self.send(Message::Event(event));
    }

    /// Reports that the time of day was set: the kernel's stamps depend on it.
    #[cold]
    pub(crate) fn clock_was_set(&mut self, now_ns: u64, step_ns: i64) {
        let event = Event {
            t_s: self.since_start_s(now_ns),
            kind: "clock",
            detail: format!(
                "the time of day was set by {:+.6} s: kernel timestamps of the interval before are off by that, or not used",
                step_ns as f64 / 1e9
            ),
        };
        self.send(Message::Event(event));
    }

    fn since_start_s(&self, at_ns: u64) -> f64 {
        at_ns.saturating_sub(self.start_ns) as f64 / NS_PER_S as f64
    }

    /// Ends the open interval.
    pub(crate) fn end_interval(&mut self, end_ns: u64, gauges: Gauges) {
        // The collecting thread may hold the lock and, at its low priority, not run: waiting for it would stop the
        // load.
        let cleared = self.pool.try_lock().ok().and_then(|mut pool| pool.pop());
        let response_time = std::mem::replace(&mut self.response_time, cleared.unwrap_or_default());
        let part = IntervalPart {
            index: self.index,
            start_ns: self.index * self.interval_ns,
            end_ns: end_ns - self.start_ns,
            counts: std::mem::take(&mut self.counts),
            in_flight: gauges.in_flight,
            queued: gauges.queued,
            oldest_age_ns: gauges.oldest_age_ns,
            response_time,
        };
        self.index += 1;
        self.send(Message::Part(part));
    }

    fn send(&self, message: Message) {
        // The receiver is gone only if the load was given up; the stop flag tells this thread.
        let _ = self.messages.send(message);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn an_interval_ends_while_the_collecting_thread_holds_the_pool() {
        let (pool, (messages, received)) = (Pool::default(), channel());
        let (first, slowest) = (First::default(), Slowest::new(1));
        let mut tally = Tally::new(1_000, slowest, first, pool.clone(), messages);
        let held = pool.lock().unwrap();
        let gauges = Gauges { in_flight: 0, queued: 0, oldest_age_ns: 0 };
        tally.end_interval(1_000, gauges);
        drop(held);
        assert!(matches!(received.try_recv(), Ok(Message::Part(_))));
    }
}
