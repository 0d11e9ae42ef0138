//! Observation of processes that weir did not start.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

fn observe(pids: &[u32]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-engine"));
    command.args(["observe", "--period", "0.05"]);
    for pid in pids {
        command.args(["--pid", &pid.to_string()]);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn samples(observer: &mut Child) -> impl Iterator<Item = Value> + use<> {
    BufReader::new(observer.stdout.take().unwrap()).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

fn shell(script: &str) -> Child {
    Command::new("sh").args(["-c", script]).spawn().unwrap()
}

#[test]
fn group_includes_process_and_descendants() {
    let mut one = shell("sleep 1000 & sleep 1000 & wait");
    let mut two = shell("exec sleep 1000");
    let mut observer = observe(&[one.id(), two.id()]).spawn().unwrap();
    let three = |sample: &Value| sample["groups"][0]["processes"] == 3;
    let mut samples = samples(&mut observer);
    let sample = samples.find(three).unwrap();
    assert_eq!(sample["record"], "sample");
    assert_eq!(sample["groups"][0]["name"], one.id().to_string());
    assert_eq!(sample["groups"][1]["name"], two.id().to_string());
    assert_eq!(sample["groups"][1]["processes"], 1);
    drop(observer.stdin.take());
    let last = samples.last().unwrap();
    assert!(last["groups"][1]["pss_bytes"].as_u64().unwrap() > 0);
    assert!(observer.wait().unwrap().success());
    // The shell's children end with their pipe-less shell only if told to.
    Command::new("pkill").args(["-P", &one.id().to_string()]).status().unwrap();
    for child in [&mut one, &mut two] {
        let _ = child.kill();
        child.wait().unwrap();
    }
}

#[test]
fn observer_ends_with_the_process() {
    let mut child = Command::new("sh")
        .args(["-c", "perl -e 'while ((times)[0] < 0.3) {}'; read x"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut observer = observe(&[child.id()]).spawn().unwrap();
    let burnt = |sample: &Value| sample["groups"][0]["cpu_user_s"].as_f64().unwrap();
    let mut samples = samples(&mut observer);
    let mut before = 0.0;
    for sample in samples.by_ref() {
        assert!(burnt(&sample) >= before);
        before = burnt(&sample);
        if sample["groups"][0]["processes"] == 1 && before > 0.2 {
            break;
        }
    }
    let _ = child.kill();
    child.wait().unwrap();
    let last = samples.last().unwrap();
    assert_eq!(last["groups"][0]["processes"], 0);
    assert!(burnt(&last) >= before, "CPU fell when the process ended");
    assert!(observer.wait().unwrap().success());
}

#[test]
fn missing_pid_exits_with_2() {
    let output = observe(&[4_194_305]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["record"], "error");
    assert_eq!(record["code"], 2);
    assert!(record["message"].as_str().unwrap().contains("4194305"));
    assert!(record["hint"].as_str().unwrap().contains("ps "));
}
