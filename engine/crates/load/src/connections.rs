//! The connections of a thread: which are open, which are free, and when to try again. They know nothing of requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_net::{Endpoint, Slot};
use weir_schedule::Shard;

use crate::index_list::{IndexList, Linked, Links};

/// The pause after the first failure to connect; it doubles with each further one.
const FIRST_PAUSE_NS: u64 = 10_000_000;
const MAX_PAUSE_NS: u64 = 1_000_000_000;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// There is none.
    Closed,
    /// It is being made; in the list `connecting`.
    Connecting,
    /// It is free for any request; in the list `idle`. Without keep-alive it is made when it is used.
    Idle,
    /// It carries requests.
    Busy,
    /// It is open for a user who sends nothing now.
    Away,
}

/// One connection. A request on a thousand connections finds none of them in the first cache: one cache line, so that it
/// waits once.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Connection<S> {
    /// The protocol's state.
    pub(crate) state: S,
    /// When connecting began.
    since_ns: u64,
    /// How long connecting took; 0 once the outcome of a request on it is known.
    pub(crate) connect_ns: u64,
    links: Links,
    /// Requests written on it, and on earlier ones of this slot.
    pub(crate) requests: u32,
    /// Failures since the last response.
    failures: u8,
    pub(crate) phase: Phase,
    /// Whether it has carried a response.
    pub(crate) has_responded: bool,
    /// Whether it is in the list `with_room`.
    is_with_room: bool,
}

