//! One load: a plan in, records out.
//!
//! [`Prepared`] is a plan with everything that it refers to (an address, a body, the bytes of the request). [`run`]
//! opens the connections, starts the clock, and emits records. Each load thread owns a shard of the load, its
//! connections and its histograms ([`thread`]). The thread that called [`run`] merges their records ([`collect`]). This
//! crate never prints and never exits.
//!
//! A load thread has five parts: `connections` (which are open and free), `in_flight` (requests without a response),
//! `workload` (what is sent next, for whom, and when), `recorder` (counts, clocks, request log) and `window` (start,
//! end, open interval).

mod clock;
mod collect;
mod connections;
mod error;
mod in_flight;
mod index_list;
mod prepare;
mod ramp;
mod recorder;
mod stop;
mod thread;
mod wait;
mod window;
mod workload;

pub use collect::{NICE, run};
pub use error::LoadError;
pub use prepare::Prepared;
pub use stop::Stop;

/// The version in records.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
