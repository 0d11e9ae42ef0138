//! One connection: its unparsed input and its unsent output.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

/// Maximum unsent output. Above it the server stops reading, so a client that does not read its responses cannot fill
/// the memory.
const MAX_PENDING_OUTPUT: usize = 1024 * 1024;

/// The result of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushResult {
    /// All output is sent.
    Complete,
    /// The socket's buffer is full.
    Blocked,
    /// The connection has failed.
    Failed,
}

/// One connection.
pub struct Connection {
    pub socket: OwnedFd,
    /// Received bytes without a complete request.
    pub input: Vec<u8>,
    /// Responses, of which `output[written..]` is unsent.
    pub output: Vec<u8>,
    written: usize,
    /// Whether the connection closes after its unsent and delayed responses. No further request is read.
    pub closing: bool,
    /// Whether `100 Continue` was sent for the current request.
    pub continued: bool,
    /// Number of delayed responses.
    pub delayed: usize,
    /// Earliest and latest time of the last delayed response: the responses of a connection stay in order.
    pub last_due: Option<(Instant, Instant)>,
    /// Distinguishes this connection from an earlier one in the same slot.
    pub generation: u32,
    /// Events registered with epoll.
    pub interest: EventFlags,
}

impl Connection {
    pub fn new(socket: OwnedFd, generation: u32, interest: EventFlags) -> Self {
        Self {
            socket,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            closing: false,
            continued: false,
            delayed: 0,
            last_due: None,
            generation,
            interest,
        }
    }

    /// Returns whether the unsent output is above its maximum.
    pub fn is_full(&self) -> bool {
        self.output.len() - self.written > MAX_PENDING_OUTPUT
    }

    /// Sends as much output as possible.
    pub fn flush(&mut self) -> FlushResult {
        while self.written < self.output.len() {
            match rustix::net::send(self.socket.as_fd(), &self.output[self.written..], rustix::net::SendFlags::NOSIGNAL)
            {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return FlushResult::Blocked,
                Err(_) => return FlushResult::Failed,
            }
        }
        self.output.clear();
        self.written = 0;
        FlushResult::Complete
    }
}
