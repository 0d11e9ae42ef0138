//! What is known about one connection.

use weir_wire::ResponseState;

use crate::fifo::{Linked, Links};

/// What a connection is doing. `Connecting`, `Idle` and `Waiting` have a list of the connections in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not there; perhaps to be tried again later.
    Closed,
    /// Being made.
    Connecting,
    /// Free for a request.
    Idle,
    /// Waiting for the answer to a request that was written.
    Waiting,
    /// Waiting for the answers to requests that were written without waiting for one another's.
    Pipelined,
    /// There, and kept for a user who is away: who thinks, or has not come yet.
    Thinking,
}

/// One connection. There may be ten thousand: keep it within two cache lines.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Where in its answer it is.
    pub(crate) response: ResponseState,
    /// When its request was due.
    pub(crate) intended_ns: u64,
    /// When its request was written, or connecting began.
    pub(crate) since_ns: u64,
    /// When the first byte of its answer came; 0 before.
    pub(crate) first_byte_ns: u64,
    links: Links,
    /// Requests written on it, and on those in its place before.
    pub(crate) requests: u32,
    /// Attempts since the last answer that came to nothing.
    pub(crate) failures: u8,
    pub(crate) phase: Phase,
    /// Closed loop: its user's request is due and waits for the connection.
    pub(crate) has_request: bool,
    /// Whether an answer has come on it since it was made.
    pub(crate) has_answered: bool,
}

impl Connection {
    pub(crate) fn new() -> Self {
        Self {
            response: ResponseState::new(),
            intended_ns: 0,
            since_ns: 0,
            first_byte_ns: 0,
            links: Links::default(),
            requests: 0,
            failures: 0,
            phase: Phase::Closed,
            has_request: false,
            has_answered: false,
        }
    }
}

impl Linked for Connection {
    #[inline]
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_fits_into_two_cache_lines() {
        assert!(
            size_of::<Connection>() <= 128,
            "{}",
            size_of::<Connection>()
        );
    }
}
