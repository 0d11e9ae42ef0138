//! Scenarios: users send requests rendered from templates, check the responses, and carry values from one step to the
//! next.
//!
//! [`compile`] turns the plan's `scenario` into a [`Compiled`] one that all load threads share. It finds every error of
//! the scenario. Each thread has a [`Worker`] (its share of the rows and numbers), each user a [`User`] (its position,
//! variables and cookies). Nothing here does I/O: the caller reads the feeders' files, sends the requests that
//! [`User::next`] renders, and passes their responses to [`User::check_response`].
//!
//! Words: a **step** is one request of the scenario; a **round** is one pass through the steps, or one weighted
//! request; a **row** of a feeder is a user's for a round, so that its columns fit together.

mod bind;
mod check;
mod compile;
mod compiled;
mod cookies;
mod error;
mod feeder;
pub mod json;
mod render;
mod template;
mod user;

pub use check::{Reason, Response};
pub use compile::{Base, compile};
pub use compiled::{Capture, Compiled, Needs};
pub use error::ScenarioError;
pub use user::{Issued, User, Worker};

#[cfg(test)]
mod tests;
