//! The due times of requests, and their distribution over threads and machines.
//!
//! Arithmetic without clock and I/O; random numbers come from a seed. Times are nanoseconds since the start of the
//! load. An *index* is a request's number in the whole load, from 0. A *shard* is the part of one thread or machine.

mod arrivals;
mod curve;
mod random;
mod shard;

pub use arrivals::Arrivals;
pub use curve::Curve;
pub use random::Random;
pub use shard::Shard;
