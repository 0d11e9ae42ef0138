//! The test servers: HTTP/1.1 over plain TCP, on one thread.
//!
//! *Null* answers everything with a fixed small 200 and gives the highest rate that a load generator is checked against; *echo* answers with the
//! request's body; *delay* answers after a fixed time, as a slow upstream does; *stall* stops answering at known times, and *times* takes a service time from a known
//! distribution, with or without a queue before so many servers, so that a load generator's figures can be held against a closed form;
//! *fault* misbehaves in one chosen way.
//! They are instruments, not web servers: no TLS, no HTTP/2, no routing, no limits against hostile clients beyond a cap on memory.
//!
//! The crate neither prints nor exits. A server ends when its `watch` descriptor (usually standard input) is closed by the other
//! side, or when the process is killed.

mod connection;
mod fault;
mod listener;
mod queue;
mod request;
mod server;
mod service_time;
mod waiting;

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

pub use fault::Fault;
pub use listener::{DEFAULT_BACKLOG, Listener};
pub use server::is_closed;
pub use service_time::Distribution;

/// What a server does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Behaviour {
    /// A fixed small 200.
    Null,
    /// A 200 with the request's body and content type.
    Echo,
    /// A fixed small 200 after this time, counted from the arrival of each whole request.
    Delay(Duration),
    /// A fixed small 200, at once but for the last `length` of each `every`, counted from the start of the server: what comes then
    /// is answered at its end.
    Stall {
        /// The period.
        every: Duration,
        /// How long of each period nothing is answered.
        length: Duration,
    },
    /// A fixed small 200 after a service time of its own for each request.
    Times {
        /// What the service times are drawn from.
        distribution: Distribution,
        /// So many are served at once and the others queue, first come, first served; None: however many come.
        servers: Option<NonZeroUsize>,
        /// What this share of the requests gets in place of its answer, when that is due: any fault but a slow drip and an end.
        fault: Option<(Fault, f64)>,
        /// Decides the draws.
        seed: u64,
    },
    /// A chosen fault.
    Fault(Fault),
}

/// Why a server stopped serving without a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The other side of the watched descriptor closed it.
    WatchClosed,
    /// [`Fault::DieAfter`] answered its last request.
    DiedAsAsked,
}

/// What can go wrong.
#[derive(Debug)]
pub enum Error {
    /// Nothing can listen on this address.
    Listen(SocketAddr, std::io::Error),
    /// The event loop failed.
    Loop(std::io::Error),
}

impl Error {
    /// The next thing to try.
    pub fn hint(&self) -> String {
        match self {
            Self::Listen(address, error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                format!(
                    "`ss -ltnp 'sport = :{}'` shows who has it; --listen {}:0 takes a free port",
                    address.port(),
                    address.ip()
                )
            }
            Self::Listen(..) => "`ip address` shows the addresses of this machine".to_owned(),
            Self::Loop(_) => "`ulimit -n` shows how many descriptors a process may have".to_owned(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                write!(
                    formatter,
                    "--listen: the address {address} is already in use"
                )
            }
            Self::Listen(address, error) => {
                write!(formatter, "--listen: cannot listen on {address}: {error}")
            }
            Self::Loop(error) => write!(formatter, "the server's event loop failed: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Loop(error.into())
    }
}
