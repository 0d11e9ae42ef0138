//! Values beyond CPU and memory, and the limits of an unprivileged observer.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod host_support;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use host_support::{Host, folder, is_root, modes, wait_for};
use serde_json::{Value, json};

fn sample(host: &mut Host) -> Value {
    host.ask(json!({"command": "sample"}))
}

/// The first sample of an observer that `command` becomes, with the arguments that make it observe `pid`.
fn first_sample(mut command: Command, pid: i32) -> Value {
    command.args([env!("CARGO_BIN_EXE_weir-engine"), "observe", "--pid"]);
    command.arg(pid.to_string());
    let output = command.stdin(Stdio::piped()).output().unwrap();
    let line = output.stdout.split(|&byte| byte == b'\n').next().unwrap();
    serde_json::from_slice(line).unwrap()
}

#[test]
fn cpu_totals_match_the_kernel() {
    for mode in modes() {
        let mut host = Host::new(mode);
        // The kernel tells each of four figures (user and system, own and of ended children) in ticks of 10 ms, cut
        // off: 1 % has to be more than those four ticks.
        let burn = "perl -e 'while ((times)[0] + (times)[1] < 2.2) {}'";
        host.start("app", &format!("({burn}; true); {burn}; echo burnt; sleep 1000; true"));
        wait_for("the burning", || host.log("app").contains("burnt").then_some(()));
        let group = sample(&mut host)["groups"][0].clone();
        let stopped = host.stop("app", 5.0);
        let cpu = |figures: &Value| figures["cpu_user_s"].as_f64().unwrap() + figures["cpu_system_s"].as_f64().unwrap();
        let (sampled, kernel) = (cpu(&group), cpu(&stopped));
        assert!(kernel > 4.0);
        assert!((sampled - kernel).abs() < 0.01 * kernel, "{mode}: {sampled} s, the kernel says {kernel} s");
    }
}

#[test]
fn bytes_of_ended_children_count() {
    for mode in modes() {
        let mut host = Host::new(mode);
        let script = "perl -e '$x = q(x) x 2e7; open F, q(>), q(written); print F $x; close F'; \
            exec 7</dev/null 8</dev/null 9</dev/null; echo written; sleep 1000; true";
        let before_pages = 2e7 / 4096.0;
        host.start("app", script);
        wait_for("the writing", || host.log("app").contains("written").then_some(()));
        // The child is reaped before the shell goes on.
        let group = sample(&mut host)["groups"][0].clone();
        let figure = |key: &str| group[key].as_f64().unwrap();
        assert!(figure("wchar_bytes") >= 2e7, "{mode}: {group}");
        assert!(figure("rchar_bytes") > 0.0, "{mode}: {group}");
        assert!(figure("minor_faults") > before_pages, "{mode}: {group}");
        assert!(figure("disk_written_bytes") >= 0.0, "{mode}: {group}");
        // Standard input, output and error of shell and sleep, and three that both have.
        assert!((9.0..=16.0).contains(&figure("descriptors")), "{mode}: {group}");
    }
}

#[test]
fn machine_is_read_once_a_second() {
    let mut host = Host::new("process-group");
    host.start("app", "exec sleep 1000");
    let asked = wait_for("the shell to become the program", || {
        let sample = sample(&mut host);
        let pools = sample["groups"][0]["threads_by_state"].as_array()?;
        let has_become = pools.iter().any(|pool| pool["pool"] == "sleep");
        has_become.then_some(sample)
    });
    assert!(asked["network"]["sockets"]["in_use"].is_u64(), "{asked}");
    assert!(asked["network"]["listen_overflows"].is_u64(), "{asked}");
    host.ask(json!({"command": "observe", "period_s": 0.02, "memory_period_s": 100.0}));
    let mut with_network = 0;
    for _ in 0..120 {
        let sample = host.record("sample", |record| record["record"] == "sample");
        let has = |value: &Value| !value.is_null();
        assert_eq!(has(&sample["network"]), has(&sample["groups"][0]["threads_by_state"]));
        with_network += usize::from(has(&sample["network"]));
    }
    assert!((1..=20).contains(&with_network), "{with_network} of 120");
}

