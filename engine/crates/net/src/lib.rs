//! Sockets behind one completion-shaped driver: requests to connect and to send go in, events come out.
//!
//! The driver knows nothing of HTTP, requests or time; its user knows nothing of readiness, edges or rings. A *slot* is
//! the user's number of one connection, reused when a connection is replaced. Receiving needs no asking: from the
//! moment a connection is made until it is closed, whatever comes is reported.

mod driver;
mod endpoint;
mod epoll;
mod linger;
mod message;
mod socket;
mod stamps;
pub mod tls;
mod uring;

pub use driver::{Backend, Driver, Event, Payload, Slot, Wait};
pub use endpoint::Endpoint;
pub use epoll::EpollDriver;
pub use linger::MAX_LINGERING;
pub use rustix::io::Errno;
pub use stamps::Stamping;
pub use uring::UringDriver;
