//! io_uring: the fast back end, where the kernel and the container allow it (Linux 6.1 and later).
//!
//! Hot path. Rules for a request on an open connection: no system call of its own. The next wait submits all gathered
//! sends, and returns all responses that have come. Each connection requests receiving once; the kernel then fills
//! buffers that all connections share. A successful send is not reported.

mod ring;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{self, Shutdown};

use self::ring::{Completed, Incoming, Outgoing, Ring};
use crate::driver::Completion;
use crate::linger::Lingering;
use crate::socket::{connect_error, start_connecting};
use crate::{Backend, Driver, Endpoint, Event, Payload, Slot, Wait};

/// A payload up to this size fits into any socket's send buffer, so its completion is not needed.
const SMALL_BYTES: usize = 16 * 1024;
/// The kernel takes no more bytes in one send. Connections that would send more fail.
const MAX_SEND_BYTES: usize = u32::MAX as usize;
const GENERATION_BITS: u32 = 30;

/// The operation of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Connect = 0,
    Receive = 1,
    Send = 2,
    /// Of bytes that the ring owns; what stands for the generation is the number of their memory.
    SendOwned = 3,
}

/// One connection.
#[derive(Debug)]
struct Socket {
    descriptor: OwnedFd,
    /// Whether the end of the stream was reported.
    has_ended: bool,
    has_unsent: bool,
    sends_owned: bool,
}

/// A place for a connection. The generation tells a connection's completions from those of the one before it on the
/// same slot. What few connections need lies elsewhere, so that a cache line holds several places.
#[derive(Debug, Default)]
struct Place {
    generation: u32,
    socket: Option<Socket>,
}

/// The back end on io_uring.
pub struct UringDriver {
    ring: Ring,
    places: Vec<Place>,
    payloads: Vec<&'static [u8]>,
    /// Memory for the bytes of one request, by slot, up to the highest slot that has sent any. Cells, because the
    /// kernel may still read the last request: a response can come before the kernel has taken its request, and then
    /// the connection is closed.
    once: Vec<&'static [Cell<u8>]>,
    /// By slot: bytes that wait for those before them. Two sends on a socket at once could change places.
    waiting: Vec<Vec<u8>>,
    /// Descriptors that unsubmitted entries may name. They are closed after the next submission.
    closing: Vec<OwnedFd>,
    lingering: Lingering,
    failures: Vec<(Slot, u32, Errno)>,
    /// Whether the kernel stamps received packets.
    stamps: bool,
    /// Where the last `Received` is.
    received: Option<Incoming>,
}

impl Backend for UringDriver {
    const NAME: &'static str = "io_uring";

    fn new(capacity: usize) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(capacity)?,
            places: (0..capacity).map(|_| Place::default()).collect(),
            payloads: Vec::new(),
            once: Vec::new(),
            waiting: vec![Vec::new(); capacity],
            closing: Vec::new(),
            lingering: Lingering::default(),
            failures: Vec::new(),
            stamps: false,
            received: None,
        })
    }
}

impl Driver for UringDriver {
    const GATHERS_SENDS: bool = true;

    fn stamp_arrivals(&mut self) {
        self.stamps = true;
        self.ring.receive_messages();
    }

    fn register(&mut self, bytes: Vec<u8>) -> Payload {
        // The kernel may read it until the process ends.
        self.payloads.push(bytes.leak());
        Payload((self.payloads.len() - 1) as u32)
    }

    fn connect(&mut self, slot: Slot, endpoint: &Endpoint) {
        let place = &mut self.places[slot as usize];
        debug_assert!(place.socket.is_none(), "the slot is free");
        place.generation = next_generation(place.generation);
        match start_connecting(endpoint, self.stamps) {
            Ok(descriptor) => {
                self.ring.when_writable(descriptor.as_fd(), tag(Operation::Connect, slot, place.generation));
                place.socket = Some(Socket { descriptor, has_ended: false, has_unsent: false, sends_owned: false });
            }
            Err(errno) => self.failures.push((slot, place.generation, errno)),
        }
    }

    #[inline]
    fn send(&mut self, slot: Slot, payload: Payload) {
        let Place { generation, socket } = &mut self.places[slot as usize];
        let Some(socket) = socket else { return };
        let bytes = self.payloads[payload.0 as usize];
        socket.has_unsent = bytes.len() > SMALL_BYTES;
        let tag = tag(Operation::Send, slot, *generation);
        let descriptor = socket.descriptor.as_fd();
        self.ring.send(descriptor, Outgoing::Payload(bytes), tag, socket.has_unsent);
    }

