//! More connections at once than the server's backlog.
#![allow(clippy::unwrap_used, missing_docs)]

mod load_support;
mod serve_support;
use load_support::{Run, closed, with};
use serve_support::{Server, may_open};

const BACKEND: &str = "auto";
const CONNECTIONS: usize = 15_000;

/// Half a minute: connections that the backlog turned away are tried again after a second by the kernel.
#[test]
#[ignore = "a soak test, with ulimit -n 20000"]
fn fifteen_thousand_connections_with_backlog_128() {
    if !may_open(CONNECTIONS as u64 + 1000) {
        return;
    }
    let server = Server::start(&["null", "--backlog", "128"]);
    let address = server.address.parse().unwrap();
    // `Run::of` checks that every request and every interval adds up.
    let run = Run::of(&with(closed(address, CONNECTIONS), "duration_s", 5));
    assert!(run.hello["connected"].as_u64().unwrap() <= CONNECTIONS as u64);
    assert!(run.requests("ok") >= CONNECTIONS as u64, "{}", run.end);
    assert!(run.requests("unanswered") <= CONNECTIONS as u64);
    let unsent_or_in_flight = run.requests("unanswered") + run.requests("unsent");
    assert_eq!(unsent_or_in_flight, CONNECTIONS as u64, "each user has one request under way");
    let peak = run.summary()["generator"]["peak_rss_bytes"].as_u64();
    assert!(peak.unwrap() < 30_000_000, "{peak:?}");
}
