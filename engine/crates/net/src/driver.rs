//! The interface that every back end gives.

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

/// Something that came of what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// A connection was made.
    Connected(Slot),
    /// Bytes came; [`Driver::received`] has them until the next call to [`Driver::next`].
    Received(Slot),
    /// The peer will send nothing more. Reported once; the connection stays open until it is closed.
    Ended(Slot),
    /// The connection could not be made, or it broke. The slot is free again.
    Failed(Slot, Errno),
}

/// A back end: connections in, completions out.
///
/// The rhythm is `wait`, then `next` until there is none, with `connect`, `send` and `close` in between; what was asked for is
/// under way at the latest when `wait` is called again.
pub trait Driver: Sized {
    /// The name that records give it.
    const NAME: &'static str;

    /// Whether sends are gathered until `wait`. If so, the moment of a write is the moment before `wait` and not that of `send`,
    /// and a part of the work is done inside `wait`.
    const GATHERS_SENDS: bool;

    /// A driver for slots `0..capacity`.
    ///
    /// # Errors
    /// When the kernel does not give what it needs.
    fn new(capacity: usize) -> io::Result<Self>;

    /// From here on the kernel stamps what comes on connections that are made, which are of TCP; see [`Self::received_at_unix_ns`].
    fn stamp_arrivals(&mut self);

    /// Keeps bytes to be sent later.
    fn register(&mut self, bytes: Vec<u8>) -> Payload;

    /// Starts a connection on a free slot. Ends in `Connected` or `Failed`.
    fn connect(&mut self, slot: Slot, endpoint: &Endpoint);

    /// Sends a payload. Nothing is reported when it worked; `Failed` when not.
    fn send(&mut self, slot: Slot, payload: Payload);

    /// Sends bytes of which there is only this one request; they are copied where they must live on. As [`Self::send`] otherwise.
    fn send_once(&mut self, slot: Slot, bytes: &[u8]);

    /// Sends bytes behind whatever is still unsent, as the records of TLS are. Not to be mixed with the others on a connection.
    fn send_bytes(&mut self, slot: Slot, bytes: &[u8]);

    /// Whether a part of what was sent on the slot has not been taken by the kernel yet.
    fn has_unsent(&self, slot: Slot) -> bool;

    /// Closes a connection, or the attempt at one. Nothing is reported about the slot any more, until it is used again.
    fn close(&mut self, slot: Slot);

    /// As [`Self::close`], of a connection that the peer has said it will close: it is kept open until the peer has done so, for a
    /// tenth of a second or until the next wait after it, so that its port is free for another one. The slot is free at once.
    fn close_after_peer(&mut self, slot: Slot);

    /// Waits until something completes. Gives whether anything may have.
    ///
    /// # Errors
    /// When waiting itself fails; being interrupted by a signal is not an error.
    fn wait(&mut self, wait: Wait) -> io::Result<bool>;

    /// The next completion, or nothing until the next `wait`.
    fn next(&mut self) -> Option<Completion>;

    /// The bytes of the last `Received`.
    fn received(&self) -> &[u8];

    /// When the kernel received the bytes of the last `Received`, those of several packets when it received the last one; as time of
    /// day, in nanoseconds since 1970. Nothing unless it was asked to stamp them, and perhaps not even then.
    fn received_at_unix_ns(&self) -> Option<u64> {
        None
    }

    /// What the last `Failed` was about, where its number does not say it.
    fn failure_text(&self) -> Option<&str> {
        None
    }

    /// When the connection of the last `Connected` had been made, if more was to be done since: the handshake of TLS.
    fn handshake_began_ns(&self) -> Option<u64> {
        None
    }
}
