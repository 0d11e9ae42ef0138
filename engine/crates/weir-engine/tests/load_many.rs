//! More connections at once than the server lets wait.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

mod load_support;
use load_support::{Run, closed, with};

const BACKEND: &str = "auto";
const CONNECTIONS: usize = 15_000;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Half a minute: connections that the backlog turned away are tried again after a second by the kernel.
#[test]
#[ignore = "a soak test, with ulimit -n 20000"]
fn fifteen_thousand_connections_against_a_backlog_of_128_are_all_accounted_for() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit
        .maximum
        .is_some_and(|files| files < CONNECTIONS as u64 + 1000)
    {
        let note = format!(
            "left out: ulimit -Hn is {:?}, and this needs 16,000\n",
            limit.maximum
        );
        let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
        return;
    }
    let mut server = Server(
        Command::new(env!("CARGO_BIN_EXE_weir-engine"))
            .args(["serve", "null", "--backlog", "128"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = listening["address"].as_str().unwrap().parse().unwrap();
    // `Run::of` checks that every request and every interval adds up.
    let run = Run::of(&with(closed(address, CONNECTIONS), "duration_s", 5));
    assert!(run.hello["connected"].as_u64().unwrap() <= CONNECTIONS as u64);
    assert!(run.requests("ok") >= CONNECTIONS as u64, "{}", run.end);
    assert!(run.requests("unanswered") <= CONNECTIONS as u64);
    let unsent_or_in_flight = run.requests("unanswered") + run.requests("unsent");
    assert_eq!(
        unsent_or_in_flight, CONNECTIONS as u64,
        "each user has one request under way"
    );
    let peak = run.summary()["generator"]["peak_rss_bytes"].as_u64();
    assert!(peak.unwrap() < 30_000_000, "{peak:?}");
}
