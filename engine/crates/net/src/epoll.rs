//! Readiness dressed as completions: the back end for every Linux.
//!
//! Hot path. Rules for a request on an open connection: one `send`, tried at once; one `recv`; a share of one
//! `epoll_wait`. No `epoll_ctl`, because a connection is registered once, edge-triggered and for both directions; no
//! second `recv` to see EAGAIN, because one that gave less than it could take has emptied the socket, and whatever
//! comes after it is a new edge (epoll(7), "Possible pitfalls"). Only the end of a stream may hide behind a short read:
//! its edge says so, and only then the socket is read again. One receive buffer for all connections of the thread. The
//! kernel's stamps are asked for once for each connection, and then `recvmsg` takes the place of `recv`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

use crate::driver::Completion;
use crate::linger::Lingering;
use crate::message::receive_message;
use crate::socket::{connect_error, start_connecting};
use crate::{Backend, Driver, Endpoint, Event, Payload, Slot, Wait};

/// Large enough that most responses come in one piece, small enough to stay in the cache.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Successive reads of one connection, 1 MB. So a server that sends faster than the thread decodes cannot keep the
/// thread from its timers and other connections.
const READS_IN_A_ROW: u32 = 16;
/// Events taken at once.
const EVENTS: usize = 256;
/// Edges that mean there is nothing to wait for: read until the end.
const ENDED: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Open,
    /// The end of the stream was reported.
    Ended,
}

/// One connection.
#[derive(Debug)]
struct Socket {
    descriptor: OwnedFd,
    state: State,
    /// Whether an edge has reported that the peer closed its side. Bytes from before may still be unread.
    is_ending: bool,
    /// Bytes that the kernel has not taken yet.
    unsent: Option<Unsent>,
}

/// Bytes that are left to send, and where they begin.
#[derive(Debug)]
enum Unsent {
    Payload(Payload, u32),
    Bytes(Vec<u8>, usize),
}

/// A place for a connection. The generation tells a connection's events from those of the one before it on the same
/// slot.
#[derive(Debug, Default)]
struct Place {
    generation: u32,
    socket: Option<Socket>,
}

/// The back end for every Linux: readiness dressed as completions.
pub struct EpollDriver {
    epoll: OwnedFd,
    places: Vec<Place>,
    payloads: Vec<Vec<u8>>,
    events: Vec<epoll::Event>,
    /// The next event to look at.
    position: usize,
    /// A socket that may have more to read than was reported.
    reading: Option<Slot>,
    /// Reads of it in a row.
    reads: u32,
    /// Sockets that may have more to read and have had their turn, with their generation: the next one is after the
    /// next wait.
    later: Vec<(Slot, u32)>,
    /// Those of the turn before, to be read on now.
    resumed: Vec<(Slot, u32)>,
    lingering: Lingering,
    /// Failures that were seen while asking, to be reported by `next`.
    failures: Vec<(Slot, u32, Errno)>,
    buffer: Vec<u8>,
    received: usize,
    /// Whether the kernel stamps received packets.
    stamps: bool,
    /// Its stamp of the bytes in the buffer.
    received_at: Option<u64>,
}

impl Backend for EpollDriver {
    const NAME: &'static str = "epoll";

    fn new(capacity: usize) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            places: (0..capacity).map(|_| Place::default()).collect(),
            payloads: Vec::new(),
            events: Vec::with_capacity(EVENTS),
            position: 0,
            reading: None,
            reads: 0,
            later: Vec::new(),
            resumed: Vec::new(),
            lingering: Lingering::default(),
            failures: Vec::new(),
            buffer: vec![0; RECEIVE_BYTES],
            received: 0,
            stamps: false,
            received_at: None,
        })
    }
}

impl Driver for EpollDriver {
    const GATHERS_SENDS: bool = false;

    fn stamp_arrivals(&mut self) {
        self.stamps = true;
    }

    fn register(&mut self, bytes: Vec<u8>) -> Payload {
        self.payloads.push(bytes);
        Payload((self.payloads.len() - 1) as u32)
    }

    fn connect(&mut self, slot: Slot, endpoint: &Endpoint) {
        let place = &mut self.places[slot as usize];
        debug_assert!(place.socket.is_none(), "the slot is free");
        place.generation = place.generation.wrapping_add(1);
        let data = event_data(slot, place.generation);
        match start_connection(&self.epoll, data, endpoint, self.stamps) {
            Ok(descriptor) => {
                place.socket = Some(Socket { descriptor, state: State::Connecting, is_ending: false, unsent: None });
            }
            Err(errno) => self.failures.push((slot, place.generation, errno)),
        }
    }

