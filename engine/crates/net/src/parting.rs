//! Connections that were given up and are still open, because their peers are to close them first.
//!
//! Whichever side of a TCP connection closes first keeps its pair of addresses and ports for a minute (TIME_WAIT; RFC 9293, section
//! 3.6.1). Off loopback Linux makes no connection with such a pair, and a client has 28,000 ports for a server: one that closes first
//! some 500 times a second has none left after a minute, and long before that each `connect` looks through most of them. A server does
//! not mind: a newer connection takes the place of one in TIME_WAIT.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a peer may take to close. One that needs longer waits for something, perhaps for this end to close.
const PATIENCE: Duration = Duration::from_millis(100);
/// Connections that a driver keeps at once beyond its slots: if there are more, the oldest is closed.
pub const MOST_PARTING: usize = 128;

/// See the module's description. A key is what the events of the connection bear.
#[derive(Debug, Default)]
pub(crate) struct Parting {
    descriptors: HashMap<u64, OwnedFd>,
    /// In the order in which they were given up; some have been closed since.
    keys: VecDeque<(Instant, u64)>,
}

impl Parting {
    pub(crate) fn keep(&mut self, key: u64, descriptor: OwnedFd) {
        self.descriptors.insert(key, descriptor);
        self.keys.push_back((Instant::now(), key));
    }

    /// The connection whose peer has closed it, if it is one of these.
    #[inline]
    pub(crate) fn ended(&mut self, key: u64) -> Option<OwnedFd> {
        self.descriptors.remove(&key)
    }

    /// One that has been kept for long enough; to be asked again until there is none.
    #[inline]
    pub(crate) fn overdue(&mut self) -> Option<OwnedFd> {
        while let Some(&(since, key)) = self.keys.front() {
            let is_kept = self.descriptors.contains_key(&key);
            if is_kept && self.descriptors.len() <= MOST_PARTING && since.elapsed() < PATIENCE {
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
