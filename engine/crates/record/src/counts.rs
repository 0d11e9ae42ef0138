//! Counters of one period, and their sums.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// The reason why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The connection failed.
    Connect,
    /// The response was not complete in time.
    Timeout,
    /// The connection ended before the response was complete.
    Reset,
    /// The received bytes are not HTTP.
    Protocol,
    /// The response is complete, but its check failed.
    Check,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Connect, Self::Timeout, Self::Reset, Self::Protocol, Self::Check];

    /// Returns the name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::Protocol => "protocol",
            Self::Check => "check",
        }
    }
}

/// Failed requests by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorCounts([u64; ErrorKind::ALL.len()]);

impl ErrorCounts {
    /// Adds failures of one kind.
    pub fn count(&mut self, kind: ErrorKind, failures: u64) {
        self.0[kind as usize] += failures;
    }

    /// Returns the number of failures of one kind.
    pub fn of(&self, kind: ErrorKind) -> u64 {
        self.0[kind as usize]
    }

    /// Returns the number of all failures.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Serialize for ErrorCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(ErrorKind::ALL.map(|kind| (kind.name(), self.of(kind))))
    }
}

/// The counts of one period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of requests that became due.
    pub due: u64,
    /// Number of written requests. A request that was sent again counts once.
    pub sent: u64,
    /// Number of requests that were sent again.
    pub retried: u64,
    /// Number of correct responses.
    pub ok: u64,
    /// Failed requests by kind.
    pub errors: ErrorCounts,
    /// Bytes of requests.
    pub bytes_sent: u64,
    /// Bytes of responses, heads included.
    pub bytes_received: u64,
}

impl Counts {
    /// Returns the number of complete responses, correct or not.
    pub fn completed(&self) -> u64 {
        self.ok + self.errors.of(ErrorKind::Check)
    }

    /// Adds the counts of another period or thread.
    pub fn add(&mut self, other: &Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.retried += other.retried;
        self.ok += other.ok;
        ErrorKind::ALL.into_iter().for_each(|kind| self.errors.count(kind, other.errors.of(kind)));
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
    }
}

/// Responses by status code: an array, because counting is on the hot path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCounts(Box<[u64; 1000]>);

impl Default for StatusCounts {
    fn default() -> Self {
        Self(Box::new([0; 1000]))
    }
}

impl StatusCounts {
    /// Counts one response. A status has at most three digits.
    #[inline]
    pub fn count(&mut self, status: u16) {
        self.0[usize::from(status).min(999)] += 1;
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine += theirs;
        }
    }

    /// Returns the number of redirects, which exclude status 304.
    pub fn redirects(&self) -> u64 {
        self.0[300..400].iter().sum::<u64>() - self.0[304]
    }

    /// Returns the statuses that occurred.
    pub fn to_map(&self) -> BTreeMap<String, u64> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(status, count)| (status.to_string(), *count))
            .collect()
    }
}