    #[inline]
    fn send(&mut self, slot: Slot, payload: Payload) {
        let Place { generation, socket } = &mut self.places[slot as usize];
        let Some(socket) = socket else { return };
        debug_assert!(socket.unsent.is_none(), "one payload at a time");
        let bytes = &self.payloads[payload.0 as usize];
        match net::send(&socket.descriptor, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == bytes.len() => {}
            Ok(sent) => socket.unsent = Some(Unsent::Payload(payload, sent as u32)),
            Err(Errno::AGAIN | Errno::INTR) => {
                socket.unsent = Some(Unsent::Payload(payload, 0));
            }
            Err(errno) => self.failures.push((slot, *generation, errno)),
        }
    }

    fn send_bytes(&mut self, slot: Slot, bytes: &[u8]) {
        let Place { generation, socket } = &mut self.places[slot as usize];
        let Some(socket) = socket else { return };
        if let Some(Unsent::Bytes(waiting, _)) = &mut socket.unsent {
            waiting.extend_from_slice(bytes);
            return;
        }
        match net::send(&socket.descriptor, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == bytes.len() => {}
            Ok(sent) => socket.unsent = Some(Unsent::Bytes(bytes[sent..].to_vec(), 0)),
            Err(Errno::AGAIN | Errno::INTR) => {
                socket.unsent = Some(Unsent::Bytes(bytes.to_vec(), 0));
            }
            Err(errno) => self.failures.push((slot, *generation, errno)),
        }
    }

    #[inline]
    fn send_once(&mut self, slot: Slot, bytes: &[u8]) {
        self.send_bytes(slot, bytes);
    }

    #[inline]
    fn has_unsent(&self, slot: Slot) -> bool {
        self.places[slot as usize].socket.as_ref().is_some_and(|socket| socket.unsent.is_some())
    }

    fn close(&mut self, slot: Slot) {
        // Dropping the descriptor closes it, which also takes it out of the epoll set.
        self.give_up(slot);
    }

    fn close_after_peer(&mut self, slot: Slot) {
        let data = event_data(slot, self.places[slot as usize].generation);
        let socket = self.give_up(slot);
        if let Some(socket) = socket.filter(|socket| !socket.is_ending) {
            self.lingering.keep(data.u64(), socket.descriptor);
        }
    }

    fn wait(&mut self, wait: Wait) -> io::Result<bool> {
        self.events.clear();
        self.position = 0;
        self.resumed.append(&mut self.later);
        while self.lingering.overdue().is_some() {}
        let timeout = match wait {
            _ if self.has_own_work() => timespec(0),
            Wait::Poll => timespec(0),
            // epoll_wait counts milliseconds, rounded up, and epoll_pwait2 is missing before Linux 5.11 and forbidden
            // in many containers; ppoll counts nanoseconds everywhere. The epoll set is itself readable when it has
            // events.
            Wait::AtMostNs(ns) => {
                let mut set = [PollFd::new(&self.epoll, PollFlags::IN)];
                match poll(&mut set, Some(&timespec(ns))) {
                    Ok(0) | Err(Errno::INTR) => return Ok(false),
                    Ok(_) => timespec(0),
                    Err(errno) => return Err(errno.into()),
                }
            }
            Wait::AboutNs(ns) => timespec(ns),
        };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(!self.events.is_empty() || self.has_own_work()),
            Err(errno) => Err(errno.into()),
        }
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Event<'_>> {
        let completion = self.advance()?;
        Some(completion.with(&self.buffer[..self.received], self.received_at))
    }
}

impl EpollDriver {
    /// Returns the next completion: of a socket that may have more bytes, of epoll, of a postponed socket, or of a
    /// failed send.
    #[inline]
    fn advance(&mut self) -> Option<Completion> {
        loop {
            let completion = if let Some(slot) = self.reading {
                self.read_on(slot)
            } else {
                self.reads = 0;
                if let Some(&event) = self.events.get(self.position) {
                    self.position += 1;
                    self.on_event(event)
                } else if let Some((slot, generation)) = self.resumed.pop() {
                    let is_current = self.places[slot as usize].generation == generation;
                    self.reading = is_current.then_some(slot);
                    None
                } else {
                    return self.next_failure();
                }
            };
            if completion.is_some() {
                return completion;
            }
        }
    }

    #[inline]
    fn on_event(&mut self, event: epoll::Event) -> Option<Completion> {
        let (slot, generation) = slot_of(event.data);
        let flags = event.flags;
        let place = &mut self.places[slot as usize];
        let is_current = place.generation == generation;
        let Some(socket) = place.socket.as_mut().filter(|_| is_current) else {
            if flags.intersects(ENDED) {
                self.lingering.ended(event.data.u64());
            }
            return None;
        };
        socket.is_ending |= flags.intersects(ENDED);
        if socket.state == State::Connecting {
            return self.on_connecting(slot, flags);
        }
        if socket.unsent.is_some() && flags.contains(EventFlags::OUT) {
            self.send_rest(slot);
        }
        if flags.intersects(ENDED) {
            self.reading = Some(slot);
        } else if flags.contains(EventFlags::IN) {
            return self.read(slot);
        }
        None
    }

