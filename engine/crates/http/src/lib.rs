//! HTTP without sockets and clocks: requests become bytes, received bytes become responses.
//!
//! [`Protocol`] is the seam to the load, [`Http1`] its implementation. Every back end drives the same code, and tests
//! can cut a response at any byte. Bodies are shown to a [`Sink`] and never kept.

mod h1;
mod protocol;
mod request;

pub use h1::{Http1, Http1State, is_bodiless};
pub use protocol::{Progress, Protocol, Response, Sink};
pub use request::{Http1Writer, RequestParts, RequestWriter, anticipates_body, encode_request, has_field, list_fields};

use thiserror::Error;

/// The most bytes of one head (status line and headers), of one chunk's extensions or of one response's trailers.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The most headers of one response.
pub const MAX_HEADERS: usize = 1024;

/// Why something that came is not a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HttpError {
    /// The status line or a header is not HTTP.
    #[error("not HTTP: {0}")]
    Head(httparse::Error),
    /// The head is longer than [`MAX_HEAD_BYTES`].
    #[error("headers beyond {} bytes", MAX_HEAD_BYTES)]
    HeadTooLarge,
    /// A Content-Length is not a number, or two of them disagree.
    #[error("Content-Length is not one number")]
    ContentLength,
    /// A chunk's size line is not one.
    #[error("a chunk's size is not hexadecimal")]
    ChunkSize,
    /// A chunk does not end where its size says.
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    /// Chunk extensions or trailers are longer than [`MAX_HEAD_BYTES`].
    #[error("trailers beyond {} bytes", MAX_HEAD_BYTES)]
    TrailersTooLarge,
    /// 101: the server changes to a protocol that the client did not request.
    #[error("101 Switching Protocols without being asked")]
    Upgrade,
}
