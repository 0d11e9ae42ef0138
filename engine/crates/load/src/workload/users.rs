//! Users with a time of their own: they come and go, think, keep a pace, and leave after a number of requests. A
//! session of an open loop is the user of its connection.
//!
//! Arithmetic on one thread's shard. Moments are since the start of the load. Hot path. Rules: a user has at most one
//! moment ahead of it, so that the heap of these moments never grows beyond the users, and nothing allocates.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_net::Slot;
use weir_plan::{Closed, Session, Think};
use weir_schedule::{Curve, Random, Shard};

/// A user of a thread. In HTTP/1.1 a user has a connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UserId(u32);

impl UserId {
    /// Returns the user of a connection.
    #[inline]
    pub(crate) fn on(slot: Slot) -> Self {
        Self(slot)
    }

    /// Returns the connection of the user.
    #[inline]
    pub(crate) fn slot(self) -> Slot {
        self.0
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a user does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// It sends a request with this intended start.
    Send(u64),
    /// It waits for its moment, which comes in [`Users::pop`].
    Wait,
    /// It leaves with its connection.
    Leave,
    /// Its session is over: its connection is free for the next one.
    Over,
}

#[derive(Debug, Clone)]
struct User {
    random: Random,
    /// The intended start of its last request.
    intended_ns: u64,
    /// When its place ends.
    leaves_ns: u64,
    /// Requests until it leaves.
    left: u64,
    is_present: bool,
    has_asked: bool,
    /// Its pause this time, instead of `think`.
    pause_ns: Option<u64>,
}

/// The users of one thread.
#[derive(Debug)]
pub(crate) struct Users {
    think: Option<Think>,
    pace_ns: u64,
    /// Requests of one stay.
    requests: u64,
    /// Number of users over time, `None` for sessions.
    places: Option<Curve>,
    shard: Shard,
    seed: u64,
    end_ns: u64,
    users: Vec<User>,
    moments: BinaryHeap<Reverse<(u64, UserId)>>,
    /// Users that are present or will come before the end.
    remaining: usize,
    /// Sessions that have begun.
    begun: u64,
}

impl Users {
    /// Returns the users of a closed load.
    pub(crate) fn closed(plan: &Closed, shard: Shard, seed: u64, end_ns: u64) -> Self {
        let places = curve(&plan.profile().points());
        let count = shard.count(plan.profile().max().ceil() as u64) as usize;
        let mut users = Self {
            think: plan.think,
            pace_ns: ns(plan.pace_s.unwrap_or(0.0)),
            requests: plan.loops.unwrap_or(u64::MAX),
            places: Some(places),
            shard,
            seed,
            end_ns,
            users: Vec::new(),
            moments: BinaryHeap::with_capacity(count),
            remaining: count,
            begun: 0,
        };
        users.users = (0..count as u64).map(|own| users.absent(shard.index(own))).collect();
        (0..count as u32).for_each(|user| users.arrange_arrival(UserId(user), 0));
        users
    }

    /// Returns users for the sessions that arrive on so many connections.
    pub(crate) fn sessions(plan: &Session, connections: usize, shard: Shard, seed: u64) -> Self {
        let mut users = Self {
            think: plan.think,
            pace_ns: 0,
            requests: plan.requests,
            places: None,
            shard,
            seed,
            end_ns: u64::MAX,
            users: Vec::new(),
            moments: BinaryHeap::with_capacity(connections),
            // Arrivals do not end.
            remaining: usize::MAX,
            begun: 0,
        };
        users.users = vec![users.absent(0); connections];
        users
    }

    fn absent(&self, number: u64) -> User {
        User {
            random: Random::new(self.seed, number),
            intended_ns: 0,
            leaves_ns: 0,
            left: 0,
            is_present: false,
            has_asked: false,
            pause_ns: None,
        }
    }

    /// Returns whether a user is there.
    pub(crate) fn is_present(&self, id: UserId) -> bool {
        self.users[id.index()].is_present
    }

    /// Returns whether no user is there and none will come.
    pub(crate) fn are_gone(&self) -> bool {
        self.remaining == 0
    }

