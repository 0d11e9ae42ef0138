//! When requests are due: users that wait for their responses, or arrivals that wait for nothing.
//!
//! Arithmetic on one thread's shard of the load. Moments are since the start of the load.

use std::sync::Arc;

use weir_plan::{Load, Plan, Process};
use weir_schedule::{Arrivals, Shard};

use super::users::{UserId, Users, curve};

/// The demand of one thread.
#[derive(Debug)]
pub(crate) struct Demand {
    source: Source,
    /// Users with a time of their own, or sessions. `None`: a free user sends at once.
    pub(super) users: Option<Users>,
    /// Requests that may still become due.
    left: u64,
    /// Whether nothing is sent any more.
    is_over: bool,
    /// Requests that were due when rows had run out.
    unrendered: u64,
}

#[derive(Debug)]
enum Source {
    /// Users that wait for their responses.
    Closed,
    /// Arrivals. The queue lies between the two cursors, so that a queue of any length is two numbers.
    Open {
        /// Behind the arrivals that are due.
        due: Arrivals,
        /// Behind the arrivals that have been taken.
        taken: Arrivals,
    },
}

impl Demand {
    pub(crate) fn new(plan: &Plan, shard: Shard) -> Self {
        let end_ns = (plan.duration_s * 1e9).round() as u64;
        let (source, users) = match &plan.load {
            Load::Closed(closed) => {
                let may_leave = !closed.is_plain() || plan.leaves_on_failure();
                let users = may_leave.then(|| Users::closed(closed, shard, plan.seed, end_ns));
                (Source::Closed, users)
            }
            Load::Open(open) => {
                let rate = Arc::new(curve(&open.rate_rps.points()));
                let arrivals = match open.arrivals {
                    Process::Constant => Arrivals::constant(rate, shard),
                    Process::Poisson => Arrivals::poisson(rate, shard, plan.seed),
                };
                let connections = shard.count(open.connections as u64) as usize;
                let users =
                    open.session.as_ref().map(|session| Users::sessions(session, connections, shard, plan.seed));
                let source = Source::Open { due: arrivals.clone(), taken: arrivals };
                (source, users)
            }
        };
        Self {
            source,
            users,
            left: plan.requests.map_or(u64::MAX, |total| shard.count(total)),
            is_over: false,
            unrendered: 0,
        }
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.source, Source::Open { .. })
    }

    /// Returns whether a user is there when the clock starts.
    pub(crate) fn is_present(&self, user: UserId) -> bool {
        match (&self.source, &self.users) {
            (Source::Closed, Some(users)) => users.is_present(user),
            _ => true,
        }
    }

    /// Returns how many of `connections` the start of the load needs. At least one, to know that there is a server.
    pub(crate) fn needed_at_start(&self, connections: usize) -> usize {
        match (&self.source, &self.users) {
            (Source::Closed, Some(users)) => {
                (0..connections).take_while(|&slot| users.is_present(UserId::on(slot as u32))).count().max(1)
            }
            _ => connections,
        }
    }

    /// Takes one of the requests that are left. Returns whether there was one.
    #[inline]
    pub(crate) fn take_one(&mut self) -> bool {
        let has_one = self.left > 0;
        self.left -= u64::from(has_one);
        has_one
    }

    /// Nothing is sent any more.
    #[cold]
    pub(crate) fn end(&mut self) {
        self.left = 0;
        self.is_over = true;
    }

    /// Rows have run out before a due request: it stays unsent, and nothing is sent any more.
    #[cold]
    pub(crate) fn run_out(&mut self) {
        self.unrendered += 1;
        self.end();
    }

    /// Passes the arrivals that have become due, and returns how many they are.
    #[inline]
    pub(crate) fn arrive(&mut self, now_ns: u64) -> u64 {
        let Source::Open { due, .. } = &mut self.source else {
            return 0;
        };
        let before = self.left;
        while due.next_ns() <= now_ns && self.left > 0 {
            due.take();
            self.left -= 1;
        }
        before - self.left
    }

    /// Returns how many requests are due and not sent.
    #[inline]
    pub(crate) fn queue(&self) -> u64 {
        match &self.source {
            Source::Closed => self.unrendered,
            Source::Open { due, taken } => due.taken() - taken.taken() + self.unrendered,
        }
    }

    /// Returns when the oldest of the queue was due.
    pub(crate) fn oldest_of_queue_ns(&self) -> Option<u64> {
        match &self.source {
            Source::Open { due, taken } if taken.taken() < due.taken() => Some(taken.next_ns()),
            _ => None,
        }
    }

    /// Takes the oldest of the queue, and returns when it was due.
    #[inline]
    pub(crate) fn take_from_queue(&mut self) -> Option<u64> {
        match &mut self.source {
            Source::Open { due, taken } if taken.taken() < due.taken() && !self.is_over => Some(taken.take()),
            _ => None,
        }
    }

    /// Returns when something is due next.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        let arrival_ns = match &self.source {
            Source::Open { due, .. } if self.left > 0 => due.next_ns(),
            _ => u64::MAX,
        };
        match &self.users {
            None => arrival_ns,
            Some(users) => arrival_ns.min(users.next_ns()),
        }
    }

    /// Returns whether no request is to be sent, and none will be.
    pub(crate) fn is_exhausted(&self) -> bool {
        let is_over = self.left == 0 || self.users.as_ref().is_some_and(Users::are_gone);
        is_over && (self.is_over || self.queue() == 0)
    }
}
