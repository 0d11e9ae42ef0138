//! What must hold of the response parser for any bytes whatever, cut in any way.
//!
//! No panic; the same outcome whole, in pieces and byte by byte, with a reader that remembers another head and with a new one; no more taken than
//! was given; no body shown for an answer to HEAD. Which of two wrong things is seen first may depend on the pieces; that it is wrong may not.

use weir_wire::{Answer, MAX_HEAD_BYTES, Progress, ResponseReader, ResponseState};

/// What one connection gave.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Answer {
        answer: Answer,
        body_hash: u64,
        leftover: usize,
    },
    EndedEarly {
        untouched: bool,
    },
    NotHttp,
}

/// Readers that live as long as the load's do, so that what they remember is tried as well.
pub struct Parser {
    old: ResponseReader,
    old_to_head: ResponseReader,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// Readers that remember nothing.
    pub fn new() -> Self {
        Self {
            old: ResponseReader::new(false),
            old_to_head: ResponseReader::new(true),
        }
    }

    /// Reads `bytes` in every way there is and panics when one differs. The first two bytes also say where it is cut.
    pub fn check(&mut self, bytes: &[u8]) {
        // Beyond this a head is refused in pieces that would be taken whole; that limit has tests of its own.
        let bytes = &bytes[..bytes.len().min(MAX_HEAD_BYTES)];
        let whole = outcome(&mut ResponseReader::new(false), bytes, &[]);
        let seed = bytes.iter().fold(bytes.len(), |hash, &byte| {
            hash.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        let cut = seed % (bytes.len() + 1);
        let second = cut + (seed / 251) % (bytes.len() - cut + 1);
        assert_eq!(outcome(&mut self.old, bytes, &[cut, second]), whole);
        let every: Vec<usize> = (1..bytes.len()).collect();
        assert_eq!(outcome(&mut self.old, bytes, &every), whole);
        // Now it remembers the very head, if it is one.
        assert_eq!(outcome(&mut self.old, bytes, &[]), whole);
        let to_head = outcome(&mut self.old_to_head, bytes, &[cut]);
        assert_eq!(outcome(&mut ResponseReader::new(true), bytes, &[]), to_head);
        if let Outcome::Answer { body_hash, .. } = to_head {
            assert_eq!(body_hash, EMPTY, "an answer to HEAD has no body");
        }
    }

    /// Feeds `bytes` again and again, as a server without end does, `length` bytes in all: nothing is asserted but that it ends.
    /// What this may cost in memory is the caller's to look at.
    pub fn endless(&mut self, bytes: &[u8], length: usize) {
        let mut state = ResponseState::new();
        for _ in 0..length / bytes.len().max(1) {
            if !matches!(self.old.feed(&mut state, bytes, |_| {}), Ok(Progress::More)) {
                return;
            }
        }
    }
}

const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// Feeds `bytes` cut at these places, which rise, and then the end of the stream, as a connection does.
fn outcome(reader: &mut ResponseReader, bytes: &[u8], cuts: &[usize]) -> Outcome {
    let mut state = ResponseState::new();
    let mut body_hash = EMPTY;
    let mut start = 0;
    for &end in cuts.iter().chain([&bytes.len()]) {
        let piece = &bytes[start..end];
        let fed = reader.feed(&mut state, piece, |body| {
            for &byte in body {
                body_hash = (body_hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        });
        match fed {
            Ok(Progress::More) => start = end,
            Ok(Progress::Complete { answer, used }) => {
                assert!(used <= piece.len(), "no more than was given");
                assert!(state.is_untouched(), "ready for the next answer");
                let leftover = bytes.len() - start - used;
                return Outcome::Answer {
                    answer,
                    body_hash,
                    leftover,
                };
            }
            Err(_) => return Outcome::NotHttp,
        }
    }
    let untouched = state.is_untouched();
    match state.end_of_stream() {
        Ok(Some(answer)) => Outcome::Answer {
            answer,
            body_hash,
            leftover: 0,
        },
        Ok(None) => Outcome::EndedEarly { untouched },
        Err(_) => Outcome::NotHttp,
    }
}
