//! Measures how long a sweep delays a send on the same CPU: by the lag of the sends, and by the scheduler's events.
//!
//! `cargo test --release -p weir-engine --test observe_delay -- --ignored --nocapture`. Let nothing else run meanwhile.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod host_support;
mod observe_support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use host_support::{Host, wait_for};
use observe_support::SchedulerTrace;
use serde_json::{Value, json};

const ROUNDS: usize = 5;

fn engine_on(cpu: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new("taskset");
    command.args(["-c", cpu, env!("CARGO_BIN_EXE_weir-engine")]);
    command.args(arguments);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// A host on CPU 0 whose server has so many threads that wait, in a network of its own where it may have one: there is
/// another's counters to read then.
fn host_of_threads(threads: usize) -> Host {
    let mut host = Host::new("namespace");
    let script = format!(
        "exec python3 -c '
import threading
for _ in range({threads} - 1): threading.Thread(target=threading.Event().wait, daemon=True).start()
print(\"waiting\", flush=True)
threading.Event().wait()'"
    );
    let mut start = host.shell("app", &script);
    if host.ask(json!({"command": "capabilities"}))["network"]["possible"] == true {
        start["network"] = json!({"port": 8000, "published_port": 8000});
    }
    let started = host.ask(start);
    assert_eq!(started["record"], "started", "{started}");
    wait_for("the threads", || host.log("app").contains("waiting").then_some(()));
    let own = host.child.id().to_string();
    let bound = Command::new("taskset").args(["-acp", "0", &own]).output();
    assert!(bound.unwrap().status.success());
    host
}

/// Ends it by closing its input.
fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// 2,000 requests a second at fixed moments from CPU 0: the schedule lag of that load. It has a connection for whatever
/// the server leaves unanswered, so that a late send is the generator's.
fn lag_us(address: &str) -> Value {
    let plan = json!({
        "schema": 1, "target": format!("http://{address}/"), "request": {"method": "GET"}, "duration_s": 5.0, "cpus": [0],
        "load": {"open": {"rate_rps": 2000.0, "connections": 2000}},
    });
    let mut load = engine_on("0", &["load"]);
    let mut input = load.stdin.take().unwrap();
    writeln!(input, "{plan}").unwrap();
    let lines = BufReader::new(load.stdout.take().unwrap()).lines();
    let records = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let end = records.last().unwrap();
    load.wait().unwrap();
    end["summary"]["schedule_lag_us"].clone()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "a measurement, not a check"]
fn delay_of_sends() {
    let mut server = engine_on("1", &["serve", "null", "--listen", "127.0.0.1:0"]);
    let mut said = String::new();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    output.read_line(&mut said).unwrap();
    let listening: Value = serde_json::from_str(&said).unwrap();
    let address = listening["address"].as_str().unwrap();

    let over = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..3000)
        .map(|_| {
            let over = over.clone();
            let wait = move || {
                while !over.load(Ordering::Relaxed) {
                    std::thread::park_timeout(Duration::from_secs(1));
                }
            };
            let builder = std::thread::Builder::new().stack_size(64 * 1024);
            builder.spawn(wait).unwrap()
        })
        .collect();
    let own = std::process::id().to_string();
    let keys = ["p50", "p99", "p99_9", "p99_99", "max"];
    let mut host = host_of_threads(300);
    let trace = SchedulerTrace::start();
    let mut found = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (kind, pid) in [None, Some(server.id().to_string()), Some(own.clone())].iter().enumerate() {
            let observer = pid.as_ref().map(|pid| {
                let mut observer = engine_on("0", &["observe", "--pid", pid]);
                // Its pipe has room for some records alone.
                let mut records = observer.stdout.take().unwrap();
                std::thread::spawn(move || std::io::copy(&mut records, &mut std::io::sink()));
                observer
            });
            found[kind].push(lag_us(address));
            observer.into_iter().for_each(end);
        }
        host.ask(json!({"command": "observe", "period_s": 0.1, "memory_period_s": 9.0}));
        found[3].push(lag_us(address));
        host.ask(json!({"command": "unobserve"}));
    }
    let waits_us = trace.map(|trace| trace.waits_us("load-0", "observe"));
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
    end(server);
    println!("schedule lag, us, median of {ROUNDS} loads of 10,000 requests: {keys:?}");
    let kinds = ["nobody observes", "a small server observed", "3,000 threads observed", "a host's 300 observed"];
    for (what, lags) in kinds.into_iter().zip(found) {
        let of = |key: &str| median(lags.iter().map(|lag| lag[key].as_f64().unwrap()).collect());
        println!("{what:<25} {:?}", keys.map(of));
    }
    let Some(waits_us) = waits_us else {
        println!("the scheduler's own account needs root and `mount -t tracefs nodev /sys/kernel/tracing`");
        return;
    };
    let at = |share: f64| waits_us[(waits_us.len() as f64 * share) as usize].round();
    println!(
        "{} times the generator could run and an observer had its CPU, us: p50 {}, p90 {}, p99 {}, the longest {:.0?}",
        waits_us.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        &waits_us[waits_us.len().saturating_sub(5)..],
    );
}
