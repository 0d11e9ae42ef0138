//! A stateless parser of requests, without I/O.
//!
//! [`parse`] finds one complete request at the start of the received bytes, or asks for more. It parses a head again
//! after each part of the body. This is cheaper than a parser with state, because a benchmark's requests usually arrive
//! complete.

use std::borrow::Cow;
use std::ops::Range;

/// Maximum number of header fields; a request with more is refused.
const MAX_HEADERS: usize = 64;
/// Maximum size of a head; a larger one is refused.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum size of a body; a larger one is refused, because it is held in memory.
pub const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// The result of parsing the received bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// The request is incomplete. True: the client waits for `100 Continue` before it sends the body.
    Incomplete(bool),
    /// Not HTTP/1.x, or beyond a limit: the server responds with this status and closes.
    Refused(u16),
    /// A complete request.
    Complete(Request<'a>),
}

/// Whether the connection stays open after the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Persistence {
    /// It stays open, the default of HTTP/1.1.
    KeepAlive,
    /// It stays open for an HTTP/1.0 client, which needs a header field in the response.
    ExplicitKeepAlive,
    /// It closes.
    Close,
}

impl Persistence {
    /// Returns whether another request may follow.
    pub fn is_open(self) -> bool {
        self != Self::Close
    }

    /// Returns the header field of the response.
    pub fn header(self) -> &'static str {
        match self {
            Self::KeepAlive => "",
            Self::ExplicitKeepAlive => "Connection: keep-alive\r\n",
            Self::Close => "Connection: close\r\n",
        }
    }
}

/// One complete request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Bytes of head and body.
    pub length: usize,
    /// Whether the client expects the connection to stay open.
    pub persistence: Persistence,
    /// Whether the method is HEAD: the response must have no body.
    pub is_head: bool,
    /// The value of Content-Type.
    pub content_type: Option<&'a [u8]>,
    /// The body, without chunk framing.
    pub body: Cow<'a, [u8]>,
}

