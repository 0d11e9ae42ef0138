//! From bytes to requests: pure and stateless.
//!
//! [`parse`] looks at everything received so far and either finds one whole request at its start or asks for more. A head is parsed again
//! when its body arrives in pieces; that is cheaper than keeping state, because the requests of a benchmark arrive whole.

use std::borrow::Cow;
use std::ops::Range;

/// More headers than a benchmark sends; a request with more is refused.
const MAX_HEADERS: usize = 64;
/// A head larger than this is refused.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// A body larger than this is refused, so that a client cannot take the machine's memory.
pub const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// More bytes are needed. True: the client waits for `100 Continue` before it sends the body.
    Incomplete(bool),
    /// Not HTTP/1.x, or beyond the limits: answer this status and close.
    Refused(u16),
    /// A whole request.
    Whole(Request<'a>),
}

/// What becomes of the connection behind the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Persistence {
    /// It stays open, as HTTP/1.1 has it.
    Stays,
    /// It stays open because an HTTP/1.0 client asked for it, who waits for its end unless the answer agrees.
    StaysAsAsked,
    /// It is closed.
    Closes,
}

impl Persistence {
    /// Whether another request may follow.
    pub fn stays(self) -> bool {
        self != Self::Closes
    }

    /// What the answer says of it.
    pub fn header(self) -> &'static str {
        match self {
            Self::Stays => "",
            Self::StaysAsAsked => "Connection: keep-alive\r\n",
            Self::Closes => "Connection: close\r\n",
        }
    }
}

/// One whole request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Bytes from the first of the head to the last of the body.
    pub length: usize,
    /// What the client expects of the connection.
    pub persistence: Persistence,
    /// A request with HEAD must get no body back.
    pub is_head: bool,
    /// The value of Content-Type.
    pub content_type: Option<&'a [u8]>,
    /// The body, without chunk framing.
    pub body: Cow<'a, [u8]>,
}

/// Looks for one whole request at the start of `input`.
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
        Some(1) => Persistence::Stays,
        _ => Persistence::Closes,
    };
    let mut content_length = None;
    let mut chunked = false;
    let mut expects_continue = false;
    let mut content_type = None;
    for header in head.headers.iter() {
        let name = header.name;
        if name.eq_ignore_ascii_case("content-length") {
            match std::str::from_utf8(header.value)
                .ok()
                .and_then(|value| value.trim().parse::<usize>().ok())
            {
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
                persistence = Persistence::Closes;
            } else if contains_token(header.value, b"keep-alive") {
                persistence = match head.version {
                    Some(1) => Persistence::Stays,
                    _ => Persistence::StaysAsAsked,
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
            Chunked::Whole(length, body) => (length, Cow::Owned(body)),
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
    Parsed::Whole(Request {
        length: head_length + body_length,
        persistence,
        is_head,
        content_type,
        body,
    })
}

/// Whether a comma-separated header value holds `token`, whatever its case.
fn contains_token(value: &[u8], token: &[u8]) -> bool {
    value
        .split(|&byte| byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

/// What the bytes of a chunked body so far amount to.
enum Chunked {
    Incomplete,
    Refused(u16),
    Whole(usize, Vec<u8>),
}

/// RFC 9112 section 7.1. The chunks are walked first and copied only once all are there.
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
    Chunked::Whole(position, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nTrailer: 1\r\n\r\n";
    const SIZED: &[u8] =
        b"POST /a?b HTTP/1.1\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nabcde";

    #[test]
    fn a_request_is_whole_only_once_its_last_byte_is_there() {
        for whole in [CHUNKED, SIZED, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
            for cut in 0..whole.len() {
                assert_eq!(parse(&whole[..cut]), Parsed::Incomplete(false), "{cut}");
            }
            assert!(
                matches!(parse(whole), Parsed::Whole(request) if request.length == whole.len())
            );
        }
    }

    #[test]
    fn a_body_is_the_same_with_a_length_and_in_chunks() {
        for whole in [CHUNKED, SIZED] {
            let Parsed::Whole(request) = parse(whole) else {
                panic!("a whole request was not seen")
            };
            assert_eq!(request.body.as_ref(), b"abcde");
        }
    }

    #[test]
    fn the_next_pipelined_request_begins_where_the_first_ends() {
        let mut both = SIZED.to_vec();
        both.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
        assert!(matches!(parse(&both), Parsed::Whole(request) if request.length == SIZED.len()));
    }

    #[test]
    fn http_1_0_closes_unless_it_asks_to_stay() {
        let of = |input| match parse(input) {
            Parsed::Whole(request) => Some(request.persistence),
            _ => None,
        };
        assert_eq!(of(b"GET / HTTP/1.0\r\n\r\n"), Some(Persistence::Closes));
        assert_eq!(
            of(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
            Some(Persistence::StaysAsAsked)
        );
        assert_eq!(of(b"GET / HTTP/1.1\r\n\r\n"), Some(Persistence::Stays));
        assert_eq!(
            of(b"GET / HTTP/1.1\r\nConnection: x, close\r\n\r\n"),
            Some(Persistence::Closes)
        );
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert_eq!(parse(b"\x16\x03\x01\x02\x00"), Parsed::Refused(400));
        assert_eq!(
            parse(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
            Parsed::Refused(400)
        );
        assert_eq!(
            parse(b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"),
            Parsed::Refused(413)
        );
        assert_eq!(
            parse(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            Parsed::Refused(400)
        );
    }

    #[test]
    fn a_client_that_waits_for_100_continue_is_recognised() {
        let head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(parse(head), Parsed::Incomplete(true));
    }
}
