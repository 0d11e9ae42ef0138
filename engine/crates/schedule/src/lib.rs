//! When requests are due, and whose they are.
//!
//! Arithmetic only: no clock, no I/O, no randomness that a seed does not give. Time is a number of nanoseconds since the load began.
//! An *index* is a request's place in the whole load, from 0; a *shard* is one thread's (or machine's) part of it.

mod arrivals;
mod curve;
mod random;
mod shard;

pub use arrivals::Arrivals;
pub use curve::Curve;
pub use random::Random;
pub use shard::Shard;
