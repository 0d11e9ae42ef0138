//! Sockets behind one completion-shaped driver: ask for connections and writes, reap what came of them.
//!
//! The driver knows nothing of HTTP, requests or time; its user knows nothing of readiness, edges or rings. A *slot* is the
//! user's number of one connection, reused when a connection is replaced. Receiving needs no asking: from the moment a
//! connection is made until it is closed, whatever comes is reported.

mod driver;
mod endpoint;
mod epoll;
mod message;
mod parting;
mod socket;
mod stamps;
mod uring;

pub use driver::{Completion, Driver, Payload, Slot, Wait};
pub use endpoint::Endpoint;
pub use epoll::EpollDriver;
pub use parting::MOST_PARTING;
pub use rustix::io::Errno;
pub use stamps::Stamping;
pub use uring::UringDriver;