    #[inline]
    fn send_once(&mut self, slot: Slot, bytes: &[u8]) {
        let Place { generation, socket } = &mut self.places[slot as usize];
        let Some(socket) = socket else { return };
        if bytes.len() > MAX_SEND_BYTES {
            self.failures.push((slot, *generation, Errno::MSGSIZE));
            return;
        }
        if self.once.len() <= slot as usize {
            self.once.resize(slot as usize + 1, &[]);
        }
        let memory = &mut self.once[slot as usize];
        if memory.len() < bytes.len() {
            // The old buffer is leaked: the kernel may still read it. Doubling bounds the leak by the size of the new
            // one.
            let length = bytes.len().next_power_of_two().max(512);
            *memory = Vec::leak(vec![Cell::new(0); length]);
        }
        let memory = &memory[..bytes.len()];
        for (cell, &byte) in memory.iter().zip(bytes) {
            cell.set(byte);
        }
        socket.has_unsent = bytes.len() > SMALL_BYTES;
        let tag = tag(Operation::Send, slot, *generation);
        let descriptor = socket.descriptor.as_fd();
        self.ring.send(descriptor, Outgoing::Once(memory), tag, socket.has_unsent);
    }

    fn send_bytes(&mut self, slot: Slot, bytes: &[u8]) {
        let Place { generation, socket } = &mut self.places[slot as usize];
        let Some(socket) = socket else { return };
        let waiting = &mut self.waiting[slot as usize];
        if bytes.len() + waiting.len() > MAX_SEND_BYTES {
            self.failures.push((slot, *generation, Errno::MSGSIZE));
            return;
        }
        if socket.sends_owned {
            waiting.extend_from_slice(bytes);
            return;
        }
        socket.sends_owned = true;
        socket.has_unsent = bytes.len() > SMALL_BYTES;
        send_owned(&mut self.ring, socket, slot, *generation, bytes);
    }

    #[inline]
    fn has_unsent(&self, slot: Slot) -> bool {
        self.places[slot as usize].socket.as_ref().is_some_and(|socket| socket.has_unsent)
    }

    fn close(&mut self, slot: Slot) {
        if let Some(socket) = self.give_up(slot) {
            self.shut(socket.descriptor);
        }
    }

    fn close_after_peer(&mut self, slot: Slot) {
        let key = tag(Operation::Receive, slot, self.places[slot as usize].generation);
        match self.give_up(slot) {
            Some(socket) if socket.has_ended => self.shut(socket.descriptor),
            Some(socket) => self.lingering.keep(key, socket.descriptor),
            None => {}
        }
    }

    fn wait(&mut self, wait: Wait) -> io::Result<bool> {
        self.return_buffer();
        while let Some(descriptor) = self.lingering.overdue() {
            self.shut(descriptor);
        }
        let wait = if self.failures.is_empty() { wait } else { Wait::Poll };
        let completed = self.ring.enter(wait)?;
        // A descriptor that is closed earlier may be the next connection's when the kernel takes an old entry.
        if !self.closing.is_empty() && self.ring.has_submitted_all() {
            self.closing.clear();
        }
        Ok(completed || !self.failures.is_empty())
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Event<'_>> {
        let completion = self.advance()?;
        let (bytes, stamp): (&[u8], _) = match &self.received {
            Some(incoming) => (self.ring.bytes(incoming), incoming.stamp),
            None => (&[], None),
        };
        Some(completion.with(bytes, stamp))
    }
}

impl UringDriver {
    #[inline(always)]
    fn advance(&mut self) -> Option<Completion> {
        self.return_buffer();
        while let Some(completed) = self.ring.next() {
            let (operation, slot, mut generation) = untag(completed.tag);
            if operation == Operation::SendOwned {
                generation = self.ring.free_owned(generation);
            }
            let is_current = self.places[slot as usize].generation == generation;
            let completion = match operation {
                Operation::Receive if is_current => self.on_receive(slot, completed),
                Operation::Receive => {
                    completed.buffer.into_iter().for_each(|buffer| self.ring.give_back(buffer));
                    if !completed.goes_on {
                        self.closing.extend(self.lingering.ended(completed.tag));
                    }
                    None
                }
                _ if !is_current => None,
                Operation::Connect => self.connected(slot, completed.result),
                Operation::SendOwned => self.sent_owned(slot, completed.result),
                Operation::Send => self.sent(slot, completed.result),
            };
            if completion.is_some() {
                return completion;
            }
        }
        self.next_failure()
    }

