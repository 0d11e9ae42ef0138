//! The request log: one record per request, which add up to the summary.

use std::io::{BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::load_support::request_log::*;
use crate::load_support::*;
use serde_json::json;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const WRONG_AND_CLOSE: &[u8] = b"HTTP/1.1 500 Oh\r\nConnection: close\r\nContent-Length: 3\r\n\r\noh!";
const WRONG: &[u8] = b"HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\noh!";

/// What a clock is of a record.
type Clock = fn(&Entry) -> i64;

#[test]
fn records_add_up_to_the_summary() {
    let (run, log) = logged(&with(closed(responding(OK), 5), "threads", 2));
    run.assert_all_ok();
    let mean_us = |of: Clock| {
        let ok = log.iter().filter(|entry| entry.outcome == OUTCOME_OK);
        ok.map(of).sum::<i64>() as f64 / run.requests("ok") as f64 / 1e3
    };
    let clocks: [(&str, Clock); 5] = [
        ("response_time_us", |e| e.last_byte_ns - e.intended_ns),
        ("service_time_us", |e| e.last_byte_ns - e.written_ns),
        ("schedule_lag_us", |e| e.written_ns - e.intended_ns),
        ("time_to_first_byte_us", |e| e.first_byte_ns - e.written_ns),
        ("read_time_us", |e| e.last_byte_ns - e.first_byte_ns),
    ];
    for (clock, of) in clocks {
        let told = run.summary()[clock]["mean"].as_f64().unwrap();
        let mean = mean_us(of);
        assert!((told - mean).abs() <= 1e-3 * mean + 1e-3, "{clock}: {told} {mean}");
    }
    for entry in log.iter().filter(|entry| entry.outcome == OUTCOME_OK) {
        assert_eq!((entry.status, entry.body_bytes, entry.received_bytes), (200, 2, OK.len() as u32));
        assert_eq!((entry.step, entry.target, entry.zero), (0, 0, 0));
    }
    for user in 0..5 {
        let own: Vec<&Entry> = log.iter().filter(|entry| entry.user == user).collect();
        assert!(own[0].connect_ns > 0, "its connection was made");
        assert!(own[1..].iter().all(|entry| entry.connect_ns == 0), "once");
        // A user asks again when its response has come.
        let in_turn = |pair: &[&Entry]| pair[0].last_byte_ns <= pair[1].written_ns;
        assert!(own.windows(2).all(in_turn));
    }
    let lost = &run.summary()["request_log"];
    assert_eq!(*lost, json!({"records": log.len(), "lost": 0, "problem": null}));
}

#[test]
fn without_one_the_summary_says_nothing_of_it() {
    assert!(Run::of(&closed(responding(OK), 1)).summary()["request_log"].is_null());
}

#[test]
fn every_kind_of_failure_has_its_number() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel";
    let surplus = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more";
    let cases: [(u8, &'static [u8]); 5] = [
        (OUTCOME_CHECK, WRONG_AND_CLOSE),
        (OUTCOME_RESET, half),
        (OUTCOME_RESET, b""),
        (OUTCOME_PROTOCOL, b"SSH-2.0-OpenSSH_9.2\r\n"),
        (OUTCOME_PROTOCOL, surplus),
    ];
    for (outcome, response) in cases {
        let address = server(move |stream| respond(stream, response, 1));
        let plan = with_requests(closed(address, 2), 20);
        let (run, log) = logged(&plan);
        assert_eq!(run.requests("failed"), 20);
        for entry in log {
            assert_eq!(entry.outcome, outcome);
            assert_eq!(entry.received_bytes, response.len() as u32);
            assert_eq!(entry.first_byte_ns >= 0, !response.is_empty());
            let is_whole = outcome == OUTCOME_CHECK;
            assert_eq!(entry.last_byte_ns >= 0, is_whole);
            let (status, body) = if is_whole { (500, 3) } else { (0, 0) };
            assert_eq!((entry.status, entry.body_bytes), (status, body));
            assert!(entry.connect_ns > 0, "each had a connection of its own");
        }
    }
}

#[test]
fn late_request_is_a_timeout_or_unanswered() {
    let address = server(|stream| {
        let mut stream = stream;
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let plan = with(closed(address, 3), "timeout_s", 0.2);
    let (run, log) = logged(&plan);
    assert_eq!((run.requests("failed"), run.requests("unanswered")), (3, 3));
    for entry in log {
        assert!(entry.written_ns >= entry.intended_ns);
        assert_eq!((entry.first_byte_ns, entry.last_byte_ns), (-1, -1));
        assert!(entry.sent_bytes > 0);
        let is_last = entry.intended_ns > 100_000_000;
        let expected = [OUTCOME_TIMEOUT, OUTCOME_UNANSWERED][usize::from(is_last)];
        assert_eq!(entry.outcome, expected);
    }
}

#[test]
fn request_without_connection_was_never_written() {
    // The server takes the first connection, responds once and is gone.
    let listener = std::net::TcpListener::bind(CLOSING).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        respond(stream, OK, 1);
    });
    let (run, log) = logged(&with(closed(address, 1), "retry", false));
    assert!(run.summary()["errors"]["connect"].as_u64().unwrap() > 0);
    let failed = log.iter().filter(|entry| entry.outcome == OUTCOME_CONNECT);
    for entry in failed {
        assert!(entry.intended_ns >= 0);
        let never = [entry.written_ns, entry.first_byte_ns, entry.last_byte_ns];
        assert_eq!(never, [-1; 3]);
        assert_eq!((entry.sent_bytes, entry.received_bytes), (0, 0));
    }
}

#[test]
fn open_loops_and_single_connections_are_logged() {
    let (run, log) = logged(&open(responding(OK), 2, 500.0));
    run.assert_all_ok();
    assert_eq!(log.iter().filter(|entry| entry.connect_ns > 0).count(), 2);
    let plan = with(closed(responding(OK), 2), "keep_alive", false);
    let (run, log) = logged(&plan);
    run.assert_all_ok();
    for entry in log {
        assert!(entry.connect_ns > 0 && entry.connect_ns <= entry.written_ns - entry.intended_ns);
    }
}

#[test]
fn pipelined_requests_have_a_record_each() {
    let plan = with(closed(responding(OK), 2), "pipeline", 8);
    let (run, log) = logged(&with_requests(plan, 400));
    run.assert_all_ok();
    assert_eq!(log.len(), 400);
    assert!(log.iter().all(|entry| entry.received_bytes == OK.len() as u32));
    assert_eq!(log.iter().filter(|entry| entry.connect_ns > 0).count(), 2);

    // Two responses and a half, then the end: the third and those behind it fail, and of the third something came.
    let address = server(|stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        (0..8).for_each(|_| drop(read_request(&mut reader)));
        let mut stream = stream;
        let _ = stream.write_all(&[OK, OK, &OK[..10]].concat());
    });
    let plan = with(with(closed(address, 1), "pipeline", 8), "until", "first_failure");
    let (run, log) = logged(&plan);
    assert_eq!((run.requests("ok"), run.requests("failed")), (2, 1));
    let received: Vec<u32> = log.iter().map(|entry| entry.received_bytes).collect();
    let whole = OK.len() as u32;
    assert_eq!(received[..3], [whole, whole, 10]);
    assert!(log[2].first_byte_ns >= 0 && log[2].last_byte_ns == -1);
    assert!(log[3..].iter().all(|entry| entry.first_byte_ns == -1));
}

