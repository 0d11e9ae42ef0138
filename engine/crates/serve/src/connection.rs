//! One connection: what was received and not yet understood, what is to be sent and not yet written.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

/// Answers that wait to be written. Beyond this nothing more is read from the connection, so that a client that does not read its
/// answers stops being served instead of filling the memory.
const MAX_PENDING_OUTPUT: usize = 1024 * 1024;

/// How writing went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Everything is written.
    All,
    /// The socket's buffer is full.
    Blocked,
    /// The connection is gone.
    Gone,
}

/// One connection.
pub struct Connection {
    pub socket: OwnedFd,
    /// Bytes received that are not yet a whole request.
    pub input: Vec<u8>,
    /// Answers, `output[written..]` still to be written.
    pub output: Vec<u8>,
    written: usize,
    /// No further request is read; closed once everything is written and nothing is delayed.
    pub closing: bool,
    /// The `100 Continue` of the current request was sent.
    pub continued: bool,
    /// Requests that wait for their time.
    pub delayed: usize,
    /// The earliest and the latest that the last of them may be answered: answers of one connection keep the order of its requests.
    pub last_due: Option<(Instant, Instant)>,
    /// Tells this connection from an earlier one in the same slot.
    pub generation: u32,
    /// What epoll was asked to report.
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

    /// Whether so much waits to be written that nothing more should be read.
    pub fn is_full(&self) -> bool {
        self.output.len() - self.written > MAX_PENDING_OUTPUT
    }

    /// Writes what it can.
    pub fn flush(&mut self) -> Flushed {
        while self.written < self.output.len() {
            match rustix::net::send(
                self.socket.as_fd(),
                &self.output[self.written..],
                rustix::net::SendFlags::NOSIGNAL,
            ) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Flushed::Blocked,
                Err(_) => return Flushed::Gone,
            }
        }
        self.output.clear();
        self.written = 0;
        Flushed::All
    }
}
