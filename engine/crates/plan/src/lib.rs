//! The plan of one load: its types, its schema number and its validation.
//!
//! A plan describes a load: the request, the arrivals, the duration. This crate has no I/O, so a plan can be checked
//! anywhere. `docs/reference/engine.md` describes the JSON. Each error names the key, the value found and the value
//! expected.

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

/// The version of the plan that this engine reads.
pub const SCHEMA: u32 = 1;

/// Maximum number of connections.
pub const MAX_CONNECTIONS: usize = 1_000_000;

/// Maximum number of targets.
pub const MAX_TARGETS: usize = 1_000;

/// Maximum number of requests in flight on one connection.
pub const MAX_PIPELINE: usize = 1_024;

/// Maximum number of slowest requests in the report.
pub const MAX_SLOWEST: usize = 1_000;

/// A checked plan of one load.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the plan: [`SCHEMA`].
    pub schema: u32,
    /// URL of all requests; empty with `targets`.
    #[serde(default)]
    pub target: String,
    /// URLs of the requests, assigned to connections in turn, instead of `target`.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Address to connect to, instead of resolving the host of `target`.
    pub address: Option<SocketAddr>,
    /// Whether connections go to all addresses of a target's host that accept connections, instead of the first.
    #[serde(default)]
    pub all_addresses: bool,
    /// Path of a Unix socket to connect to, instead of the host of `target`.
    pub unix: Option<String>,
    /// Local addresses, assigned to connections in turn.
    #[serde(default)]
    pub local_addresses: Vec<IpAddr>,
    /// TLS settings for an `https://` target.
    pub tls: Option<Tls>,
    /// Protocol of the requests.
    #[serde(default)]
    pub protocol: Protocol,
    /// Whether connections are reused. If false, each request makes its own connection.
    #[serde(default = "default_keep_alive")]
    pub keep_alive: bool,
    /// Maximum number of requests in flight per connection.
    #[serde(default = "default_pipeline")]
    pub pipeline: usize,
    /// Whether an idempotent request is sent once more if its reused connection ends before a response.
    #[serde(default = "default_retry")]
    pub retry: bool,
    /// The request.
    #[serde(default)]
    pub request: Request,
    /// The scenario of each user, instead of `request`.
    pub scenario: Option<scenario::Scenario>,
    /// The arrivals of requests.
    pub load: Load,
    /// Maximum duration. `requests`, `until` and other keys may end the load earlier.
    pub duration_s: f64,
    /// Number of requests of the load. `None`: unlimited.
    pub requests: Option<u64>,
    /// Condition that ends the load early.
    pub until: Option<Until>,
    /// Seed of all random numbers.
    #[serde(default)]
    pub seed: u64,
    /// Number of slowest requests in the report.
    #[serde(default = "default_slowest")]
    pub slowest: usize,
    /// Maximum time from the write of a request to the last byte of its response.
    #[serde(default = "default_timeout_s")]
    pub timeout_s: f64,
    /// Length of an interval.
    #[serde(default = "default_interval_s")]
    pub interval_s: f64,
    /// Check of the responses.
    #[serde(default)]
    pub check: Check,
    /// Number of threads that share the load.
    #[serde(default = "default_threads")]
    pub threads: usize,
    /// CPUs of the load threads; empty: all.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Whether a response arrives when the kernel receives it, instead of when the engine reads it.
    #[serde(default)]
    pub kernel_timestamps: bool,
    /// Back end of the sockets.
    #[serde(default)]
    pub backend: Backend,
    /// Path of a file for a record of each request.
    pub request_log: Option<String>,
    /// This engine's part of a load that several engines share. `None`: the whole load.
    pub part: Option<Part>,
    /// Whether the load, with open connections, waits for its start time.
    #[serde(default)]
    pub held: bool,
    /// Whether the caller needs CPU time during the load, for example for a page with figures. On a single CPU, an open
    /// load then sleeps between its requests.
    #[serde(default)]
    pub shares_cpu: bool,
}

/// The threads of one engine, out of all threads that share a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Index of the first thread of this engine, from 0.
    pub first: usize,
    /// Number of threads of all engines.
    pub of: usize,
}

fn default_keep_alive() -> bool {
    true
}

fn default_pipeline() -> usize {
    1
}

fn default_retry() -> bool {
    true
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

/// A condition that ends a load early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The first failed request.
    FirstFailure,
}

/// Protocol of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "http/1.1")]
    Http1,
}

