//! HTTP/1.0 and HTTP/1.1 (RFC 9112): responses are decoded as their bytes come.
//!
//! Hot path. Rules: nothing is allocated and nothing is copied while responses arrive whole and with a head equal to
//! the one before (a server's head changes once a second, with its Date). A head equal to the last one is recognised by
//! comparing bytes instead of being parsed again, which is exact because it includes the empty line at its end. Only a
//! head that arrives in pieces is copied, into memory that is freed when the head is complete.

mod chunked;
mod head;

use self::chunked::Chunked;
pub use self::head::is_bodiless;
use self::head::{Framing, Head, header, parse_head};
use crate::{HttpError, MAX_HEAD_BYTES, Progress, Protocol, Response, Sink};

/// A head longer than this is parsed each time instead of remembered.
const MAX_REMEMBERED_BYTES: usize = 4096;

/// How far the response of one connection has come. There is one for each connection, so it is small.
#[derive(Debug, Default)]
pub struct Http1State(State);

#[derive(Debug, Default)]
enum State {
    /// No byte of a response has come.
    #[default]
    Start,
    /// A part of a head.
    Head(Box<PartialHead>),
    /// A head, and a body of which this many bytes are missing.
    Length(Response, u64),
    /// A head, and a part of a chunked body.
    Chunked(Response, Chunked),
    /// A head, and a body that ends with the connection.
    UntilClose(Response),
}

/// A head that came in pieces: its bytes so far.
#[derive(Debug)]
struct PartialHead {
    bytes: Vec<u8>,
    /// The number of bytes that were searched for the end of the head.
    searched: usize,
    /// The length at which parsing is tried without an end in sight, to detect garbage early. It doubles, so that a
    /// head that comes byte by byte takes linear and not quadratic time.
    next_try: usize,
}

/// Decodes the responses of all connections of a thread.
#[derive(Debug)]
pub struct Http1 {
    last_head: Vec<u8>,
    last: Head,
    /// Whether `last` was read as the response to a HEAD request.
    last_to_head: bool,
}

impl Default for Http1 {
    fn default() -> Self {
        Self {
            last_head: Vec::new(),
            last: Head { status: 0, keep_alive: false, framing: Framing::Interim },
            last_to_head: false,
        }
    }
}

impl Protocol for Http1 {
    const NAME: &'static str = "http/1.1";
    type State = Http1State;

    #[inline]
    fn receive(
        &mut self,
        state: &mut Http1State,
        to_head: bool,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Progress, HttpError> {
        // The common case: a whole response with the head of the last one.
        if matches!(state.0, State::Start)
            && self.last_to_head == to_head
            && !self.last_head.is_empty()
            && bytes.starts_with(&self.last_head)
        {
            if let Framing::Length(length) = self.last.framing {
                let used = self.last_head.len();
                if (bytes.len() - used) as u64 >= length {
                    let end = used + length as usize;
                    sink.head(&self.last_head);
                    sink.body(&bytes[used..end]);
                    return Ok(Progress::Complete {
                        response: Response {
                            status: self.last.status,
                            keep_alive: self.last.keep_alive,
                            body_bytes: length,
                        },
                        used: end,
                    });
                }
            }
        }
        self.receive_any(state, to_head, bytes, sink)
    }

    fn end_of_stream(&mut self, state: &mut Http1State) -> Result<Option<Response>, HttpError> {
        match std::mem::take(&mut state.0) {
            State::UntilClose(response) => Ok(Some(response)),
            // Garbage that came in pieces may not have been parsed yet.
            State::Head(partial) => parse_head(&partial.bytes, false).map(|_| None),
            _ => Ok(None),
        }
    }

    fn has_begun(state: &Http1State) -> bool {
        !matches!(state.0, State::Start)
    }

    fn partial_head(state: &Http1State) -> &[u8] {
        match &state.0 {
            State::Head(partial) => &partial.bytes,
            _ => &[],
        }
    }

    fn last_field(&self, name: &str) -> Option<&[u8]> {
        header(&self.last_head, name)
    }
}

impl Http1 {
    fn receive_any(
        &mut self,
        state: &mut Http1State,
        to_head: bool,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Progress, HttpError> {
        let mut used = 0;
        loop {
            match &mut state.0 {
                State::Start | State::Head(_) => {
                    let Some(head) = self.receive_head(&mut state.0, to_head, &bytes[used..], sink)? else {
                        return Ok(Progress::More);
                    };
                    used += head.1;
                    let response = Response { status: head.0.status, keep_alive: head.0.keep_alive, body_bytes: 0 };
                    state.0 = match head.0.framing {
                        Framing::Interim => State::Start,
                        Framing::Length(0) => return Ok(Progress::Complete { response, used }),
                        Framing::Length(length) => State::Length(response, length),
                        Framing::Chunked => State::Chunked(response, Chunked::new()),
                        Framing::UntilClose => State::UntilClose(response),
                    };
                }
                State::Length(response, left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - used);
                    sink.body(&bytes[used..used + here]);
                    used += here;
                    response.body_bytes += here as u64;
                    *left -= here as u64;
                    if *left == 0 {
                        let response = *response;
                        state.0 = State::Start;
                        return Ok(Progress::Complete { response, used });
                    }
                }
                State::Chunked(response, chunked) => {
                    let (here, ended) = chunked.feed(&bytes[used..], |part| {
                        response.body_bytes += part.len() as u64;
                        sink.body(part);
                    })?;
                    used += here;
                    if ended {
                        let response = *response;
                        state.0 = State::Start;
                        return Ok(Progress::Complete { response, used });
                    }
                }
                State::UntilClose(response) => {
                    response.body_bytes += (bytes.len() - used) as u64;
                    sink.body(&bytes[used..]);
                    used = bytes.len();
                }
            }
            if used == bytes.len() {
                return Ok(Progress::More);
            }
        }
    }