    /// Returns the next moment of any user.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.moments.peek().map_or(u64::MAX, |Reverse((at, _))| *at)
    }

    /// Returns the next user whose moment has come, and that moment.
    #[inline]
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<(UserId, u64)> {
        let &Reverse((at_ns, id)) = self.moments.peek()?;
        if at_ns > now_ns {
            return None;
        }
        self.moments.pop();
        Some((id, at_ns))
    }

    /// Returns what a user does at its moment: it comes, it ends a pause, or its place ends.
    pub(crate) fn wake(&mut self, id: UserId, at_ns: u64) -> Action {
        let user = &mut self.users[id.index()];
        if !user.is_present {
            user.is_present = true;
            user.left = self.requests;
        }
        if at_ns >= user.leaves_ns {
            return self.leave(id, at_ns);
        }
        self.send(id, at_ns)
    }

    /// A session begins on a free connection, with a request that was due when it arrived.
    pub(crate) fn begin_session(&mut self, id: UserId, intended_ns: u64) {
        let random = Random::new(self.seed, self.shard.index(self.begun));
        self.begun += 1;
        self.users[id.index()] = User {
            random,
            intended_ns,
            leaves_ns: u64::MAX,
            left: self.requests - 1,
            is_present: true,
            has_asked: true,
            pause_ns: None,
        };
    }

    /// A user sends no more: it leaves next.
    pub(crate) fn give_up(&mut self, id: UserId) {
        self.users[id.index()].left = 0;
    }

    /// Sets how long a user pauses before its next request.
    pub(crate) fn pause(&mut self, id: UserId, pause_ns: u64) {
        self.users[id.index()].pause_ns = Some(pause_ns);
    }

    /// Returns what a free user does next: its request has an outcome, or it has not sent one yet.
    pub(crate) fn next(&mut self, id: UserId, now_ns: u64) -> Action {
        let user = &mut self.users[id.index()];
        if !user.is_present {
            return if self.places.is_none() { Action::Over } else { Action::Wait };
        }
        if user.left == 0 || now_ns >= user.leaves_ns {
            return self.leave(id, now_ns);
        }
        let at_ns = if user.has_asked {
            let own_ns = user.pause_ns.take();
            let thought_ns = now_ns + own_ns.unwrap_or_else(|| pause_ns(self.think, &mut user.random));
            thought_ns.max(user.intended_ns + self.pace_ns)
        } else {
            now_ns
        };
        if at_ns <= now_ns {
            return self.send(id, at_ns);
        }
        let at_ns = at_ns.min(user.leaves_ns);
        self.moments.push(Reverse((at_ns, id)));
        Action::Wait
    }

    fn send(&mut self, id: UserId, intended_ns: u64) -> Action {
        let user = &mut self.users[id.index()];
        user.left -= 1;
        user.intended_ns = intended_ns;
        user.has_asked = true;
        Action::Send(intended_ns)
    }

    fn leave(&mut self, id: UserId, now_ns: u64) -> Action {
        let user = &mut self.users[id.index()];
        user.is_present = false;
        if self.places.is_none() {
            return Action::Over;
        }
        // A user that has sent all its requests keeps its place from others until the place ends.
        let from_ns = user.leaves_ns.max(now_ns);
        self.arrange_arrival(id, from_ns);
        Action::Leave
    }

    /// Sets the moment at which a user's place begins next, if there is one.
    fn arrange_arrival(&mut self, id: UserId, from_ns: u64) {
        let level = self.shard.index(u64::from(id.0)) as f64;
        let stay = self
            .places
            .as_ref()
            .and_then(|places| places.next_above(level, from_ns))
            .filter(|&(comes_ns, _)| comes_ns < self.end_ns);
        let Some((comes_ns, leaves_ns)) = stay else {
            self.remaining -= 1;
            return;
        };
        let user = &mut self.users[id.index()];
        user.leaves_ns = leaves_ns;
        user.has_asked = false;
        if comes_ns == 0 {
            user.is_present = true;
            user.left = self.requests;
        } else {
            self.moments.push(Reverse((comes_ns, id)));
        }
    }
}

