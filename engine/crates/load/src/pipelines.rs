//! Connections that carry several requests at once: which are unanswered on each, and which of all was written first.
//!
//! Hot path. Rules: all memory is there from the start. A request is in two orders: its connection's, in which answers come
//! (RFC 9112, section 9.3.2), and that of writing among all of them, whose first is the next to run out of time.

use weir_net::{Driver, Slot};

use crate::fifo::{Fifo, Linked, Links};

/// Copies of a request that are kept to be sent at once take no more memory than this, or than one of them.
const COPIES_BYTES: usize = 64 * 1024;

/// A request that was written and is not answered.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked {
    /// When it was due.
    pub(crate) intended_ns: u64,
    /// When it was written.
    pub(crate) written_ns: u64,
    links: Links,
}

impl Linked for Asked {
    #[inline]
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// One connection's requests: places in its part of the memory, used round and round.
#[derive(Debug, Clone, Copy, Default)]
struct Pipeline {
    first: u32,
    length: u32,
    /// How many of the last the driver has gathered and not written yet.
    gathered: u32,
    /// Whether it is in the list of connections with room.
    is_with_room: bool,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Pipelines {
    depth: u32,
    /// A part of `depth` places for each connection.
    asked: Vec<Asked>,
    pipelines: Vec<Pipeline>,
    /// All that are unanswered, in the order of writing.
    unanswered: Fifo,
    /// By target.
    copies: Vec<Copies>,
}

/// The bytes of one request, several times.
#[derive(Debug)]
struct Copies {
    bytes: Vec<u8>,
    request_bytes: usize,
}

impl Copies {
    fn of(request: &[u8], depth: usize) -> Self {
        let times = depth.min((COPIES_BYTES / request.len()).max(1));
        Self {
            bytes: request.repeat(times),
            request_bytes: request.len(),
        }
    }
}

impl Pipelines {
    /// So many connections with up to `depth` requests on each, and what is asked of each target.
    pub(crate) fn new(connections: usize, depth: usize, requests: &[Vec<u8>]) -> Self {
        let copies = requests.iter().map(|request| Copies::of(request, depth));
        Self {
            depth: depth as u32,
            asked: vec![Asked::default(); connections * depth],
            pipelines: vec![Pipeline::default(); connections],
            unanswered: Fifo::new(),
            copies: copies.collect(),
        }
    }

    /// How many requests are unanswered on all connections.
    pub(crate) fn unanswered(&self) -> u64 {
        self.unanswered.len()
    }

    /// How many requests are unanswered on a connection.
    #[inline]
    pub(crate) fn len(&self, slot: Slot) -> u32 {
        self.pipelines[slot as usize].length
    }

    /// Whether a connection takes another request.
    #[inline]
    pub(crate) fn has_room(&self, slot: Slot) -> bool {
        self.len(slot) < self.depth
    }

    /// The request that was written first, and its connection.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<(Slot, Asked)> {
        let place = self.unanswered.first()?;
        Some((place / self.depth, self.asked[place as usize]))
    }

    /// Adds a request behind the others of a connection that has room.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot, intended_ns: u64, written_ns: u64) {
        let length = self.len(slot);
        debug_assert!(length < self.depth, "there is room");
        let place = self.place(slot, length);
        let asked = &mut self.asked[place as usize];
        asked.intended_ns = intended_ns;
        asked.written_ns = written_ns;
        self.unanswered.push(&mut self.asked, place);
        let pipeline = &mut self.pipelines[slot as usize];
        pipeline.length += 1;
        pipeline.gathered += 1;
    }

    /// Takes the first request of a connection: it was answered, or never will be.
    #[inline]
    pub(crate) fn pop(&mut self, slot: Slot) -> Option<Asked> {
        if self.len(slot) == 0 {
            return None;
        }
        let place = self.place(slot, 0);
        self.unanswered.remove(&mut self.asked, place);
        let pipeline = &mut self.pipelines[slot as usize];
        pipeline.first = (pipeline.first + 1) % self.depth;
        pipeline.length -= 1;
        pipeline.gathered = pipeline.gathered.min(pipeline.length);
        Some(self.asked[place as usize])
    }

    /// What the driver gathered of a connection's requests is written now.
    #[inline]
    pub(crate) fn stamp(&mut self, slot: Slot, now: u64) {
        let Pipeline {
            length, gathered, ..
        } = self.pipelines[slot as usize];
        for index in length - gathered..length {
            let place = self.place(slot, index);
            self.asked[place as usize].written_ns = now;
        }
        self.pipelines[slot as usize].gathered = 0;
    }

    /// Sends a target so many requests on a connection, at once where there are copies enough. Gives their length.
    #[inline]
    pub(crate) fn send(
        &self,
        slot: Slot,
        target: usize,
        count: u32,
        driver: &mut impl Driver,
    ) -> u64 {
        let copies = &self.copies[target];
        let length = count as usize * copies.request_bytes;
        let mut left = length;
        while left > 0 {
            let part = left.min(copies.bytes.len());
            driver.send_bytes(slot, &copies.bytes[..part]);
            left -= part;
        }
        length as u64
    }

