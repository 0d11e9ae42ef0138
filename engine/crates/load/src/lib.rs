//! One load: a plan in, records out.
//!
//! [`Prepared`] is a plan with everything fetched that it refers to (an address, a body, the bytes of the request). [`run`] opens
//! the connections, starts the clock, and hands over records as they come about. Each load thread owns a shard of the load, its
//! connections and its histograms, and shares nothing with the others ([`thread`]); what they saw is put together on the thread
//! that called [`run`] ([`collect`]). This crate never prints and never exits.

mod clock;
mod collect;
mod connection;
mod demand;
mod error;
mod fifo;
mod kernel_clock;
mod pipelines;
mod prepare;
mod ramp;
mod request_log;
mod requests;
mod script;
mod secured;
mod stop;
mod tally;
mod thread;
mod users;
mod wait;

pub use collect::{NICE, run};
pub use error::LoadError;
pub use prepare::Prepared;
pub use stop::Stop;

/// The version that records give.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
