//! Runs the fuzz targets on mutations of their corpora, with the stable compiler and without libFuzzer:
//! `mutate TARGET EXECUTIONS [SEED]`.
//!
//! The seed determines all inputs, so a failure is reproducible. A panic prints its input.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use weir_fuzz::Parser;
use weir_schedule::Random;
use weir_sys::process::peak_rss_bytes;

/// Maximum size of an input, about that of a head.
const MAX_BYTES: usize = 1024;
/// One in this number of inputs is also fed as an endless response.
const ENDLESS_EVERY: u64 = 10_000;
const ENDLESS_BYTES: usize = 4 * 1024 * 1024;
const MAX_RSS_MB: f64 = 32.0;

/// A check of an input, with the input's number. It panics on failure.
type Check = Box<dyn FnMut(&[u8], u64)>;

/// A fuzz target.
struct Target {
    name: &'static str,
    tokens: Vec<Vec<u8>>,
    check: Check,
}

impl Target {
    fn named(name: &str) -> Option<Self> {
        match name {
            "response" => {
                let mut parser = Parser::new();
                Some(Self {
                    name: "response",
                    tokens: tokens(include_str!("../../response.dict")),
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
                tokens: tokens(include_str!("../../json.dict")),
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
    let mut random = Random::new(seed, 0);
    let mut input = Vec::new();
    let began = Instant::now();
    for number in 0..executions {
        mutate(&mut input, &corpus, &target.tokens, &mut random);
        let guard = Shown(&input);
        (target.check)(&input, number);
        std::mem::forget(guard);
    }
    let seconds = began.elapsed().as_secs_f64();
    let peak_mb = peak_rss_bytes() as f64 / 1e6;
    println!(
        "{}: {executions} executions with seed {seed} from a corpus of {}, without a failure; {:.0} per second, {:.1} MB at the peak",
        target.name,
        corpus.len(),
        executions as f64 / seconds,
        peak_mb
    );
    if peak_mb > MAX_RSS_MB {
        eprintln!("memory: found {peak_mb:.1} MB, expected at most {MAX_RSS_MB} MB");
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

/// Parses a dictionary in libFuzzer's format: a line per token, in quotes, with the escapes `\\`, `\"` and `\xAB`.
fn tokens(dictionary: &str) -> Vec<Vec<u8>> {
    let quoted = |line: &str| Some(line.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    dictionary.lines().filter_map(quoted).map(|token| unescape(token.as_bytes())).collect()
}

fn unescape(token: &[u8]) -> Vec<u8> {
    match token {
        [b'\\', b'x', high, low, rest @ ..] => {
            let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("two hexadecimal digits") as u8;
            [&[digit(high) * 16 + digit(low)][..], &unescape(rest)].concat()
        }
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => [&[*byte][..], &unescape(rest)].concat(),
        [] => Vec::new(),
    }
}

/// Copies an input of the corpus and mutates it up to six times.
fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], tokens: &[Vec<u8>], random: &mut Random) {
    let mut below = |limit: usize| random.below(limit as u64) as usize;
    input.clear();
    input.extend_from_slice(&corpus[below(corpus.len())]);
    for _ in 0..=below(6) {
        let at = below(input.len() + 1);
        let end = at + below((input.len() - at).min(24) + 1);
        match below(7) {
            0 if at < input.len() => input[at] = below(256) as u8,
            1 if at < input.len() => input[at] ^= 1 << below(8),
            2 => drop(input.drain(at..end)),
            3 => {
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            4 => {
                let other = &corpus[below(corpus.len())];
                let from = below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            5 => input.truncate(at.max(input.len() / 2)),
            _ => {
                let token = &tokens[below(tokens.len())];
                input.splice(at..at, token.iter().copied());
            }
        }
    }
    input.truncate(MAX_BYTES);
}
