//! The seam between the load and a protocol.

use crate::HttpError;

/// A protocol without I/O: received bytes go in, responses come out. One value for each thread, one `State` for each
/// connection.
pub trait Protocol: Default {
    /// Its name in plans and records.
    const NAME: &'static str;

    /// Its state of one connection. The default is a connection without received bytes.
    type State: Default;

    /// Takes received bytes up to the end of the response to the connection's oldest request. `to_head` says that the
    /// request was a HEAD. Shows the response to `sink`.
    ///
    /// # Errors
    /// When the bytes are no response. The connection cannot be used any more.
    fn receive(
        &mut self,
        state: &mut Self::State,
        to_head: bool,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Progress, HttpError>;

    /// The server sends no more. Returns the response if this was its regular end, `None` if a part is missing.
    ///
    /// # Errors
    /// When the bytes that came are no beginning of a response.
    fn end_of_stream(&mut self, state: &mut Self::State) -> Result<Option<Response>, HttpError>;

    /// Returns whether a part of a response has come.
    fn has_begun(state: &Self::State) -> bool;

    /// Returns the bytes of a head that is not complete.
    fn partial_head(state: &Self::State) -> &[u8];

    /// Returns the value of a field in the last decoded head of any connection, `None` if it is missing or the head was
    /// too long to be remembered.
    fn last_field(&self, name: &str) -> Option<&[u8]>;
}

/// A whole response without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Whether another request may follow on this connection.
    pub keep_alive: bool,
    /// Bytes of the decoded body so far, without the framing of chunks.
    pub body_bytes: u64,
}

/// How far a response has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken; more must come.
    More,
    /// The response is whole.
    Complete {
        /// The response.
        response: Response,
        /// How many of the given bytes belong to it.
        used: usize,
    },
}

/// Sees a response as it comes. Both functions may be left out.
pub trait Sink {
    /// A whole head: status line, fields and the empty line. The final head comes after the heads of interim responses.
    #[inline]
    fn head(&mut self, _bytes: &[u8]) {}

    /// A part of the body.
    #[inline]
    fn body(&mut self, _bytes: &[u8]) {}
}

/// Looks at nothing.
impl Sink for () {}
