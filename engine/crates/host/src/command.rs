//! The commands on standard input, as `docs/reference/engine.md` defines them. Pure: text in, values out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A command with the number that its record repeats.
#[derive(Debug, PartialEq)]
pub struct Numbered {
    pub id: u64,
    pub command: Command,
}

/// A command to the host.
#[derive(Debug, PartialEq)]
pub enum Command {
    Start(Box<Start>),
    Stop(Stop),
    Observe(Observe),
    Unobserve,
    Sample,
    Capabilities,
}

/// Starts a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub name: String,
    pub tier: String,
    pub argv: Vec<String>,
    /// The complete environment.
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// CPUs of the server; empty: all.
    pub cpus: Vec<usize>,
    pub log: PathBuf,
    #[serde(default)]
    pub nice: i32,
    /// User of the server; default: the host's user.
    pub user: Option<User>,
    /// Limits of the server with its descendants.
    pub limits: Option<Limits>,
    /// The server's own network; default: the host's network.
    pub network: Option<Network>,
    /// Whether to report the files that the server wrote outside its folder.
    #[serde(default)]
    pub watch_writes: bool,
}

/// A user by number. A database needs a user that owns no other files, and such a user may have no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

/// Limits of a process with its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPU time per period, in CPUs.
    pub cpus: Option<f64>,
    /// Length of a period. Container runtimes use 100 ms.
    #[serde(default = "Limits::default_period_ms")]
    pub period_ms: f64,
    pub memory_bytes: Option<u64>,
}

/// A network namespace behind a veth pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Port of the server inside the namespace.
    pub port: u16,
    /// Port for clients. If it differs from `port`, the namespace translates it.
    pub published_port: u16,
    /// Delay of a round trip, half of it in each direction.
    #[serde(default)]
    pub delay_ms: f64,
    /// Share of lost packets in each direction.
    #[serde(default)]
    pub loss: f64,
}

/// Stops a server.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    pub name: String,
    grace_s: f64,
}

/// Starts sampling.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    period_s: f64,
    memory_period_s: f64,
}

/// A command without keys of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Limits {
    fn default_period_ms() -> f64 {
        100.0
    }

    /// Returns the CPU time per period and the period, in microseconds. Returns `None` without a CPU limit.
    pub fn quota_us(&self) -> Option<(u64, u64)> {
        let period_us = (self.period_ms * 1000.0).round();
        self.cpus.map(|cpus| ((cpus * period_us).round() as u64, period_us as u64))
    }
}

impl Stop {
    pub fn grace(&self) -> Duration {
        seconds(self.grace_s)
    }
}

impl Observe {
    pub fn period(&self) -> Duration {
        seconds(self.period_s)
    }

    pub fn memory_period(&self) -> Duration {
        seconds(self.memory_period_s)
    }
}

/// The error of an invalid command, with the command's number if that is readable.
#[derive(Debug, PartialEq)]
pub struct Rejected {
    pub id: Option<u64>,
    pub message: String,
}

/// Parses one line.
pub fn parse(line: &[u8]) -> Result<Numbered, Rejected> {
    let mut id = None;
    parse_keys(line, &mut id).map_err(|message| Rejected { id, message })
}

fn parse_keys(line: &[u8], seen_id: &mut Option<u64>) -> Result<Numbered, String> {
    let mut keys: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("expected one JSON object a line: {error}"))?;
    let id = keys.remove("id").as_ref().and_then(Value::as_u64);
    let id = id.ok_or("id: expected a whole number, which the record repeats")?;
    *seen_id = Some(id);
    let kind = keys.remove("command");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
    let command = match kind {
        "start" => {
            let start: Start = read(kind, keys)?;
            check_start(&start)?;
            Command::Start(Box::new(start))
        }
        "stop" => {
            let stop: Stop = read(kind, keys)?;
            check_seconds("stop.grace_s", stop.grace_s, 0.0)?;
            Command::Stop(stop)
        }
        "observe" => {
            let observe: Observe = read(kind, keys)?;
            check_seconds("observe.period_s", observe.period_s, 0.001)?;
            check_seconds("observe.memory_period_s", observe.memory_period_s, 0.001)?;
            Command::Observe(observe)
        }
        "unobserve" => read(kind, keys).map(|Nothing {}| Command::Unobserve)?,
        "sample" => read(kind, keys).map(|Nothing {}| Command::Sample)?,
        "capabilities" => read(kind, keys).map(|Nothing {}| Command::Capabilities)?,
        other => {
            return Err(format!(
                "command: found `{other}`, expected start, stop, observe, unobserve, sample or capabilities"
            ));
        }
    };
    Ok(Numbered { id, command })
}

fn read<T: DeserializeOwned>(kind: &str, keys: Map<String, Value>) -> Result<T, String> {
    T::deserialize(Value::Object(keys)).map_err(|error| format!("{kind}: {error}"))
}