/// The curve through points of a validated plan.
pub(crate) fn curve(points: &[(f64, f64)]) -> Curve {
    Curve::new(points).unwrap_or_else(|| unreachable!("a validated plan's points are a curve"))
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn pause_ns(think: Option<Think>, random: &mut Random) -> u64 {
    match think {
        None => 0,
        Some(Think::ConstantS(pause_s)) => ns(pause_s),
        Some(Think::UniformS(shortest_s, longest_s)) => ns(shortest_s + (longest_s - shortest_s) * random.unit()),
        Some(Think::ExponentialS(mean_s)) => ns(mean_s * random.exponential()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use weir_plan::Profile;

    const S: u64 = 1_000_000_000;

    fn closed(plan: &Closed) -> Users {
        Users::closed(plan, Shard::WHOLE, 1, 1000 * S)
    }

    fn of(points: &[(f64, f64)]) -> Closed {
        Closed { users: Some(Profile::Points(points.to_vec())), ..Closed::default() }
    }

    #[test]
    fn users_of_a_ramp_come_one_by_one() {
        let mut users = closed(&of(&[(0.0, 0.0), (50.0, 2000.0)]));
        assert!(users.is_present(UserId(0)));
        for k in 1..2000 {
            let at_ns = u64::from(k) * 25_000_000;
            assert_eq!(users.pop(at_ns - 1), None);
            assert_eq!(users.pop(at_ns), Some((UserId(k), at_ns)));
            assert_eq!(users.wake(UserId(k), at_ns), Action::Send(at_ns));
        }
        assert_eq!(users.next_ns(), u64::MAX);
    }

    #[test]
    fn shards_of_a_ramp_together_are_the_ramp() {
        let plan = of(&[(0.0, 0.0), (10.0, 100.0)]);
        let mut moments = Vec::new();
        for k in 0..3 {
            let shard = Shard::new(k, 3).unwrap();
            let mut users = Users::closed(&plan, shard, 1, 1000 * S);
            moments.extend((users.is_present(UserId(0))).then_some(0));
            while let Some((_, at_ns)) = users.pop(u64::MAX) {
                moments.push(at_ns);
            }
        }
        moments.sort_unstable();
        let whole: Vec<u64> = (0..100).map(|k| k * S / 10).collect();
        assert_eq!(moments, whole);
    }

    #[test]
    fn a_user_leaves_after_its_loops_and_then_nobody_is_left() {
        let mut users = closed(&Closed { connections: Some(1), loops: Some(3), ..Closed::default() });
        assert_eq!(users.next(UserId(0), 5), Action::Send(5));
        assert_eq!(users.next(UserId(0), 6), Action::Send(6));
        assert_eq!(users.next(UserId(0), 7), Action::Send(7));
        assert!(!users.are_gone());
        assert_eq!(users.next(UserId(0), 8), Action::Leave);
        assert!(users.are_gone());
    }

    #[test]
    fn a_user_that_gives_up_leaves_before_its_loops_are_done() {
        let mut users = closed(&Closed { connections: Some(2), loops: Some(3), ..Closed::default() });
        assert_eq!(users.next(UserId(0), 5), Action::Send(5));
        assert_eq!(users.next(UserId(1), 5), Action::Send(5));
        users.give_up(UserId(0));
        assert_eq!(users.next(UserId(0), 6), Action::Leave);
        assert_eq!(users.next(UserId(1), 6), Action::Send(6));
    }

    #[test]
    fn a_user_whose_place_vanishes_leaves_after_its_response_and_comes_again_with_its_place() {
        let mut users = closed(&of(&[(0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (3.0, 0.0), (3.0, 1.0)]));
        assert_eq!(users.next(UserId(0), 0), Action::Send(0));
        assert_eq!(users.next(UserId(0), S + 5), Action::Leave);
        assert!(!users.are_gone());
        assert_eq!(users.pop(3 * S), Some((UserId(0), 3 * S)));
        assert_eq!(users.wake(UserId(0), 3 * S), Action::Send(3 * S));
    }

    #[test]
    fn a_user_that_thinks_leaves_when_its_place_vanishes() {
        let mut plan = of(&[(0.0, 1.0), (1.0, 1.0), (1.0, 0.0)]);
        plan.think = Some(Think::ConstantS(5.0));
        let mut users = closed(&plan);
        assert_eq!(users.next(UserId(0), 0), Action::Send(0));
        assert_eq!(users.next(UserId(0), 10), Action::Wait);
        assert_eq!(users.pop(2 * S), Some((UserId(0), S)));
        assert_eq!(users.wake(UserId(0), S), Action::Leave);
        assert!(users.are_gone());
    }

    #[test]
    fn a_pace_counts_from_intended_start_to_intended_start_and_a_late_response_is_not_made_up_for() {
        let mut users = closed(&Closed { connections: Some(1), pace_s: Some(1.0), ..Closed::default() });
        assert_eq!(users.next(UserId(0), 100), Action::Send(100));
        assert_eq!(users.next(UserId(0), 200), Action::Wait);
        assert_eq!(users.next_ns(), S + 100);
        let (slot, at_ns) = users.pop(S + 150).unwrap();
        assert_eq!(users.wake(slot, at_ns), Action::Send(S + 100));
        // The response comes three seconds late: at most one a second all the same.
        assert_eq!(users.next(UserId(0), 5 * S), Action::Send(5 * S));
        assert_eq!(users.next(UserId(0), 5 * S + 1), Action::Wait);
        assert_eq!(users.next_ns(), 6 * S);
    }

    fn pauses(think: Think, seed: u64) -> Vec<f64> {
        let plan = Closed { connections: Some(1), think: Some(think), ..Closed::default() };
        let mut users = Users::closed(&plan, Shard::WHOLE, seed, u64::MAX);
        let mut now_ns = 0;
        users.next(UserId(0), now_ns);
        (0..10_000)
            .map(|_| {
                assert_eq!(users.next(UserId(0), now_ns), Action::Wait);
                let (slot, at_ns) = users.pop(u64::MAX).unwrap();
                users.wake(slot, at_ns);
                let pause_s = (at_ns - now_ns) as f64 / 1e9;
                now_ns = at_ns;
                pause_s
            })
            .collect()
    }

    #[test]
    fn pauses_have_the_distribution_asked_for_and_a_seed_gives_them_again() {
        let mean = |pauses: &[f64]| pauses.iter().sum::<f64>() / pauses.len() as f64;
        assert!(pauses(Think::ConstantS(0.5), 1).iter().all(|&s| s == 0.5));
        let uniform = pauses(Think::UniformS(1.0, 3.0), 1);
        assert!(uniform.iter().all(|s| (1.0..=3.0).contains(s)));
        assert!((mean(&uniform) - 2.0).abs() < 0.03);
        let exponential = pauses(Think::ExponentialS(2.0), 1);
        assert!((mean(&exponential) - 2.0).abs() < 0.08);
        let beyond = exponential.iter().filter(|&&s| s > 4.0).count() as f64;
        assert!((beyond / 10_000.0 - (-2.0f64).exp()).abs() < 0.014);
        assert_eq!(exponential, pauses(Think::ExponentialS(2.0), 1));
        assert_ne!(exponential, pauses(Think::ExponentialS(2.0), 2));
    }

    #[test]
    fn a_session_asks_as_often_as_it_was_to_and_frees_its_connection() {
        let plan = Session { requests: 2, think: Some(Think::ConstantS(1.0)) };
        let mut users = Users::sessions(&plan, 4, Shard::WHOLE, 1);
        assert_eq!(users.next(UserId(3), 0), Action::Over);
        users.begin_session(UserId(3), 10);
        assert_eq!(users.next(UserId(3), 20), Action::Wait);
        assert_eq!(users.pop(2 * S), Some((UserId(3), S + 20)));
        assert_eq!(users.wake(UserId(3), S + 20), Action::Send(S + 20));
        assert_eq!(users.next(UserId(3), 2 * S), Action::Over);
        assert!(!users.are_gone());
    }
}
