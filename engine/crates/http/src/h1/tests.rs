#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

/// What one connection gave: the responses, then how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Response { status: u16, keep_alive: bool, body: Vec<u8>, leftover: usize },
    EndedEarly { untouched: bool },
    NotHttp(HttpError),
}

fn response(status: u16, keep_alive: bool, body: &[u8]) -> Outcome {
    Outcome::Response { status, keep_alive, body: body.to_vec(), leftover: 0 }
}

/// Keeps the body.
struct Body<'a>(&'a mut Vec<u8>);

impl Sink for Body<'_> {
    fn body(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// Feeds pieces and then the end of the stream, as a connection does.
fn run(reader: &mut Http1, pieces: &[&[u8]]) -> Outcome {
    run_to(reader, false, pieces)
}

fn run_to(reader: &mut Http1, to_head: bool, pieces: &[&[u8]]) -> Outcome {
    let mut state = Http1State::default();
    let mut body = Vec::new();
    let total: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut before = 0;
    for piece in pieces {
        match reader.receive(&mut state, to_head, piece, &mut Body(&mut body)) {
            Ok(Progress::More) => before += piece.len(),
            Ok(Progress::Complete { response, used }) => {
                assert!(!Http1::has_begun(&state), "a finished connection is ready for the next response");
                assert_eq!(response.body_bytes, body.len() as u64);
                return Outcome::Response {
                    status: response.status,
                    keep_alive: response.keep_alive,
                    body,
                    leftover: total - before - used,
                };
            }
            Err(error) => return Outcome::NotHttp(error),
        }
    }
    let untouched = !Http1::has_begun(&state);
    match reader.end_of_stream(&mut state) {
        Ok(Some(response)) => {
            assert_eq!(response.body_bytes, body.len() as u64);
            Outcome::Response { status: response.status, keep_alive: response.keep_alive, body, leftover: 0 }
        }
        Ok(None) => Outcome::EndedEarly { untouched },
        Err(error) => Outcome::NotHttp(error),
    }
}

fn golden() -> Vec<(&'static [u8], Outcome)> {
    let early = Outcome::EndedEarly { untouched: false };
    vec![
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", response(200, true, b"hello")),
        (b"HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh:5  \r\n\r\nhello", response(200, true, b"hello")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", response(200, true, b"")),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", response(200, true, b"")),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", response(200, true, b"ok")),
        (b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", response(200, true, b"ok")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok", response(200, true, b"ok")),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", response(200, false, b"hello")),
        (b"HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 0\r\n\r\n", response(200, false, b"")),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", response(200, false, b"hello")),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello", response(200, true, b"hello")),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", response(200, false, b"until the end")),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", response(200, false, b"until the end")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabcdef", response(200, false, b"abcdef")),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", response(204, true, b"")),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", response(304, true, b"")),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 1\r\n\r\nx", response(500, true, b"x")),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            response(200, true, b"ok"),
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n", response(200, true, b"hello world")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n0A\r\n0123456789\r\n00\r\nA: b\r\nC: d\r\n\r\n", response(200, true, b"0123456789")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\nx\r\n0\r\n\r\n", response(200, true, b"x")),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1",
            Outcome::Response { status: 200, keep_alive: true, body: b"ok".to_vec(), leftover: 8 },
        ),
        (b"", Outcome::EndedEarly { untouched: true }),
        (b"HTTP/1.1 200 OK\r\nContent-Le", early.clone()),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", early.clone()),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", early),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Outcome::NotHttp(HttpError::ContentLength)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Outcome::NotHttp(HttpError::ContentLength)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Outcome::NotHttp(HttpError::ContentLength)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", Outcome::NotHttp(HttpError::ContentLength)),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", Outcome::NotHttp(HttpError::Upgrade)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", Outcome::NotHttp(HttpError::ChunkSize)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", Outcome::NotHttp(HttpError::ChunkSize)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11112222333344445\r\n", Outcome::NotHttp(HttpError::ChunkSize)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", Outcome::NotHttp(HttpError::ChunkEnd)),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Outcome::NotHttp(HttpError::Head(httparse::Error::Version))),
        (b"HTTP/2.0 200 OK\r\n\r\n", Outcome::NotHttp(HttpError::Head(httparse::Error::Version))),
        (b"HTTP/1.1 099 No\r\n\r\n", Outcome::NotHttp(HttpError::Head(httparse::Error::Status))),
        (b"HTTP/1.1  200  OK\r\nContent-Length: 2\r\n\r\nok", response(200, true, b"ok")),
        // What a client may accept: a line that is no field, a folded field, a space before the colon.
        (b"HTTP/1.1 200 OK\r\nno field\r\nContent-Length: 2\r\n\r\nok", response(200, true, b"ok")),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n  b\r\nContent-Length: 2\r\n\r\nok", response(200, true, b"ok")),
        (b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok", response(200, true, b"ok")),
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00", Outcome::NotHttp(HttpError::Head(httparse::Error::Version))),
    ]
}

