//! Connections that are not there yet, or not any more, and requests that fail with them.

use std::cmp::Reverse;

use weir_net::{Driver, Errno, Slot};
use weir_record::{Ending, ErrorKind, FirstFailure};
use weir_wire::ResponseState;

use super::{LoadThread, Next};
use crate::connection::Phase;
use crate::demand::Source;
use crate::error::describe_connect;
use crate::request_log::Moments;
use crate::thread::ConnectFailure;

/// The pause after the first failure to connect; it doubles with each further one.
const FIRST_PAUSE_NS: u64 = 10_000_000;
/// The longest pause.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;

impl<D: Driver> LoadThread<D> {
    /// Starts to make a connection.
    pub(super) fn connect(&mut self, slot: Slot, now: u64) {
        let connection = &mut self.connections[slot as usize];
        connection.phase = Phase::Connecting;
        connection.since_ns = now;
        connection.response = ResponseState::new();
        self.connecting.push(&mut self.connections, slot);
        let index = self.shard.index(u64::from(slot)) % self.endpoints.len() as u64;
        self.driver.connect(slot, &self.endpoints[index as usize]);
    }

    /// Makes a connection for a user who is free, or for the arrivals to come.
    pub(super) fn reconnect(&mut self, slot: Slot, now: u64) {
        if !self.is_running {
            self.connections[slot as usize].phase = Phase::Closed;
            return;
        }
        match self.next_of(slot, now) {
            Next::Write(intended_ns) => {
                self.let_request_wait(slot, intended_ns);
                self.connect(slot, now);
            }
            Next::Free if self.keep_alive => self.connect(slot, now),
            Next::Free => self.serve_queue(slot, now),
            // Who thinks has the connection made again when it asks again.
            Next::Wait => self.connections[slot as usize].phase = Phase::Closed,
            Next::Leave => {
                self.connections[slot as usize].phase = Phase::Closed;
                self.user_left(slot);
            }
        }
    }

    /// The user of this connection has a request that is due and waits for the connection.
    pub(super) fn let_request_wait(&mut self, slot: Slot, intended_ns: u64) {
        let connection = &mut self.connections[slot as usize];
        connection.has_request = true;
        connection.intended_ns = intended_ns;
        self.demand.waiting += 1;
    }

    /// The request of a connection's user has failed: it may be one who leaves then.
    #[cold]
    pub(super) fn user_failed(&mut self, slot: Slot) {
        let leaves = self
            .requests
            .script()
            .is_some_and(|script| script.leaves_on_failure);
        if let Some(users) = self.demand.users.as_mut().filter(|_| leaves) {
            users.give_up(slot);
        }
    }

    /// Counts a failed request. It may be the one that ends the load.
    #[cold]
    pub(super) fn fail(&mut self, kind: ErrorKind, now: u64, detail: impl FnOnce() -> String) {
        self.tally.fail(kind, now, detail);
        if self.until_failure {
            self.end_at_failure(kind, now);
        }
    }

    /// The first failure, at which the load was to end: nothing that comes later is this load's.
    #[cold]
    pub(super) fn end_at_failure(&mut self, kind: ErrorKind, now: u64) {
        if self.first_failure.is_none() {
            self.first_failure = Some(FirstFailure {
                at_ns: now - self.start_ns,
                kind,
            });
            self.demand.end();
            self.end_ns = now;
            self.boundary_ns = now;
        }
    }

    /// A request that was written fails, and its connection with it.
    #[cold]
    pub(super) fn request_failed(
        &mut self,
        slot: Slot,
        kind: ErrorKind,
        now: u64,
        detail: impl FnOnce() -> String,
    ) {
        self.waiting.remove(&mut self.connections, slot);
        if let Some(log) = &mut self.log {
            let moments = Moments::of(&self.connections[slot as usize]);
            let origin = self.requests.origin(slot);
            log.ended(slot, origin, moments, None, Ending::Failed(kind));
        }
        self.requests.lost(slot);
        self.user_failed(slot);
        self.fail(kind, now, detail);
        self.driver.close(slot);
        self.reconnect(slot, now);
    }

