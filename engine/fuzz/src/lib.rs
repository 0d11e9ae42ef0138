//! Properties of the response decoder for any bytes, cut in any way.
//!
//! It never panics. The outcome is the same whole, in pieces and byte by byte, with a decoder that remembers another
//! head and with a new one. It takes no more bytes than it was given, and shows no body of a response to HEAD. Which of
//! two errors it finds first may depend on the pieces.

use weir_http::{Http1, Http1State, MAX_HEAD_BYTES, Progress, Protocol, Response, Sink};

/// The outcome of one connection.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Response { response: Response, body_hash: u64, leftover: usize },
    EndedEarly { has_begun: bool },
    NotHttp,
}

/// A decoder that lives as long as a load's, so that the head that it remembers is tested as well.
#[derive(Default)]
pub struct Parser {
    old: Http1,
}

/// Hashes a body.
struct Hash(u64);

impl Sink for Hash {
    fn body(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl Parser {
    /// Returns a decoder that remembers nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes `bytes` in all ways, and panics if an outcome differs. The bytes also say where they are cut.
    pub fn check(&mut self, bytes: &[u8]) {
        // A longer head is refused in pieces and taken whole; that limit has tests of its own.
        let bytes = &bytes[..bytes.len().min(MAX_HEAD_BYTES)];
        let whole = outcome(&mut Http1::default(), false, bytes, &[]);
        let seed = bytes.iter().fold(bytes.len(), |hash, &byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let cut = seed % (bytes.len() + 1);
        let second = cut + (seed / 251) % (bytes.len() - cut + 1);
        assert_eq!(outcome(&mut self.old, false, bytes, &[cut, second]), whole);
        let every: Vec<usize> = (1..bytes.len()).collect();
        assert_eq!(outcome(&mut self.old, false, bytes, &every), whole);
        // Now it remembers this head, if it is one.
        assert_eq!(outcome(&mut self.old, false, bytes, &[]), whole);
        let to_head = outcome(&mut self.old, true, bytes, &[cut]);
        assert_eq!(outcome(&mut Http1::default(), true, bytes, &[]), to_head);
        if let Outcome::Response { body_hash, .. } = to_head {
            assert_eq!(body_hash, EMPTY, "a response to HEAD has no body");
        }
    }

    /// Feeds `bytes` again and again, as an endless server does, `length` bytes in all. It only has to end; the caller
    /// looks at its memory.
    pub fn endless(&mut self, bytes: &[u8], length: usize) {
        let mut state = Http1State::default();
        for _ in 0..length / bytes.len().max(1) {
            let fed = self.old.receive(&mut state, false, bytes, &mut ());
            if !matches!(fed, Ok(Progress::More)) {
                return;
            }
        }
    }
}

const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// Feeds `bytes` cut at these places, which rise, and then the end of the stream, as a connection does.
fn outcome(decoder: &mut Http1, to_head: bool, bytes: &[u8], cuts: &[usize]) -> Outcome {
    let mut state = Http1State::default();
    let mut hash = Hash(EMPTY);
    let mut start = 0;
    for &end in cuts.iter().chain([&bytes.len()]) {
        let piece = &bytes[start..end];
        match decoder.receive(&mut state, to_head, piece, &mut hash) {
            Ok(Progress::More) => start = end,
            Ok(Progress::Complete { response, used }) => {
                assert!(used <= piece.len(), "no more than was given");
                assert!(!Http1::has_begun(&state), "ready for the next response");
                let leftover = bytes.len() - start - used;
                return Outcome::Response { response, body_hash: hash.0, leftover };
            }
            Err(_) => return Outcome::NotHttp,
        }
    }
    let has_begun = Http1::has_begun(&state);
    match decoder.end_of_stream(&mut state) {
        Ok(Some(response)) => Outcome::Response { response, body_hash: hash.0, leftover: 0 },
        Ok(None) => Outcome::EndedEarly { has_begun },
        Err(_) => Outcome::NotHttp,
    }
}
