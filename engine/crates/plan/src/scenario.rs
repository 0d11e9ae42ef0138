//! What users do: several requests by weight, or steps in order. The types of the plan's key `scenario`.
//!
//! Types only: templates, pointers and regular expressions are text here. `weir-scenario` compiles them and says what is wrong.
//! A **feeder** is a file of rows that templates take values from; a **variable** is a value that a step extracted from its answer.
//! A **round** is one pass through the steps, or one weighted request.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Method, Think};

/// Bytes of a body that are kept for checks and extractions, unless the scenario says otherwise.
pub const DEFAULT_CAPTURE_BYTES: usize = 64 * 1024;

/// Exactly one of `steps` and `requests`, and what they need.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Done in this order by every user, over and over.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// One of them each time, by weight.
    #[serde(default)]
    pub requests: Vec<Step>,
    /// Files of rows, by name.
    #[serde(default)]
    pub feeders: BTreeMap<String, Feeder>,
    /// How long a user's cookies last.
    #[serde(default)]
    pub cookies: Cookies,
    /// What a user does after a request that failed.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Bytes of a body that are kept for checks and extractions.
    #[serde(default = "default_capture_bytes")]
    pub capture_bytes: usize,
}

fn default_capture_bytes() -> usize {
    DEFAULT_CAPTURE_BYTES
}

impl Scenario {
    /// The steps, or the requests.
    pub fn all(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.requests)
    }
}

/// How long a user's cookies last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cookies {
    /// As long as the user.
    #[default]
    User,
    /// Until the user's next round.
    Round,
    /// Cookies are neither kept nor sent.
    Off,
}

/// What a user does after a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It goes on.
    #[default]
    Continue,
    /// It leaves, as after its last request.
    Leave,
}

/// One request of a scenario.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What results call it; method and path unless given.
    #[serde(default)]
    pub name: Option<String>,
    /// How often it is chosen, beside the others; only among `requests`.
    #[serde(default)]
    pub weight: Option<u32>,
    /// The method.
    #[serde(default)]
    pub method: Method,
    /// A template of path and query.
    pub path: String,
    /// Names, and templates of values, sent in this order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// A template of the body.
    #[serde(default)]
    pub body: Option<String>,
    /// How long the user pauses after the answer; as the load says unless given.
    #[serde(default)]
    pub think: Option<Think>,
    /// Variables, and where in the answer their values are; only among `steps`.
    #[serde(default)]
    pub extract: BTreeMap<String, Extract>,
    /// What a right answer is.
    #[serde(default)]
    pub check: StepCheck,
}

/// Where in an answer a value is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Extract {
    /// A JSON pointer (RFC 6901) into the body. A string gives its content, any other value its JSON.
    Json(String),
    /// The first header of this name.
    Header(String),
    /// A regular expression on the body: its first group, or all of it where it has none.
    Regex(String),
}

/// What a right answer is. Every key that is given must hold.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCheck {
    /// The statuses that are right; none: every status below 400.
    #[serde(default)]
    pub status: Option<Vec<u16>>,
    /// All of the body.
    #[serde(default)]
    pub body_equals: Option<String>,
    /// A part of the body.
    #[serde(default)]
    pub body_contains: Option<String>,
    /// Regular expressions, each of which is found in the body.
    #[serde(default)]
    pub body_matches: Vec<String>,
    /// Regular expressions, none of which is found in the body.
    #[serde(default)]
    pub body_lacks: Vec<String>,
    /// JSON pointers, and the values that must be there.
    #[serde(default)]
    pub json: BTreeMap<String, serde_json::Value>,
    /// The most bytes of the body.
    #[serde(default)]
    pub max_body_bytes: Option<u64>,
}

/// A file of rows, and the order in which rows are given out. Every load thread has rows of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feeder {
    /// The form of the file.
    pub format: FeederFormat,
    /// The path of the file, read once before the load.
    pub file: String,
    /// The order.
    #[serde(default)]
    pub mode: FeederMode,
    /// What happens when all rows were given out.
    #[serde(default)]
    pub at_end: AtEnd,
}

/// The form of a feeder's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeederFormat {
    /// Comma-separated values, the first line naming the columns (RFC 4180).
    Csv,
    /// A JSON value a line.
    JsonLines,
}

/// The order in which rows are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeederMode {
    /// That of the file.
    #[default]
    Sequential,
    /// Any row each time.
    Random,
    /// Each row once, in another order each time around.
    Shuffled,
}

/// What happens when all rows were given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AtEnd {
    /// They are given out again.
    #[default]
    Wrap,
    /// A user that needs one stops.
    Stop,
}
