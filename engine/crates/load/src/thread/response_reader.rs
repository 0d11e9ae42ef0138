//! Responses: received bytes complete the requests of a connection.

use std::fmt;

use weir_http::{HttpError, Progress, Protocol, Response, is_bodiless};
use weir_net::Slot;
use weir_record::ErrorKind;

use super::result::gauges;
use crate::connections::{Connections, Phase};
use crate::in_flight::{InFlight, RequestId};
use crate::recorder::Recorder;
use crate::window::Window;
use crate::workload::{UserId, Workload};

/// What received bytes mean for their connection.
pub(super) enum Reception {
    /// More bytes must come.
    More,
    /// A request was completed, and the connection takes others.
    Free,
    /// A request was completed, and the connection takes no others.
    Closing {
        /// The server has promised to close it.
        by_server: bool,
    },
    /// The requests of the connection fail, and the connection with them.
    Broken(ErrorKind, Detail),
    /// No request had been sent.
    Unrequested,
    /// The response is the first failure, which ends the load.
    FirstFailure,
}

/// Why the requests of a connection fail. It becomes text when it is reported.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detail {
    Http(HttpError),
    /// So many bytes came after the last response.
    Surplus(usize),
    Closed(&'static str),
}

impl fmt::Display for Detail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(error) => error.fmt(formatter),
            Self::Surplus(bytes) => {
                write!(formatter, "{bytes} bytes beyond the end of the last response")
            }
            Self::Closed(text) => formatter.write_str(text),
        }
    }
}

/// Returns whether bytes are empty lines.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

/// The parts of a thread that a response passes through. They are borrowed apart from the driver, which lends the
/// bytes.
pub(super) struct ResponseReader<'a, P: Protocol> {
    pub(super) protocol: &'a mut P,
    pub(super) connections: &'a mut Connections<P::State>,
    pub(super) in_flight: &'a mut InFlight,
    pub(super) workload: &'a mut Workload,
    pub(super) recorder: &'a mut Recorder,
    pub(super) window: &'a mut Window,
}

