//! The interface of all drivers.

use std::io;

use rustix::io::Errno;

use crate::Endpoint;

/// The user's number of a connection, from 0 to the capacity the driver was made with.
pub type Slot = u32;

/// Bytes that were handed to the driver once and are sent many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload(pub(crate) u32);

impl Payload {
    /// How many payloads were registered before it.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How long to wait for the first completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Poll,
    /// At most so many nanoseconds, and as little more as the kernel's timers allow.
    AtMostNs(u64),
    /// So many nanoseconds and perhaps a millisecond more, with as few system calls as possible.
    AboutNs(u64),
}

/// Something that happened to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The connection was made.
    Connected {
        /// The connection.
        slot: Slot,
        /// When TCP was connected, if a TLS handshake came after it (nanoseconds of CLOCK_MONOTONIC).
        handshake_began_ns: Option<u64>,
    },
    /// Bytes came.
    Received {
        /// The connection.
        slot: Slot,
        /// The bytes.
        bytes: &'a [u8],
        /// When the kernel received the last of their packets, in nanoseconds since 1970. `None` without
        /// [`Driver::stamp_arrivals`], and sometimes with it.
        stamp_unix_ns: Option<u64>,
    },
    /// The peer sends no more. Reported once; the connection stays open until it is closed.
    Ended {
        /// The connection.
        slot: Slot,
    },
    /// The connection could not be made, or it broke. The slot is free again.
    Failed {
        /// The connection.
        slot: Slot,
        /// Why.
        errno: Errno,
        /// Why, if the number does not say it.
        text: Option<&'a str>,
    },
}

/// An event without what it lends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    Connected(Slot),
    Received(Slot),
    Ended(Slot),
    Failed(Slot, Errno),
}

impl Completion {
    /// Adds what the event lends.
    #[inline]
    pub(crate) fn with<'a>(self, bytes: &'a [u8], stamp_unix_ns: Option<u64>) -> Event<'a> {
        match self {
            Self::Received(slot) => Event::Received { slot, bytes, stamp_unix_ns },
            Self::Connected(slot) => Event::Connected { slot, handshake_began_ns: None },
            Self::Ended(slot) => Event::Ended { slot },
            Self::Failed(slot, errno) => Event::Failed { slot, errno, text: None },
        }
    }
}

/// A driver that talks to the kernel.
pub trait Backend: Driver + Sized {
    /// Its name in plans and records.
    const NAME: &'static str;

    /// Returns a driver for slots `0..capacity`.
    ///
    /// # Errors
    /// When the kernel does not provide what it needs.
    fn new(capacity: usize) -> io::Result<Self>;
}

/// Connections: requests to connect and to send go in, events come out.
///
/// The rhythm is `wait`, then `next` until it returns `None`, with `connect`, `send` and `close` in between. The kernel
/// has them all when `wait` is called again.
pub trait Driver {
    /// Whether sends are gathered until `wait`. If so, a write happens at the beginning of `wait` and not in `send`,
    /// and `wait` does a part of the work.
    const GATHERS_SENDS: bool;

    /// Asks the kernel to stamp the packets of TCP connections that are made from now on.
    fn stamp_arrivals(&mut self);

    /// Keeps bytes to be sent later.
    fn register(&mut self, bytes: Vec<u8>) -> Payload;

    /// Starts a connection on a free slot. Ends in `Connected` or `Failed`.
    fn connect(&mut self, slot: Slot, endpoint: &Endpoint);

    /// Sends a payload. Reports `Failed` if this fails, and nothing otherwise.
    fn send(&mut self, slot: Slot, payload: Payload);

    /// Sends bytes as [`Self::send`] does; they are copied if they must live on. The last send of the slot must be
    /// over.
    fn send_once(&mut self, slot: Slot, bytes: &[u8]);

    /// Sends bytes behind all unsent ones of the slot. A connection uses either this function or the other two.
    fn send_bytes(&mut self, slot: Slot, bytes: &[u8]);

    /// Returns whether the kernel has not taken all sent bytes of the slot yet.
    fn has_unsent(&self, slot: Slot) -> bool;

    /// Closes a connection, or the attempt to make one. The slot has no more events until it is used again.
    fn close(&mut self, slot: Slot);

    /// Closes a connection that the peer has promised to close: it stays open until the peer has closed it, so that its
    /// port is free again, for a tenth of a second at most. The slot is free at once.
    fn close_after_peer(&mut self, slot: Slot);

    /// Waits until something happens. Returns whether there may be events.
    ///
    /// # Errors
    /// When waiting itself fails; an interruption by a signal is no error.
    fn wait(&mut self, wait: Wait) -> io::Result<bool>;

    /// Returns the next event, `None` if there is none until the next `wait`.
    fn next(&mut self) -> Option<Event<'_>>;
}