    /// A connection could not be made: the request that waited for it fails, and after a pause it is tried again.
    #[cold]
    pub(super) fn connect_failed(&mut self, slot: Slot, failure: ConnectFailure, now: u64) {
        self.connecting.remove(&mut self.connections, slot);
        self.driver.close(slot);
        self.connections[slot as usize].phase = Phase::Closed;
        if !self.is_running {
            self.opened.first_failure.get_or_insert(failure);
            return;
        }
        self.ports_used_up |= failure.errno == Errno::ADDRNOTAVAIL;
        let connection = &mut self.connections[slot as usize];
        let tried_ns = now.saturating_sub(connection.since_ns);
        let own_ns = connection.intended_ns;
        let had_request = std::mem::take(&mut connection.has_request);
        self.demand.waiting -= u64::from(had_request);
        let intended_ns = if had_request {
            Some(own_ns)
        } else {
            let due_ns = self.demand.take_from_queue();
            due_ns.map(|due_ns| self.start_ns + due_ns)
        };
        if let Some(intended_ns) = intended_ns {
            if let Some(log) = &mut self.log {
                log.connected(slot, tried_ns);
                let origin = self.requests.next_origin(slot);
                let kind = Ending::Failed(ErrorKind::Connect);
                log.ended(slot, origin, Moments::due(intended_ns), None, kind);
            }
            self.requests.never_sent(slot);
            self.user_failed(slot);
            self.fail(ErrorKind::Connect, now, || describe_connect(&failure));
        } else {
            self.tally
                .event(ErrorKind::Connect, now, || describe_connect(&failure));
        }
        self.retry_later(slot, now);
    }

    /// An idle connection is gone, which is the server's right and no error.
    #[cold]
    pub(super) fn idle_closed(&mut self, slot: Slot, now: u64) {
        self.driver.close(slot);
        let phase = std::mem::replace(&mut self.connections[slot as usize].phase, Phase::Closed);
        if phase == Phase::Idle {
            self.idle.remove(&mut self.connections, slot);
        }
        // Who thinks has the connection made again when it asks again.
        if !self.is_running || phase == Phase::Thinking {
            return;
        }
        // A server that closes without ever having answered would be asked again at once and for ever.
        if self.connections[slot as usize].has_answered
            || matches!(self.demand.source, Source::Closed)
        {
            self.reconnect(slot, now);
        } else {
            self.retry_later(slot, now);
        }
    }

    pub(super) fn describe_timeout(&self) -> String {
        format!("no whole answer within {} s", self.timeout_ns as f64 / 1e9)
    }

    fn retry_later(&mut self, slot: Slot, now: u64) {
        let connection = &mut self.connections[slot as usize];
        let pause_ns = (FIRST_PAUSE_NS << connection.failures.min(7)).min(LONGEST_PAUSE_NS);
        connection.failures = connection.failures.saturating_add(1);
        self.retries.push(Reverse((now + pause_ns, slot)));
    }

    /// Fails what has run out of time, and tries again what has paused long enough. Gives whether there was something.
    #[inline]
    pub(super) fn expire(&mut self, now: u64) -> bool {
        let mut any = false;
        while let Some(slot) = self.waiting.first() {
            if now < self.connections[slot as usize].since_ns + self.timeout_ns
                || self.first_failure.is_some()
            {
                break;
            }
            let detail = self.describe_timeout();
            self.request_failed(slot, ErrorKind::Timeout, now, || detail);
            any = true;
        }
        any |= self.pipelines.is_some() && self.expire_pipelines(now);
        while let Some(slot) = self.connecting.first() {
            if now < self.connections[slot as usize].since_ns + self.timeout_ns
                || self.first_failure.is_some()
            {
                break;
            }
            let failure = ConnectFailure {
                errno: Errno::TIMEDOUT,
                text: None,
            };
            self.connect_failed(slot, failure, now);
            any = true;
        }
        while let Some(&Reverse((at_ns, slot))) = self.retries.peek() {
            if now < at_ns {
                break;
            }
            self.retries.pop();
            self.reconnect(slot, now);
            any = true;
        }
        any
    }
}
