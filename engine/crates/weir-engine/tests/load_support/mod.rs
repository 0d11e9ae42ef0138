//! Scripted servers, and runs of `weir-engine load` against them with checks that every load must pass.
#![allow(dead_code, clippy::unwrap_used)]

pub mod request_log;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::{Value, json};

/// The address of a server that closes its listener. No other server of these tests listens on this IP address, so none
/// can take the port afterwards.
pub const CLOSING: &str = "127.0.0.9:0";

/// A server on a free port: each connection gets a thread with the behaviour.
pub fn server(behaviour: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    server_on("127.0.0.1:0", behaviour).unwrap()
}

pub fn server_on(
    address: impl ToSocketAddrs,
    behaviour: impl Fn(TcpStream) + Send + Sync + 'static,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let behaviour = Arc::new(behaviour);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(stream), behaviour) = (stream, Arc::clone(&behaviour)) else {
                continue;
            };
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || behaviour(stream));
        }
    });
    Ok(address)
}

/// A server that sends these bytes in response to every request.
pub fn responding(response: &'static [u8]) -> SocketAddr {
    server(move |stream| respond(stream, response, u64::MAX))
}

/// Responds to so many requests, then closes.
pub fn respond(stream: TcpStream, response: &[u8], count: u64) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    for _ in 0..count {
        if read_request(&mut reader).is_none() || stream.write_all(response).is_err() {
            return;
        }
    }
}

/// The head and body of the next request; nothing at the end of the connection.
pub fn read_request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if head[before..].trim().is_empty() {
            break;
        }
    }
    let length =
        head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// A closed load on a server, short.
pub fn closed(address: SocketAddr, connections: usize) -> Value {
    json!({
        "schema": 1,
        "target": format!("http://{address}/"),
        "load": {"closed": {"connections": connections}},
        "duration_s": 0.3,
        "backend": crate::BACKEND,
    })
}

/// An open load on a server, short.
pub fn open(address: SocketAddr, connections: usize, rate_rps: f64) -> Value {
    let mut plan = closed(address, connections);
    plan["load"] = json!({"open": {"connections": connections, "rate_rps": rate_rps}});
    plan
}

/// The plan with one key changed.
pub fn with(mut plan: Value, key: &str, value: impl Into<Value>) -> Value {
    plan[key] = value.into();
    plan
}

/// The plan that ends after this many requests, however slow the machine is.
pub fn with_requests(plan: Value, requests: impl Into<Value>) -> Value {
    with(with(plan, "requests", requests), "duration_s", 20.0)
}

pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-engine"));
    command.arg("load").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A file with a plan, which a run reads as its standard input: a file's end does not end the load.