#[test]
fn network_namespace_has_its_own_counters() {
    if !is_root() {
        eprintln!("left out: making a network namespace takes root");
        return;
    }
    for mode in modes() {
        let mut host = Host::new(mode);
        host.start("shared", "exec sleep 1000");
        host.start("own", "exec unshare -n sh -c 'echo inside; sleep 1000; true'");
        wait_for("the namespace", || host.log("own").contains("inside").then_some(()));
        let sample = sample(&mut host);
        let groups = sample["groups"].as_array().unwrap();
        let named = |name: &str| groups.iter().find(|group| group["name"] == name).unwrap();
        assert!(named("shared")["network"].is_null(), "{sample}");
        assert_eq!(named("own")["network"]["loopback_bytes"], 0, "{sample}");
        assert_eq!(named("own")["network"]["sockets"]["in_use"], 0, "{sample}");
    }
}

struct Cgroup(PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A cgroup with a quota of a tenth of a CPU, of version 1.
fn tenth_of_a_cpu() -> Option<Cgroup> {
    let path = PathBuf::from(format!("/sys/fs/cgroup/cpu/test-of-weir-{}", std::process::id()));
    std::fs::create_dir(&path).ok()?;
    let cgroup = Cgroup(path);
    std::fs::write(cgroup.0.join("cpu.cfs_period_us"), "100000").ok()?;
    std::fs::write(cgroup.0.join("cpu.cfs_quota_us"), "10000").ok()?;
    Some(cgroup)
}

#[test]
fn the_time_that_a_quota_takes_is_counted() {
    let Some(cgroup) = tenth_of_a_cpu() else {
        eprintln!("left out: no cgroup of version 1 with the cpu controller that may be written");
        return;
    };
    let mut host = Host::new("process-group");
    host.start("free", "exec sleep 1000");
    let procs = cgroup.0.join("cgroup.procs");
    host.start("held", &format!("echo $$ > {}; while :; do :; done", procs.display()));
    let held = wait_for("throttling", || {
        let sample = sample(&mut host);
        let group = sample["groups"].as_array().unwrap().iter().find(|group| group["name"] == "held")?.clone();
        (group["throttled_s"].as_f64()? > 0.3).then_some(group)
    });
    assert!(held["throttled_periods"].as_u64().unwrap() >= 3, "{held}");
    host.stop("held", 1.0);
    let free = sample(&mut host)["groups"][0].clone();
    assert_ne!(free["throttled_s"].as_f64(), held["throttled_s"].as_f64());
}

#[test]
fn unprivileged_observer_reports_its_limits() {
    if !is_root() {
        eprintln!("left out: becoming another user takes root");
        return;
    }
    let mut host = Host::new("process-group");
    let pid = host.start("app", "exec sleep 1000");
    let program = folder().join("weir-engine");
    std::fs::copy(env!("CARGO_BIN_EXE_weir-engine"), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(&program).args(["observe", "--pid", &pid.to_string()]);
    let output = command.stdin(Stdio::piped()).output().unwrap();
    std::fs::remove_dir_all(program.parent().unwrap()).unwrap();
    let line = output.stdout.split(|&byte| byte == b'\n').next().unwrap();
    let sample: Value = serde_json::from_slice(line).unwrap();
    let limits = sample["limits"].as_array().unwrap();
    assert!(limits.iter().any(|limit| limit.as_str().unwrap().contains("another user")), "{sample}");
    let group = &sample["groups"][0];
    for key in ["disk_read_bytes", "wchar_bytes", "pss_bytes"] {
        assert!(group[key].is_null(), "{key}: {group}");
    }
    assert_eq!(group["threads"], 1);
    assert!(group["rss_bytes"].as_u64().unwrap() > 0);
    assert_eq!(group["threads_by_state"][0]["threads"], 1);
    let privileged = first_sample(Command::new("env"), pid);
    assert_eq!(privileged["limits"], json!([]));
}
