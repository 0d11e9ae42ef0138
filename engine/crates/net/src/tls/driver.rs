//! A driver over a driver: the one below moves bytes, the load above sees plaintext, and connections whose handshake is
//! over.
//!
//! Memory: a session for each connection, and two buffers for all of them.

use std::collections::VecDeque;
use std::io;

use weir_sys::clock::monotonic_ns;

use super::Client;
use super::session::Session;
use crate::{Driver, Endpoint, Errno, Event, Payload, Slot, Wait};

/// The server has closed the connection without close_notify. RFC 8446, section 6.1: an attacker may have cut it.
const TRUNCATED: &str = "TLS: connection closed without close_notify";

/// A driver of encrypted connections.
pub struct TlsDriver<D> {
    below: D,
    clients: Vec<Client>,
    connections: Vec<Connection>,
    payloads: Vec<Vec<u8>>,
    plaintext: Vec<u8>,
    outgoing: Vec<u8>,
    /// The kernel's stamp of the last read below. All that follows from one read is reported before the next.
    stamp_unix_ns: Option<u64>,
    /// Events that follow from bytes that were taken already.
    pending: VecDeque<(Slot, Pending)>,
    /// The text of the last failure.
    failure: Option<String>,
}

#[derive(Default)]
struct Connection {
    /// Its place in the clients.
    client: usize,
    session: Option<Box<Session>>,
    connected_ns: u64,
}

#[derive(Debug)]
enum Pending {
    Connected { handshake_began_ns: u64 },
    Received,
    Ended,
    Failed(Errno, Option<String>),
}

impl<D: Driver> TlsDriver<D> {
    /// Returns a driver over another one. `clients` has one for each server, `client_of` the server of each slot.
    pub fn new(below: D, clients: Vec<Client>, client_of: impl IntoIterator<Item = usize>) -> Self {
        let connections = client_of.into_iter().map(|client| Connection { client, ..Connection::default() });
        Self {
            below,
            clients,
            connections: connections.collect(),
            payloads: Vec::new(),
            plaintext: Vec::new(),
            outgoing: Vec::new(),
            stamp_unix_ns: None,
            pending: VecDeque::new(),
            failure: None,
        }
    }

    fn start_handshake(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        match self.clients[connection.client].connect() {
            Ok(session) => {
                connection.session = Some(Box::new(session));
                connection.connected_ns = monotonic_ns();
                self.flush(slot);
            }
            Err(error) => self.fail(slot, Errno::PROTO, error.to_string()),
        }
    }

    fn end(&mut self, slot: Slot) {
        let session = self.connections[slot as usize].session.as_ref();
        if session.is_none_or(|session| session.is_handshaking()) {
            let text = "TLS: the server closed the connection during the handshake";
            self.fail(slot, Errno::PROTO, text.to_owned());
        } else {
            self.fail(slot, Errno::CONNRESET, TRUNCATED.to_owned());
        }
    }

    /// Sends the session's bytes to the server.
    fn flush(&mut self, slot: Slot) {
        let Some(session) = &mut self.connections[slot as usize].session else {
            return;
        };
        self.outgoing.clear();
        session.take_outgoing(&mut self.outgoing);
        if !self.outgoing.is_empty() {
            self.below.send_bytes(slot, &self.outgoing);
        }
    }

    /// Drops the session and the events of a closed connection.
    fn forget(&mut self, slot: Slot) {
        self.connections[slot as usize].session = None;
        self.pending.retain(|(of, _)| *of != slot);
    }

    fn fail(&mut self, slot: Slot, errno: Errno, text: String) {
        self.close(slot);
        self.pending.push_back((slot, Pending::Failed(errno, Some(text))));
    }

    /// Takes one event of the driver below. Returns whether there was one.
    fn take_below(&mut self) -> bool {
        let Some(event) = self.below.next() else {
            return false;
        };
        match event {
            Event::Connected { slot, .. } => self.start_handshake(slot),
            Event::Received { slot, bytes, stamp_unix_ns } => {
                self.plaintext.clear();
                self.stamp_unix_ns = stamp_unix_ns;
                let connection = &mut self.connections[slot as usize];
                let Some(session) = &mut connection.session else {
                    return true;
                };
                let fed = session.feed(bytes, &mut self.plaintext);
                let handshake_began_ns = connection.connected_ns;
                self.flush(slot);
                match fed {
                    Ok(fed) => {
                        let connected = Pending::Connected { handshake_began_ns };
                        let has_bytes = !self.plaintext.is_empty();
                        let events = [
                            fed.is_connected.then_some(connected),
                            has_bytes.then_some(Pending::Received),
                            fed.is_ended.then_some(Pending::Ended),
                        ];
                        let events = events.into_iter().flatten();
                        self.pending.extend(events.map(|event| (slot, event)));
                    }
                    Err(error) => self.fail(slot, Errno::PROTO, error.to_string()),
                }
            }
            Event::Ended { slot } => self.end(slot),
            Event::Failed { slot, errno, text } => {
                self.connections[slot as usize].session = None;
                let text = text.map(str::to_owned);
                self.pending.push_back((slot, Pending::Failed(errno, text)));
            }
        }
        true
    }
}

impl<D: Driver> Driver for TlsDriver<D> {
    const GATHERS_SENDS: bool = D::GATHERS_SENDS;

    fn stamp_arrivals(&mut self) {
        self.below.stamp_arrivals();
    }

    fn register(&mut self, bytes: Vec<u8>) -> Payload {
        self.payloads.push(bytes);
        Payload((self.payloads.len() - 1) as u32)
    }

    fn connect(&mut self, slot: Slot, endpoint: &Endpoint) {
        self.below.connect(slot, endpoint);
    }

    fn send(&mut self, slot: Slot, payload: Payload) {
        if let Some(session) = &mut self.connections[slot as usize].session {
            session.write(&self.payloads[payload.0 as usize]);
            self.flush(slot);
        }
    }

    fn send_once(&mut self, slot: Slot, bytes: &[u8]) {
        self.send_bytes(slot, bytes);
    }

    fn send_bytes(&mut self, slot: Slot, bytes: &[u8]) {
        if let Some(session) = &mut self.connections[slot as usize].session {
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

    fn next(&mut self) -> Option<Event<'_>> {
        while self.pending.is_empty() {
            if !self.take_below() {
                return None;
            }
        }
        let (slot, event) = self.pending.pop_front()?;
        Some(match event {
            Pending::Connected { handshake_began_ns } => {
                Event::Connected { slot, handshake_began_ns: Some(handshake_began_ns) }
            }
            Pending::Received => Event::Received { slot, bytes: &self.plaintext, stamp_unix_ns: self.stamp_unix_ns },
            Pending::Ended => Event::Ended { slot },
            Pending::Failed(errno, text) => {
                self.failure = text;
                Event::Failed { slot, errno, text: self.failure.as_deref() }
            }
        })
    }
}