pub fn plan_file(plan: &str) -> std::fs::File {
    use std::io::Seek;
    let mut file = tempfile();
    file.write_all(plan.as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

fn tempfile() -> std::fs::File {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("weir-load-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

/// Longer than any plan here takes, however busy the machine is: a load that goes on for so long hangs.
const NO_LOAD_TAKES: Duration = Duration::from_secs(100);

/// Runs a plan as it is written; one that hangs is ended, and fails its test by the code.
pub fn run_text(plan: &str) -> Output {
    let child = command().stdin(plan_file(plan)).spawn().unwrap();
    let pid = child.id();
    let (ended, end) = channel::<()>();
    let watch = std::thread::spawn(move || {
        if end.recv_timeout(NO_LOAD_TAKES) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    watch.join().unwrap();
    output
}

pub fn records(output: &[u8]) -> Vec<Value> {
    output
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// What a run gave.
pub struct Run {
    pub hello: Value,
    pub intervals: Vec<Value>,
    pub events: Vec<Value>,
    pub end: Value,
}

impl Run {
    /// Runs a plan that works, and checks what must always hold. A load of less than half a second may see no response
    /// on a busy machine: then it runs once more, ten times as long.
    pub fn of(plan: &Value) -> Self {
        let run = Self::once(plan);
        let duration_s = plan["duration_s"].as_f64().unwrap_or(1.0);
        if duration_s < 0.5 && run.requests("completed") + run.requests("failed") == 0 {
            return Self::once(&with(plan.clone(), "duration_s", 10.0 * duration_s));
        }
        run
    }

    fn once(plan: &Value) -> Self {
        let output = run_text(&plan.to_string());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        Self::from_records(records(&output.stdout))
    }

    /// Runs a plan whose outcome rests on moments, again where it did not come out as expected: a busy machine may miss
    /// a moment, and five times in a row is a defect, which the assertions on the last run then name.
    pub fn punctual(plan: &Value, is_expected: impl Fn(&Self) -> bool) -> Self {
        let mut run = Self::of(plan);
        for _ in 0..4 {
            if is_expected(&run) {
                break;
            }
            run = Self::of(plan);
        }
        run
    }

    pub fn from_records(records: Vec<Value>) -> Self {
        let of =
            |kind: &str| -> Vec<Value> { records.iter().filter(|record| record["record"] == kind).cloned().collect() };
        assert_eq!(records.first().unwrap()["record"], "hello");
        assert_eq!(records.last().unwrap()["record"], "end");
        let run = Self {
            hello: records.first().unwrap().clone(),
            intervals: of("interval"),
            events: of("event"),
            end: records.last().unwrap().clone(),
        };
        run.check_identities();
        if crate::BACKEND != "auto" {
            assert_eq!(run.hello["backend"], crate::BACKEND);
        }
        run
    }

    pub fn summary(&self) -> &Value {
        &self.end["summary"]
    }

    pub fn requests(&self, key: &str) -> u64 {
        self.summary()["requests"][key].as_u64().unwrap()
    }

    /// The failed requests, by kind, of which there are any.
    pub fn errors(&self) -> Vec<(String, u64)> {
        let errors = self.summary()["errors"].as_object().unwrap();
        let counted = errors.iter().map(|(kind, count)| (kind.clone(), count.as_u64().unwrap()));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Asserts that requests failed, and all of them in this way.
    pub fn assert_only_error(&self, kind: &str) -> u64 {
        let errors = self.errors();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].0, kind, "{errors:?}");
        let (validity, reason) =
            if self.requests("completed") == 0 { ("invalid", "no_response") } else { ("suspect", "failed") };
        let verdict = &self.summary()["verdict"];
        let kinds = verdict["kinds"].as_array().unwrap();
        assert!(kinds.iter().any(|kind| kind == reason), "{verdict}");
        self.assert_validity(validity);
        errors[0].1
    }

    pub fn assert_all_ok(&self) {
        assert_eq!(self.errors(), vec![], "{:?}", self.events);
        assert!(self.requests("ok") > 0);
        assert_eq!(self.requests("ok"), self.requests("completed"));
    }

    pub fn validity(&self) -> &str {
        self.summary()["verdict"]["validity"].as_str().unwrap()
    }

    /// Asserts that the load is valid.
    pub fn assert_valid(&self) {
        self.assert_validity("valid");
    }

    /// Asserts the validity, unless the machine gave the generator no time: such a load is invalid, and rightly so.
    pub fn assert_validity(&self, expected: &str) {
        let verdict = &self.summary()["verdict"];
        let kinds = verdict["kinds"].as_array().unwrap();
        assert!(self.validity() == expected || kinds.contains(&json!("stalled")), "{verdict}");
    }

    fn check_identities(&self) {
        let count = |key: &str| self.requests(key);
        assert_eq!(count("intended"), count("ok") + count("failed") + count("unanswered") + count("unsent"));
        assert_eq!(count("failed"), self.errors().iter().map(|(_, count)| count).sum::<u64>());
        let check = self.summary()["errors"]["check"].as_u64().unwrap();
        assert_eq!(count("completed"), count("ok") + check);
        let statuses = self.summary()["status"].as_object().unwrap().values();
        assert_eq!(statuses.map(|count| count.as_u64().unwrap()).sum::<u64>(), count("completed"));
        let duration_s = self.summary()["duration_s"].as_f64().unwrap();
        let throughput = self.summary()["throughput_rps"].as_f64().unwrap();
        assert!((throughput * duration_s - count("completed") as f64).abs() < 1e-3);
        let stamps = &self.summary()["generator"]["kernel_timestamps"];
        assert_eq!(stamps.is_null(), self.hello["kernel_timestamps"] == false);
        if !stamps.is_null() {
            let of = |key: &str| stamps[key].as_u64().unwrap();
            assert_eq!(of("used") + of("missing"), count("completed"));
        }
        self.check_intervals(duration_s);
        self.check_histograms();
    }

    fn check_intervals(&self, duration_s: f64) {
        let sum = |key: &str| self.intervals.iter().map(|interval| interval[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("due"), self.requests("intended"));
        for key in ["sent", "completed", "ok", "failed"] {
            assert_eq!(sum(key), self.requests(key), "{key}");
        }
        assert_eq!(sum("bytes_sent"), self.summary()["bytes"]["sent"]);
        assert_eq!(sum("bytes_received"), self.summary()["bytes"]["received"]);
        let mut end_s = 0.0;
        for (index, interval) in self.intervals.iter().enumerate() {
            assert_eq!(interval["index"], index);
            assert!((interval["start_s"].as_f64().unwrap() - end_s).abs() < 1e-6);
            end_s = interval["end_s"].as_f64().unwrap();
            assert_eq!(histogram(&interval["histogram"]).len(), interval["completed"].as_u64().unwrap());
        }
        assert!((end_s - duration_s).abs() < 1e-6, "{end_s} {duration_s}");
        if let Some(last) = self.intervals.last() {
            assert_eq!(last["in_flight"], self.requests("unanswered"));
            assert_eq!(last["queued"], self.requests("unsent"));
        }
    }

    fn check_histograms(&self) {
        let ages = histogram(&self.end["histograms"]["unanswered_age_ns"]);
        assert_eq!(ages.len(), self.requests("unanswered"));
        for clock in ["response_time", "service_time", "schedule_lag", "time_to_first_byte"] {
            let histogram = histogram(&self.end["histograms"][format!("{clock}_ns")]);
            assert_eq!(histogram.len(), self.requests("completed"), "{clock}");
            let p50 = self.summary()[format!("{clock}_us")]["p50"].as_f64();
            assert_eq!(p50.is_some(), !histogram.is_empty());
            if let Some(p50) = p50 {
                assert_eq!(p50, histogram.value_at_quantile(0.5) as f64 / 1e3);
            }
        }
    }
}

pub fn histogram(encoded: &Value) -> Histogram<u64> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded.as_str().unwrap()).unwrap();
    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
}
