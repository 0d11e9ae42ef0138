//! One load that several engines share, with a common start.
#![allow(clippy::unwrap_used, missing_docs)]

mod load_support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};

use load_support::request_log::{Entry, logged};
use load_support::*;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// The back end that every plan here asks for.
const BACKEND: &str = "auto";

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The plan of each engine: of `threads` threads, as many engines as that is long.
fn parts(plan: &Value, threads: &[usize]) -> Vec<Value> {
    let of: usize = threads.iter().sum();
    let mut first = 0;
    let part = |&own: &usize| {
        let plan = with(plan.clone(), "threads", own);
        let plan = with(plan, "part", json!({"first": first, "of": of}));
        first += own;
        plan
    };
    threads.iter().map(part).collect()
}

/// An engine that holds its load.
struct Held {
    child: Child,
    output: BufReader<ChildStdout>,
    ready: Value,
}

impl Held {
    fn new(plan: &Value) -> Self {
        let mut child = command().stdin(Stdio::piped()).spawn().unwrap();
        let plan = with(plan.clone(), "held", true);
        let input = child.stdin.as_mut().unwrap();
        input.write_all(format!("{plan}\n").as_bytes()).unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(ready["record"], "ready", "{line}");
        Self { child, output, ready }
    }

    fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn run(mut self) -> Run {
        let mut seen = Vec::new();
        self.output.read_to_end(&mut seen).unwrap();
        assert!(self.child.wait().unwrap().success());
        Run::from_records(records(&seen))
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn parts_make_up_the_load() {
    for threads in [&[1, 1][..], &[1, 1, 1], &[2, 1, 1, 1, 1, 3, 1]] {
        let plan = with(closed(responding(OK), 23), "requests", 1_000);
        let plan = with(plan, "duration_s", 60.0);
        let (mut users, mut asked) = (Vec::new(), 0);
        for part in parts(&plan, threads) {
            let (run, log) = logged(&part);
            run.assert_all_ok();
            assert_eq!(run.end["stopped"], "complete");
            asked += run.requests("ok");
            users.extend(log.iter().filter(first_of_its_user).map(|entry| entry.user));
        }
        assert_eq!(asked, 1_000, "{threads:?}");
        users.sort_unstable();
        assert_eq!(users, (0..23).collect::<Vec<u32>>(), "{threads:?}");
    }
}

/// Whether it made its user's connection.
fn first_of_its_user(entry: &&Entry) -> bool {
    entry.connect_ns > 0
}

#[test]
fn each_part_has_its_share_of_the_rate() {
    let plan = with(open(responding(OK), 12, 999.0), "duration_s", 1.0);
    let runs: Vec<Run> = parts(&plan, &[1, 2]).iter().map(Run::of).collect();
    let intended: Vec<u64> = runs.iter().map(|run| run.requests("intended")).collect();
    assert_eq!(intended, [333, 666]);
    for run in &runs {
        let reasons = run.summary()["verdict"]["reasons"].to_string();
        // On a busy machine it may fall behind, but never behind the rate of the whole load.
        assert!(!reasons.contains("999 were asked for"), "{reasons}");
    }
}

#[test]
fn poisson_parts_make_up_the_load() {
    // Nothing arrives in the second half: also on a busy machine all that arrived has been sent by the end.
    let mut plan = with(open(responding(OK), 12, 500.0), "duration_s", 2.0);
    plan["load"]["open"]["arrivals"] = "poisson".into();
    plan["load"]["open"]["rate_rps"] = json!([[0.0, 500.0], [1.0, 500.0], [1.0, 0.0]]);
    let due_ns = |plan: &Value| -> Vec<i64> {
        let (_, log) = logged(plan);
        log.iter().map(|entry| entry.intended_ns).collect()
    };
    let mut shared: Vec<i64> = parts(&plan, &[1, 1, 1]).iter().flat_map(due_ns).collect();
    shared.sort_unstable();
    // Who has all three threads draws the same.
    let mut whole = due_ns(&with(plan, "threads", 3));
    whole.sort_unstable();
    assert_eq!(shared, whole);
}

#[test]
fn a_load_that_is_held_begins_when_it_is_told() {
    let mut held = Held::new(&closed(responding(OK), 3));
    assert_eq!(held.ready["connected"], 3);
    let start_ns = now_ns() + 300_000_000;
    assert!(held.ready["soonest_monotonic_ns"].as_u64().unwrap() < start_ns);
    held.tell(&json!({"start_monotonic_ns": start_ns}).to_string());
    let run = held.run();
    assert_eq!(run.hello["start_monotonic_ns"], start_ns);
    run.assert_all_ok();
}

#[test]
fn late_start_begins_at_once() {
    let mut held = Held::new(&closed(responding(OK), 1));
    let before_ns = now_ns();
    held.tell(r#"{"start_monotonic_ns": 1}"#);
    let run = held.run();
    assert!(run.hello["start_monotonic_ns"].as_u64().unwrap() > before_ns);
}

#[test]
fn held_load_without_start_sends_nothing() {
    for line in [None, Some("begin!"), Some(r#"{"start": 1}"#)] {
        let mut held = Held::new(&closed(responding(OK), 1));
        match line {
            Some(line) => held.tell(line),
            None => drop(held.child.stdin.take()),
        }
        let mut rest = String::new();
        held.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert!(held.child.wait().unwrap().success());
    }
}

#[test]
fn a_part_that_is_none_of_the_load_is_refused() {
    let cases = [
        (json!({"first": 2, "of": 2}), "part.first: found 2, expected at most 2 less the threads, 1"),
        (json!({"first": 0, "of": 4}), "part.of: found 4, expected at least 1 and at most the number of connections"),
    ];
    for (part, message) in cases {
        let output = run_text(&with(closed(responding(OK), 3), "part", part).to_string());
        assert_eq!(output.status.code(), Some(2));
        let told = records(&output.stdout)[0]["message"].to_string();
        assert!(told.contains(message), "{told}");
    }
}