    /// Notes whether a connection is in the list of those with room: it is while it has requests, and room for more. Gives
    /// whether that has changed, and what it is.
    pub(crate) fn changes_list(&mut self, slot: Slot) -> Option<bool> {
        let depth = self.depth;
        let pipeline = &mut self.pipelines[slot as usize];
        let is_with_room = (1..depth).contains(&pipeline.length);
        let was = std::mem::replace(&mut pipeline.is_with_room, is_with_room);
        (was != is_with_room).then_some(is_with_room)
    }

    /// Each unanswered request and its connection, those of one in the order of writing.
    pub(crate) fn all_unanswered(&self) -> impl Iterator<Item = (Slot, Asked)> + '_ {
        (0..self.pipelines.len() as Slot).flat_map(move |slot| {
            let places = (0..self.len(slot)).map(move |index| self.place(slot, index));
            places.map(move |place| (slot, self.asked[place as usize]))
        })
    }

    /// Bytes of a target's request.
    pub(crate) fn request_bytes(&self, target: usize) -> u64 {
        self.copies[target].request_bytes as u64
    }

    /// The place of a connection's request, counted from its first.
    #[inline]
    fn place(&self, slot: Slot, index: u32) -> u32 {
        let first = self.pipelines[slot as usize].first;
        slot * self.depth + (first + index) % self.depth
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn intended(asked: Option<Asked>) -> Option<u64> {
        asked.map(|asked| asked.intended_ns)
    }

    #[test]
    fn a_connections_requests_leave_in_the_order_in_which_they_came_however_often_its_places_are_used()
     {
        let mut pipelines = Pipelines::new(2, 3, &[b"x".to_vec()]);
        let mut next = 0;
        for expected in 0..20 {
            while pipelines.has_room(1) {
                pipelines.push(1, next, next);
                next += 1;
            }
            assert_eq!(pipelines.len(1), 3);
            assert_eq!(intended(pipelines.pop(1)), Some(expected));
        }
        assert_eq!((pipelines.len(0), pipelines.unanswered()), (0, 2));
        let unanswered = pipelines.all_unanswered();
        let unanswered = unanswered.map(|(slot, asked)| (slot, asked.intended_ns));
        assert_eq!(unanswered.collect::<Vec<_>>(), [(1, 20), (1, 21)]);
        assert!(pipelines.pop(0).is_none());
    }

    #[test]
    fn the_oldest_is_the_first_that_was_written_on_any_connection() {
        let mut pipelines = Pipelines::new(2, 2, &[b"x".to_vec()]);
        for (slot, at) in [(0, 1), (1, 2), (0, 3), (1, 4)] {
            pipelines.push(slot, at, at);
        }
        let mut order = Vec::new();
        while let Some((slot, asked)) = pipelines.oldest() {
            order.push((slot, asked.written_ns));
            pipelines.pop(slot);
            if order.len() == 1 {
                pipelines.push(0, 5, 5);
            }
        }
        assert_eq!(order, [(0, 1), (1, 2), (0, 3), (1, 4), (0, 5)]);
    }

    #[test]
    fn only_what_was_gathered_is_written_now() {
        let mut pipelines = Pipelines::new(1, 3, &[b"x".to_vec()]);
        pipelines.push(0, 1, 1);
        pipelines.stamp(0, 10);
        pipelines.push(0, 2, 2);
        pipelines.push(0, 3, 3);
        pipelines.stamp(0, 20);
        pipelines.stamp(0, 30);
        let written = std::iter::from_fn(|| pipelines.pop(0)).map(|asked| asked.written_ns);
        assert_eq!(written.collect::<Vec<_>>(), [10, 20, 20]);
    }

    #[test]
    fn what_was_gathered_and_is_gone_is_not_written() {
        let mut pipelines = Pipelines::new(1, 2, &[b"x".to_vec()]);
        pipelines.push(0, 1, 1);
        pipelines.pop(0);
        pipelines.stamp(0, 10);
        pipelines.push(0, 2, 2);
        pipelines.push(0, 3, 3);
        pipelines.pop(0);
        pipelines.stamp(0, 20);
        assert_eq!(pipelines.pop(0).unwrap().written_ns, 20);
    }

    #[test]
    fn a_connection_has_room_while_it_is_neither_empty_nor_full() {
        let mut pipelines = Pipelines::new(1, 2, &[b"x".to_vec()]);
        assert_eq!(pipelines.changes_list(0), None);
        pipelines.push(0, 1, 1);
        assert_eq!(pipelines.changes_list(0), Some(true));
        assert_eq!(pipelines.changes_list(0), None);
        pipelines.push(0, 2, 2);
        assert_eq!(pipelines.changes_list(0), Some(false));
        pipelines.pop(0);
        assert_eq!(pipelines.changes_list(0), Some(true));
        pipelines.pop(0);
        assert_eq!(pipelines.changes_list(0), Some(false));
    }
}
