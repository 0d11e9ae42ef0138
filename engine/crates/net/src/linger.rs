//! Lingering close: connections that the load has given up stay open until their peers have closed them.
//!
//! The side of a TCP connection that closes first keeps its pair of addresses and ports for a minute (TIME_WAIT; RFC
//! 9293, section 3.6.1). Off loopback Linux makes no connection with such a pair, and a client has 28,000 ports for a
//! server. A client that closes first some 500 times a second has none left after a minute, and long before that each
//! `connect` searches most of them. A server has no such limit: a newer connection replaces one in TIME_WAIT.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a peer may take to close. A peer that takes longer may wait for this end to close.
const LINGER: Duration = Duration::from_millis(100);
/// Lingering connections of a driver. The oldest is closed when there are more.
pub const MAX_LINGERING: usize = 128;

/// The lingering connections of a driver, by the number that their events carry.
#[derive(Debug, Default)]
pub(crate) struct Lingering {
    descriptors: HashMap<u64, OwnedFd>,
    /// All keys in the order of `keep`; some of them are closed already.
    keys: VecDeque<(Instant, u64)>,
}

impl Lingering {
    pub(crate) fn keep(&mut self, key: u64, descriptor: OwnedFd) {
        self.descriptors.insert(key, descriptor);
        self.keys.push_back((Instant::now(), key));
    }

    /// The peer has closed a connection. Returns it, `None` if it is no lingering one.
    #[inline]
    pub(crate) fn ended(&mut self, key: u64) -> Option<OwnedFd> {
        self.descriptors.remove(&key)
    }

    /// Returns a connection whose time is over, `None` if there is none left.
    #[inline(always)]
    pub(crate) fn overdue(&mut self) -> Option<OwnedFd> {
        // Every poll asks, and there is almost never such a connection.
        if self.keys.is_empty() { None } else { self.take_overdue() }
    }

    fn take_overdue(&mut self) -> Option<OwnedFd> {
        while let Some(&(since, key)) = self.keys.front() {
            let is_kept = self.descriptors.contains_key(&key);
            if is_kept && self.descriptors.len() <= MAX_LINGERING && since.elapsed() < LINGER {
                return None;
            }
            self.keys.pop_front();
            if is_kept {
                return self.descriptors.remove(&key);
            }
        }
        None
    }
}
