//! The plan of one load: its types, its schema number and what makes it valid.
//!
//! A plan says *what* to do: which request, how the requests arrive, for how long. It does not do anything: it opens no file,
//! resolves no name and reads no clock, so that a plan can be checked anywhere. The JSON form is described in
//! `docs/reference/engine.md`; every error names the key, what was found and what was expected.

mod error;
mod load;
pub mod scenario;
mod target;
mod transport;

pub use error::PlanError;
pub use load::{Closed, Load, Open, Process, Profile, Session, Think};
pub use target::Target;
pub use transport::Tls;

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use serde::Deserialize;

/// The version of the plan's form that this engine reads.
pub const SCHEMA: u32 = 1;

/// The most connections one plan may ask for.
pub const MAX_CONNECTIONS: usize = 1_000_000;

/// The most targets of one plan.
pub const MAX_TARGETS: usize = 1_000;

/// The most requests that one connection may carry unanswered.
pub const MAX_PIPELINE: usize = 1_024;

/// The most requests that one plan may ask to be told of one by one.
pub const MAX_SLOWEST: usize = 1_000;

/// One load, as read and checked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the plan's form; [`SCHEMA`].
    pub schema: u32,
    /// The URL of every request; empty where there are `targets`.
    #[serde(default)]
    pub target: String,
    /// The URLs of requests, one connection after the other, instead of `target`.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Where to connect to, instead of resolving the host of `target`.
    #[serde(default)]
    pub address: Option<SocketAddr>,
    /// The path of a Unix socket to connect to, instead of the host of `target`.
    #[serde(default)]
    pub unix: Option<String>,
    /// Addresses of this machine to connect from, one connection after the other.
    #[serde(default)]
    pub local_addresses: Vec<IpAddr>,
    /// Settings of TLS, for an `https://` target.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// Whether a connection carries one request after the other, or each request makes its own.
    #[serde(default = "default_keep_alive")]
    pub keep_alive: bool,
    /// How many requests a connection may carry unanswered.
    #[serde(default = "default_pipeline")]
    pub pipeline: usize,
    /// What one request sends.
    #[serde(default)]
    pub request: Request,
    /// What users do, instead of the one request.
    #[serde(default)]
    pub scenario: Option<scenario::Scenario>,
    /// How requests arrive.
    pub load: Load,
    /// The measured window; the longest where something else ends the load earlier.
    pub duration_s: f64,
    /// How many requests the whole load has; none: as many as there is time for.
    #[serde(default)]
    pub requests: Option<u64>,
    /// What ends the load before its time.
    #[serde(default)]
    pub until: Option<Until>,
    /// Where everything drawn at random begins.
    #[serde(default)]
    pub seed: u64,
    /// How many of the slowest requests are told of one by one.
    #[serde(default = "default_slowest")]
    pub slowest: usize,
    /// From the actual write of a request to the last byte of its answer.
    #[serde(default = "default_timeout_s")]
    pub timeout_s: f64,
    /// Length of one interval of the time series.
    #[serde(default = "default_interval_s")]
    pub interval_s: f64,
    /// What a right answer is.
    #[serde(default)]
    pub check: Check,
    /// Load threads; the load is split among them.
    #[serde(default = "default_threads")]
    pub threads: usize,
    /// CPUs to be bound to; empty: unbound.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Whether an answer arrives when the kernel received it, and not when it was read.
    #[serde(default)]
    pub kernel_timestamps: bool,
    /// How sockets are driven.
    #[serde(default)]
    pub backend: Backend,
    /// The path of a file that gets a record of each request.
    #[serde(default)]
    pub request_log: Option<String>,
    /// The part of the load that this engine has, where several share it; none: all of it.
    #[serde(default)]
    pub part: Option<Part>,
    /// Whether the load waits, its connections open, to be told when it begins.
    #[serde(default)]
    pub held: bool,
}

/// Some of the threads that share a load, wherever they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The first thread of this engine, from 0.
    pub first: usize,
    /// How many threads there are, those of all engines together.
    pub of: usize,
}

fn default_keep_alive() -> bool {
    true
}

fn default_pipeline() -> usize {
    1
}

fn default_timeout_s() -> f64 {
    2.0
}

fn default_interval_s() -> f64 {
    0.1
}

fn default_threads() -> usize {
    1
}

fn default_slowest() -> usize {
    10
}

/// What ends a load before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The first request that fails.
    FirstFailure,
}

/// How sockets are driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The fastest that the kernel and the container allow.
    #[default]
    Auto,
    /// Readiness, on every Linux.
    Epoll,
    /// Completions, where they are allowed.
    IoUring,
}

