//! Requests in flight: written, and without their response.
//!
//! Hot path. Rules: all memory is there from the start. A request is in two orders: that of its connection, in which
//! responses come (RFC 9112, section 9.3.2), and that of writing on all connections, whose first is the next to time
//! out. A connection without pipelining is one of depth 1.

use weir_net::Slot;

use crate::index_list::{IndexList, Linked, Links};
use crate::workload::WrittenRequest;

/// The place of a request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId(u32);

/// One request from its writing to its outcome. Moments are of CLOCK_MONOTONIC, 0 before they have come. One cache
/// line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct InFlightRequest {
    /// When it was due.
    pub(crate) intended_ns: u64,
    pub(crate) written_ns: u64,
    /// When the first byte of its response came.
    pub(crate) first_byte_ns: u64,
    /// When the last byte of its response came.
    pub(crate) last_byte_ns: u64,
    links: Links,
    /// Received bytes of its response.
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u32,
    /// Its step of the scenario, or its target.
    pub(crate) part: u32,
    /// Whether it is a HEAD.
    pub(crate) is_head: bool,
    /// Whether the kernel's stamp says when its response came.
    pub(crate) is_stamped: bool,
}

impl InFlightRequest {
    /// Returns a request that is written now.
    #[inline]
    pub(crate) fn written(intended_ns: u64, written: WrittenRequest, now: u64) -> Self {
        Self {
            intended_ns,
            written_ns: now,
            sent_bytes: written.bytes,
            part: written.part,
            is_head: written.is_head,
            ..Self::default()
        }
    }

    /// Returns a request that was due and not written.
    pub(crate) fn unsent(intended_ns: u64, part: u32) -> Self {
        Self { intended_ns, part, ..Self::default() }
    }

    /// Returns its response time.
    #[inline]
    pub(crate) fn response_ns(&self) -> u64 {
        self.last_byte_ns.saturating_sub(self.intended_ns)
    }
}

impl Linked for InFlightRequest {
    #[inline]
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The requests of one connection: places in its part of the table, used round and round.
#[derive(Debug, Clone, Copy, Default)]
struct Queue {
    first: u32,
    length: u32,
}

/// All requests in flight of a thread.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// A part of `2^shift` places for each connection.
    requests: Vec<InFlightRequest>,
    shift: u32,
    /// `2^shift - 1`.
    mask: u32,
    depth: u32,
    /// By slot.
    queues: Vec<Queue>,
    by_write: IndexList,
    /// Requests that the driver has gathered and not written yet.
    gathered: Vec<RequestId>,
    timeout_ns: u64,
}

impl InFlight {
    /// Returns a table for so many connections with up to `depth` requests on each.
    pub(crate) fn new(connections: usize, depth: usize, timeout_ns: u64) -> Self {
        let places = depth.next_power_of_two();
        Self {
            requests: vec![InFlightRequest::default(); connections * places],
            shift: places.trailing_zeros(),
            mask: places as u32 - 1,
            depth: depth as u32,
            queues: vec![Queue::default(); connections],
            by_write: IndexList::new(),
            gathered: Vec::new(),
            timeout_ns,
        }
    }