#[test]
fn every_golden_response_is_understood() {
    for (bytes, expected) in golden() {
        let outcome = run(&mut Http1::default(), &[bytes]);
        assert_eq!(outcome, expected, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_response_cut_at_every_byte_parses_the_same() {
    for (bytes, expected) in golden() {
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            let outcome = run(&mut Http1::default(), &[left, right]);
            assert_eq!(outcome, expected, "{} cut at {cut}", String::from_utf8_lossy(bytes));
        }
    }
}

#[test]
fn a_response_that_comes_byte_by_byte_parses_the_same() {
    for (bytes, expected) in golden() {
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(run(&mut Http1::default(), &pieces), expected, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_reader_that_remembers_heads_gives_what_a_new_one_gives() {
    // One reader for all, in an order in which each response follows each other.
    let mut reader = Http1::default();
    let golden = golden();
    for (first, _) in &golden {
        for (second, expected) in &golden {
            run(&mut reader, &[first]);
            assert_eq!(&run(&mut reader, &[second]), expected);
            for cut in [second.len() / 3, second.len() * 2 / 3] {
                run(&mut reader, &[first]);
                let (left, right) = second.split_at(cut);
                assert_eq!(&run(&mut reader, &[left, right]), expected);
            }
        }
    }
}

#[test]
fn a_response_to_head_has_no_body() {
    let bytes: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let chunked: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for bytes in [bytes, bytes, chunked] {
        assert_eq!(run_to(&mut Http1::default(), true, &[bytes]), response(200, true, b""));
    }
}

#[test]
fn endless_headers_end_in_an_error_and_bounded_memory() {
    let mut reader = Http1::default();
    let mut state = Http1State::default();
    assert_eq!(reader.receive(&mut state, false, b"HTTP/1.1 200 OK\r\n", &mut ()), Ok(Progress::More));
    let line = b"X-Filler: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n";
    let mut fed = 0;
    let error = loop {
        fed += line.len();
        match reader.receive(&mut state, false, line, &mut ()) {
            Ok(progress) => assert_eq!(progress, Progress::More),
            Err(error) => break error,
        }
    };
    // Too many headers or too many bytes, whichever comes first.
    assert!(matches!(error, HttpError::HeadTooLarge | HttpError::Head(httparse::Error::TooManyHeaders)));
    assert!(fed <= MAX_HEAD_BYTES + line.len());
}

#[test]
fn one_endless_header_ends_in_an_error() {
    let mut bytes = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
    bytes.resize(MAX_HEAD_BYTES + 1, b'a');
    assert_eq!(run(&mut Http1::default(), &[&bytes]), Outcome::NotHttp(HttpError::HeadTooLarge));
    let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(run(&mut Http1::default(), &pieces), Outcome::NotHttp(HttpError::HeadTooLarge));
}

#[test]
fn endless_chunk_extensions_and_trailers_end_in_an_error() {
    for prefix in ["1;", "0\r\nA: "] {
        let mut bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{prefix}").into_bytes();
        bytes.resize(bytes.len() + MAX_HEAD_BYTES + 1, b'a');
        assert_eq!(run(&mut Http1::default(), &[&bytes]), Outcome::NotHttp(HttpError::TrailersTooLarge));
    }
}

#[test]
fn a_header_of_the_last_head_is_found_whatever_its_case() {
    let mut reader = Http1::default();
    assert_eq!(reader.last_field("server"), None);
    let first: &[u8] = b"HTTP/1.1 200 OK\r\nserver:  one \r\nSERVER: two\r\nContent-Length: 2\r\n\r\nok";
    run(&mut reader, &[first]);
    assert_eq!(reader.last_field("Server"), Some(&b"one"[..]));
    run(&mut reader, &[b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]);
    assert_eq!(reader.last_field("Server"), None);
}

#[test]
fn the_state_of_a_connection_is_small() {
    assert!(size_of::<Http1State>() <= 32, "{}", size_of::<Http1State>());
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_end_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        let whole = run(&mut Http1::default(), &[&bytes]);
        let pieces = run(&mut Http1::default(), &[left, right]);
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn a_golden_response_with_a_changed_byte_does_not_depend_on_the_cut(which in 0usize..40, at in 0usize..200, byte in any::<u8>(), cut in 0usize..200) {
        let golden = golden();
        let mut bytes = golden[which % golden.len()].0.to_vec();
        prop_assume!(!bytes.is_empty());
        let at = at % bytes.len();
        bytes[at] = byte;
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        let whole = run(&mut Http1::default(), &[&bytes]);
        let pieces = run(&mut Http1::default(), &[left, right]);
        match (&whole, &pieces) {
            // Which of two wrong things is seen first may depend on the pieces; that it is wrong may not.
            (Outcome::NotHttp(_), Outcome::NotHttp(_)) => {}
            _ => prop_assert_eq!(whole, pieces),
        }
    }
}

/// What decides where a response ends, in any order: more of these than of random bytes are nearly responses.
const TOKENS: [&[u8]; 16] = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 204 No\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 3, 4\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"3",
    b";",
    b"abc",
    b"0\r\n\r\n",
    b"3\r\nabc\r\n",
    b"X: y\r\n",
];

proptest! {
    #[test]
    fn what_is_nearly_a_response_does_not_depend_on_the_cuts(
        tokens in proptest::collection::vec(proptest::sample::select(&TOKENS[..]), 0..12),
        cuts in proptest::collection::vec(0usize..200, 0..4),
    ) {
        let bytes = [b"HTTP/1.1 200 OK\r\n", tokens.concat().as_slice()].concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([bytes.len()]);
        let pieces: Vec<&[u8]> = starts.zip(ends).map(|(start, end)| &bytes[start..end]).collect();
        let whole = run(&mut Http1::default(), &[&bytes]);
        let cut = run(&mut Http1::default(), &pieces);
        match (&whole, &cut) {
            (Outcome::NotHttp(_), Outcome::NotHttp(_)) => {}
            _ => prop_assert_eq!(whole, cut),
        }
    }
}

#[derive(Default)]
struct Shown {
    heads: Vec<Vec<u8>>,
    body: Vec<u8>,
}

impl Sink for Shown {
    fn head(&mut self, bytes: &[u8]) {
        self.heads.push(bytes.to_vec());
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

#[test]
fn heads_and_body_are_shown_whole_wherever_the_response_is_cut() {
    const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\n";
    let response = [INTERIM, HEAD, b"hello"].concat();
    let mut reader = Http1::default();
    for cut in 0..response.len() {
        let mut state = Http1State::default();
        let mut shown = Shown::default();
        for piece in [&response[..cut], &response[cut..]] {
            reader.receive(&mut state, false, piece, &mut shown).unwrap();
        }
        assert_eq!(shown.heads, [INTERIM, HEAD], "cut at {cut}");
        assert_eq!(shown.body, b"hello", "cut at {cut}");
        // Now it remembers the head.
        let mut again = Shown::default();
        let whole = [HEAD, b"hello"].concat();
        reader.receive(&mut state, false, &whole, &mut again).unwrap();
        assert_eq!((again.heads, again.body), (vec![HEAD.to_vec()], b"hello".to_vec()));
    }
}