/// What one request sends.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The method.
    #[serde(default)]
    pub method: Method,
    /// Names and values, sent in this order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body, if any.
    #[serde(default)]
    pub body: Option<Body>,
}

/// The methods a plan may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// GET
    #[default]
    Get,
    /// POST
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
    /// HEAD: answers have no body, whatever their headers say.
    Head,
    /// OPTIONS
    Options,
}

impl Method {
    /// The method as it is written in a request line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
        }
    }
}

/// Where the body of a request comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Body {
    /// The text itself.
    Text(String),
    /// Bytes in base64.
    Base64(String),
    /// The path of a file, read once before the load.
    File(String),
}

impl Body {
    /// The bytes of a `base64` body.
    pub fn decode_base64(encoded: &str) -> Result<Vec<u8>, PlanError> {
        base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .map_err(|error| {
                PlanError::value("request.body.base64", error, "standard base64 with padding")
            })
    }
}

/// What a right answer is.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The statuses that are right; none: every status below 400.
    #[serde(default)]
    pub status: Option<Vec<u16>>,
}

impl Plan {
    /// Reads a plan from its JSON form and checks it.
    ///
    /// # Errors
    /// When the text is not JSON, a key is unknown, missing or of the wrong type, or a value cannot be used.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_str(text).map_err(|error| PlanError::json(&error))?;
        plan.validate()?;
        Ok(plan)
    }

    /// Reads a plan from a stream that may stay open: stops at the end of the plan and not at the end of the stream.
    ///
    /// # Errors
    /// As [`Plan::from_json`], and when the stream cannot be read or ends early.
    pub fn from_stream(stream: impl std::io::Read) -> Result<Self, PlanError> {
        let mut values = serde_json::Deserializer::from_reader(stream);
        let plan = Self::deserialize(&mut values).map_err(|error| PlanError::json(&error))?;
        plan.validate()?;
        Ok(plan)
    }

    /// How many threads share the load, those of other engines among them.
    pub fn all_threads(&self) -> usize {
        self.part.map_or(self.threads, |part| part.of)
    }

    /// The URLs of requests: one, or those of `targets`.
    pub fn urls(&self) -> &[String] {
        if self.targets.is_empty() {
            std::slice::from_ref(&self.target)
        } else {
            &self.targets
        }
    }

    /// The parts of each of [`Self::urls`].
    ///
    /// # Errors
    /// When one is none of the URLs that [`Target::parse`] takes.
    pub fn parsed_targets(&self) -> Result<Vec<Target>, PlanError> {
        let key = if self.targets.is_empty() {
            "target"
        } else {
            "targets"
        };
        let urls = self.urls().iter();
        urls.map(|url| Target::parse(url).map_err(|error| error.about(key)))
            .collect()
    }

    /// Checks every value that its type alone does not.
    ///
    /// # Errors
    /// The first key whose value cannot be used.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.schema != SCHEMA {
            return Err(PlanError::value("schema", self.schema, "1"));
        }
        let targets = self.validate_targets()?;
        for target in &targets {
            self.validate_transport(target)?;
        }
        self.validate_request()?;
        self.validate_scenario()?;
        self.load.validate()?;
        self.validate_pipeline()?;
        if self.requests == Some(0) {
            return Err(PlanError::value("requests", 0, "at least 1"));
        }
        if self.slowest > MAX_SLOWEST {
            return Err(PlanError::value(
                "slowest",
                self.slowest,
                format_args!("at most {MAX_SLOWEST}"),
            ));
        }
        if self.request_log.as_deref() == Some("") {
            return Err(PlanError::value(
                "request_log",
                "\"\"",
                "the path of a file",
            ));
        }
        positive_seconds("duration_s", self.duration_s, 86_400.0 * 7.0)?;
        positive_seconds("timeout_s", self.timeout_s, 3_600.0)?;
        if !(0.1..=10.0).contains(&self.interval_s) {
            return Err(PlanError::value(
                "interval_s",
                self.interval_s,
                "a number of seconds from 0.1 to 10",
            ));
        }
        if let Some(statuses) = &self.check.status {
            if statuses.is_empty() {
                return Err(PlanError::value(
                    "check.status",
                    "[]",
                    "at least one status, or null for every status below 400",
                ));
            }
            if let Some(status) = statuses
                .iter()
                .find(|&&status| !(200..=599).contains(&status))
            {
                return Err(PlanError::value(
                    "check.status",
                    status,
                    "statuses from 200 to 599",
                ));
            }
        }
        if self.threads == 0 || self.all_threads() > self.load.connections() {
            let (key, found) = match self.part {
                Some(part) => ("part.of", part.of),
                None => ("threads", self.threads),
            };
            return Err(PlanError::value(
                key,
                found,
                "at least 1 and at most the number of connections",
            ));
        }
        if let Some(part) = self.part {
            // Beyond it there are no threads of this load.
            if part.first.saturating_add(self.threads) > part.of {
                return Err(PlanError::value(
                    "part.first",
                    part.first,
                    format_args!("at most {} less the threads, {}", part.of, self.threads),
                ));
            }
        }
        Ok(())
    }

    /// One target, or several of one kind with a connection each.
    fn validate_targets(&self) -> Result<Vec<Target>, PlanError> {
        let wrong =
            |found: &dyn Display, expected: &str| Err(PlanError::value("targets", found, expected));
        match (self.target.is_empty(), self.targets.is_empty()) {
            (true, true) => {
                let found = "neither target nor targets";
                return Err(PlanError::value("target", found, "one of the two"));
            }
            (false, false) => return wrong(&"both target and targets", "one of the two"),
            _ => {}
        }
        let targets = self.parsed_targets()?;
        let count = targets.len();
        if count > MAX_TARGETS {
            return wrong(
                &format_args!("{count} URLs"),
                &format!("at most {MAX_TARGETS}"),
            );
        }
        let scheme = |target: &Target| match &target.unix {
            Some(_) => "unix:",
            None if target.is_tls => "https://",
            None => "http://",
        };
        let first = scheme(&targets[0]);
        if let Some(other) = targets.iter().map(scheme).find(|&other| other != first) {
            let found = format_args!("{first} and {other}").to_string();
            return wrong(&found, "URLs of one scheme");
        }
        if self.targets.is_empty() {
            return Ok(targets);
        }
        if self.scenario.is_some() {
            return wrong(
                &format_args!("{count} URLs beside a scenario"),
                "one target, whose users do the scenario",
            );
        }
        let connections = self.load.connections();
        if connections < count {
            return wrong(
                &format_args!("{count} URLs for {connections} connections"),
                "no more URLs than connections",
            );
        }
        Ok(targets)
    }

    /// Whether a user leaves whose request has failed.
    pub fn leaves_on_failure(&self) -> bool {
        let on_failure = self.scenario.as_ref().map(|scenario| scenario.on_failure);
        on_failure == Some(scenario::OnFailure::Leave)
    }

    /// What the plan alone tells; `weir-scenario` sees to the rest.
    fn validate_scenario(&self) -> Result<(), PlanError> {
        let Some(scenario) = &self.scenario else {
            return Ok(());
        };
        if self.request != Request::default() {
            return Err(PlanError::value(
                "request",
                "a request beside a scenario",
                "one of the two",
            ));
        }
        if self.target.contains(['?', '#']) {
            return Err(PlanError::value(
                "target",
                format_args!("{:?}", self.target),
                "a URL without a query, since it comes before the paths of the scenario",
            ));
        }
        scenario
            .all()
            .filter_map(|step| step.think)
            .try_for_each(|think| think.validate("scenario.steps.think"))
    }

    fn validate_request(&self) -> Result<(), PlanError> {
        for (name, value) in &self.request.headers {
            let name_is_token = !name.is_empty() && name.bytes().all(is_token_byte);
            if !name_is_token {
                return Err(PlanError::value(
                    "request.headers",
                    format_args!("the name {name:?}"),
                    "letters, digits and !#$%&'*+-.^_`|~",
                ));
            }
            if value
                .bytes()
                .any(|byte| byte == b'\r' || byte == b'\n' || byte == 0)
            {
                return Err(PlanError::value(
                    "request.headers",
                    format_args!("the value {value:?} of {name}"),
                    "a value of one line",
                ));
            }
            if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(PlanError::value(
                    "request.headers",
                    format_args!("the name {name:?}"),
                    "no Transfer-Encoding: the body is sent with its Content-Length",
                ));
            }
        }
        match &self.request.body {
            Some(Body::Base64(encoded)) => Body::decode_base64(encoded).map(|_| ()),
            Some(Body::File(path)) if path.is_empty() => Err(PlanError::value(
                "request.body.file",
                "\"\"",
                "the path of a file",
            )),
            _ => Ok(()),
        }
    }
}

fn positive_seconds(key: &'static str, found: f64, most: f64) -> Result<(), PlanError> {
    if found.is_finite() && found > 0.0 && found <= most {
        return Ok(());
    }
    Err(PlanError::value(
        key,
        found,
        format_args!("a number of seconds above 0 and up to {most}"),
    ))
}

/// RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
