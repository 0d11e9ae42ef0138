//! Delayed responses, and the one timer that wakes the loop for the next of them.
//!
//! A wake-up costs as much as sending a response. So one wake-up sends all responses that are due, and the next one is
//! delayed a little: a response may be late by 0.1 % of its wait, at most 1 ms. A response without others shortly
//! before it is on time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use crate::Fault;
use crate::request::Persistence;

/// Upper bound of the slack.
const MAX_SLACK: Duration = Duration::from_millis(1);

/// Returns the time by which a response with this wait may be late.
pub fn slack(wait: Duration) -> Duration {
    (wait / 1000).min(MAX_SLACK)
}

/// A delayed response. The order is by latest time, then by arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct DelayedResponse {
    /// The latest time to send it.
    pub latest: Instant,
    /// Number of the request.
    pub number: u64,
    /// The earliest time to send it.
    pub earliest: Instant,
    pub slot: usize,
    pub generation: u32,
    pub persistence: Persistence,
    pub is_head: bool,
    /// Fault in place of the response.
    pub fault: Option<Fault>,
}

/// All delayed responses.
pub struct DelayedResponses {
    /// Timer of the next response. Watch it edge-triggered, because it is never read.
    pub timer: OwnedFd,
    due: BinaryHeap<Reverse<DelayedResponse>>,
    /// Time of the last search for due responses.
    last_search: Instant,
}

impl DelayedResponses {
    pub fn new(now: Instant) -> rustix::io::Result<Self> {
        let timer =
            rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self { timer, due: BinaryHeap::new(), last_search: now })
    }

    /// Adds a response.
    pub fn push(&mut self, due: DelayedResponse, now: Instant) {
        let is_next = self.due.peek().is_none_or(|next| due < next.0);
        self.due.push(Reverse(due));
        if is_next {
            self.arm(now);
        }
    }

    /// Returns the next response that is due. Returns `None` if there is none, and sets the timer for the next one.
    pub fn pop(&mut self, now: Instant) -> Option<DelayedResponse> {
        if self.due.peek().is_some_and(|next| next.0.earliest <= now) {
            return self.due.pop().map(|Reverse(due)| due);
        }
        self.last_search = now;
        self.arm(now);
        None
    }

    /// Returns the time of the next search: when the next response is due, or up to its slack later after a recent
    /// search.
    fn next_search(&self) -> Option<Instant> {
        let Reverse(next) = self.due.peek()?;
        Some(next.earliest.max(self.last_search + (next.latest - next.earliest)))
    }

    /// Sets the timer.
    fn arm(&self, now: Instant) {
        let Some(time) = self.next_search() else {
            return;
        };
        // Zero would disarm the timer.
        let wait = (time - now).max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timer = Itimerspec { it_interval: interval, it_value: value };
        // Cannot fail: the descriptor is a timer and the time is valid.
        let _ = rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{DelayedResponse, DelayedResponses, slack};
    use crate::request::Persistence;
    use std::time::{Duration, Instant};

    const WAIT: Duration = Duration::from_millis(200);
    const SLACK: Duration = Duration::from_micros(200);

    fn due(number: u64, now: Instant, wait: Duration) -> DelayedResponse {
        DelayedResponse {
            latest: now + wait + slack(wait),
            number,
            earliest: now + wait,
            slot: 0,
            generation: 0,
            persistence: Persistence::KeepAlive,
            is_head: false,
            fault: None,
        }
    }

    fn taken(waiting: &mut DelayedResponses, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| waiting.pop(now).map(|due| due.number)).collect()
    }

    #[test]
    fn slack_is_a_thousandth_up_to_1_ms() {
        assert_eq!(slack(WAIT), SLACK);
        assert_eq!(slack(Duration::from_secs(30)), Duration::from_millis(1));
    }

    #[test]
    fn single_response_is_on_time() {
        let began = Instant::now();
        let mut waiting = DelayedResponses::new(began).unwrap();
        waiting.push(due(1, began, WAIT), began);
        assert_eq!(waiting.next_search(), Some(began + WAIT));
        assert_eq!(taken(&mut waiting, began + WAIT - SLACK), []);
        assert_eq!(taken(&mut waiting, began + WAIT), [1]);
        assert_eq!(waiting.next_search(), None);
    }

    #[test]
    fn one_search_finds_all_due_responses() {
        let began = Instant::now();
        let mut waiting = DelayedResponses::new(began).unwrap();
        let apart = Duration::from_micros(50);
        for number in 0..20 {
            let now = began + apart * number;
            waiting.push(due(u64::from(number), now, WAIT), now);
        }
        let mut searches = 0;
        let mut all = Vec::new();
        while let Some(moment) = waiting.next_search() {
            searches += 1;
            for number in taken(&mut waiting, moment) {
                let at = began + apart * u32::try_from(number).unwrap() + WAIT;
                assert!(at <= moment && moment <= at + SLACK, "{number}");
                all.push(number);
            }
        }
        assert_eq!(all, (0..20).collect::<Vec<_>>());
        // Every 200 us after the first: 1, 2 to 5, and so on.
        assert_eq!(searches, 6);
    }

    #[test]
    fn short_wait_has_its_own_slack() {
        let began = Instant::now();
        let mut waiting = DelayedResponses::new(began).unwrap();
        waiting.push(due(1, began, WAIT), began);
        waiting.push(due(2, began, WAIT + SLACK / 4), began);
        assert_eq!(taken(&mut waiting, began + WAIT), [1]);
        let short = Duration::from_micros(100);
        waiting.push(due(3, began + WAIT, short), began + WAIT);
        assert_eq!(waiting.next_search(), Some(began + WAIT + short));
        // The other response is due by then, and comes second.
        assert_eq!(taken(&mut waiting, began + WAIT + short), [3, 2]);
    }
}
