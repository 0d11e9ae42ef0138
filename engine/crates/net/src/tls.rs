//! TLS over any other driver.
//!
//! [`Client`] is shared by all connections of a thread (trusted authorities, certificate, sessions to resume).
//! `Session` is the state of one connection, without I/O. [`TlsDriver`] moves the bytes between a session and the
//! driver below it. The protocol is rustls.

mod client;
mod driver;
mod error;
mod session;

pub use client::{Client, Settings};
pub use driver::TlsDriver;
pub use error::{SettingsError, TlsError};
