//! What one thread counts: the interval that is open, and the clocks of the whole load.
//!
//! Hot path. Rules: counting never allocates and never locks. At the end of an interval its histogram goes to the collecting
//! thread, which takes the quantiles, encodes and clears it, and a cleared one comes from the pool.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};

use weir_record::{
    Clocks, Counts, ErrorKind, Event, FirstResponse, Histogram, IntervalPart, KernelTimestamps,
    Responses, Slowest, StatusCounts, TimeLine, new_histogram,
};
use weir_wire::{Answer, ResponseReader};

use crate::collect::Message;

const NS_PER_S: u64 = 1_000_000_000;

/// Cleared histograms, ready to be filled again.
pub(crate) type Pool = Arc<Mutex<Vec<Histogram>>>;

/// The first whole answer of any thread, once there is one.
pub(crate) type First = Arc<OnceLock<FirstResponse>>;

/// The length of the first answer before there is one: no body is that long.
const UNKNOWN: u64 = u64::MAX;

/// The gauges at the end of an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) in_flight: u64,
    pub(crate) queued: u64,
    pub(crate) oldest_age_ns: u64,
}

/// The clock readings of one answered request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readings {
    pub(crate) intended_ns: u64,
    pub(crate) written_ns: u64,
    pub(crate) first_byte_ns: u64,
    pub(crate) last_byte_ns: u64,
    /// Whether the kernel's stamp said so.
    pub(crate) is_stamped: bool,
    pub(crate) connection: u32,
}

/// See the module's description.
pub(crate) struct Tally {
    /// What happened in the interval that is open.
    pub(crate) counts: Counts,
    pub(crate) clocks: Clocks,
    pub(crate) status: StatusCounts,
    pub(crate) slowest: Slowest,
    pub(crate) kernel_timestamps: KernelTimestamps,
    pub(crate) answers: Responses,
    /// Bytes of the first answer's body, as far as this thread knows.
    first_length: u64,
    first: First,
    response_time: Histogram,
    right_statuses: Box<[bool; 1000]>,
    index: u64,
    interval_ns: u64,
    start_ns: u64,
    /// The last event of each kind, so that there is at most one a second.
    last_events_ns: [u64; ErrorKind::ALL.len()],
    pool: Pool,
    messages: Sender<Message>,
}