    #[inline]
    fn on_receive(&mut self, slot: Slot, completed: Completed) -> Option<Completion> {
        let socket = self.places[slot as usize].socket.as_mut()?;
        match (completed.result, completed.buffer) {
            (Ok(length), buffer) => {
                let incoming = buffer.map(|buffer| self.ring.incoming(buffer, length as usize));
                let Some(incoming) = incoming.filter(|incoming| incoming.length > 0) else {
                    buffer.into_iter().for_each(|buffer| self.ring.give_back(buffer));
                    socket.has_ended = true;
                    return Some(Completion::Ended(slot));
                };
                if !completed.goes_on {
                    self.ring.receive(socket.descriptor.as_fd(), completed.tag);
                }
                self.received = Some(incoming);
                Some(Completion::Received(slot))
            }
            // All buffers were full: they are empty when this request is submitted.
            (Err(Errno::NOBUFS | Errno::INTR | Errno::AGAIN), _) => {
                self.ring.receive(socket.descriptor.as_fd(), completed.tag);
                None
            }
            (Err(errno), _) => Some(self.broken(slot, errno)),
        }
    }

    /// Empties a slot. Later completions of its connection are out of date.
    fn give_up(&mut self, slot: Slot) -> Option<Socket> {
        let place = &mut self.places[slot as usize];
        place.generation = next_generation(place.generation);
        self.waiting[slot as usize].clear();
        place.socket.take()
    }

    fn shut(&mut self, descriptor: OwnedFd) {
        // Receiving holds the socket open until it ends, and this ends it. That there is nothing to shut down is fine.
        let _ = net::shutdown(&descriptor, Shutdown::Both);
        self.closing.push(descriptor);
    }

    #[inline]
    fn return_buffer(&mut self) {
        if let Some(incoming) = self.received.take() {
            self.ring.give_back(incoming.buffer);
        }
    }

    fn connected(&mut self, slot: Slot, result: Result<u32, Errno>) -> Option<Completion> {
        const POLLERR_OR_HUP: u32 = (libc::POLLERR | libc::POLLHUP) as u32;
        let Place { generation, socket } = &mut self.places[slot as usize];
        let socket = socket.as_ref()?;
        let error = match result {
            Ok(events) if events & POLLERR_OR_HUP != 0 => connect_error(&socket.descriptor),
            Ok(_) => None,
            Err(errno) => Some(errno),
        };
        // On a socket that does not block, io_uring does not wait either.
        let error = error.or_else(|| ioctl_fionbio(&socket.descriptor, false).err());
        if let Some(errno) = error {
            return Some(self.broken(slot, errno));
        }
        let tag = tag(Operation::Receive, slot, *generation);
        self.ring.receive(socket.descriptor.as_fd(), tag);
        Some(Completion::Connected(slot))
    }

    fn sent(&mut self, slot: Slot, result: Result<u32, Errno>) -> Option<Completion> {
        match result {
            Ok(_) => {
                if let Some(socket) = &mut self.places[slot as usize].socket {
                    socket.has_unsent = false;
                }
                None
            }
            Err(errno) => Some(self.broken(slot, errno)),
        }
    }

    /// Bytes were taken: those that came since follow.
    fn sent_owned(&mut self, slot: Slot, result: Result<u32, Errno>) -> Option<Completion> {
        if let Err(errno) = result {
            return Some(self.broken(slot, errno));
        }
        let Place { generation, socket } = &mut self.places[slot as usize];
        let socket = socket.as_mut()?;
        let waiting = &mut self.waiting[slot as usize];
        socket.has_unsent = waiting.len() > SMALL_BYTES;
        socket.sends_owned = !waiting.is_empty();
        if socket.sends_owned {
            let bytes = std::mem::take(waiting);
            send_owned(&mut self.ring, socket, slot, *generation, &bytes);
        }
        None
    }

    fn broken(&mut self, slot: Slot, errno: Errno) -> Completion {
        self.close(slot);
        Completion::Failed(slot, errno)
    }

    fn next_failure(&mut self) -> Option<Completion> {
        while let Some((slot, generation, errno)) = self.failures.pop() {
            if self.places[slot as usize].generation == generation {
                return Some(self.broken(slot, errno));
            }
        }
        None
    }
}

fn send_owned(ring: &mut Ring, socket: &Socket, slot: Slot, generation: u32, bytes: &[u8]) {
    ring.send_owned(socket.descriptor.as_fd(), bytes, generation, |number| tag(Operation::SendOwned, slot, number));
}

fn next_generation(generation: u32) -> u32 {
    (generation + 1) & ((1 << GENERATION_BITS) - 1)
}

fn tag(operation: Operation, slot: Slot, generation: u32) -> u64 {
    (operation as u64) << 62 | u64::from(generation) << 32 | u64::from(slot)
}

