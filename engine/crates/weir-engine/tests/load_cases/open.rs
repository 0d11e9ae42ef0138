//! Open loops: arrivals that do not wait for responses.

use std::io::{BufReader, Write};

use crate::load_support::*;
use serde_json::Value;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_constant_rate_sends_exactly_what_is_due() {
    let in_time = |run: &Run| {
        let due = |interval: &Value| interval["due"].as_u64().unwrap();
        run.requests("sent") == 300 && run.intervals.iter().all(|one| due(one).abs_diff(100) <= 20)
    };
    let run = Run::punctual(&open(responding(OK), 10, 1000.0), in_time);
    run.assert_all_ok();
    assert_eq!(run.requests("intended"), 300);
    assert_eq!(run.hello["wait"], "sleep");
    assert!(in_time(&run), "{:?}", run.intervals);
}

#[test]
fn queue_of_a_stuck_server_is_unsent() {
    let address = server(|stream| {
        let mut stream = stream;
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let mut plan = with(open(address, 1, 100.0), "timeout_s", 10.0);
    plan["duration_s"] = 0.5.into();
    let run = Run::of(&plan);
    assert_eq!(run.requests("intended"), 50);
    assert_eq!((run.requests("sent"), run.requests("unanswered"), run.requests("unsent")), (1, 1, 49));
    assert_eq!(run.validity(), "invalid");
    let reasons = run.summary()["verdict"]["reasons"].to_string();
    assert!(reasons.contains("49 of 50 requests were due and not sent"), "{reasons}");
    let age_us = run.intervals.last().unwrap()["oldest_age_us"].as_f64().unwrap();
    assert!((age_us - 500_000.0).abs() < 1.0, "{age_us}");
}

#[test]
fn queueing_counts_as_response_time() {
    // One connection, and a server that responds to the first request only when the second must be due for long.
    let address = server(|stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while read_request(&mut reader).is_some() {
            std::thread::sleep(std::time::Duration::from_millis(40));
            if stream.write_all(OK).is_err() {
                return;
            }
        }
    });
    let run = Run::of(&open(address, 1, 100.0));
    assert_eq!(run.errors(), vec![]);
    assert!(run.requests("unsent") > 0);
    run.assert_validity("suspect");
    let us = |clock: &str, statistic: &str| run.summary()[clock][statistic].as_f64().unwrap();
    assert!(us("service_time_us", "min") >= 40_000.0);
    // The n-th response comes at 40·n ms and was due at 10·(n − 1) ms.
    let responses = run.requests("completed") as f64;
    assert!(us("response_time_us", "max") >= (30.0 * responses + 9.9) * 1e3);
    assert!(us("schedule_lag_us", "max") >= (30.0 * (responses - 1.0) - 0.1) * 1e3);
}

#[test]
fn closing_an_idle_connection_is_no_error() {
    // Closes after each response without saying so; the next arrival is long after.
    let address = server(|stream| respond(stream, OK, 1));
    let run = Run::punctual(&open(address, 1, 20.0), |run| run.requests("ok") == 6);
    run.assert_all_ok();
    assert_eq!(run.requests("ok"), 6);
    assert!(histogram(&run.end["histograms"]["connect_time_ns"]).len() >= 6);
}

#[test]
fn bytes_on_an_idle_connection_fail_no_request() {
    let address = server(|stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        if read_request(&mut reader).is_none() || stream.write_all(OK).is_err() {
            return;
        }
        // After a moment in which the response is surely taken: this server gives up idle connections with 408.
        std::thread::sleep(std::time::Duration::from_millis(10));
        let _ = stream.write_all(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
    });
    let plan = open(address, 1, 20.0);
    let run = Run::punctual(&plan, |run| run.errors().is_empty());
    run.assert_all_ok();
    assert_eq!(run.events[0]["kind"], "protocol");
}

#[test]
fn reconnects_have_pauses() {
    let accepted = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = std::sync::Arc::clone(&accepted);
    let address = server(move |stream| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        drop(stream);
    });
    let run = Run::of(&open(address, 1, 3.0));
    assert_eq!(run.requests("ok"), 0);
    // 10, 20, 40, 80, 160 ms between attempts, and the one before the clock.
    let accepted = accepted.load(std::sync::atomic::Ordering::Relaxed);
    assert!(accepted <= 10, "{accepted}");
}

#[test]
fn generator_spins_on_its_own_cpu() {
    let plan = with(open(responding(OK), 10, 1000.0), "cpus", vec![0]);
    let busy = |run: &Run| {
        let generator = &run.summary()["generator"];
        generator["busy_fraction"].as_f64().unwrap()
    };
    let run = Run::punctual(&plan, |run| busy(run) < 0.5);
    run.assert_all_ok();
    assert_eq!(run.hello["wait"], "sleep-spin");
    assert_eq!(run.requests("intended"), 300);
    // Spinning is not being busy.
    assert!(busy(&run) < 0.5);
}

#[test]
fn generator_confined_to_one_cpu_waits_as_on_its_own_unless_the_caller_needs_the_cpu() {
    let plan = open(responding(OK), 2, 100.0);
    for (shares_cpu, wait) in [(false, "sleep-spin"), (true, "sleep")] {
        let plan = with(plan.clone(), "shares_cpu", shares_cpu);
        let run = std::process::Command::new("taskset")
            .args(["-c", "0", env!("CARGO_BIN_EXE_weir-engine"), "load"])
            .stdin(plan_file(&plan.to_string()))
            .output()
            .unwrap();
        let text = String::from_utf8(run.stdout).unwrap();
        let hello: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(hello["wait"], wait);
    }
    assert_eq!(Run::of(&plan).hello["wait"], "sleep");
}

#[test]
fn closed_loop_polls_before_it_sleeps() {
    let plan = closed(responding(OK), 2);
    assert_eq!(Run::of(&plan).hello["wait"], "block");
    let run = Run::of(&with(plan, "cpus", vec![0]));
    run.assert_all_ok();
    assert_eq!(run.hello["wait"], "spin-block");
}