/// Back end of the sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The fastest back end that the kernel and the container allow.
    #[default]
    Auto,
    /// epoll, on every Linux.
    Epoll,
    /// io_uring, if the kernel and the container allow it.
    IoUring,
}

/// The request.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Header fields, in order.
    pub headers: Vec<(String, String)>,
    /// The body, if any.
    pub body: Option<Body>,
}

/// A method of a request.
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
    /// HEAD. Its responses have no body.
    Head,
    /// OPTIONS
    Options,
}

impl Method {
    /// Returns the method as in a request line.
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

    /// Returns whether a repeated request has the same effect on the server as one (RFC 9110, section 9.2.2).
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Self::Post | Self::Patch)
    }
}

/// The source of a request's body.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes in base64.
    Base64(String),
    /// Path of a file, which is read once before the load.
    File(String),
}

impl Body {
    /// Decodes a `base64` body.
    pub fn decode_base64(encoded: &str) -> Result<Vec<u8>, PlanError> {
        base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .map_err(|error| PlanError::value("request.body.base64", error, "standard base64 with padding"))
    }
}

/// The check of a response.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Correct statuses. `None`: every status below 400.
    pub status: Option<Vec<u16>>,
}

impl Plan {
    /// Parses a plan and checks it.
    ///
    /// # Errors
    /// The text is not JSON, a key is unknown, missing or of the wrong type, or a value is invalid.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_str(text).map_err(|error| PlanError::json(&error))?;
        plan.validate()?;
        Ok(plan)
    }

    /// Reads a plan from a stream, which may stay open after the plan.
    ///
    /// # Errors
    /// Those of [`Plan::from_json`], or the stream is unreadable or ends early.
    pub fn from_stream(stream: impl std::io::Read) -> Result<Self, PlanError> {
        let mut values = serde_json::Deserializer::from_reader(stream);
        let plan = Self::deserialize(&mut values).map_err(|error| PlanError::json(&error))?;
        plan.validate()?;
        Ok(plan)
    }

    /// Returns whether a connection carries more than one request. A client that sends `Connection: close` must not
    /// send another request (RFC 9112, section 9.6), even if the server keeps the connection open.
    pub fn keeps_connections(&self) -> bool {
        let closes = |(name, value): &(String, String)| {
            let mut options = value.split(',');
            name.eq_ignore_ascii_case("connection") && options.any(|option| option.trim().eq_ignore_ascii_case("close"))
        };
        self.keep_alive && !self.request.headers.iter().any(closes)
    }

    /// Returns whether a request may be sent again. Requests that are left over from a pipeline must not be pipelined
    /// again (RFC 9112, section 9.3.2).
    pub fn retries(&self) -> bool {
        self.retry && self.pipeline == 1
    }

    /// Returns the number of threads that share the load, including other engines.
    pub fn all_threads(&self) -> usize {
        self.part.map_or(self.threads, |part| part.of)
    }

    /// Returns the URLs: `target`, or those of `targets`.
    pub fn urls(&self) -> &[String] {
        if self.targets.is_empty() { std::slice::from_ref(&self.target) } else { &self.targets }
    }

    /// Parses each of [`Self::urls`].
    ///
    /// # Errors
    /// Those of [`Target::parse`].
    pub fn parsed_targets(&self) -> Result<Vec<Target>, PlanError> {
        let key = if self.targets.is_empty() { "target" } else { "targets" };
        let urls = self.urls().iter();
        urls.map(|url| Target::parse(url).map_err(|error| error.with_key(key))).collect()
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The first key with an invalid value.
    pub fn validate(&self) -> Result<(), PlanError> {
        PlanError::reject_if(self.schema != SCHEMA, "schema", self.schema, "1")?;
        let targets = self.validate_targets()?;
        for target in &targets {
            self.validate_transport(target)?;
        }
        self.validate_request()?;
        self.validate_scenario()?;
        self.load.validate()?;
        self.validate_pipeline()?;
        PlanError::reject_if(self.requests == Some(0), "requests", 0, "at least 1")?;
        PlanError::reject_if(
            self.slowest > MAX_SLOWEST,
            "slowest",
            self.slowest,
            format_args!("at most {MAX_SLOWEST}"),
        )?;
        PlanError::reject_if(self.request_log.as_deref() == Some(""), "request_log", "\"\"", "the path of a file")?;
        positive_seconds("duration_s", self.duration_s, 86_400.0 * 7.0)?;
        positive_seconds("timeout_s", self.timeout_s, 3_600.0)?;
        PlanError::reject_if(
            !(0.1..=10.0).contains(&self.interval_s),
            "interval_s",
            self.interval_s,
            "a number of seconds from 0.1 to 10",
        )?;
        if let Some(statuses) = &self.check.status {
            PlanError::reject_if(
                statuses.is_empty(),
                "check.status",
                "[]",
                "at least one status, or null for every status below 400",
            )?;
            if let Some(status) = statuses.iter().find(|&&status| !(200..=599).contains(&status)) {
                return Err(PlanError::value("check.status", status, "statuses from 200 to 599"));
            }
        }
        if self.threads == 0 || self.all_threads() > self.load.connections() {
            let (key, found) = match self.part {
                Some(part) => ("part.of", part.of),
                None => ("threads", self.threads),
            };
            return Err(PlanError::value(key, found, "at least 1 and at most the number of connections"));
        }
        if let Some(part) = self.part {
            // The load has no further threads.
            PlanError::reject_if(
                part.first.saturating_add(self.threads) > part.of,
                "part.first",
                part.first,
                format_args!("at most {} less the threads, {}", part.of, self.threads),
            )?;
        }
        Ok(())
    }

    /// Checks the targets: all have the same scheme, and each has a connection.
    fn validate_targets(&self) -> Result<Vec<Target>, PlanError> {
        let wrong = |found: &dyn Display, expected: &str| Err(PlanError::value("targets", found, expected));
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
            return wrong(&format_args!("{count} URLs"), &format!("at most {MAX_TARGETS}"));
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
            return wrong(&format_args!("{count} URLs beside a scenario"), "one target for the scenario");
        }
        let connections = self.load.connections();
        if connections < count {
            return wrong(&format_args!("{count} URLs for {connections} connections"), "no more URLs than connections");
        }
        Ok(targets)
    }

    /// Returns whether a user leaves after a failed request.
    pub fn leaves_on_failure(&self) -> bool {
        let on_failure = self.scenario.as_ref().map(|scenario| scenario.on_failure);
        on_failure == Some(scenario::OnFailure::Leave)
    }

    /// Checks the scenario together with other keys. `weir-scenario` checks the scenario itself.
    fn validate_scenario(&self) -> Result<(), PlanError> {
        let Some(scenario) = &self.scenario else {
            return Ok(());
        };
        PlanError::reject_if(
            self.request != Request::default(),
            "request",
            "a request beside a scenario",
            "one of the two",
        )?;
        PlanError::reject_if(
            self.target.contains(['?', '#']),
            "target",
            format_args!("{:?}", self.target),
            "a URL without a query, which the paths of the scenario follow",
        )?;
        scenario.all().filter_map(|step| step.think).try_for_each(|think| think.validate("scenario.steps.think"))
    }

    fn validate_request(&self) -> Result<(), PlanError> {
        for (name, value) in &self.request.headers {
            let name_is_token = !name.is_empty() && name.bytes().all(is_token_byte);
            PlanError::reject_if(
                !name_is_token,
                "request.headers",
                format_args!("the name {name:?}"),
                "letters, digits and !#$%&'*+-.^_`|~",
            )?;
            PlanError::reject_if(
                value.bytes().any(|byte| byte == b'\r' || byte == b'\n' || byte == 0),
                "request.headers",
                format_args!("the value {value:?} of {name}"),
                "a value of one line",
            )?;
            PlanError::reject_if(
                name.eq_ignore_ascii_case("transfer-encoding"),
                "request.headers",
                format_args!("the name {name:?}"),
                "no Transfer-Encoding: the body is sent with its Content-Length",
            )?;
        }
        match &self.request.body {
            Some(Body::Base64(encoded)) => Body::decode_base64(encoded).map(|_| ()),
            Some(Body::File(path)) if path.is_empty() => {
                Err(PlanError::value("request.body.file", "\"\"", "the path of a file"))
            }
            _ => Ok(()),
        }
    }
}

fn positive_seconds(key: &'static str, found: f64, most: f64) -> Result<(), PlanError> {
    if found.is_finite() && found > 0.0 && found <= most {
        return Ok(());
    }
    Err(PlanError::value(key, found, format_args!("a number of seconds above 0 and up to {most}")))
}

/// Returns whether a byte is allowed in a token (RFC 9110, section 5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