impl<P: Protocol> ResponseReader<'_, P> {
    /// Takes received bytes with the kernel's stamp. Several responses may come together.
    #[inline(always)]
    pub(super) fn receive(&mut self, slot: Slot, bytes: &[u8], stamp_unix_ns: Option<u64>, now: u64) -> Reception {
        self.recorder.tally.counts.bytes_received += bytes.len() as u64;
        let user = UserId::on(slot);
        let mut rest = bytes;
        let mut reception = Reception::More;
        loop {
            let Some(id) = self.in_flight.first_of(slot) else {
                return match is_blank(rest) {
                    true => Reception::More,
                    false => Reception::Unrequested,
                };
            };
            let request = self.in_flight.get(id);
            let arrival_ns = self.recorder.arrival_ns(stamp_unix_ns, request.written_ns, now);
            if request.first_byte_ns == 0 {
                request.first_byte_ns = arrival_ns.unwrap_or(now);
                self.workload.begin_response(user);
            }
            let state = &mut self.connections.get(slot).state;
            let progress = self.workload.receive(self.protocol, state, user, request, rest);
            let (response, used) = match progress {
                Ok(Progress::Complete { response, used }) => (response, used),
                Ok(Progress::More) => {
                    request.received_bytes += rest.len() as u64;
                    return reception;
                }
                Err(error) => {
                    request.received_bytes += rest.len() as u64;
                    let state = &self.connections.get(slot).state;
                    self.recorder.keep_excerpt(P::partial_head(state), rest);
                    return Reception::Broken(ErrorKind::Protocol, Detail::Http(error));
                }
            };
            request.received_bytes += used as u64;
            rest = &rest[used..];
            if !rest.is_empty() && self.in_flight.count(slot) == 1 {
                return self.complete_before(slot, id, response, arrival_ns, now, rest);
            }
            reception = self.complete(slot, id, response, arrival_ns, now);
            if rest.is_empty() || !matches!(reception, Reception::Free) {
                return reception;
            }
        }
    }

    /// The last request of a connection has its response, and more bytes came. Empty lines do no harm (RFC 9112,
    /// section 9.2). After a response that has no body, other bytes are a body that the server sent in spite of section
    /// 6.3: the response is whole, but the connection cannot be used any more.
    #[cold]
    fn complete_before(
        &mut self,
        slot: Slot,
        id: RequestId,
        response: Response,
        arrival_ns: Option<u64>,
        now: u64,
        surplus: &[u8],
    ) -> Reception {
        let request = self.in_flight.get(id);
        request.received_bytes += surplus.len() as u64;
        let is_unusable = !is_blank(surplus);
        if is_unusable && !is_bodiless(response.status, request.is_head) {
            return Reception::Broken(ErrorKind::Protocol, Detail::Surplus(surplus.len()));
        }
        match self.complete(slot, id, response, arrival_ns, now) {
            Reception::Free if is_unusable => {
                let detail = "bytes after a response that has no body; closed the connection";
                let tally = &mut self.recorder.tally;
                tally.event(ErrorKind::Protocol, now, || detail.to_owned());
                Reception::Closing { by_server: false }
            }
            reception => reception,
        }
    }

    /// The server sends no more: this is the regular end of some responses.
    pub(super) fn end_of_stream(&mut self, slot: Slot, now: u64) -> Reception {
        debug_assert_eq!(self.connections.phase(slot), Phase::Busy);
        let state = &mut self.connections.get(slot).state;
        let has_begun = P::has_begun(state);
        self.recorder.keep_excerpt(P::partial_head(state), &[]);
        match self.protocol.end_of_stream(state) {
            // The end of a stream has no stamp.
            Ok(Some(response)) => {
                let Some(id) = self.in_flight.first_of(slot) else {
                    return Reception::Unrequested;
                };
                match self.complete(slot, id, response, None, now) {
                    Reception::FirstFailure => Reception::FirstFailure,
                    _ => Reception::Closing { by_server: true },
                }
            }
            Ok(None) => {
                let detail = match has_begun {
                    true => "connection closed in the middle of a response",
                    false => "connection closed without a response",
                };
                Reception::Broken(ErrorKind::Reset, Detail::Closed(detail))
            }
            Err(error) => Reception::Broken(ErrorKind::Protocol, Detail::Http(error)),
        }
    }

    /// Completes the oldest request of the connection. Its user is free now, and not when the kernel received the
    /// response: the time between the two belongs to no request.
    #[inline(always)]
    fn complete(
        &mut self,
        slot: Slot,
        id: RequestId,
        response: Response,
        arrival_ns: Option<u64>,
        now: u64,
    ) -> Reception {
        let request = self.in_flight.remove_first(slot, id);
        request.last_byte_ns = arrival_ns.unwrap_or(now);
        request.is_stamped = arrival_ns.is_some();
        // A first byte without a stamp came no later than the last byte, whose stamp may be older than the clock's
        // reading.
        request.first_byte_ns = request.first_byte_ns.min(request.last_byte_ns);
        let connection = self.connections.get(slot);
        connection.has_worked();
        let connect_ns = std::mem::take(&mut connection.connect_ns);
        let user = UserId::on(slot);
        let checked = self.workload.requests.complete(user, request, response);
        let protocol = &*self.protocol;
        let server = || {
            let server = protocol.last_field("server").unwrap_or_default();
            String::from_utf8_lossy(server).into_owned()
        };
        self.recorder.record_response(slot, request, response, connect_ns, checked.is_ok(), server);
        if let Err(wrong) = checked {
            self.workload.user_failed(user);
            let requests = &self.workload.requests;
            let detail = || requests.describe(wrong);
            if self.recorder.fail(ErrorKind::Check, now, self.window, detail) {
                return Reception::FirstFailure;
            }
        }
        if response.keep_alive && self.connections.keep_alive {
            Reception::Free
        } else {
            Reception::Closing { by_server: !response.keep_alive }
        }
    }

    /// Ends the intervals that are over.
    #[cold]
    pub(super) fn cross_boundary(&mut self, now: u64) {
        let gauges = gauges(self.connections, self.in_flight, self.workload);
        self.recorder.cross_boundary(self.window, now, gauges);
    }
}