    /// Takes bytes of a head. Returns a complete head and how many of `bytes` belong to it; the state is
    /// [`State::Start`] then.
    fn receive_head(
        &mut self,
        state: &mut State,
        to_head: bool,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Option<(Head, usize)>, HttpError> {
        if let State::Head(partial) = state {
            let before = partial.bytes.len();
            partial.bytes.extend_from_slice(bytes);
            if !partial.is_worth_a_try() {
                return Self::within_limit(partial.bytes.len());
            }
            let Some((head, length)) = parse_head(&partial.bytes, to_head)? else {
                return Self::within_limit(partial.bytes.len());
            };
            sink.head(&partial.bytes[..length]);
            self.remember(&partial.bytes[..length], head, to_head);
            *state = State::Start;
            // An end before these bytes would have been found when it came.
            return Ok(Some((head, length.saturating_sub(before))));
        }
        match parse_head(bytes, to_head)? {
            Some((head, length)) => {
                sink.head(&bytes[..length]);
                self.remember(&bytes[..length], head, to_head);
                Ok(Some((head, length)))
            }
            None => {
                if !bytes.is_empty() {
                    *state = State::Head(Box::new(PartialHead {
                        bytes: bytes.to_vec(),
                        searched: bytes.len(),
                        next_try: 16.max(bytes.len() * 2),
                    }));
                }
                Self::within_limit(bytes.len())
            }
        }
    }

    fn within_limit(length: usize) -> Result<Option<(Head, usize)>, HttpError> {
        if length > MAX_HEAD_BYTES {
            return Err(HttpError::HeadTooLarge);
        }
        Ok(None)
    }

    fn remember(&mut self, bytes: &[u8], head: Head, to_head: bool) {
        if bytes.len() > MAX_REMEMBERED_BYTES {
            return;
        }
        self.last_head.clear();
        self.last_head.extend_from_slice(bytes);
        self.last = head;
        self.last_to_head = to_head;
    }
}

impl PartialHead {
    /// Returns whether the end of a head has come since the last try, or the head has doubled.
    fn is_worth_a_try(&mut self) -> bool {
        // An empty line may begin up to two bytes before the unsearched ones: LF CR | LF.
        let from = self.searched.saturating_sub(2);
        let has_end = memchr::memchr_iter(b'\n', &self.bytes[from..]).any(|at| {
            let rest = &self.bytes[from + at + 1..];
            rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
        });
        self.searched = self.bytes.len();
        let doubled = self.bytes.len() >= self.next_try;
        if doubled {
            self.next_try = self.bytes.len() * 2;
        }
        has_end || doubled
    }
}

#[cfg(test)]
mod tests;
