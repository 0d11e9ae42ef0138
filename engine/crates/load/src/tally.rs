//! What one thread counts: the interval that is open, and the clocks of the whole load.
//!
//! Hot path. Rules: counting never allocates and never locks. At the end of an interval its histogram goes to the collecting
//! thread, which takes the quantiles, encodes and clears it, and a cleared one comes from the pool.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use weir_record::{
    Clocks, Counts, ErrorKind, Event, Histogram, IntervalPart, KernelTimestamps, Slowest,
    StatusCounts, TimeLine, new_histogram,
};

use crate::collect::Message;

const NS_PER_S: u64 = 1_000_000_000;

/// Cleared histograms, ready to be filled again.
pub(crate) type Pool = Arc<Mutex<Vec<Histogram>>>;

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
        pool: Pool,
        messages: Sender<Message>,
    ) -> Self {
        Self {
            counts: Counts::default(),
            clocks: Clocks::default(),
            status: StatusCounts::default(),
            slowest,
            kernel_timestamps: KernelTimestamps::default(),
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

    /// When the open interval ends.
    pub(crate) fn interval_end_ns(&self) -> u64 {
        self.start_ns + (self.index + 1) * self.interval_ns
    }

    /// How many intervals are over.
    pub(crate) fn intervals(&self) -> u64 {
        self.index
    }

    /// Counts a whole answer. Gives whether it was a right one.
    #[inline]
    pub(crate) fn complete(&mut self, status: u16, readings: Readings) -> bool {
        let is_right = self.right_statuses[usize::from(status).min(999)];
        let verdict = if is_right { Ok(()) } else { Err(status) };
        self.complete_as(status, readings, verdict, |status| {
            format!("status {status}")
        })
    }

    /// Counts a whole answer of which is known whether it is right, and how to say what is wrong. Gives whether it was a right one.
    #[inline]
    pub(crate) fn complete_as<W>(
        &mut self,
        status: u16,
        readings: Readings,
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
            self.keep_slow(status, readings, response_ns);
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
        self.status.count(status);
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
        let cleared = self
            .pool
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
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