fn check_start(start: &Start) -> Result<(), String> {
    if start.name.is_empty() {
        return Err("start.name: found an empty name".to_owned());
    }
    if start.argv.first().is_none_or(String::is_empty) {
        return Err("start.argv: found no program to run".to_owned());
    }
    let mut texts = start.argv.iter().chain(start.env.values());
    let has_nul = texts.any(|text| text.contains('\0'));
    if has_nul || start.env.keys().any(|key| key.contains(['\0', '='])) {
        return Err("start: argv and env may not hold NUL, nor names in env `=`".to_owned());
    }
    if !(-20..=19).contains(&start.nice) {
        return Err(format!("start.nice: found {}, expected -20 to 19", start.nice));
    }
    // The highest number means "leave it as it is" to setuid(2) and setgid(2).
    if let Some(User { uid, gid }) = start.user {
        if uid.max(gid) == u32::MAX {
            return Err(format!("start.user: found {uid}:{gid}, expected numbers below {}", u32::MAX));
        }
    }
    start.limits.as_ref().map_or(Ok(()), check_limits)?;
    start.network.as_ref().map_or(Ok(()), check_network)
}

/// Checks values that the kernel would refuse with "invalid argument" only.
fn check_limits(limits: &Limits) -> Result<(), String> {
    if !(1.0..=1000.0).contains(&limits.period_ms) {
        return Err(format!("start.limits.period_ms: found {}, expected 1 to 1000", limits.period_ms));
    }
    if let Some(cpus) = limits.cpus {
        let least = 1.0 / limits.period_ms;
        if !(least..=10_000.0).contains(&cpus) {
            return Err(format!(
                "start.limits.cpus: found {cpus}, expected {least} or more: the kernel's least is 1 ms in a period"
            ));
        }
    }
    match limits.memory_bytes {
        Some(bytes) if bytes < 1 << 20 => {
            Err(format!("start.limits.memory_bytes: found {bytes}, expected 1048576 or more"))
        }
        _ if limits.cpus.is_none() && limits.memory_bytes.is_none() => {
            Err("start.limits: expected cpus or memory_bytes".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_network(network: &Network) -> Result<(), String> {
    if network.port == 0 || network.published_port == 0 {
        return Err("start.network: expected ports from 1 on".to_owned());
    }
    if !(0.0..=10_000.0).contains(&network.delay_ms) {
        return Err(format!("start.network.delay_ms: found {}, expected 0 to 10000", network.delay_ms));
    }
    if !(0.0..1.0).contains(&network.loss) {
        return Err(format!("start.network.loss: found {}, expected a share from 0 to below 1", network.loss));
    }
    Ok(())
}

fn check_seconds(key: &str, found: f64, least: f64) -> Result<(), String> {
    if (least..=1e6).contains(&found) {
        return Ok(());
    }
    Err(format!("{key}: found {found}, expected {least} to 1000000 seconds"))
}

/// Converts a value that [`check_seconds`] has accepted.
fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = r#"{"id": 1, "command": "start", "name": "app", "tier": "app", "argv": ["python"], "env": {"PORT": "8080"}, "cwd": "/", "cpus": [1], "log": "/l"}"#;

    fn message(line: &str) -> (Option<u64>, String) {
        match parse(line.as_bytes()) {
            Err(rejected) => (rejected.id, rejected.message),
            Ok(command) => panic!("{command:?} was accepted"),
        }
    }

    #[test]
    fn documented_commands_parse() {
        for line in [
            START,
            r#"{"id": 2, "command": "observe", "period_s": 0.1, "memory_period_s": 5.0}"#,
            r#"{"id": 3, "command": "sample"}"#,
            r#"{"id": 4, "command": "stop", "name": "app", "grace_s": 5.0}"#,
            r#"{"id": 5, "command": "unobserve"}"#,
            r#"{"id": 6, "command": "capabilities"}"#,
        ] {
            assert!(parse(line.as_bytes()).is_ok(), "{line}");
        }
    }

    #[test]
    fn unknown_key_is_named() {
        let (id, message) = message(r#"{"id": 3, "command": "sample", "depth": 1}"#);
        assert_eq!(id, Some(3));
        assert!(message.contains("`depth`"), "{message}");
        let misspelt = START.replace("\"log\"", "\"logs\"");
        assert!(self::message(&misspelt).1.contains("`logs`"));
    }

    #[test]
    fn invalid_command_is_rejected() {
        assert_eq!(message("[1]").0, None);
        assert!(message(r#"{"command": "sample"}"#).1.starts_with("id:"));
        let (id, text) = message(r#"{"id": 9, "command": "restart"}"#);
        assert_eq!(id, Some(9));
        assert!(text.contains("`restart`"), "{text}");
        assert!(message(r#"{"id": 9, "command": "stop", "name": "a", "grace_s": -1}"#).1.contains("-1"));
        assert!(message(&START.replace("[\"python\"]", "[]")).1.contains("argv"));
    }
}