/// Parses one request at the start of `input`.
pub fn parse(input: &[u8]) -> Parsed<'_> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let head_length = match head.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() > MAX_HEAD_BYTES => {
            return Parsed::Refused(431);
        }
        Ok(httparse::Status::Partial) => return Parsed::Incomplete(false),
        Err(httparse::Error::TooManyHeaders) => return Parsed::Refused(431),
        Err(_) => return Parsed::Refused(400),
    };
    let mut persistence = match head.version {
        Some(1) => Persistence::KeepAlive,
        _ => Persistence::Close,
    };
    let mut content_length = None;
    let mut chunked = false;
    let mut expects_continue = false;
    let mut content_type = None;
    for header in head.headers.iter() {
        let name = header.name;
        if name.eq_ignore_ascii_case("content-length") {
            match std::str::from_utf8(header.value).ok().and_then(|value| value.trim().parse::<usize>().ok()) {
                Some(length) if content_length.is_none_or(|earlier| earlier == length) => {
                    content_length = Some(length);
                }
                _ => return Parsed::Refused(400),
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if !header.value.eq_ignore_ascii_case(b"chunked") {
                return Parsed::Refused(501);
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case("connection") {
            if contains_token(header.value, b"close") {
                persistence = Persistence::Close;
            } else if contains_token(header.value, b"keep-alive") {
                persistence = match head.version {
                    Some(1) => Persistence::KeepAlive,
                    _ => Persistence::ExplicitKeepAlive,
                };
            }
        } else if name.eq_ignore_ascii_case("content-type") {
            content_type = Some(header.value);
        } else if name.eq_ignore_ascii_case("expect") {
            expects_continue = header.value.eq_ignore_ascii_case(b"100-continue");
        }
    }
    let is_head = head.method == Some("HEAD");
    let rest = &input[head_length..];
    let (body_length, body) = if chunked {
        match dechunk(rest) {
            Chunked::Incomplete => return Parsed::Incomplete(expects_continue && rest.is_empty()),
            Chunked::Refused(status) => return Parsed::Refused(status),
            Chunked::Complete(length, body) => (length, Cow::Owned(body)),
        }
    } else {
        let length = content_length.unwrap_or(0);
        if length > MAX_BODY_BYTES {
            return Parsed::Refused(413);
        }
        match rest.get(..length) {
            Some(body) => (length, Cow::Borrowed(body)),
            None => return Parsed::Incomplete(expects_continue && rest.is_empty()),
        }
    };
    Parsed::Complete(Request { length: head_length + body_length, persistence, is_head, content_type, body })
}

/// Returns whether a comma-separated header value has `token`, ignoring case.
fn contains_token(value: &[u8], token: &[u8]) -> bool {
    value.split(|&byte| byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

/// The result of parsing a chunked body.
enum Chunked {
    Incomplete,
    Refused(u16),
    Complete(usize, Vec<u8>),
}

/// Parses a chunked body (RFC 9112 section 7.1). Copies the chunks only once all have arrived.
fn dechunk(input: &[u8]) -> Chunked {
    let mut position = 0;
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let mut total = 0;
    loop {
        let (line, size) = match httparse::parse_chunk_size(&input[position..]) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Chunked::Incomplete,
            Err(_) => return Chunked::Refused(400),
        };
        let Ok(size) = usize::try_from(size) else {
            return Chunked::Refused(413);
        };
        position += line;
        if size == 0 {
            break;
        }
        total += size.min(MAX_BODY_BYTES + 1);
        if total > MAX_BODY_BYTES {
            return Chunked::Refused(413);
        }
        match input.get(position + size..position + size + 2) {
            Some(b"\r\n") => pieces.push(position..position + size),
            Some(_) => return Chunked::Refused(400),
            None => return Chunked::Incomplete,
        }
        position += size + 2;
    }
    // Trailers are skipped up to the empty line.
    loop {
        let rest = &input[position..];
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
            return Chunked::Incomplete;
        };
        position += end + 2;
        if end == 0 {
            break;
        }
    }
    let mut body = Vec::with_capacity(total);
    for piece in pieces {
        body.extend_from_slice(&input[piece]);
    }
    Chunked::Complete(position, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] =
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nTrailer: 1\r\n\r\n";
    const SIZED: &[u8] = b"POST /a?b HTTP/1.1\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nabcde";

    #[test]
    fn request_needs_its_last_byte() {
        for whole in [CHUNKED, SIZED, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
            for cut in 0..whole.len() {
                assert_eq!(parse(&whole[..cut]), Parsed::Incomplete(false), "{cut}");
            }
            assert!(matches!(parse(whole), Parsed::Complete(request) if request.length == whole.len()));
        }
    }

    #[test]
    fn chunked_and_sized_bodies_are_equal() {
        for whole in [CHUNKED, SIZED] {
            let Parsed::Complete(request) = parse(whole) else { panic!("no complete request was found") };
            assert_eq!(request.body.as_ref(), b"abcde");
        }
    }

    #[test]
    fn pipelined_request_ends_at_its_length() {
        let mut both = SIZED.to_vec();
        both.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
        assert!(matches!(parse(&both), Parsed::Complete(request) if request.length == SIZED.len()));
    }

    #[test]
    fn http_1_0_closes_by_default() {
        let of = |input| match parse(input) {
            Parsed::Complete(request) => Some(request.persistence),
            _ => None,
        };
        assert_eq!(of(b"GET / HTTP/1.0\r\n\r\n"), Some(Persistence::Close));
        assert_eq!(of(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), Some(Persistence::ExplicitKeepAlive));
        assert_eq!(of(b"GET / HTTP/1.1\r\n\r\n"), Some(Persistence::KeepAlive));
        assert_eq!(of(b"GET / HTTP/1.1\r\nConnection: x, close\r\n\r\n"), Some(Persistence::Close));
    }

    #[test]
    fn invalid_request_is_refused() {
        assert_eq!(parse(b"\x16\x03\x01\x02\x00"), Parsed::Refused(400));
        assert_eq!(parse(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), Parsed::Refused(400));
        assert_eq!(parse(b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"), Parsed::Refused(413));
        assert_eq!(parse(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), Parsed::Refused(400));
    }

    #[test]
    fn expect_continue_is_recognised() {
        let head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(parse(head), Parsed::Incomplete(true));
    }
}
