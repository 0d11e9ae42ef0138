//! TLS between a back end and the load: a driver over a driver.
//!
//! The one below moves bytes, `weir_tls` says what they mean, and the load above sees connections that are made when their
//! handshake is over, and plaintext. Nothing of it is there in a load without TLS. Memory: a session for each connection, and two
//! buffers for all of them.

use std::io;

use weir_net::{Completion, Driver, Endpoint, Errno, Payload, Slot, Wait};
use weir_schedule::Shard;
use weir_tls::{Client, Session};

use crate::clock::now_ns;
use crate::thread::Parts;

/// What the server's end of a connection is when it says nothing of it. RFC 8446, section 6.1: without close_notify it cannot be
/// told from an attacker's.
const TRUNCATED: &str = "TLS: connection closed without close_notify";

/// A driver of connections that are encrypted.
pub(crate) struct Secured<D> {
    below: D,
    /// One for each target; connections take them in turn.
    clients: Vec<Client>,
    shard: Shard,
    places: Vec<Place>,
    payloads: Vec<Vec<u8>>,
    plaintext: Vec<u8>,
    outgoing: Vec<u8>,
    /// What follows from bytes that were already taken, to be given by `next` first.
    pending: std::collections::VecDeque<Completion>,
    failure: Option<String>,
    handshake_began_ns: u64,
}

#[derive(Default)]
struct Place {
    session: Option<Box<Session>>,
    /// When its connection was made.
    connected_ns: u64,
}

impl<D: Driver> Parts<D> {
    /// The same over TLS.
    pub(crate) fn secured(mut self, clients: Vec<Client>) -> Parts<Secured<D>> {
        self.tally.clocks.tls_handshake = Some(weir_record::new_histogram());
        Parts {
            driver: Secured::over(self.driver, clients, self.shard, self.connections),
            requests: self.requests,
            urls: self.urls,
            endpoints: self.endpoints,
            keep_alive: self.keep_alive,
            pipeline: self.pipeline,
            connections: self.connections,
            shard: self.shard,
            until_failure: self.until_failure,
            kernel_clock: self.kernel_clock,
            demand: self.demand,
            tally: self.tally,
            wait: self.wait,
            timeout_ns: self.timeout_ns,
            to_head_request: self.to_head_request,
            scenario: self.scenario,
            log: self.log,
        }
    }
}

impl<D: Driver> Secured<D> {
    fn over(below: D, clients: Vec<Client>, shard: Shard, capacity: usize) -> Self {
        Self {
            below,
            clients,
            shard,
            places: (0..capacity).map(|_| Place::default()).collect(),
            payloads: Vec::new(),
            plaintext: Vec::new(),
            outgoing: Vec::new(),
            pending: std::collections::VecDeque::new(),
            failure: None,
            handshake_began_ns: 0,
        }
    }

    fn connected(&mut self, slot: Slot) -> Option<Completion> {
        let index = self.shard.index(u64::from(slot)) % self.clients.len() as u64;
        match self.clients[index as usize].connect() {
            Ok(session) => {
                self.places[slot as usize] = Place {
                    session: Some(Box::new(session)),
                    connected_ns: now_ns(),
                };
                self.flush(slot);
                None
            }
            Err(error) => Some(self.broken(slot, error.to_string())),
        }
    }

    fn received_below(&mut self, slot: Slot) -> Option<Completion> {
        self.plaintext.clear();
        let place = &mut self.places[slot as usize];
        let session = place.session.as_mut()?;
        let fed = session.feed(self.below.received(), &mut self.plaintext);
        let connected_ns = place.connected_ns;
        self.flush(slot);
        let fed = match fed {
            Ok(fed) => fed,
            Err(error) => return Some(self.broken(slot, error.to_string())),
        };
        self.handshake_began_ns = connected_ns;
        let completions = [
            fed.is_connected.then_some(Completion::Connected(slot)),
            (!self.plaintext.is_empty()).then_some(Completion::Received(slot)),
            fed.is_ended.then_some(Completion::Ended(slot)),
        ]
        .into_iter()
        .flatten();
        self.pending.extend(completions);
        self.pending.pop_front()
    }

