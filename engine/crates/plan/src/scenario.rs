//! The types of the plan's key `scenario`: weighted requests, or steps in order.
//!
//! Templates, pointers and regular expressions are text here; `weir-scenario` compiles and checks them. A **feeder** is
//! a file of rows with values for templates. A **variable** is a value that a step extracts from its response. A
//! **round** is one pass through the steps, or one weighted request.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Method, Think};

/// Default of [`Scenario::capture_bytes`].
pub const DEFAULT_CAPTURE_BYTES: usize = 64 * 1024;

/// A scenario with either `steps` or `requests`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Steps that every user repeats in order.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Weighted requests, one of which a user chooses each time.
    #[serde(default)]
    pub requests: Vec<Step>,
    /// Feeders by name.
    #[serde(default)]
    pub feeders: BTreeMap<String, Feeder>,
    /// Lifetime of a user's cookies.
    #[serde(default)]
    pub cookies: Cookies,
    /// The action of a user after a failed request.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Maximum bytes of a body for checks and extractions.
    #[serde(default = "default_capture_bytes")]
    pub capture_bytes: usize,
}

fn default_capture_bytes() -> usize {
    DEFAULT_CAPTURE_BYTES
}

impl Scenario {
    /// Returns the steps or the requests.
    pub fn all(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.requests)
    }

    /// Returns whether a request depends on the response before it.
    pub fn needs_responses(&self) -> bool {
        self.cookies != Cookies::Off
            || self.on_failure == OnFailure::Leave
            || self.all().any(|step| step.think.is_some() || !step.extract.is_empty())
    }
}

/// Lifetime of a user's cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cookies {
    /// Until the user leaves.
    #[default]
    User,
    /// Until the user's next round.
    Round,
    /// No cookies.
    Off,
}

/// The action of a user after a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The user continues.
    #[default]
    Continue,
    /// The user leaves.
    Leave,
}

/// One request of a scenario.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Name in results; default: method and path.
    pub name: Option<String>,
    /// Weight of the choice; only for `requests`.
    pub weight: Option<u32>,
    /// The method.
    #[serde(default)]
    pub method: Method,
    /// Template of path and query.
    pub path: String,
    /// Header fields with templates of their values, in order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Template of the body.
    pub body: Option<String>,
    /// Pause after the response; default: that of the load.
    pub think: Option<Think>,
    /// Variables and their sources in the response; only for `steps`.
    #[serde(default)]
    pub extract: BTreeMap<String, Extract>,
    /// The check of the response.
    #[serde(default)]
    pub check: StepCheck,
}

/// The source of a variable in a response.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Extract {
    /// A JSON pointer (RFC 6901) into the body. Yields the content of a string, or the JSON of another value.
    Json(String),
    /// The first header field with this name.
    Header(String),
    /// A regular expression on the body. Yields its first group, or the whole match without groups.
    Regex(String),
}

/// The check of a response. All given keys must hold.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepCheck {
    /// Correct statuses. `None`: every status below 400.
    pub status: Option<Vec<u16>>,
    /// The complete body.
    pub body_equals: Option<String>,
    /// A part of the body.
    pub body_contains: Option<String>,
    /// Regular expressions that must match in the body.
    pub body_matches: Vec<String>,
    /// Regular expressions that must not match in the body.
    pub body_lacks: Vec<String>,
    /// JSON pointers with their expected values.
    pub json: BTreeMap<String, serde_json::Value>,
    /// Maximum bytes of the body.
    pub max_body_bytes: Option<u64>,
}

/// A file of rows and their order. Each load thread has its own rows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feeder {
    /// Format of the file.
    pub format: FeederFormat,
    /// Path of the file, which is read once before the load.
    pub file: String,
    /// Order of the rows.
    #[serde(default)]
    pub mode: FeederMode,
    /// The action after the last row.
    #[serde(default)]
    pub at_end: AtEnd,
}

/// The format of a feeder's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeederFormat {
    /// Comma-separated values with the columns' names in the first line (RFC 4180).
    Csv,
    /// One JSON value per line.
    JsonLines,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeederMode {
    /// The order of the file.
    #[default]
    Sequential,
    /// A random row each time.
    Random,
    /// Each row once, in a new random order per pass.
    Shuffled,
}

/// The action after the last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AtEnd {
    /// The rows start again.
    #[default]
    Wrap,
    /// A user that needs a row stops.
    Stop,
}
