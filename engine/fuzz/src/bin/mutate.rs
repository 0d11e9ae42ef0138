//! Runs the fuzz targets on mutations of their corpora, with the stable compiler and without libFuzzer:
//! `mutate TARGET EXECUTIONS [SEED]`.
//!
//! The seed determines all inputs, so a failure is reproducible. A panic prints its input.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use weir_fuzz::Parser;

/// Tokens that affect the length of a response, or that parsers often get wrong.
const RESPONSE_TOKENS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\n\n",
    b" ",
    b":",
    b";",
    b",",
    b"0",
    b"5",
    b"-1",
    b"ffffffffffffffff",
    b"18446744073709551615",
    b"HTTP/1.1 ",
    b"HTTP/1.0 200 OK\r\n",
    b"100",
    b"204",
    b"304",
    b"Content-Length: ",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Connection: close\r\n",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n",
    b"\x00",
    b"\xff",
];
/// The same for JSON. The first line of an input is the pointer.
const JSON_TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\"",
    b"\\",
    b"\\\"",
    b"\\u0041",
    b"\\ud83d\\ude00",
    b"\\udc00",
    b"\"a\"",
    b"\"a\":1,",
    b"{}",
    b"[]",
    b"[1,2]",
    b"null",
    b"true",
    b"-0",
    b"1e5",
    b"0.10",
    b"18446744073709551616",
    b" ",
    b"\n",
    b"/a",
    b"/0",
    b"~1",
    b"\xff",
];
/// Maximum size of an input, about that of a head.
const MAX_BYTES: usize = 1024;
/// One in this number of inputs is also fed as an endless response.
const ENDLESS_EVERY: u64 = 10_000;
const ENDLESS_BYTES: usize = 4 * 1024 * 1024;
const MAX_RSS_KB: u64 = 32 * 1024;

struct Random(u64);

impl Random {
    /// Returns the next number of splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// A check of an input, with the input's number. It panics on failure.
type Check = Box<dyn FnMut(&[u8], u64)>;

/// A fuzz target.
struct Target {
    name: &'static str,
    tokens: &'static [&'static [u8]],
    check: Check,
}

impl Target {
    fn named(name: &str) -> Option<Self> {
        match name {
            "response" => {
                let mut parser = Parser::new();
                Some(Self {
                    name: "response",
                    tokens: RESPONSE_TOKENS,
                    check: Box::new(move |input, number| {
                        parser.check(input);
                        if number % ENDLESS_EVERY == 0 {
                            parser.endless(input, ENDLESS_BYTES);
                        }
                    }),
                })
            }
            "json" => Some(Self {
                name: "json",
                tokens: JSON_TOKENS,
                check: Box::new(|input, _| weir_scenario::json::differential(input)),
            }),
            _ => None,
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).map(|text| text.parse::<u64>());
    let target = arguments.first().and_then(|name| Target::named(name));
    let (Some(mut target), Some(Ok(executions)), Ok(seed)) = (target, number(1), number(2).unwrap_or(Ok(1))) else {
        eprintln!("usage: mutate response|json EXECUTIONS [SEED]");
        return ExitCode::from(2);
    };
    let corpus = corpus(target.name);
    let mut random = Random(seed);
    let mut input = Vec::new();
    let began = Instant::now();
    for number in 0..executions {
        mutate(&mut input, &corpus, target.tokens, &mut random);
        let guard = Shown(&input);
        (target.check)(&input, number);
        std::mem::forget(guard);
    }
    let seconds = began.elapsed().as_secs_f64();
    let peak_kb = peak_rss_kb();
    println!(
        "{}: {executions} executions with seed {seed} from a corpus of {}, without a failure; {:.0} per second, {:.1} MB at the peak",
        target.name,
        corpus.len(),
        executions as f64 / seconds,
        peak_kb as f64 / 1024.0
    );
    if peak_kb > MAX_RSS_KB {
        eprintln!("memory: found {peak_kb} kB, expected at most {MAX_RSS_KB} kB");
        return ExitCode::from(1);
    }
    ExitCode::SUCCESS
}

/// Prints the input when a panic drops it.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        eprintln!("the input was: {}", self.0.escape_ascii());
    }
}

/// Reads the corpus in the order of the file names, so that the seed determines all inputs.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = std::fs::read_dir(&folder).expect("the corpus is beside the sources");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let corpus: Vec<Vec<u8>> =
        paths.iter().map(|path| std::fs::read(path).expect("a corpus file can be read")).collect();
    assert!(!corpus.is_empty(), "nothing in {}", folder.display());
    corpus
}

/// Copies an input of the corpus and mutates it up to six times.
fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], tokens: &[&[u8]], random: &mut Random) {
    input.clear();
    input.extend_from_slice(&corpus[random.below(corpus.len())]);
    for _ in 0..=random.below(6) {
        let at = random.below(input.len() + 1);
        let end = at + random.below((input.len() - at).min(24) + 1);
        match random.below(7) {
            0 if at < input.len() => input[at] = random.next() as u8,
            1 if at < input.len() => input[at] ^= 1 << random.below(8),
            2 => drop(input.drain(at..end)),
            3 => {
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            4 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            5 => input.truncate(at.max(input.len() / 2)),
            _ => {
                let token = tokens[random.below(tokens.len())];
                input.splice(at..at, token.iter().copied());
            }
        }
    }
    input.truncate(MAX_BYTES);
}

fn peak_rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
