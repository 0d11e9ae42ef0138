//! Answers that wait for their time, and the one timer that wakes the loop for the next of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use crate::fault::Fault;
use crate::request::Persistence;

/// An answer that waits. In order of its time, then of arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    pub at: Instant,
    /// The number of its request.
    pub number: u64,
    pub slot: usize,
    pub generation: u32,
    pub persistence: Persistence,
    pub is_head: bool,
    /// What comes in place of the answer.
    pub fault: Option<Fault>,
}

/// All of them.
pub struct Waiting {
    /// Readable when the first is due.
    pub timer: OwnedFd,
    due: BinaryHeap<Reverse<Due>>,
}

impl Waiting {
    pub fn new() -> rustix::io::Result<Self> {
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        Ok(Self {
            timer,
            due: BinaryHeap::new(),
        })
    }

    /// Has an answer wait.
    pub fn push(&mut self, due: Due, now: Instant) {
        let at = due.at;
        let is_next = self.due.peek().is_none_or(|next| at < next.0.at);
        self.due.push(Reverse(due));
        if is_next {
            self.arm(at - now);
        }
    }

    /// The next whose time has come by `now`; None sets the timer for the one after.
    pub fn pop(&mut self, now: Instant) -> Option<Due> {
        match self.due.peek() {
            Some(Reverse(due)) if due.at <= now => self.due.pop().map(|Reverse(due)| due),
            Some(Reverse(due)) => {
                let wait = due.at - now;
                self.arm(wait);
                None
            }
            None => None,
        }
    }

    /// Takes note that the timer has gone off.
    pub fn acknowledge(&self) {
        let mut expirations = [0; 8];
        let _ = rustix::io::read(&self.timer, &mut expirations);
    }

    fn arm(&self, wait: Duration) {
        // Zero would disarm the timer.
        let wait = wait.max(Duration::from_nanos(1));
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
