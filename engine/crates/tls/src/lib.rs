//! TLS without I/O: bytes of the connection go in, plaintext and bytes for the connection come out.
//!
//! [`Client`] is what all connections of a thread share (trusted authorities, certificate, sessions to resume); [`Session`] is one
//! connection's state. Whoever owns the sockets moves the bytes, so that every back end drives the same code and a handshake can be
//! tested cut at any position. The protocol itself is rustls.

mod client;
mod error;
mod session;

pub use client::{Client, Settings};
pub use error::{SettingsError, TlsError};
pub use session::{Fed, Session};
