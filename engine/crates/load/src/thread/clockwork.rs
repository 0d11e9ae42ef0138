//! What the clock makes due: arrivals, and users who come, have thought or find their place gone.

use weir_net::{Driver, Slot};

use super::{BATCH, LoadThread, Next};
use crate::clock::now_ns;
use crate::connection::Phase;
use crate::demand::Source;
use crate::users::Step;

impl<D: Driver> LoadThread<D> {
    /// Does what has become due, users a batch at a time. Gives whether there was something.
    #[inline]
    pub(super) fn act_by_the_clock(&mut self, now: u64) -> bool {
        let sent = matches!(self.demand.source, Source::Open { .. }) && self.send_due(now);
        let woke = self.demand.users.is_some() && self.wake_users(now);
        sent || woke
    }

    /// What is due when the load is over is not this load's, however late this look is.
    #[inline]
    fn elapsed_ns(&self, now: u64) -> u64 {
        now.min(self.end_ns - 1).saturating_sub(self.start_ns)
    }

    /// Open loop: takes note of the arrivals that have become due, and writes as many as there are free connections.
    #[inline]
    fn send_due(&mut self, now: u64) -> bool {
        self.tally.counts.due += self.demand.arrive(self.elapsed_ns(now));
        let mut sent = false;
        while let Some(slot) = self.idle.first() {
            let Some(due_ns) = self.demand.take_from_queue() else {
                break;
            };
            self.idle.remove(&mut self.connections, slot);
            self.begin(slot, due_ns, now_ns());
            sent = true;
        }
        if self.with_room.len() > 0 {
            sent |= self.send_due_pipelined();
        }
        sent
    }

    /// Users for whom a moment has come.
    fn wake_users(&mut self, now: u64) -> bool {
        let elapsed_ns = self.elapsed_ns(now);
        for woken in 0..BATCH {
            let Some(users) = &mut self.demand.users else {
                return woken > 0;
            };
            let Some((slot, at_ns)) = users.pop(elapsed_ns) else {
                return woken > 0;
            };
            match users.wake(slot, at_ns) {
                Step::Ask(at_ns) => self.ask(slot, self.start_ns + at_ns),
                Step::Leave => self.leave(slot),
                Step::Wait | Step::Over => {}
            }
        }
        true
    }

    /// A user who was away asks, on the connection that it has or on one that is made now.
    fn ask(&mut self, slot: Slot, intended_ns: u64) {
        if !self.take_one(slot) {
            return;
        }
        self.tally.counts.due += 1;
        match self.connections[slot as usize].phase {
            Phase::Thinking => self.send(slot, intended_ns, now_ns()),
            Phase::Connecting => self.let_request_wait(slot, intended_ns),
            _ => {
                self.let_request_wait(slot, intended_ns);
                self.connect(slot, now_ns());
            }
        }
    }

    /// A user leaves, and its connection with it.
    fn leave(&mut self, slot: Slot) {
        if self.connections[slot as usize].phase == Phase::Thinking {
            self.driver.close(slot);
            self.connections[slot as usize].phase = Phase::Closed;
        }
        self.user_left(slot);
    }

    /// What a user does next who has a time of its own.
    pub(super) fn next_of_user(&mut self, slot: Slot, now: u64) -> Next {
        let Some(users) = &mut self.demand.users else {
            return Next::Free;
        };
        if let Some(pause_ns) = self
            .requests
            .script()
            .and_then(|script| script.think_ns(slot))
        {
            users.pause(slot, pause_ns);
        }
        match users.next(slot, now - self.start_ns) {
            Step::Ask(_) if !self.take_one(slot) => Next::Wait,
            Step::Ask(at_ns) => {
                self.tally.counts.due += 1;
                Next::Write(self.start_ns + at_ns)
            }
            Step::Wait => Next::Wait,
            Step::Leave => Next::Leave,
            Step::Over => Next::Free,
        }
    }

    /// Whether a connection has somebody to use it when the clock starts.
    pub(super) fn is_used(&self, slot: Slot) -> bool {
        match (&self.demand.source, &self.demand.users) {
            (Source::Closed, Some(users)) => users.is_present(slot),
            _ => true,
        }
    }
}
