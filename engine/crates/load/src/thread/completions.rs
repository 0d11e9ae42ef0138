//! What comes of what was asked of the driver: connections, bytes, ends and failures.

use weir_net::{Completion, Driver, Errno, Slot};
use weir_record::ErrorKind;
use weir_wire::{Answer, Progress, ResponseState};

use super::{ConnectFailure, LoadThread};
use crate::clock::now_ns;
use crate::connection::Phase;
use crate::error::describe;
use crate::tally::Readings;

impl<D: Driver> LoadThread<D> {
    /// Handles all completions of the last wait. Gives whether there was one.
    #[inline]
    pub(super) fn reap(&mut self) -> bool {
        let mut any = false;
        while let Some(completion) = self.driver.next() {
            any = true;
            let now = now_ns();
            if now >= self.boundary_ns {
                if now >= self.end_ns {
                    // What completes after the end was not answered in time. The rest of the completions is not looked at.
                    return any;
                }
                self.cross_boundary(now);
            }
            match completion {
                Completion::Received(slot) => self.received(slot, now),
                Completion::Connected(slot) => self.connected(slot, now),
                Completion::Ended(slot) => self.ended(slot, now),
                Completion::Failed(slot, errno) => self.failed(slot, errno, now),
            }
            // Many completions take longer than the gap between two arrivals: these do not wait for the rest.
            if self.is_running && now >= self.start_ns.saturating_add(self.demand.next_ns()) {
                self.act_by_the_clock(now);
            }
        }
        any
    }

    #[inline]
    fn received(&mut self, slot: Slot, now: u64) {
        let connection = &mut self.connections[slot as usize];
        let bytes = self.driver.received();
        self.tally.counts.bytes_received += bytes.len() as u64;
        match connection.phase {
            Phase::Waiting => {}
            Phase::Pipelined => return self.received_in_turn(slot, now),
            _ => return self.unasked(slot, now),
        }
        let arrival_ns = self.kernel_clock.as_ref().and_then(|clock| {
            let stamp = self.driver.received_at_unix_ns();
            clock.arrival_ns(stamp, connection.since_ns, now)
        });
        if connection.first_byte_ns == 0 {
            connection.first_byte_ns = arrival_ns.unwrap_or(now);
        }
        if let Some(log) = &mut self.log {
            log.received(slot, bytes.len());
        }
        let state = &mut connection.response;
        let fed = self.requests.feed(slot, &mut self.reader, state, bytes);
        match fed {
            Ok(Progress::More) => {}
            Ok(Progress::Complete { answer, used }) => {
                let surplus = bytes.len() - used;
                if surplus > 0 {
                    let detail = || format!("{surplus} bytes beyond the end of the answer");
                    return self.request_failed(slot, ErrorKind::Protocol, now, detail);
                }
                self.answered(slot, answer, arrival_ns, now);
            }
            Err(error) => self.request_failed(slot, ErrorKind::Protocol, now, || error.to_string()),
        }
    }

    /// A request has its whole answer, of which it may be known when the kernel received it. Its user is free now, and not then: the
    /// time between the two is nobody's.
    #[inline]
    fn answered(&mut self, slot: Slot, answer: Answer, arrival_ns: Option<u64>, now: u64) {
        let last_byte_ns = arrival_ns.unwrap_or(now);
        self.waiting.remove(&mut self.connections, slot);
        let connection = &mut self.connections[slot as usize];
        connection.has_answered = true;
        connection.failures = 0;
        let readings = Readings {
            intended_ns: connection.intended_ns,
            written_ns: connection.since_ns,
            // One that was not stamped came no later than the last one, whose stamp may be older than the look at the clock.
            first_byte_ns: connection.first_byte_ns.min(last_byte_ns),
            last_byte_ns,
            is_stamped: arrival_ns.is_some(),
            connection: slot,
        };
        let is_right =
            self.requests
                .complete(slot, answer, readings, &self.reader, &mut self.tally);
        if let Some(log) = &mut self.log {
            log.answered(slot, self.requests.origin(slot), readings, answer, is_right);
        }
        if !is_right {
            self.user_failed(slot);
            if self.until_failure {
                self.end_at_failure(ErrorKind::Check, now);
            }
        }
        let has_unsent = self.driver.has_unsent(slot);
        if answer.keep_alive && self.keep_alive && !has_unsent {
            return self.go_on(slot, now);
        }
        if answer.keep_alive || has_unsent {
            self.driver.close(slot);
        } else {
            self.driver.close_after_peer(slot);
        }
        self.reconnect(slot, now);
    }

    fn connected(&mut self, slot: Slot, now: u64) {
        self.connecting.remove(&mut self.connections, slot);
        let connection = &mut self.connections[slot as usize];
        connection.has_answered = false;
        connection.response = ResponseState::new();
        self.opened.connected += 1;
        if let Some(log) = &mut self.log {
            log.connected(slot, now.saturating_sub(connection.since_ns));
        }
        let clocks = &mut self.tally.clocks;
        let connected_ns = self.driver.handshake_began_ns().unwrap_or(now);
        clocks
            .connect_time
            .saturating_record(connected_ns.saturating_sub(connection.since_ns));
        if let Some(tls_handshake) = &mut clocks.tls_handshake {
            tls_handshake.saturating_record(now.saturating_sub(connected_ns));
        }
        self.use_new_connection(slot, now);
    }

    /// The server has closed its side.
    fn ended(&mut self, slot: Slot, now: u64) {
        let connection = &mut self.connections[slot as usize];
        match connection.phase {
            Phase::Waiting => {}
            Phase::Pipelined => return self.ended_in_turn(slot, now),
            _ => return self.idle_closed(slot, now),
        }
        let begun = !connection.response.is_untouched();
        match connection.response.end_of_stream() {
            // The end of a stream is not stamped.
            Ok(Some(answer)) => self.answered(slot, answer, None, now),
            Ok(None) => self.request_failed(slot, ErrorKind::Reset, now, || match begun {
                true => "connection closed in the middle of an answer".to_owned(),
                false => "connection closed without an answer".to_owned(),
            }),
            Err(error) => self.request_failed(slot, ErrorKind::Protocol, now, || error.to_string()),
        }
    }

    #[cold]
    fn failed(&mut self, slot: Slot, errno: Errno, now: u64) {
        let text = self.driver.failure_text().map(str::to_owned);
        let connection = &self.connections[slot as usize];
        match connection.phase {
            Phase::Connecting => self.connect_failed(slot, ConnectFailure { errno, text }, now),
            Phase::Waiting => {
                let kind = self.kind_of_failure(slot, errno);
                self.request_failed(slot, kind, now, || text.unwrap_or_else(|| describe(errno)));
            }
            Phase::Pipelined => self.failed_in_turn(slot, errno, text, now),
            Phase::Idle | Phase::Thinking | Phase::Closed => self.idle_closed(slot, now),
        }
    }

    /// How the requests fail on a connection that broke.
    pub(super) fn kind_of_failure(&self, slot: Slot, errno: Errno) -> ErrorKind {
        // In TLS 1.3 the server refuses a client's certificate when the client thinks that it is connected.
        if errno == Errno::PROTO && !self.connections[slot as usize].has_answered {
            ErrorKind::Connect
        } else {
            ErrorKind::Reset
        }
    }

    /// Bytes came that nobody asked for, such as 408 on an idle connection. No request is lost by them.
    #[cold]
    fn unasked(&mut self, slot: Slot, now: u64) {
        self.tally.event(ErrorKind::Protocol, now, || {
            "bytes on an idle connection; closed it".to_owned()
        });
        self.idle_closed(slot, now);
    }
}
