//! Responses, parsed as their bytes come.
//!
//! Hot path. Rules: nothing is allocated and nothing is copied while answers arrive whole and with a head equal to the one
//! before (a server's head changes once a second, with its Date); a head equal to the last one is recognised by comparing bytes
//! instead of being parsed again, which is exact because it includes the empty line at its end. Only a head that arrives in
//! pieces is copied, into memory that is given back when the head is complete.

use crate::chunked::Chunked;
use crate::head::{Framing, Head, header, parse_head};
use crate::{MAX_HEAD_BYTES, WireError};

/// A head longer than this is parsed each time instead of remembered.
const MAX_REMEMBERED_BYTES: usize = 4096;

/// What is known about a whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Whether another request may follow on this connection.
    pub keep_alive: bool,
    /// Bytes of its body, without what frames them; while it is not whole, of what has come of it.
    pub body_bytes: u64,
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken; more must come.
    More,
    /// The answer is whole.
    Complete {
        /// The answer.
        answer: Answer,
        /// How many of the bytes given were the answer's; what is beyond them was not asked for.
        used: usize,
    },
}

/// Where in its answer one connection is. Small, since there is one for each connection.
#[derive(Debug, Default)]
pub struct ResponseState(State);

#[derive(Debug, Default)]
enum State {
    /// Nothing of an answer has come.
    #[default]
    Start,
    /// A part of a head.
    Head(Box<PartialHead>),
    /// A head, and a body of which this much is left.
    Length(Answer, u64),
    /// A head, and a part of a chunked body.
    Chunked(Answer, Chunked),
    /// A head, and a body that ends with the connection.
    UntilClose(Answer),
}

/// A head that came in pieces: its bytes so far.
#[derive(Debug)]
struct PartialHead {
    bytes: Vec<u8>,
    /// How far the end of the head was looked for.
    searched: usize,
    /// The length at which parsing is tried even without an end in sight, so that garbage is found out early. It doubles, so
    /// that a head that comes byte by byte costs linear and not quadratic time.
    next_try: usize,
}

impl ResponseState {
    /// A connection on which nothing has come.
    pub const fn new() -> Self {
        Self(State::Start)
    }

    /// Whether no byte of an answer has come.
    pub fn is_untouched(&self) -> bool {
        matches!(self.0, State::Start)
    }

    /// The connection has ended: gives the answer if that was its regular end, and nothing if something is missing.
    ///
    /// # Errors
    /// When the part of a head that came was not HTTP.
    pub fn end_of_stream(&mut self) -> Result<Option<Answer>, WireError> {
        match std::mem::take(&mut self.0) {
            State::UntilClose(answer) => Ok(Some(answer)),
            // Garbage that came in pieces may not have been looked at since.
            State::Head(partial) => parse_head(&partial.bytes, false).map(|_| None),
            _ => Ok(None),
        }
    }
}

/// What is shown of an answer as it comes.
pub trait Sink {
    /// A whole head, status line, headers and the empty line. One that follows an interim answer comes after it.
    fn head(&mut self, bytes: &[u8]);

    /// A part of the body.
    fn body(&mut self, bytes: &[u8]);
}

/// Who looks at nothing but the body.
struct OnBody<F>(F);

impl<F: FnMut(&[u8])> Sink for OnBody<F> {
    #[inline]
    fn head(&mut self, _: &[u8]) {}

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.0(bytes);
    }
}

/// Reads the answers of many connections to the same kind of request. One for each thread.
#[derive(Debug)]
pub struct ResponseReader {
    to_head_request: bool,
    last_head: Vec<u8>,
    last: Head,
}

impl ResponseReader {
    /// A reader of the answers to HEAD requests, or to any others.
    pub fn new(to_head_request: bool) -> Self {
        Self {
            to_head_request,
            last_head: Vec::new(),
            last: Head {
                status: 0,
                keep_alive: false,
                framing: Framing::Interim,
            },
        }
    }

    /// Takes bytes that came on the connection whose state this is, and shows what of them is body to `on_body`.
    ///
    /// # Errors
    /// When what came is not HTTP. The connection cannot be used any more.
    #[inline]
    pub fn feed(
        &mut self,
        state: &mut ResponseState,
        bytes: &[u8],
        on_body: impl FnMut(&[u8]),
    ) -> Result<Progress, WireError> {
        self.feed_to(state, bytes, &mut OnBody(on_body))
    }