    fn on_connecting(&mut self, slot: Slot, flags: EventFlags) -> Option<Completion> {
        let socket = &mut self.places[slot as usize].socket;
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            if let Some(errno) = connect_error(&socket.as_ref()?.descriptor) {
                *socket = None;
                return Some(Completion::Failed(slot, errno));
            }
        }
        if !flags.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP) {
            return None;
        }
        socket.as_mut()?.state = State::Open;
        // The edge may also tell of bytes that came after the connection.
        if flags.intersects(EventFlags::IN | ENDED) {
            self.reading = Some(slot);
        }
        Some(Completion::Connected(slot))
    }

    /// Empties a slot. Earlier events of its connection are out of date.
    fn give_up(&mut self, slot: Slot) -> Option<Socket> {
        let place = &mut self.places[slot as usize];
        place.generation = place.generation.wrapping_add(1);
        if self.reading == Some(slot) {
            self.reading = None;
        }
        place.socket.take()
    }

    /// Whether there is something to do that epoll does not know of.
    fn has_own_work(&self) -> bool {
        !self.failures.is_empty() || !self.resumed.is_empty()
    }

    /// Reads once; reads on later only if the buffer was filled.
    #[inline]
    fn read(&mut self, slot: Slot) -> Option<Completion> {
        let socket = self.places[slot as usize].socket.as_mut()?;
        if socket.state == State::Ended {
            return None;
        }
        let received = if self.stamps {
            let message = receive_message(socket.descriptor.as_fd(), &mut self.buffer);
            message.map(|(received, stamp)| {
                self.received_at = stamp;
                received
            })
        } else {
            net::recv(&socket.descriptor, &mut self.buffer[..], RecvFlags::empty()).map(|(received, _)| received)
        };
        match received {
            Ok(0) => {
                socket.state = State::Ended;
                Some(Completion::Ended(slot))
            }
            Ok(received) => {
                self.received = received;
                if received == self.buffer.len() {
                    self.reading = Some(slot);
                }
                Some(Completion::Received(slot))
            }
            Err(Errno::AGAIN) => None,
            Err(Errno::INTR) => {
                self.reading = Some(slot);
                None
            }
            Err(errno) => {
                self.places[slot as usize].socket = None;
                Some(Completion::Failed(slot, errno))
            }
        }
    }

    /// Reads a socket that is known, or likely, to have more: until it is empty or ended, or has had its turn.
    fn read_on(&mut self, slot: Slot) -> Option<Completion> {
        self.reading = None;
        let completion = self.read(slot);
        if let Some(Completion::Received(_)) = completion {
            self.reads += 1;
            self.reading = Some(slot);
            if self.reads >= READS_IN_A_ROW {
                self.reading = None;
                let generation = self.places[slot as usize].generation;
                self.later.push((slot, generation));
            }
        }
        completion
    }

    fn send_rest(&mut self, slot: Slot) {
        let Place { generation, socket } = &mut self.places[slot as usize];
        let Some(socket) = socket else { return };
        let rest = match &socket.unsent {
            None => return,
            Some(Unsent::Payload(payload, from)) => &self.payloads[payload.0 as usize][*from as usize..],
            Some(Unsent::Bytes(bytes, from)) => &bytes[*from..],
        };
        match net::send(&socket.descriptor, rest, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == rest.len() => socket.unsent = None,
            Ok(sent) => match &mut socket.unsent {
                Some(Unsent::Payload(_, from)) => *from += sent as u32,
                Some(Unsent::Bytes(_, from)) => *from += sent,
                None => {}
            },
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => self.failures.push((slot, *generation, errno)),
        }
    }

    fn next_failure(&mut self) -> Option<Completion> {
        while let Some((slot, generation, errno)) = self.failures.pop() {
            let place = &mut self.places[slot as usize];
            if place.generation == generation {
                place.socket = None;
                return Some(Completion::Failed(slot, errno));
            }
        }
        None
    }
}

fn start_connection(epoll: &OwnedFd, data: EventData, endpoint: &Endpoint, stamps: bool) -> Result<OwnedFd, Errno> {
    let descriptor = start_connecting(endpoint, stamps)?;
    // Registered after connecting began: a socket that never did would report a hang-up at once.
    let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(epoll, &descriptor, data, interest)?;
    Ok(descriptor)
}

fn event_data(slot: Slot, generation: u32) -> EventData {
    EventData::new_u64(u64::from(generation) << 32 | u64::from(slot))
}

fn slot_of(data: EventData) -> (Slot, u32) {
    let number = data.u64();
    (number as u32, (number >> 32) as u32)
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
