//! What is known about one connection, and the lists that connections are in.

use weir_net::Slot;
use weir_wire::ResponseState;

/// No slot: the end of a list.
const NONE: Slot = Slot::MAX;

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
    next: Slot,
    previous: Slot,
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
            next: NONE,
            previous: NONE,
            requests: 0,
            failures: 0,
            phase: Phase::Closed,
            has_request: false,
            has_answered: false,
        }
    }
}

/// Connections in the order in which they came into a phase, linked through the connections themselves: joining, leaving and
/// looking at the oldest cost a few instructions and no memory. Since a timeout is the same for all, the oldest is also the
/// first to run out of time, and no timer is needed for each request.
#[derive(Debug)]
pub(crate) struct Fifo {
    first: Slot,
    last: Slot,
    length: u32,
}

impl Fifo {
    pub(crate) fn new() -> Self {
        Self {
            first: NONE,
            last: NONE,
            length: 0,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        u64::from(self.length)
    }

    /// The connection that has been here longest.
    #[inline]
    pub(crate) fn first(&self) -> Option<Slot> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    pub(crate) fn push(&mut self, connections: &mut [Connection], slot: Slot) {
        let connection = &mut connections[slot as usize];
        connection.next = NONE;
        connection.previous = self.last;
        match self.last {
            NONE => self.first = slot,
            last => connections[last as usize].next = slot,
        }
        self.last = slot;
        self.length += 1;
    }

    /// Takes out a connection that is in this list.
    #[inline]
    pub(crate) fn remove(&mut self, connections: &mut [Connection], slot: Slot) {
        let Connection { next, previous, .. } = connections[slot as usize];
        match previous {
            NONE => self.first = next,
            previous => connections[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => connections[next as usize].previous = previous,
        }
        self.length -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(fifo: &Fifo, connections: &[Connection]) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut slot = fifo.first;
        while slot != NONE {
            slots.push(slot);
            slot = connections[slot as usize].next;
        }
        slots
    }

    #[test]
    fn a_list_keeps_its_order_whoever_leaves() {
        for leaving in 0..4 {
            let mut connections: Vec<Connection> = (0..4).map(|_| Connection::new()).collect();
            let mut fifo = Fifo::new();
            (0..4).for_each(|slot| fifo.push(&mut connections, slot));
            fifo.remove(&mut connections, leaving);
            let mut expected: Vec<Slot> = (0..4).filter(|&slot| slot != leaving).collect();
            assert_eq!(slots(&fifo, &connections), expected);
            fifo.push(&mut connections, leaving);
            expected.push(leaving);
            assert_eq!(slots(&fifo, &connections), expected);
            assert_eq!(fifo.len(), 4);
            for slot in expected {
                assert_eq!(fifo.first(), Some(slot));
                fifo.remove(&mut connections, slot);
            }
            assert_eq!((fifo.first(), fifo.len()), (None, 0));
        }
    }

    #[test]
    fn a_connection_fits_into_two_cache_lines() {
        assert!(
            size_of::<Connection>() <= 128,
            "{}",
            size_of::<Connection>()
        );
    }
}