impl Tally {
    pub(crate) fn new(
        interval_ns: u64,
        right_statuses: Box<[bool; 1000]>,
        slowest: Slowest,
        first: First,
        pool: Pool,
        messages: Sender<Message>,
    ) -> Self {
        Self {
            counts: Counts::default(),
            clocks: Clocks::default(),
            status: StatusCounts::default(),
            slowest,
            kernel_timestamps: KernelTimestamps::default(),
            answers: Responses::default(),
            first_length: UNKNOWN,
            first,
            response_time: new_histogram(),
            right_statuses,
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

    /// Connections that were made before the clock started, and of which no request has anything, are not the load's.
    pub(crate) fn forget_connections(&mut self) {
        self.clocks.connect_time.reset();
        if let Some(tls_handshake) = &mut self.clocks.tls_handshake {
            tls_handshake.reset();
        }
    }

    /// When the open interval ends.
    pub(crate) fn interval_end_ns(&self) -> u64 {
        self.start_ns + (self.index + 1) * self.interval_ns
    }

    /// How many intervals are over.
    pub(crate) fn intervals(&self) -> u64 {
        self.index
    }

    /// Counts a whole answer, whose head this reader read. Gives whether it was a right one.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        answer: Answer,
        readings: Readings,
        reader: &ResponseReader,
    ) -> bool {
        let is_right = self.right_statuses[usize::from(answer.status).min(999)];
        let verdict = if is_right { Ok(()) } else { Err(answer.status) };
        self.complete_as(answer, readings, reader, verdict, |status| {
            format!("status {status}")
        })
    }

    /// Counts a whole answer of which is known whether it is right, and how to say what is wrong. Gives whether it was a right one.
    #[inline]
    pub(crate) fn complete_as<W>(
        &mut self,
        answer: Answer,
        readings: Readings,
        reader: &ResponseReader,
        verdict: Result<(), W>,
        describe: impl FnOnce(W) -> String,
    ) -> bool {
        let Readings {
            intended_ns,
            written_ns,
            first_byte_ns,
            last_byte_ns,
            is_stamped,
            ..
        } = readings;
        self.kernel_timestamps.used += u64::from(is_stamped);
        self.kernel_timestamps.missing += u64::from(!is_stamped);
        let response_ns = last_byte_ns.saturating_sub(intended_ns);
        self.response_time.saturating_record(response_ns);
        if self.slowest.wants(response_ns) {
            self.keep_slow(answer.status, readings, response_ns);
        }
        let clocks = &mut self.clocks;
        clocks
            .service_time
            .saturating_record(last_byte_ns.saturating_sub(written_ns));
        clocks
            .schedule_lag
            .saturating_record(written_ns.saturating_sub(intended_ns));
        clocks
            .time_to_first_byte
            .saturating_record(first_byte_ns.saturating_sub(written_ns));
        let answers = &mut self.answers;
        answers.body_bytes += answer.body_bytes;
        answers
            .read_time
            .record(last_byte_ns.saturating_sub(first_byte_ns));
        if answer.body_bytes != self.first_length {
            self.has_other_length(answer, reader);
        }
        self.status.count(answer.status);
        match verdict {
            Ok(()) => {
                self.counts.ok += 1;
                true
            }
            Err(wrong) => {
                self.fail(ErrorKind::Check, last_byte_ns, || describe(wrong));
                false
            }
        }
    }

    /// An answer is not as long as the first one was, or may be that one.
    #[cold]
    fn has_other_length(&mut self, answer: Answer, reader: &ResponseReader) {
        if self.first_length == UNKNOWN {
            let first = self.first.get_or_init(|| FirstResponse {
                status: answer.status,
                server: String::from_utf8_lossy(reader.last_header("server").unwrap_or_default())
                    .into_owned(),
                body_bytes: answer.body_bytes,
            });
            self.first_length = first.body_bytes;
        }
        self.answers.other_length += u64::from(answer.body_bytes != self.first_length);
    }

    #[cold]
    fn keep_slow(&mut self, status: u16, readings: Readings, response_ns: u64) {
        let since_start = |at_ns: u64| at_ns.saturating_sub(self.start_ns);
        self.slowest.keep(TimeLine {
            response_ns,
            intended_ns: since_start(readings.intended_ns),
            written_ns: since_start(readings.written_ns),
            first_byte_ns: since_start(readings.first_byte_ns),
            last_byte_ns: since_start(readings.last_byte_ns),
            status,
            connection: u64::from(readings.connection),
        });
    }

    /// Counts a failed request.
    #[cold]
    pub(crate) fn fail(&mut self, kind: ErrorKind, now_ns: u64, detail: impl FnOnce() -> String) {
        self.counts.errors.count(kind);
        self.event(kind, now_ns, detail);
    }

    /// Says that something happened, at most once a second of each kind.
    pub(crate) fn event(&mut self, kind: ErrorKind, now_ns: u64, detail: impl FnOnce() -> String) {
        let last_ns = &mut self.last_events_ns[kind as usize];
        if *last_ns != 0 && now_ns < *last_ns + NS_PER_S {
            return;
        }
        *last_ns = now_ns;
        let event = Event {
            t_s: self.since_start_s(now_ns),
            kind: kind.name(),
            detail: detail(),
        };
        self.send(Message::Event(event));
    }

    /// Says that the time of day was set, which the kernel's stamps are in.
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
        // The collecting thread may hold the lock and, at its low priority, not run: waiting for it would stop the load.
        let cleared = self.pool.try_lock().ok().and_then(|mut pool| pool.pop());
        let response_time = std::mem::replace(
            &mut self.response_time,
            cleared.unwrap_or_else(new_histogram),
        );
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
        // Nobody receives only when the load was given up; the thread is told by its stop flag.
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
        let statuses = Box::new([true; 1000]);
        let mut tally = Tally::new(1_000, statuses, slowest, first, pool.clone(), messages);
        let held = pool.lock().unwrap();
        let gauges = Gauges {
            in_flight: 0,
            queued: 0,
            oldest_age_ns: 0,
        };
        tally.end_interval(1_000, gauges);
        drop(held);
        assert!(matches!(received.try_recv(), Ok(Message::Part(_))));
    }
}