    fn ended_below(&mut self, slot: Slot) -> Completion {
        let is_handshaking = self.places[slot as usize]
            .session
            .as_ref()
            .is_none_or(|session| session.is_handshaking());
        if is_handshaking {
            let text = "TLS: the server closed the connection during the handshake";
            return self.broken(slot, text.to_owned());
        }
        self.close(slot);
        self.failure = Some(TRUNCATED.to_owned());
        Completion::Failed(slot, Errno::CONNRESET)
    }

    /// Sends what the session has for the server.
    fn flush(&mut self, slot: Slot) {
        let Some(session) = &mut self.places[slot as usize].session else {
            return;
        };
        self.outgoing.clear();
        session.take_outgoing(&mut self.outgoing);
        if !self.outgoing.is_empty() {
            self.below.send_bytes(slot, &self.outgoing);
        }
    }

    /// Drops what is known of a connection that is given up.
    fn forget(&mut self, slot: Slot) {
        self.places[slot as usize].session = None;
        let is_of_slot = |completion: &Completion| {
            matches!(*completion, Completion::Connected(of) | Completion::Received(of) | Completion::Ended(of)
                | Completion::Failed(of, _) if of == slot)
        };
        self.pending.retain(|pending| !is_of_slot(pending));
    }

    fn broken(&mut self, slot: Slot, text: String) -> Completion {
        self.close(slot);
        self.failure = Some(text);
        Completion::Failed(slot, Errno::PROTO)
    }
}

impl<D: Driver> Driver for Secured<D> {
    const NAME: &'static str = D::NAME;
    const GATHERS_SENDS: bool = D::GATHERS_SENDS;

    fn new(_capacity: usize) -> io::Result<Self> {
        Err(io::Error::other("a secured driver is made over another"))
    }

    fn stamp_arrivals(&mut self) {
        self.below.stamp_arrivals();
    }

    fn register(&mut self, bytes: Vec<u8>) -> Payload {
        self.payloads.push(bytes);
        // Numbers are given in order, and the one below need not know these bytes.
        self.below.register(Vec::new())
    }

    fn connect(&mut self, slot: Slot, endpoint: &Endpoint) {
        self.below.connect(slot, endpoint);
    }

    fn send(&mut self, slot: Slot, payload: Payload) {
        if let Some(session) = &mut self.places[slot as usize].session {
            session.write(&self.payloads[payload.index()]);
            self.flush(slot);
        }
    }

    fn send_once(&mut self, slot: Slot, bytes: &[u8]) {
        self.send_bytes(slot, bytes);
    }

    fn send_bytes(&mut self, slot: Slot, bytes: &[u8]) {
        if let Some(session) = &mut self.places[slot as usize].session {
            session.write(bytes);
            self.flush(slot);
        }
    }

    fn has_unsent(&self, slot: Slot) -> bool {
        self.below.has_unsent(slot)
    }

    fn close(&mut self, slot: Slot) {
        self.below.close(slot);
        self.forget(slot);
    }

    fn close_after_peer(&mut self, slot: Slot) {
        self.below.close_after_peer(slot);
        self.forget(slot);
    }

    fn wait(&mut self, wait: Wait) -> io::Result<bool> {
        self.below.wait(wait)
    }

    fn next(&mut self) -> Option<Completion> {
        if let Some(completion) = self.pending.pop_front() {
            return Some(completion);
        }
        loop {
            let completion = match self.below.next()? {
                Completion::Connected(slot) => self.connected(slot),
                Completion::Received(slot) => self.received_below(slot),
                Completion::Ended(slot) => Some(self.ended_below(slot)),
                Completion::Failed(slot, errno) => {
                    self.places[slot as usize].session = None;
                    self.failure = None;
                    Some(Completion::Failed(slot, errno))
                }
            };
            if completion.is_some() {
                return completion;
            }
        }
    }

    fn received(&self) -> &[u8] {
        &self.plaintext
    }

    /// Of the read that brought the record's last bytes: everything that follows from one read is told before the next.
    fn received_at_unix_ns(&self) -> Option<u64> {
        self.below.received_at_unix_ns()
    }

    fn failure_text(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn handshake_began_ns(&self) -> Option<u64> {
        Some(self.handshake_began_ns)
    }
}