fn untag(tag: u64) -> (Operation, Slot, u32) {
    let operation = match tag >> 62 {
        0 => Operation::Connect,
        1 => Operation::Receive,
        2 => Operation::Send,
        _ => Operation::SendOwned,
    };
    (operation, tag as u32, (tag >> 32) as u32 & ((1 << GENERATION_BITS) - 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const A_WHILE: Wait = Wait::AtMostNs(5_000_000_000);

    /// A listener and a driver whose slots 0 and 1 are free.
    fn start() -> (TcpListener, Endpoint, UringDriver) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap().into();
        (listener, endpoint, UringDriver::new(2).unwrap())
    }

    fn connect(driver: &mut UringDriver, slot: Slot, listener: &TcpListener, endpoint: &Endpoint) -> TcpStream {
        driver.connect(slot, endpoint);
        loop {
            match driver.next() {
                Some(Event::Connected { slot: connected, .. }) => {
                    assert_eq!(connected, slot);
                    return listener.accept().unwrap().0;
                }
                Some(other) => panic!("{other:?}"),
                None => drop(driver.wait(A_WHILE).unwrap()),
            }
        }
    }

    /// What the server's end receives until the driver has closed its own.
    fn read_to_end(mut server: TcpStream) -> String {
        let mut text = String::new();
        server.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_failed_system_call_neither_loses_bytes_nor_sends_them_to_another_connection() {
        for errno in [Errno::AGAIN, Errno::BUSY, Errno::INTR, Errno::TIME] {
            for calls_before in 0..12 {
                let (listener, endpoint, mut driver) = start();
                let faults = (0..calls_before).map(|_| None).chain([Some(errno)]);
                driver.ring.faults = faults.collect();
                for text in ["first", "second"] {
                    let server = connect(&mut driver, 0, &listener, &endpoint);
                    driver.send_once(0, text.as_bytes());
                    driver.wait(Wait::Poll).unwrap();
                    driver.wait(Wait::Poll).unwrap();
                    driver.close(0);
                    driver.wait(Wait::Poll).unwrap();
                    driver.wait(Wait::Poll).unwrap();
                    assert_eq!(read_to_end(server), text, "{errno} at call {calls_before}");
                }
            }
        }
    }

    #[test]
    fn a_descriptor_stays_open_until_the_kernel_has_taken_the_entries_that_name_it() {
        let (listener, endpoint, mut driver) = start();
        let first = connect(&mut driver, 0, &listener, &endpoint);
        driver.send_once(0, b"first");
        driver.close(0);
        driver.ring.faults.push_back(Some(Errno::AGAIN));
        driver.wait(Wait::Poll).unwrap();
        // Without the rule this connection has the first one's descriptor, and the queued bytes go to it.
        let second = connect(&mut driver, 1, &listener, &endpoint);
        driver.send_once(1, b"second");
        driver.wait(Wait::Poll).unwrap();
        driver.close(1);
        driver.wait(Wait::Poll).unwrap();
        drop(first);
        assert_eq!(read_to_end(second), "second");
    }

    #[test]
    fn completions_that_nobody_has_read_survive_the_next_wait() {
        let (listener, endpoint, mut driver) = start();
        drop(connect(&mut driver, 0, &listener, &endpoint));
        while !driver.wait(A_WHILE).unwrap() {}
        driver.wait(A_WHILE).unwrap();
        let ended = driver.next();
        assert!(matches!(ended, Some(Event::Ended { slot: 0 })), "{ended:?}");
    }

    #[test]
    fn submissions_that_the_kernel_refuses_for_good_end_in_an_error() {
        let busy = std::iter::repeat_n(Some(Errno::BUSY), 2000);
        for (faults, expected) in [(vec![Some(Errno::INVAL)], Errno::INVAL), (busy.collect(), Errno::AGAIN)] {
            let (listener, endpoint, mut driver) = start();
            let _server = connect(&mut driver, 0, &listener, &endpoint);
            driver.ring.faults = faults.into();
            for _ in 0..1025 {
                driver.send_once(0, b"x");
            }
            let error = driver.wait(Wait::Poll).unwrap_err();
            assert_eq!(Errno::from_io_error(&error), Some(expected));
        }
    }

    #[test]
    fn bytes_that_do_not_fit_into_one_send_end_the_connection() {
        let (listener, endpoint, mut driver) = start();
        let _server = connect(&mut driver, 0, &listener, &endpoint);
        // Zeroed memory that nobody touches takes none.
        driver.send_once(0, &vec![0; MAX_SEND_BYTES + 1]);
        driver.wait(Wait::Poll).unwrap();
        let failed = driver.next();
        assert!(matches!(failed, Some(Event::Failed { slot: 0, errno: Errno::MSGSIZE, .. })), "{failed:?}");
    }
}
