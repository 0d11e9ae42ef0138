//! Answers that wait for their time, and the one timer that wakes the loop for the next of them.
//!
//! To wake for each of ten thousand answers costs as much as to send them. So an answer may be late by a thousandth of what it
//! waited, a millisecond at most, where others were sent so shortly before: one waking does for all that became due. An answer that is
//! alone comes at its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use crate::fault::Fault;
use crate::request::Persistence;

/// How late an answer may be, whatever it waited.
const MOST_SLACK: Duration = Duration::from_millis(1);

/// How late an answer may be that waits for `wait`.
pub fn slack(wait: Duration) -> Duration {
    (wait / 1000).min(MOST_SLACK)
}

/// An answer that waits. In order of the latest it may come, then of arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    pub latest: Instant,
    /// The number of its request.
    pub number: u64,
    /// The earliest it may come.
    pub at: Instant,
    pub slot: usize,
    pub generation: u32,
    pub persistence: Persistence,
    pub is_head: bool,
    /// What comes in place of the answer.
    pub fault: Option<Fault>,
}

/// All of them.
pub struct Waiting {
    /// Goes off when the next is to be answered; to be watched for its edge, since nobody reads it.
    pub timer: OwnedFd,
    due: BinaryHeap<Reverse<Due>>,
    /// When answers were looked for last.
    looked: Instant,
}

impl Waiting {
    pub fn new(now: Instant) -> rustix::io::Result<Self> {
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        Ok(Self {
            timer,
            due: BinaryHeap::new(),
            looked: now,
        })
    }

    /// Has an answer wait.
    pub fn push(&mut self, due: Due, now: Instant) {
        let is_next = self.due.peek().is_none_or(|next| due < next.0);
        self.due.push(Reverse(due));
        if is_next {
            self.arm(now);
        }
    }

    /// The next whose time has come by `now`; None sets the timer for the one after.
    pub fn pop(&mut self, now: Instant) -> Option<Due> {
        if self.due.peek().is_some_and(|next| next.0.at <= now) {
            return self.due.pop().map(|Reverse(due)| due);
        }
        self.looked = now;
        self.arm(now);
        None
    }

    /// When to look next: when the next answer is due or, where answers were looked for just before, later by what it may be late.
    fn moment(&self) -> Option<Instant> {
        let Reverse(next) = self.due.peek()?;
        Some(next.at.max(self.looked + (next.latest - next.at)))
    }

    /// Sets the timer.
    fn arm(&self, now: Instant) {
        let Some(moment) = self.moment() else {
            return;
        };
        // Zero would disarm the timer.
        let wait = (moment - now).max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let interval = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let timer = Itimerspec {
            it_interval: interval,
            it_value: value,
        };
        // Cannot fail: the descriptor is a timer and the time is valid.
        let _ = rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Due, Waiting, slack};
    use crate::request::Persistence;
    use std::time::{Duration, Instant};

    const WAIT: Duration = Duration::from_millis(200);
    const SLACK: Duration = Duration::from_micros(200);

    fn due(number: u64, now: Instant, wait: Duration) -> Due {
        Due {
            latest: now + wait + slack(wait),
            number,
            at: now + wait,
            slot: 0,
            generation: 0,
            persistence: Persistence::Stays,
            is_head: false,
            fault: None,
        }
    }

    fn taken(waiting: &mut Waiting, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| waiting.pop(now).map(|due| due.number)).collect()
    }

    #[test]
    fn an_answer_may_be_late_by_a_thousandth_and_never_by_more_than_a_millisecond() {
        assert_eq!(slack(WAIT), SLACK);
        assert_eq!(slack(Duration::from_secs(30)), Duration::from_millis(1));
    }

    #[test]
    fn an_answer_that_is_alone_comes_at_its_time() {
        let began = Instant::now();
        let mut waiting = Waiting::new(began).unwrap();
        waiting.push(due(1, began, WAIT), began);
        assert_eq!(waiting.moment(), Some(began + WAIT));
        assert_eq!(taken(&mut waiting, began + WAIT - SLACK), []);
        assert_eq!(taken(&mut waiting, began + WAIT), [1]);
        assert_eq!(waiting.moment(), None);
    }

    #[test]
    fn one_look_answers_all_that_became_due_and_no_answer_comes_later_than_it_may() {
        let began = Instant::now();
        let mut waiting = Waiting::new(began).unwrap();
        let apart = Duration::from_micros(50);
        for number in 0..20 {
            let now = began + apart * number;
            waiting.push(due(u64::from(number), now, WAIT), now);
        }
        let mut looks = 0;
        let mut all = Vec::new();
        while let Some(moment) = waiting.moment() {
            looks += 1;
            for number in taken(&mut waiting, moment) {
                let at = began + apart * u32::try_from(number).unwrap() + WAIT;
                assert!(at <= moment && moment <= at + SLACK, "{number}");
                all.push(number);
            }
        }
        assert_eq!(all, (0..20).collect::<Vec<_>>());
        // The first alone, then each 200 us: 1, 2 to 5, and so on.
        assert_eq!(looks, 6);
    }

    #[test]
    fn a_short_wait_beside_long_ones_is_not_late_by_what_they_may_be() {
        let began = Instant::now();
        let mut waiting = Waiting::new(began).unwrap();
        waiting.push(due(1, began, WAIT), began);
        waiting.push(due(2, began, WAIT + SLACK / 4), began);
        assert_eq!(taken(&mut waiting, began + WAIT), [1]);
        let short = Duration::from_micros(100);
        waiting.push(due(3, began + WAIT, short), began + WAIT);
        assert_eq!(waiting.moment(), Some(began + WAIT + short));
        // The other is due by then, and comes behind it.
        assert_eq!(taken(&mut waiting, began + WAIT + short), [3, 2]);
    }
}
