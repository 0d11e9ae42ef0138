//! Everything that one thread records: counts and clocks, the request log, and why the load ends early.

mod kernel_clock;
mod request_log;
mod tally;

use weir_http::Response;
use weir_net::{Errno, Slot};
use weir_record::{ErrorKind, FirstFailure, RequestOutcome};

pub(crate) use self::kernel_clock::KernelClock;
pub(crate) use self::request_log::{Blocks, LogWriter, RequestLog};
pub(crate) use self::tally::{First, Gauges, Pool, Tally};
use crate::error::describe_connect;
use crate::in_flight::InFlightRequest;
use crate::window::Window;
use crate::workload::UserId;

/// Why a connection could not be made.
#[derive(Debug, Clone)]
pub(crate) struct ConnectFailure {
    pub(crate) errno: Errno,
    /// The cause, if the number does not say it.
    pub(crate) text: Option<String>,
}

/// The result of opening the connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Opened {
    pub(crate) connected: u64,
    pub(crate) first_failure: Option<ConnectFailure>,
}

/// The records of one thread.
pub(crate) struct Recorder {
    pub(crate) tally: Tally,
    pub(crate) log: Option<Box<RequestLog>>,
    /// `Some` with `kernel_timestamps`: converts the kernel's receive stamps. Without it a response arrives when it is
    /// read.
    kernel_clock: Option<KernelClock>,
    /// Whether the first failed request ends the load.
    until_failure: bool,
    pub(crate) first_failure: Option<FirstFailure>,
    /// Whether a connection could not be made because this machine had no free port.
    pub(crate) ports_used_up: bool,
    pub(crate) opened: Opened,
    /// The beginning of the last bytes that were no response.
    excerpt: Vec<u8>,
}

/// Bytes of an excerpt.
const EXCERPT_BYTES: usize = 100;

impl Recorder {
    pub(crate) fn new(
        tally: Tally,
        log: Option<RequestLog>,
        kernel_clock: Option<KernelClock>,
        until_failure: bool,
    ) -> Self {
        Self {
            tally,
            log: log.map(Box::new),
            kernel_clock,
            until_failure,
            first_failure: None,
            ports_used_up: false,
            opened: Opened::default(),
            excerpt: Vec::new(),
        }
    }

    /// The clock starts.
    pub(crate) fn start(&mut self, start_ns: u64) {
        if let Some(clock) = &mut self.kernel_clock {
            clock.renew();
        }
        self.tally.start(start_ns);
        if let Some(log) = &mut self.log {
            log.start(start_ns);
        }
    }

    /// A request of so many bytes is written.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.tally.counts.sent += 1;
        self.tally.counts.bytes_sent += u64::from(bytes);
    }

    /// A request of so many bytes is sent again.
    #[cold]
    pub(crate) fn retried(&mut self, bytes: u32) {
        self.tally.counts.retried += 1;
        self.tally.counts.bytes_sent += u64::from(bytes);
    }

    /// Returns when bytes of a response arrived, by the kernel's stamp.
    #[inline]
    pub(crate) fn arrival_ns(&self, stamp: Option<u64>, written_ns: u64, now: u64) -> Option<u64> {
        let clock = self.kernel_clock.as_ref()?;
        clock.arrival_ns(stamp, written_ns, now)
    }

    /// A connection was made: connecting began at one moment, its TLS handshake at another.
    pub(crate) fn connected(&mut self, began_ns: u64, handshake_began_ns: Option<u64>, now: u64) {
        self.opened.connected += 1;
        let clocks = &mut self.tally.clocks;
        let connected_ns = handshake_began_ns.unwrap_or(now);
        clocks.connect_time.saturating_record(connected_ns.saturating_sub(began_ns));
        if let Some(tls_handshake) = &mut clocks.tls_handshake {
            tls_handshake.saturating_record(now.saturating_sub(connected_ns));
        }
    }

    /// Records a whole response. `connect_ns` is how long making its connection took.
    #[inline(always)]
    pub(crate) fn record_response(
        &mut self,
        slot: Slot,
        request: &InFlightRequest,
        response: Response,
        connect_ns: u64,
        is_right: bool,
        server: impl FnOnce() -> String,
    ) {
        self.tally.record_response(slot, request, response, server);
        self.tally.counts.ok += u64::from(is_right);
        if let Some(log) = &mut self.log {
            let outcome = match is_right {
                true => RequestOutcome::Ok,
                false => RequestOutcome::Failed(ErrorKind::Check),
            };
            log.record(UserId::on(slot), request, outcome, Some(response), connect_ns);
        }
    }

    /// Logs a request that ended without a whole response.
    #[cold]
    pub(crate) fn log_failure(
        &mut self,
        slot: Slot,
        request: &InFlightRequest,
        outcome: RequestOutcome,
        connect_ns: u64,
    ) {
        if let Some(log) = &mut self.log {
            log.record(UserId::on(slot), request, outcome, None, connect_ns);
        }
    }

    /// Counts a failed request. Returns whether it ends the load.
    #[cold]
    pub(crate) fn fail(&mut self, kind: ErrorKind, now: u64, window: &Window, detail: impl FnOnce() -> String) -> bool {
        self.tally.fail(kind, now, detail);
        if self.until_failure && self.first_failure.is_none() {
            self.first_failure = Some(FirstFailure { at_ns: now - window.start_ns, kind });
        }
        self.until_failure
    }

    /// Keeps the beginning of bytes that are no response, for the message: those of a partial head, or else the last
    /// received ones.
    #[cold]
    pub(crate) fn keep_excerpt(&mut self, partial_head: &[u8], received: &[u8]) {
        let bytes = match partial_head {
            [] => received,
            head => head,
        };
        self.excerpt.clear();
        self.excerpt.extend_from_slice(&bytes[..bytes.len().min(EXCERPT_BYTES)]);
    }

    /// Returns the kept bytes as text, with escapes.
    #[cold]
    pub(crate) fn excerpt(&self) -> String {
        format!("\"{}\"", self.excerpt.escape_ascii())
    }

    /// Reports a connection that could not be made and had no request.
    #[cold]
    pub(crate) fn connect_failed(&mut self, failure: &ConnectFailure, now: u64) {
        self.tally.event(ErrorKind::Connect, now, || describe_connect(failure));
    }

    /// Ends the intervals that are over, but not the last one of the load.
    #[cold]
    pub(crate) fn cross_boundary(&mut self, window: &mut Window, now: u64, gauges: impl Fn(u64) -> Gauges) {
        if let Some(step_ns) = self.kernel_clock.as_mut().and_then(KernelClock::renew) {
            self.tally.clock_was_set(now, step_ns);
        }
        loop {
            let end_ns = self.tally.interval_end_ns();
            window.boundary_ns = end_ns.min(window.end_ns);
            if end_ns > now || end_ns >= window.end_ns {
                return;
            }
            self.tally.end_interval(end_ns, gauges(end_ns));
        }
    }
}
