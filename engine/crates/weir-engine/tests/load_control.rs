//! Start, stop and refusal of a load.
#![allow(clippy::unwrap_used)]

mod load_support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use load_support::*;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The back end that every plan here asks for.
const BACKEND: &str = "auto";

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A run of a minute, with its input still open, that has written its first interval.
fn running() -> (Child, BufReader<std::process::ChildStdout>, Vec<u8>) {
    let plan = with(closed(responding(OK), 2), "duration_s", 60.0);
    let mut child = command().stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(plan.to_string().as_bytes()).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("\"interval\"") {
        assert_ne!(output.read_until(b'\n', &mut seen).unwrap(), 0);
    }
    (child, output, seen)
}

fn rest(mut child: Child, mut output: BufReader<std::process::ChildStdout>, mut seen: Vec<u8>) -> Run {
    output.read_to_end(&mut seen).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    Run::from_records(records(&seen))
}

#[test]
fn signal_ends_the_load_with_its_summary() {
    for signal in [Signal::TERM, Signal::INT] {
        let (child, output, seen) = running();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let run = rest(child, output, seen);
        assert_eq!(run.end["stopped"], "signal");
        assert!(run.summary()["duration_s"].as_f64().unwrap() < 30.0);
        run.assert_all_ok();
    }
}

#[test]
fn the_closing_of_its_input_ends_the_load() {
    let (mut child, output, seen) = running();
    drop(child.stdin.take());
    let run = rest(child, output, seen);
    assert_eq!(run.end["stopped"], "input");
}

#[test]
fn a_reader_that_goes_away_ends_the_load() {
    let (mut child, output, _) = running();
    drop(output);
    assert!(child.wait().unwrap().success());
}

#[test]
fn slow_reader_does_not_delay_the_load() {
    let plan = with(closed(responding(OK), 1), "duration_s", 3.0);
    let child = command().stdin(plan_file(&plan.to_string())).spawn().unwrap();
    // A pipe holds 64 kB, less than these records; nobody reads until all are due.
    std::thread::sleep(std::time::Duration::from_millis(3_500));
    let output = child.wait_with_output().unwrap();
    let run = Run::from_records(records(&output.stdout));
    run.assert_all_ok();
    assert_eq!(run.intervals.len(), 30);
    assert!(run.summary()["response_time_us"]["max"].as_f64().unwrap() < 2e6);
}

#[test]
fn stopped_generator_is_invalid() {
    let (mut child, mut output, mut seen) = running();
    let pid = Pid::from_child(&child);
    // If the machine is busy, the load threads may run for long before the check of the clocks. It then finds no stall.
    let stalled = (0..20).any(|_| {
        kill_process(pid, Signal::STOP).unwrap();
        // The length of the stall; nothing is waited for.
        std::thread::sleep(std::time::Duration::from_millis(800));
        kill_process(pid, Signal::CONT).unwrap();
        (0..5).any(|_| {
            let record = seen.len();
            assert_ne!(output.read_until(b'\n', &mut seen).unwrap(), 0);
            String::from_utf8_lossy(&seen[record..]).contains("\"stalled\"")
        })
    });
    assert!(stalled);
    drop(child.stdin.take());
    let run = rest(child, output, seen);
    let verdict = &run.summary()["verdict"];
    assert_eq!(verdict["validity"], "invalid");
    let reason = verdict["reasons"][0].as_str().unwrap();
    assert!(reason.contains("was stopped"), "{reason}");
    let still = reason.strip_prefix("the generator stalled for ");
    let still_s: f64 = still.unwrap().split(' ').next().unwrap().parse().unwrap();
    // Up to an interval of it is not counted; a machine with other work lets it wait for longer.
    assert!((0.5..20.0).contains(&still_s), "{reason}");
}

#[test]
fn plan_may_come_from_a_file() {
    let path = std::env::temp_dir().join(format!("weir-load-plan-{}.json", std::process::id()));
    std::fs::write(&path, closed(responding(OK), 1).to_string()).unwrap();
    let output = command().arg("--plan").arg(&path).stdin(Stdio::null()).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    Run::from_records(records(&output.stdout)).assert_all_ok();
}

fn refusal(plan: &str) -> (i32, Value) {
    let output = run_text(plan);
    let records = records(&output.stdout);
    assert_eq!(records.len(), 1);
    let record = records[0].clone();
    let code = output.status.code().unwrap();
    assert_eq!(record["record"], "error");
    assert_eq!(record["code"], code);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(record["message"].as_str().unwrap()), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    (code, record)
}

#[test]
fn invalid_plan_exits_with_2() {
    let good = closed("127.0.0.1:9".parse().unwrap(), 1);
    let mut body = good.clone();
    body["request"] = json!({"body": {"file": "/nowhere/at/all"}});
    let cases = [
        ("".to_owned(), "EOF while parsing"),
        ("{".to_owned(), "EOF while parsing"),
        ("[]".to_owned(), "plan: "),
        (with(good.clone(), "threads", "two").to_string(), "invalid type: string \"two\""),
        (with(good.clone(), "thread", 2).to_string(), "unknown field `thread`"),
        (with(good.clone(), "schema", 9).to_string(), "key schema: found 9, expected 1"),
        (with(good.clone(), "target", "ftp://x/").to_string(), "key target: found \"ftp://x/\""),
        (
            with(good.clone(), "target", "http://host.invalid/").to_string(),
            "key target: the host \"host.invalid\" has no address",
        ),
        (with(good.clone(), "cpus", vec![5000]).to_string(), "key cpus: found 5000"),
        (with(good.clone(), "cpus", vec![1000]).to_string(), "key cpus: found 1000"),
        (body.to_string(), "key request.body.file: \"/nowhere/at/all\" cannot be read"),
        (
            with(good, "load", json!({"closed": {"connections": 900_000}})).to_string(),
            "key load: found 900000 connections",
        ),
    ];
    for (plan, expected) in cases {
        let (code, record) = refusal(&plan);
        assert_eq!(code, 2, "{record}");
        assert!(record["message"].as_str().unwrap().contains(expected), "{record}\n{expected}");
        assert_ne!(record["hint"], "");
    }
}

#[test]
fn missing_plan_file_exits_with_2() {
    let output = command().args(["--plan", "/nowhere.json"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = records(&output.stdout)[0]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("--plan: /nowhere.json cannot be read"), "{message}");
}