    /// Returns how many requests are in flight.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.by_write.len()
    }

    /// Returns how many requests are in flight on a connection.
    #[inline]
    pub(crate) fn count(&self, slot: Slot) -> u32 {
        self.queues[slot as usize].length
    }

    /// Returns whether a connection takes another request.
    #[inline]
    pub(crate) fn has_room(&self, slot: Slot) -> bool {
        self.count(slot) < self.depth
    }

    /// Returns whether a connection can carry several requests at a time.
    #[inline]
    pub(crate) fn is_pipelined(&self) -> bool {
        self.depth > 1
    }

    /// Adds a request behind the others of a connection that has room.
    #[inline(always)]
    pub(crate) fn push(&mut self, slot: Slot, request: InFlightRequest) -> RequestId {
        let queue = &mut self.queues[slot as usize];
        let nth = queue.first.wrapping_add(queue.length) & self.mask;
        queue.length += 1;
        let index = (slot << self.shift) | nth;
        self.requests[index as usize] = request;
        self.by_write.push(&mut self.requests, index);
        RequestId(index)
    }

    /// Returns the first request of a connection, whose response comes next.
    #[inline]
    pub(crate) fn first_of(&self, slot: Slot) -> Option<RequestId> {
        let queue = &self.queues[slot as usize];
        let index = (slot << self.shift) | (queue.first & self.mask);
        (queue.length > 0).then_some(RequestId(index))
    }

    #[inline]
    pub(crate) fn get(&mut self, id: RequestId) -> &mut InFlightRequest {
        &mut self.requests[id.0 as usize]
    }

    /// Removes the first request of a connection: its outcome is known. Its place holds it until the next push.
    #[inline(always)]
    pub(crate) fn remove_first(&mut self, slot: Slot, id: RequestId) -> &mut InFlightRequest {
        self.by_write.remove(&mut self.requests, id.0);
        let queue = &mut self.queues[slot as usize];
        queue.first = queue.first.wrapping_add(1);
        queue.length -= 1;
        &mut self.requests[id.0 as usize]
    }

    /// Removes the first request of a connection, if there is one.
    pub(crate) fn pop(&mut self, slot: Slot) -> Option<&mut InFlightRequest> {
        let id = self.first_of(slot)?;
        Some(self.remove_first(slot, id))
    }

    /// The driver gathers a request: [`Self::stamp_gathered`] tells when it is written.
    #[inline]
    pub(crate) fn gather(&mut self, id: RequestId) {
        self.gathered.push(id);
    }

    /// The driver writes the gathered requests now. Returns whether there were any.
    #[inline]
    pub(crate) fn stamp_gathered(&mut self, now: u64) -> bool {
        let any = !self.gathered.is_empty();
        for RequestId(index) in self.gathered.drain(..) {
            // The place of a request that is gone is overwritten before it is read.
            self.requests[index as usize].written_ns = now;
        }
        any
    }

    /// Returns the request that was written first.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<&InFlightRequest> {
        let index = self.by_write.first()?;
        Some(&self.requests[index as usize])
    }

    /// Returns when the next request times out, `u64::MAX` if none is in flight.
    #[inline]
    pub(crate) fn next_timeout_ns(&self) -> u64 {
        self.oldest().map_or(u64::MAX, |oldest| oldest.written_ns + self.timeout_ns)
    }

    /// Returns the connection of a request that has timed out, `None` if there is none.
    #[inline]
    pub(crate) fn timed_out(&self, now: u64) -> Option<Slot> {
        let index = self.by_write.first()?;
        (now >= self.next_timeout_ns()).then_some(index >> self.shift)
    }

    pub(crate) fn timeout_s(&self) -> f64 {
        self.timeout_ns as f64 / 1e9
    }

    /// Returns each request and its connection, those of a connection in the order of writing.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &InFlightRequest)> {
        (0..self.queues.len() as Slot).flat_map(move |slot| {
            let indices = (0..self.count(slot)).map(move |nth| self.index(slot, nth));
            indices.map(move |index| (slot, &self.requests[index as usize]))
        })
    }

    /// Returns the place of a connection's request, counted from its first.
    #[inline]
    fn index(&self, slot: Slot, nth: u32) -> u32 {
        let first = self.queues[slot as usize].first;
        (slot << self.shift) | (first.wrapping_add(nth) & self.mask)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn request(at_ns: u64) -> InFlightRequest {
        InFlightRequest { intended_ns: at_ns, written_ns: at_ns, ..InFlightRequest::default() }
    }

    fn intended(request: Option<&mut InFlightRequest>) -> Option<u64> {
        request.map(|request| request.intended_ns)
    }

    #[test]
    fn a_request_fits_into_a_cache_line() {
        assert_eq!(size_of::<InFlightRequest>(), 64);
    }

    #[test]
    fn connection_order_survives_wraparound() {
        let mut in_flight = InFlight::new(2, 3, 1);
        let mut next = 0;
        for expected in 0..20 {
            while in_flight.has_room(1) {
                in_flight.push(1, request(next));
                next += 1;
            }
            assert_eq!(in_flight.count(1), 3);
            assert_eq!(intended(in_flight.pop(1)), Some(expected));
        }
        assert_eq!((in_flight.count(0), in_flight.len()), (0, 2));
        let left = in_flight.iter().map(|(slot, request)| (slot, request.intended_ns));
        assert_eq!(left.collect::<Vec<_>>(), [(1, 20), (1, 21)]);
        assert!(in_flight.pop(0).is_none());
    }

    #[test]
    fn the_oldest_is_the_first_written_on_any_connection() {
        let mut in_flight = InFlight::new(2, 2, 10);
        for (slot, at) in [(0, 1), (1, 2), (0, 3), (1, 4)] {
            in_flight.push(slot, request(at));
        }
        assert_eq!(in_flight.next_timeout_ns(), 11);
        let mut order = Vec::new();
        while let Some(slot) = in_flight.timed_out(100) {
            order.push((slot, in_flight.oldest().unwrap().written_ns));
            in_flight.pop(slot);
            if order.len() == 1 {
                in_flight.push(0, request(5));
            }
        }
        assert_eq!(order, [(0, 1), (1, 2), (0, 3), (1, 4), (0, 5)]);
    }

    #[test]
    fn a_request_is_stamped_once_when_it_is_written() {
        let mut in_flight = InFlight::new(1, 3, 1);
        for (at, stamp) in [(1, 10), (2, 20), (3, 30)] {
            let id = in_flight.push(0, request(at));
            in_flight.gather(id);
            assert!(in_flight.stamp_gathered(stamp));
        }
        assert!(!in_flight.stamp_gathered(40));
        let written = std::iter::from_fn(|| in_flight.pop(0).map(|request| request.written_ns));
        assert_eq!(written.collect::<Vec<_>>(), [10, 20, 30]);
    }
}
