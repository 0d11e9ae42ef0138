//! Bytes to HTTP and back: requests are rendered, responses are parsed.
//!
//! No sockets, no clocks: bytes go in, facts come out, so that every back end drives the same code and every answer can be
//! tested cut at any position. Response bodies are shown to whoever asks and never kept. HTTP/1.0 and HTTP/1.1 (RFC 9112).

mod chunked;
mod head;
mod request;
mod response;

pub use request::{RequestParts, render_request};
pub use response::{Answer, Progress, ResponseReader, ResponseState, Sink};

use std::fmt;

/// The most bytes of one head (status line and headers), of one chunk's extensions or of one answer's trailers.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The most headers of one answer.
pub const MAX_HEADERS: usize = 128;

/// Why something that came is not an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The status line or a header is not HTTP.
    Head(httparse::Error),
    /// The head is longer than [`MAX_HEAD_BYTES`].
    HeadTooLarge,
    /// A Content-Length is not a number, or two of them disagree.
    ContentLength,
    /// A chunk's size line is not one.
    ChunkSize,
    /// A chunk does not end where its size says.
    ChunkEnd,
    /// Chunk extensions or trailers are longer than [`MAX_HEAD_BYTES`].
    TrailersTooLarge,
    /// 101: the server changes to a protocol that nobody asked for.
    Upgrade,
}

impl fmt::Display for WireError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head(error) => write!(formatter, "not HTTP: {error}"),
            Self::HeadTooLarge => write!(formatter, "headers beyond {MAX_HEAD_BYTES} bytes"),
            Self::ContentLength => formatter.write_str("Content-Length is not one number"),
            Self::ChunkSize => formatter.write_str("a chunk's size is not hexadecimal"),
            Self::ChunkEnd => formatter.write_str("a chunk does not end where its size says"),
            Self::TrailersTooLarge => write!(formatter, "trailers beyond {MAX_HEAD_BYTES} bytes"),
            Self::Upgrade => formatter.write_str("101 Switching Protocols without being asked"),
        }
    }
}

impl std::error::Error for WireError {}
