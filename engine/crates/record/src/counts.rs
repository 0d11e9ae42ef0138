//! Counters of one stretch of time, and the sums of several.

use std::collections::BTreeMap;

use serde::Serialize;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The connection could not be made.
    Connect,
    /// No whole answer in time.
    Timeout,
    /// The connection ended with the answer missing or half there.
    Reset,
    /// What came is not HTTP.
    Protocol,
    /// A whole answer that is not the right one.
    Check,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Connect,
        Self::Timeout,
        Self::Reset,
        Self::Protocol,
        Self::Check,
    ];

    /// The name it has in records.
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ErrorCounts {
    /// See [`ErrorKind::Connect`].
    pub connect: u64,
    /// See [`ErrorKind::Timeout`].
    pub timeout: u64,
    /// See [`ErrorKind::Reset`].
    pub reset: u64,
    /// See [`ErrorKind::Protocol`].
    pub protocol: u64,
    /// See [`ErrorKind::Check`].
    pub check: u64,
}

impl ErrorCounts {
    /// Counts one more.
    pub fn count(&mut self, kind: ErrorKind) {
        *self.of_mut(kind) += 1;
    }

    /// How many of one kind.
    pub fn of(&self, kind: ErrorKind) -> u64 {
        let mut copy = *self;
        *copy.of_mut(kind)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        ErrorKind::ALL.iter().map(|&kind| self.of(kind)).sum()
    }

    fn of_mut(&mut self, kind: ErrorKind) -> &mut u64 {
        match kind {
            ErrorKind::Connect => &mut self.connect,
            ErrorKind::Timeout => &mut self.timeout,
            ErrorKind::Reset => &mut self.reset,
            ErrorKind::Protocol => &mut self.protocol,
            ErrorKind::Check => &mut self.check,
        }
    }

    fn add(&mut self, other: &Self) {
        for kind in ErrorKind::ALL {
            *self.of_mut(kind) += other.of(kind);
        }
    }
}

/// What happened in one stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that became due.
    pub due: u64,
    /// Requests written.
    pub sent: u64,
    /// Whole answers that were right.
    pub ok: u64,
    /// Failed requests.
    pub errors: ErrorCounts,
    /// Bytes of requests.
    pub bytes_sent: u64,
    /// Bytes of answers, heads included.
    pub bytes_received: u64,
}

impl Counts {
    /// Whole answers: right ones, and those that failed their check.
    pub fn completed(&self) -> u64 {
        self.ok + self.errors.check
    }

    /// Adds another stretch of time, or another thread's.
    pub fn add(&mut self, other: &Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.ok += other.ok;
        self.errors.add(&other.errors);
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
    }
}

/// Answers by status code: an array, since counting is on the hot path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCounts(Box<[u64; 1000]>);

impl Default for StatusCounts {
    fn default() -> Self {
        Self(Box::new([0; 1000]))
    }
}

impl StatusCounts {
    /// Counts one answer; a status has at most three digits.
    #[inline]
    pub fn count(&mut self, status: u16) {
        self.0[usize::from(status).min(999)] += 1;
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine += theirs;
        }
    }

    /// Answers that point elsewhere; 304 does not.
    pub fn redirects(&self) -> u64 {
        self.0[300..400].iter().sum::<u64>() - self.0[304]
    }

    /// The statuses that occurred.
    pub fn to_map(&self) -> BTreeMap<String, u64> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(status, count)| (status.to_string(), *count))
            .collect()
    }
}