    /// As [`Self::feed`], and shows the head too.
    ///
    /// # Errors
    /// As [`Self::feed`].
    #[inline]
    pub fn feed_to(
        &mut self,
        state: &mut ResponseState,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Progress, WireError> {
        // The common case: a whole answer, with the head of the last one.
        if matches!(state.0, State::Start)
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
                        answer: Answer {
                            status: self.last.status,
                            keep_alive: self.last.keep_alive,
                            body_bytes: length,
                        },
                        used: end,
                    });
                }
            }
        }
        self.feed_any(state, bytes, sink)
    }

    fn feed_any(
        &mut self,
        state: &mut ResponseState,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Progress, WireError> {
        let mut used = 0;
        loop {
            match &mut state.0 {
                State::Start | State::Head(_) => {
                    let Some(head) = self.feed_head(&mut state.0, &bytes[used..], sink)? else {
                        return Ok(Progress::More);
                    };
                    used += head.1;
                    let answer = Answer {
                        status: head.0.status,
                        keep_alive: head.0.keep_alive,
                        body_bytes: 0,
                    };
                    state.0 = match head.0.framing {
                        Framing::Interim => State::Start,
                        Framing::Length(0) => return Ok(Progress::Complete { answer, used }),
                        Framing::Length(length) => State::Length(answer, length),
                        Framing::Chunked => State::Chunked(answer, Chunked::new()),
                        Framing::UntilClose => State::UntilClose(answer),
                    };
                }
                State::Length(answer, left) => {
                    let here = usize::try_from(*left)
                        .unwrap_or(usize::MAX)
                        .min(bytes.len() - used);
                    sink.body(&bytes[used..used + here]);
                    used += here;
                    answer.body_bytes += here as u64;
                    *left -= here as u64;
                    if *left == 0 {
                        let answer = *answer;
                        state.0 = State::Start;
                        return Ok(Progress::Complete { answer, used });
                    }
                }
                State::Chunked(answer, chunked) => {
                    let (here, ended) = chunked.feed(&bytes[used..], |part| {
                        answer.body_bytes += part.len() as u64;
                        sink.body(part);
                    })?;
                    used += here;
                    if ended {
                        let answer = *answer;
                        state.0 = State::Start;
                        return Ok(Progress::Complete { answer, used });
                    }
                }
                State::UntilClose(answer) => {
                    answer.body_bytes += (bytes.len() - used) as u64;
                    sink.body(&bytes[used..]);
                    used = bytes.len();
                }
            }
            if used == bytes.len() {
                return Ok(Progress::More);
            }
        }
    }

    /// The value of a header in the head that was read last, on whichever connection; nothing of a head too long to be remembered.
    pub fn last_header(&self, name: &str) -> Option<&[u8]> {
        header(&self.last_head, name)
    }

    /// Takes bytes of a head. When it is complete, the state is [`State::Start`] again and the head is given with the number of
    /// bytes of `bytes` that were its.
    fn feed_head(
        &mut self,
        state: &mut State,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Option<(Head, usize)>, WireError> {
        if let State::Head(partial) = state {
            let before = partial.bytes.len();
            partial.bytes.extend_from_slice(bytes);
            if !partial.is_worth_a_try() {
                return Self::within_limit(partial.bytes.len());
            }
            let Some((head, length)) = parse_head(&partial.bytes, self.to_head_request)? else {
                return Self::within_limit(partial.bytes.len());
            };
            sink.head(&partial.bytes[..length]);
            self.remember(&partial.bytes[..length], head);
            *state = State::Start;
            // An end that was there before these bytes would have been found then.
            return Ok(Some((head, length.saturating_sub(before))));
        }
        match parse_head(bytes, self.to_head_request)? {
            Some((head, length)) => {
                sink.head(&bytes[..length]);
                self.remember(&bytes[..length], head);
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

    fn within_limit(length: usize) -> Result<Option<(Head, usize)>, WireError> {
        if length > MAX_HEAD_BYTES {
            return Err(WireError::HeadTooLarge);
        }
        Ok(None)
    }

    fn remember(&mut self, bytes: &[u8], head: Head) {
        if bytes.len() > MAX_REMEMBERED_BYTES {
            return;
        }
        self.last_head.clear();
        self.last_head.extend_from_slice(bytes);
        self.last = head;
    }
}

impl PartialHead {
    /// Whether the end of a head has come since the last look, or the head has doubled.
    fn is_worth_a_try(&mut self) -> bool {
        // An empty line may begin up to two bytes before what was searched: LF CR | LF.
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