impl<S> Linked for Connection<S> {
    #[inline]
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl<S> Connection<S> {
    /// A response has come.
    #[inline]
    pub(crate) fn has_worked(&mut self) {
        self.has_responded = true;
        self.failures = 0;
    }
}

/// All connections of a thread, by slot.
#[derive(Debug)]
pub(crate) struct Connections<S> {
    all: Vec<Connection<S>>,
    connecting: IndexList,
    idle: IndexList,
    /// Connections with requests and with room for more, if arrivals may join them.
    with_room: Option<IndexList>,
    /// When to try again to connect.
    retries: BinaryHeap<Reverse<(u64, Slot)>>,
    /// Closed connections whose users are free.
    freed: Vec<Slot>,
    /// By slot: the intended start of the request that waits for the connection.
    parked: Vec<Option<u64>>,
    /// Requests that wait for a connection.
    parked_count: u64,
    /// By target: where its connections go, one after the other.
    endpoints: Vec<Vec<Endpoint>>,
    shard: Shard,
    timeout_ns: u64,
    /// Whether a connection carries more than one request.
    pub(crate) keep_alive: bool,
}

impl<S: Default> Connections<S> {
    /// Returns `count` closed connections, to the targets in turn. `joins` says whether arrivals join requests on a
    /// connection.
    pub(crate) fn new(
        count: usize,
        endpoints: Vec<Vec<Endpoint>>,
        shard: Shard,
        timeout_ns: u64,
        keep_alive: bool,
        joins: bool,
    ) -> Self {
        let closed = || Connection {
            state: S::default(),
            since_ns: 0,
            connect_ns: 0,
            links: Links::default(),
            requests: 0,
            failures: 0,
            phase: Phase::Closed,
            has_responded: false,
            is_with_room: false,
        };
        Self {
            all: (0..count).map(|_| closed()).collect(),
            connecting: IndexList::new(),
            idle: IndexList::new(),
            with_room: joins.then(IndexList::new),
            retries: BinaryHeap::new(),
            freed: Vec::new(),
            parked: vec![None; count],
            parked_count: 0,
            endpoints,
            shard,
            timeout_ns,
            keep_alive,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    #[inline]
    pub(crate) fn get(&mut self, slot: Slot) -> &mut Connection<S> {
        &mut self.all[slot as usize]
    }

    #[inline]
    pub(crate) fn phase(&self, slot: Slot) -> Phase {
        self.all[slot as usize].phase
    }

    /// Returns whether a request can be sent on a connection at once. Without keep-alive every request makes its own.
    #[inline]
    pub(crate) fn is_usable(&self, slot: Slot) -> bool {
        self.keep_alive && self.phase(slot) >= Phase::Idle
    }

    /// A request is written on a connection.
    #[inline]
    pub(crate) fn use_for_request(&mut self, slot: Slot) {
        let connection = self.get(slot);
        connection.requests = connection.requests.saturating_add(1);
        connection.phase = Phase::Busy;
    }

    /// Connecting begins. Returns where to.
    pub(crate) fn begin(&mut self, slot: Slot, now: u64) -> &Endpoint {
        let connection = self.get(slot);
        connection.phase = Phase::Connecting;
        connection.since_ns = now;
        self.connecting.push(&mut self.all, slot);
        let (index, targets) = (self.shard.index(u64::from(slot)), self.endpoints.len() as u64);
        let endpoints = &self.endpoints[(index % targets) as usize];
        let turn = index / targets % endpoints.len() as u64;
        &endpoints[turn as usize]
    }

    /// The connection is made. Returns when connecting began.
    pub(crate) fn open(&mut self, slot: Slot, now: u64) -> u64 {
        self.connecting.remove(&mut self.all, slot);
        let connection = self.get(slot);
        connection.state = S::default();
        connection.connect_ns = now.saturating_sub(connection.since_ns);
        connection.has_responded = false;
        connection.phase = Phase::Away;
        connection.since_ns
    }

    /// The connection is closed, or connecting has ended. Returns its phase before.
    pub(crate) fn close(&mut self, slot: Slot) -> Phase {
        let phase = std::mem::replace(&mut self.get(slot).phase, Phase::Closed);
        match phase {
            Phase::Connecting => self.connecting.remove(&mut self.all, slot),
            Phase::Idle => self.idle.remove(&mut self.all, slot),
            Phase::Busy => self.update_room(slot, false),
            Phase::Closed | Phase::Away => {}
        }
        phase
    }

    /// Returns how long connecting has taken until now.
    pub(crate) fn connecting_ns(&self, slot: Slot, now: u64) -> u64 {
        now.saturating_sub(self.all[slot as usize].since_ns)
    }

    /// Returns the number of connections that are being made.
    pub(crate) fn connecting(&self) -> u64 {
        self.connecting.len()
    }

    /// The connection is free for any request.
    pub(crate) fn let_idle(&mut self, slot: Slot) {
        self.get(slot).phase = Phase::Idle;
        self.idle.push(&mut self.all, slot);
    }

    /// Returns the connection that has been idle longest.
    #[inline]
    pub(crate) fn first_idle(&self) -> Option<Slot> {
        self.idle.first()
    }

    /// Takes a connection out of the idle ones.
    #[inline]
    pub(crate) fn use_idle(&mut self, slot: Slot) {
        self.idle.remove(&mut self.all, slot);
        self.get(slot).phase = Phase::Away;
    }

    /// Notes whether a connection with requests has room for more.
    #[inline]
    pub(crate) fn update_room(&mut self, slot: Slot, has_room: bool) {
        let Some(list) = &mut self.with_room else {
            return;
        };
        let connection = &mut self.all[slot as usize];
        if std::mem::replace(&mut connection.is_with_room, has_room) == has_room {
            return;
        }
        match has_room {
            true => list.push(&mut self.all, slot),
            false => list.remove(&mut self.all, slot),
        }
    }

    /// Returns the connection that has had room longest, and moves it behind the others.
    pub(crate) fn next_with_room(&mut self) -> Option<Slot> {
        let list = self.with_room.as_mut()?;
        let slot = list.first()?;
        list.remove(&mut self.all, slot);
        list.push(&mut self.all, slot);
        Some(slot)
    }

    /// A request waits for its connection.
    pub(crate) fn park(&mut self, slot: Slot, intended_ns: u64) {
        self.parked[slot as usize] = Some(intended_ns);
        self.parked_count += 1;
    }

    /// Returns the intended start of the request that waits for a connection.
    pub(crate) fn take_parked(&mut self, slot: Slot) -> Option<u64> {
        let parked = self.parked[slot as usize].take();
        self.parked_count -= u64::from(parked.is_some());
        parked
    }

    /// Returns how many requests wait for their connections.
    #[inline]
    pub(crate) fn parked(&self) -> u64 {
        self.parked_count
    }

    /// Returns the intended start of a request whose connection is being made, the one that began first.
    pub(crate) fn oldest_parked_ns(&self) -> Option<u64> {
        self.parked[self.connecting.first()? as usize]
    }

    /// The user of a closed connection is free: [`Self::next_freed`] returns it.
    pub(crate) fn free(&mut self, slot: Slot) {
        self.freed.push(slot);
    }

    #[inline]
    pub(crate) fn next_freed(&mut self) -> Option<Slot> {
        self.freed.pop()
    }

    /// The connection is to be tried again after a pause.
    pub(crate) fn retry_later(&mut self, slot: Slot, now: u64) {
        let connection = self.get(slot);
        let pause_ns = (FIRST_PAUSE_NS << connection.failures.min(7)).min(MAX_PAUSE_NS);
        connection.failures = connection.failures.saturating_add(1);
        self.retries.push(Reverse((now + pause_ns, slot)));
    }

    /// Returns a connection whose pause is over.
    #[inline]
    pub(crate) fn next_retry(&mut self, now: u64) -> Option<Slot> {
        let &Reverse((at_ns, slot)) = self.retries.peek()?;
        if now < at_ns {
            return None;
        }
        self.retries.pop();
        Some(slot)
    }

    /// Returns a connection that was not made in time.
    #[inline]
    pub(crate) fn next_timed_out(&self, now: u64) -> Option<Slot> {
        let slot = self.connecting.first()?;
        (now >= self.all[slot as usize].since_ns + self.timeout_ns).then_some(slot)
    }

    /// Returns when a timeout or the end of a pause comes next.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        let timeout_ns =
            self.connecting.first().map_or(u64::MAX, |slot| self.all[slot as usize].since_ns + self.timeout_ns);
        match self.retries.peek() {
            Some(Reverse((at_ns, _))) => timeout_ns.min(*at_ns),
            None => timeout_ns,
        }
    }

    /// Returns the number of requests of each connection.
    pub(crate) fn requests(&self) -> impl Iterator<Item = u32> {
        self.all.iter().map(|connection| connection.requests)
    }
}

#[cfg(test)]
mod tests {
    use weir_http::Http1State;

    use super::*;

    #[test]
    fn a_connection_fits_into_a_cache_line() {
        assert_eq!(size_of::<Connection<Http1State>>(), 64);
    }
}
