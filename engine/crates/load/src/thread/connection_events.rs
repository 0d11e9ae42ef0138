//! Connections that are made, end, fail and time out. A failure records, closes and frees: the loop gives the freed
//! user its next request.

use weir_http::Protocol;
use weir_net::{Driver, Errno, Slot};
use weir_record::{ErrorKind, RequestOutcome};

use super::LoadThread;
use crate::connections::Phase;
use crate::error::{describe, describe_connect};
use crate::in_flight::InFlightRequest;
use crate::recorder::ConnectFailure;
use crate::workload::UserId;

/// Why requests behind a response have none.
const CLOSED: &str = "connection closed by the server behind a response, with requests unanswered";

/// Returns whether an error means that the server has closed the connection.
fn is_lost(errno: Errno) -> bool {
    matches!(errno, Errno::CONNRESET | Errno::PIPE)
}

impl<D: Driver, P: Protocol> LoadThread<D, P> {
    pub(super) fn connect(&mut self, slot: Slot, now: u64) {
        let endpoint = self.connections.begin(slot, now);
        self.driver.connect(slot, endpoint);
    }

    pub(super) fn connected(&mut self, slot: Slot, handshake_began_ns: Option<u64>, now: u64) {
        let began_ns = self.connections.open(slot, now);
        self.recorder.connected(began_ns, handshake_began_ns, now);
        if !self.window.is_running {
            return self.connections.let_idle(slot);
        }
        if let Some(id) = self.in_flight.first_of(slot) {
            // It was written on a connection that is lost.
            let request = self.in_flight.get(id);
            let bytes = self.workload.requests.repeat(UserId::on(slot), request.part, &mut self.driver);
            self.recorder.retried(bytes);
            self.connections.get(slot).phase = Phase::Busy;
            return;
        }
        if let Some(intended_ns) = self.connections.take_parked(slot) {
            self.write(slot, intended_ns, now);
            self.flush(slot);
            if self.workload.is_open() || !self.connections.keep_alive {
                return;
            }
        } else if !self.workload.is_open() {
            return;
        }
        if self.in_flight.has_room(slot) && self.connections.keep_alive {
            self.go_on(slot, now);
        }
    }

    /// Closes a connection after its last response.
    pub(super) fn close_after(&mut self, slot: Slot, by_server: bool, now: u64) {
        if self.in_flight.count(slot) > 0 {
            return self.fail_connection(slot, ErrorKind::Reset, now, CLOSED);
        }
        if by_server && !self.driver.has_unsent(slot) {
            self.driver.close_after_peer(slot);
        } else {
            self.driver.close(slot);
        }
        self.connections.close(slot);
        self.go_on(slot, now);
    }

    /// The server sends no more.
    pub(super) fn ended(&mut self, slot: Slot, now: u64) {
        if self.connections.phase(slot) != Phase::Busy {
            return self.idle_closed(slot, now);
        }
        if self.retry(slot, now) {
            return;
        }
        let reception = self.split().1.end_of_stream(slot, now);
        self.received(slot, reception, now);
    }

    #[cold]
    pub(super) fn failed(&mut self, slot: Slot, errno: Errno, text: Option<String>, now: u64) {
        match self.connections.phase(slot) {
            Phase::Connecting => self.connect_failed(slot, ConnectFailure { errno, text }, now),
            Phase::Busy if is_lost(errno) && self.retry(slot, now) => {}
            Phase::Busy => {
                // In TLS 1.3 the server refuses a client's certificate when the client thinks that it is connected.
                let is_refusal = errno == Errno::PROTO && !self.connections.get(slot).has_responded;
                let kind = match is_refusal {
                    true => ErrorKind::Connect,
                    false => ErrorKind::Reset,
                };
                let detail = text.unwrap_or_else(|| describe(errno));
                self.fail_connection(slot, kind, now, &detail);
            }
            Phase::Idle | Phase::Away | Phase::Closed => self.idle_closed(slot, now),
        }
    }

    /// Makes a new connection for the request of a lost one, if the server may not have seen the request (RFC 9112,
    /// section 9.3.1). The conditions: the connection has carried a response, no byte of a response to this request has
    /// come, and its repetition has the same effect. The request stays in flight with all its moments until it is sent
    /// again. The new connection has carried no response, so this happens once at most. Returns whether it happens.
    #[cold]
    fn retry(&mut self, slot: Slot, now: u64) -> bool {
        let Some(id) = self.in_flight.first_of(slot).filter(|_| self.retries) else {
            return false;
        };
        let request = self.in_flight.get(id);
        let is_unseen = request.first_byte_ns == 0 && self.connections.get(slot).has_responded;
        if !is_unseen || !self.workload.requests.can_repeat(request.part) {
            return false;
        }
        self.driver.close(slot);
        self.connections.close(slot);
        self.connect(slot, now);
        true
    }