#[test]
fn records_number_steps_and_targets() {
    let mut plan = with_requests(closed(responding(OK), 1), 30);
    plan["scenario"] = json!({"steps": [{"path": "/a"}, {"path": "/b"}, {"path": "/c"}]});
    let (_, log) = logged(&plan);
    let steps: Vec<u16> = log.iter().map(|entry| entry.step).collect();
    assert_eq!(steps, [0, 1, 2].repeat(10));

    let addresses = [responding(OK), responding(WRONG)];
    let urls: Vec<String> = addresses.map(|at| format!("http://{at}/")).to_vec();
    let mut plan = with(closed(addresses[0], 4), "targets", urls);
    plan.as_object_mut().unwrap().remove("target");
    let (_, log) = logged(&with_requests(plan, 40));
    for entry in log {
        assert_eq!(u32::from(entry.target), entry.user % 2);
        assert_eq!(entry.status, [200, 500][usize::from(entry.target)]);
    }
}

#[test]
fn unwritable_log_is_an_error_before_the_load() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let address = server(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let plan = with(closed(address, 1), "request_log", "/nowhere/log");
    let output = run_text(&plan.to_string());
    assert_eq!(output.status.code(), Some(2));
    let said = &records(&output.stdout)[0]["message"];
    let expected = "plan, key request_log: \"/nowhere/log\" cannot be written: No such file or directory (os error 2)";
    assert_eq!(said, expected);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn full_disk_is_reported_with_lost_records() {
    let plan = with_requests(closed(responding(OK), 4), 3000);
    let run = Run::of(&with(plan, "request_log", "/dev/full"));
    run.assert_all_ok();
    let log = &run.summary()["request_log"];
    assert_eq!((&log["records"], &log["lost"]), (&json!(0), &json!(3000)));
    let verdict = &run.summary()["verdict"];
    // On a busy machine there are others beside it.
    let kinds = verdict["kinds"].as_array().unwrap();
    let index = kinds.iter().position(|kind| kind == "request_log").unwrap();
    let reason = verdict["reasons"][index].as_str().unwrap();
    assert!(reason.starts_with("3000 of 3000 records are missing in the request log"));
    assert!(reason.contains("No space left on device"), "{reason}");
}
