//! The workload of a thread: what is sent next, for which user, and when it is due. It knows nothing of sockets.
//!
//! Moments are of CLOCK_MONOTONIC here, and since the start of the load in the modules below.

mod demand;
mod requests;
mod script;
mod users;

use weir_http::{HttpError, Progress, Protocol};
use weir_net::Driver;

pub(crate) use self::demand::Demand;
pub(crate) use self::requests::{Requests, WrittenRequest};
pub(crate) use self::script::Script;
use self::users::Action;
pub(crate) use self::users::UserId;
use crate::in_flight::InFlightRequest;

/// What a free user does next.
pub(crate) enum Next {
    /// It sends a request with this intended start.
    Send(u64),
    /// It takes the oldest arrival of the queue.
    Queue,
    /// It sends nothing now.
    Wait,
    /// It leaves with its connection.
    Leave,
}

/// A user for whom a moment has come.
pub(crate) enum Woken {
    /// It sends a request with this intended start.
    Send(UserId, u64),
    /// It leaves with its connection.
    Leave(UserId),
}

/// Requests and demand of a thread's shard of the load.
pub(crate) struct Workload {
    pub(crate) requests: Requests,
    pub(crate) demand: Demand,
    start_ns: u64,
}

impl Workload {
    pub(crate) fn new(requests: Requests, demand: Demand) -> Self {
        Self { requests, demand, start_ns: 0 }
    }

    /// The clock starts.
    pub(crate) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// Returns whether requests arrive without waiting for responses.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.demand.is_open()
    }

    /// Returns what a free user does next.
    #[inline(always)]
    pub(crate) fn next(&mut self, user: UserId, now: u64) -> Next {
        if self.demand.users.is_some() {
            return self.next_of_user(user, now);
        }
        if self.is_open() {
            return Next::Queue;
        }
        match self.take_one(user) {
            true => Next::Send(now),
            false => Next::Wait,
        }
    }

    /// Returns what a user with a time of its own does next.
    fn next_of_user(&mut self, user: UserId, now: u64) -> Next {
        let Some(users) = &mut self.demand.users else {
            return Next::Queue;
        };
        let script = self.requests.script();
        if let Some(pause_ns) = script.and_then(|script| script.think_ns(user)) {
            users.pause(user, pause_ns);
        }
        match users.next(user, now - self.start_ns) {
            Action::Send(_) if !self.take_one(user) => Next::Wait,
            Action::Send(at_ns) => Next::Send(self.start_ns + at_ns),
            Action::Wait => Next::Wait,
            Action::Leave => Next::Leave,
            Action::Over => Next::Queue,
        }
    }

    /// Takes one of the requests that are left. Returns whether the load or the user's rows had one.
    #[inline]
    fn take_one(&mut self, user: UserId) -> bool {
        if self.requests.are_done(user) {
            self.demand.end();
        }
        self.demand.take_one()
    }

    /// Passes the arrivals that have become due, and returns how many they are.
    #[inline]
    pub(crate) fn arrive(&mut self, now: u64) -> u64 {
        self.demand.arrive(now.saturating_sub(self.start_ns))
    }

    /// Takes the oldest arrival of the queue for a free user, and returns its intended start.
    #[inline]
    pub(crate) fn take_queued(&mut self, user: UserId) -> Option<u64> {
        let due_ns = self.demand.take_from_queue()?;
        if let Some(users) = &mut self.demand.users {
            users.begin_session(user, due_ns);
            self.user_left(user);
        }
        Some(self.start_ns + due_ns)
    }

    /// Takes an arrival that fails before a user has it, and returns its intended start.
    pub(crate) fn drop_queued(&mut self) -> Option<u64> {
        let due_ns = self.demand.take_from_queue()?;
        Some(self.start_ns + due_ns)
    }

    /// Returns the next user for whom a moment has come.
    pub(crate) fn wake(&mut self, now: u64) -> Option<Woken> {
        loop {
            let users = self.demand.users.as_mut()?;
            let (user, at_ns) = users.pop(now.saturating_sub(self.start_ns))?;
            match users.wake(user, at_ns) {
                Action::Send(at_ns) if self.take_one(user) => {
                    return Some(Woken::Send(user, self.start_ns + at_ns));
                }
                Action::Leave => return Some(Woken::Leave(user)),
                Action::Send(_) | Action::Wait | Action::Over => {}
            }
        }
    }

    /// Returns when something is due next.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.demand.next_ns())
    }

    /// Another user takes the place of one.
    pub(crate) fn user_left(&mut self, user: UserId) {
        if let Some(script) = self.requests.script() {
            script.restart(user);
        }
    }

    /// The request of a user has failed. Some users leave then.
    #[cold]
    pub(crate) fn user_failed(&mut self, user: UserId) {
        let script = self.requests.script();
        let leaves = script.is_some_and(|script| script.leaves_on_failure);
        if let Some(users) = self.demand.users.as_mut().filter(|_| leaves) {
            users.give_up(user);
        }
    }

    /// Returns the intended start of the oldest arrival that is due and not taken.
    pub(crate) fn oldest_queued_ns(&self) -> Option<u64> {
        let due_ns = self.demand.oldest_of_queue_ns()?;
        Some(self.start_ns + due_ns)
    }

    /// Returns whether users have a time of their own.
    #[inline]
    pub(crate) fn has_own_time(&self) -> bool {
        self.demand.users.is_some()
    }

    /// Returns whether users may be absent for the whole load.
    pub(crate) fn may_have_absent_users(&self) -> bool {
        !self.is_open() && self.demand.users.is_some()
    }

    /// Sends the next request of a user. On a pipelined connection [`Self::flush`] sends it. Returns `None` if rows
    /// have run out.
    #[inline(always)]
    pub(crate) fn write(&mut self, user: UserId, driver: &mut impl Driver) -> Option<WrittenRequest> {
        let written = self.requests.write(user, driver);
        if written.is_none() {
            self.demand.run_out();
        }
        written
    }

    /// The response to a request begins.
    #[inline]
    pub(crate) fn begin_response(&mut self, user: UserId) {
        if let Some(script) = self.requests.script() {
            script.begin_response(user);
        }
    }

    /// Takes received bytes of the response to a request.
    ///
    /// # Errors
    /// When they are no response.
    #[inline(always)]
    pub(crate) fn receive<P: Protocol>(
        &mut self,
        protocol: &mut P,
        state: &mut P::State,
        user: UserId,
        request: &InFlightRequest,
        bytes: &[u8],
    ) -> Result<Progress, HttpError> {
        match self.requests.script() {
            None => protocol.receive(state, request.is_head, bytes, &mut ()),
            Some(script) => {
                let sink = &mut script.capture(user, request.part);
                protocol.receive(state, request.is_head, bytes, sink)
            }
        }
    }
}