    /// Fails all requests of a connection and closes it, because the following bytes cannot be assigned to requests.
    #[cold]
    pub(super) fn fail_connection(&mut self, slot: Slot, kind: ErrorKind, now: u64, detail: &str) {
        if self.fail_requests(slot, kind, now, detail) {
            return self.end_load(now);
        }
        self.driver.close(slot);
        self.connections.close(slot);
        self.connections.free(slot);
    }

    /// Fails all requests of a connection. If the first failure ends the load, the other requests count as unanswered.
    /// Returns whether it does.
    fn fail_requests(&mut self, slot: Slot, kind: ErrorKind, now: u64, detail: &str) -> bool {
        let user = UserId::on(slot);
        while let Some(request) = self.in_flight.pop(slot) {
            let connect_ns = std::mem::take(&mut self.connections.get(slot).connect_ns);
            self.recorder.log_failure(slot, request, RequestOutcome::Failed(kind), connect_ns);
            self.workload.requests.lose(user, request.part);
            self.workload.user_failed(user);
            let detail = || detail.to_owned();
            if self.recorder.fail(kind, now, &self.window, detail) {
                return true;
            }
        }
        false
    }

    /// A connection could not be made. Its request fails, or else the oldest arrival. After a pause the thread tries
    /// again.
    #[cold]
    pub(super) fn connect_failed(&mut self, slot: Slot, failure: ConnectFailure, now: u64) {
        self.driver.close(slot);
        self.connections.close(slot);
        if !self.window.is_running {
            self.recorder.opened.first_failure.get_or_insert(failure);
            return;
        }
        self.recorder.ports_used_up |= failure.errno == Errno::ADDRNOTAVAIL;
        if self.in_flight.count(slot) > 0 {
            // It was to be sent again.
            let detail = describe_connect(&failure);
            if self.fail_requests(slot, ErrorKind::Connect, now, &detail) {
                return self.end_load(now);
            }
            return self.connections.retry_later(slot, now);
        }
        let user = UserId::on(slot);
        let parked = self.connections.take_parked(slot);
        match parked.or_else(|| self.workload.drop_queued()) {
            None => self.recorder.connect_failed(&failure, now),
            Some(intended_ns) => {
                let part = self.workload.requests.drop_unsent(user);
                let request = InFlightRequest::unsent(intended_ns, part);
                let outcome = RequestOutcome::Failed(ErrorKind::Connect);
                let connect_ns = self.connections.connecting_ns(slot, now);
                self.recorder.log_failure(slot, &request, outcome, connect_ns);
                self.workload.user_failed(user);
                let detail = || describe_connect(&failure);
                if self.recorder.fail(ErrorKind::Connect, now, &self.window, detail) {
                    self.end_load(now);
                }
            }
        }
        self.connections.retry_later(slot, now);
    }

    /// A connection without requests was closed, which a server may do: no error.
    #[cold]
    pub(super) fn idle_closed(&mut self, slot: Slot, now: u64) {
        self.driver.close(slot);
        let phase = self.connections.close(slot);
        // A user who is away has the connection made again when it sends again.
        if !self.window.is_running || phase == Phase::Away {
            return;
        }
        // A server that closes without a response would be connected to again and again without a pause.
        if self.connections.get(slot).has_responded || !self.workload.is_open() {
            self.connections.free(slot);
        } else {
            self.connections.retry_later(slot, now);
        }
    }

    /// Bytes came without a request, for example 408 on an idle connection. No request is lost.
    #[cold]
    pub(super) fn unrequested(&mut self, slot: Slot, now: u64) {
        self.recorder.tally.event(ErrorKind::Protocol, now, || "bytes on an idle connection; closed it".to_owned());
        self.idle_closed(slot, now);
    }

    /// The first failure ends the load: nothing later belongs to it.
    #[cold]
    pub(super) fn end_load(&mut self, now: u64) {
        self.workload.demand.end();
        self.window.end(now);
    }

    /// Fails requests and connection attempts that have timed out, and connects again after pauses. Returns whether
    /// there were any.
    #[inline]
    pub(super) fn expire(&mut self, now: u64) -> bool {
        let mut any = false;
        while let Some(slot) = self.in_flight.timed_out(now) {
            if self.recorder.first_failure.is_some() {
                return any;
            }
            let detail = format!("no whole response within {} s", self.in_flight.timeout_s());
            self.fail_connection(slot, ErrorKind::Timeout, now, &detail);
            any = true;
        }
        while let Some(slot) = self.connections.next_timed_out(now) {
            if self.recorder.first_failure.is_some() {
                return any;
            }
            let failure = ConnectFailure { errno: Errno::TIMEDOUT, text: None };
            self.connect_failed(slot, failure, now);
            any = true;
        }
        while let Some(slot) = self.connections.next_retry(now) {
            self.connections.free(slot);
            any = true;
        }
        while let Some(slot) = self.connections.next_freed() {
            if self.window.is_running {
                self.go_on(slot, now);
            }
        }
        any
    }
}
