//! The test servers: HTTP/1.1 over plain TCP, on one thread.
//!
//! | server | response | purpose |
//! |---|---|---|
//! | *null* | a fixed small 200 | the highest rate of a load generator |
//! | *echo* | the request's body | checks of bodies |
//! | *delay* | a small 200 after a fixed time | a slow upstream |
//! | *stall* | a small 200, none at known times | checks of coordinated omission |
//! | *times* | a small 200 after a random service time, with or without a queue | checks against a closed form |
//! | *fault* | one chosen fault | checks of error handling |
//!
//! They are instruments, not web servers: no TLS, no HTTP/2, no routing. Their only limit for hostile clients is one on
//! memory.
//!
//! The crate neither prints nor exits. A server ends when the other side closes its `watch` descriptor (usually
//! standard input).

mod behaviour;
mod connection;
mod delayed;
mod fault;
mod listener;
mod queue;
mod request;
mod server;
mod service_time;

use std::net::SocketAddr;

pub use behaviour::{Behaviour, Fault};
pub use listener::{DEFAULT_BACKLOG, Listener};
pub use service_time::Distribution;

/// The reason why a server stopped without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEnd {
    /// The other side of the watched descriptor closed it.
    WatchClosed,
    /// [`Fault::DieAfter`] sent its last response.
    RequestLimit,
}

/// An error of a server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot listen on this address.
    #[error("--listen: {}", describe_listen(.0, .1))]
    Listen(SocketAddr, std::io::Error),
    /// The event loop failed.
    #[error("the server's event loop failed: {0}")]
    Loop(std::io::Error),
}

impl Error {
    /// Returns the next thing to try.
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

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Loop(error.into())
    }
}

fn describe_listen(address: &SocketAddr, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => format!("the address {address} is already in use"),
        _ => format!("cannot listen on {address}: {error}"),
    }
}
