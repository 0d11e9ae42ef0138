//! A scenario that is ready to run.

use regex::bytes::Regex;
use weir_plan::Method;
use weir_plan::scenario::{AtEnd, Cookies, FeederMode, OnFailure};

use crate::check::{Check, Extraction, Reason};
use crate::feeder::Table;
use crate::render::Part;

/// A scenario that is ready to run. Shared by all threads.
#[derive(Debug)]
pub struct Compiled {
    pub(crate) steps: Box<[CompiledStep]>,
    pub(crate) order: Order,
    pub(crate) feeders: Box<[CompiledFeeder]>,
    pub(crate) variables: usize,
    pub(crate) cookies: Cookies,
    pub(crate) on_failure: OnFailure,
    /// The regular expressions that extract values. A thread has memory for the groups of each.
    pub(crate) regexes: Box<[Regex]>,
    pub(crate) capture_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct CompiledFeeder {
    pub(crate) name: String,
    pub(crate) table: Table,
    pub(crate) mode: FeederMode,
    pub(crate) at_end: AtEnd,
}

/// The order of steps.
#[derive(Debug)]
pub(crate) enum Order {
    /// One after the other.
    Steps,
    /// At random. The sum of the weights up to each step.
    Weights(Box<[u64]>),
}

#[derive(Debug)]
pub(crate) struct CompiledStep {
    pub(crate) name: String,
    pub(crate) method: Method,
    /// The constant beginning of the request.
    pub(crate) start: Box<[u8]>,
    /// Where in `start` the path begins.
    pub(crate) path_at: usize,
    /// The rest of path and query.
    pub(crate) path: Box<[Part]>,
    /// The part behind the path: the fields without `Cookie` and the body's length.
    pub(crate) fields: Box<[Part]>,
    /// Whether the user's cookies are sent.
    pub(crate) has_cookies: bool,
    pub(crate) content: Content,
    /// Feeders that it reads.
    pub(crate) feeders: Box<[usize]>,
    /// The whole request without cookies, if it is always the same.
    pub(crate) constant: Option<Box<[u8]>>,
    pub(crate) think: Option<Pause>,
    pub(crate) check: Check,
    pub(crate) extract: Box<[Extraction]>,
    pub(crate) needs: Needs,
}

impl CompiledStep {
    /// Returns path and query, `None` if they are rendered.
    #[inline]
    pub(crate) fn constant_path(&self) -> Option<&[u8]> {
        self.path.is_empty().then(|| &self.start[self.path_at..])
    }
}

/// The part of a request behind its fields.
#[derive(Debug)]
pub(crate) enum Content {
    /// The end of a request without a body, or a constant body with its length.
    Encoded(Box<[u8]>),
    /// A body that is rendered. Its length is known afterwards.
    Body(Box<[Part]>),
}

/// How long a user pauses, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pause {
    Constant(u64),
    Uniform { low: u64, count: u64 },
    Exponential { mean: f64 },
}

/// The parts of a response that a step needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Whether it needs the head.
    pub head: bool,
    /// Needed part of the body.
    pub body: Capture,
}

/// Needed part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// Nothing.
    Nothing,
    /// Its length.
    Length,
    /// Its length, and at most so many of its first bytes.
    UpTo(usize),
}

impl Compiled {
    /// Returns the names of the steps in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| &*step.name)
    }

    /// Returns a step's whole request without cookies, if it is always the same.
    pub fn constant(&self, step: usize) -> Option<&[u8]> {
        self.steps[step].constant.as_deref()
    }

    /// Returns whether a repeated request of a step has the same effect as one.
    pub fn is_idempotent(&self, step: usize) -> bool {
        self.steps[step].method.is_idempotent()
    }

    /// Returns whether rows may run out, so that a user may be done.
    pub fn may_end(&self) -> bool {
        self.feeders.iter().any(|feeder| feeder.at_end == AtEnd::Stop)
    }

    /// Returns whether a user leaves after a failed request.
    pub fn leaves_on_failure(&self) -> bool {
        self.on_failure == OnFailure::Leave
    }

    /// Returns the parts of a response that a step needs.
    #[inline]
    pub fn needs(&self, step: usize) -> Needs {
        self.steps[step].needs
    }

    /// Returns in words why a response is wrong.
    pub fn describe(&self, step: usize, reason: Reason) -> String {
        let step = &self.steps[step];
        let check = &step.check;
        let problem = match reason {
            Reason::Status(status) => format!("status {status}"),
            Reason::TooLarge(bytes) => {
                let most = check.max_body_bytes.unwrap_or(0);
                format!("a body of {bytes} bytes, expected at most {most}")
            }
            Reason::Cut => format!("the check needs more of the body than capture_bytes keeps, {}", self.capture_bytes),
            Reason::Differs => "another body than expected".to_owned(),
            Reason::Lacks => "a body without the text that it must contain".to_owned(),
            Reason::NoMatch(index) => {
                format!("a body in which {} is not found", quoted(check.matches.get(index)))
            }
            Reason::Match(index) => {
                format!("a body in which {} is found", quoted(check.lacks.get(index)))
            }
            Reason::NotJson => "a body that is not JSON".to_owned(),
            Reason::Json(index) => match check.json.get(index) {
                Some(json) => format!("at {:?} not {}", json.text, json.expected),
                None => "another value than expected".to_owned(),
            },
            Reason::Missing(index) => match step.extract.get(index) {
                Some(extraction) => format!("nothing to extract {} from", extraction.name),
                None => "nothing to extract".to_owned(),
            },
        };
        format!("{}: {problem}", step.name)
    }
}

/// Returns the text of a regular expression in quotes.
fn quoted(regex: Option<&Regex>) -> String {
    regex.map_or_else(|| "what must not be".to_owned(), |regex| format!("{:?}", regex.as_str()))
}
