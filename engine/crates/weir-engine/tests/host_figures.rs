//! Resources and samples of started processes.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod host_support;

use std::time::Instant;

use host_support::{Host, is_root, marker, modes, wait_for, wait_until_count};
use serde_json::{Value, json};

/// Uses 0.3 s of CPU, however fast the machine is.
const BURN: &str = "perl -e 'while ((times)[0] + (times)[1] < 0.3) {}'";
const BURN_S: f64 = 0.3;

fn cpu(figures: &Value) -> f64 {
    figures["cpu_user_s"].as_f64().unwrap() + figures["cpu_system_s"].as_f64().unwrap()
}

#[test]
fn cpu_of_ended_children_and_daemons_counts() {
    for mode in modes() {
        let mut host = Host::new(mode);
        // A child that ends, a grandchild that ends, and a daemon whose parent has ended: three times the work of one.
        let script = format!(
            "{BURN}; (({BURN}); true); (setsid sh -c \"{BURN}; echo daemon-done\" &); echo children-done; exec sleep 1000"
        );
        host.start("app", &script);
        wait_for("the burning", || {
            let log = host.log("app");
            (log.contains("daemon-done") && log.contains("children-done")).then_some(())
        });
        let sampled = wait_for("a sample without the daemon", || {
            let sample = host.ask(json!({"command": "sample"}));
            let group = sample["groups"][0].clone();
            (group["processes"] == 1).then_some(group)
        });
        let stopped = host.stop("app", 5.0);
        for (what, total) in [("sample", cpu(&sampled)), ("stopped", cpu(&stopped))] {
            assert!(
                (2.8 * BURN_S..3.5 * BURN_S).contains(&total),
                "{mode}, {what}: {total} s, expected about 3 times {BURN_S} s"
            );
        }
        // A sample counts whole ticks of 10 ms, and what the init itself used is in neither.
        assert!((cpu(&sampled) - cpu(&stopped)).abs() < 0.1);
    }
}

#[test]
fn every_sample_has_cpu_of_many_threads() {
    for mode in modes() {
        let mut host = Host::new(mode);
        // Threads that wait; the first one works until it is stopped, as nice as the observer, which it must not
        // starve.
        let script = "exec python3 -c '
import os, threading
os.nice(19)
for _ in range(600): threading.Thread(target=threading.Event().wait, daemon=True).start()
print(\"waiting\", flush=True)
while True: pass'";
        let server = host.start("app", script);
        wait_for("the threads", || host.log("app").contains("waiting").then_some(()));
        let command = json!({"command": "observe", "period_s": 0.1, "memory_period_s": 9.0});
        assert_eq!(host.ask(command)["record"], "observing");
        let mut samples = Vec::new();
        while samples.len() < 15 {
            samples.push(host.record("sample", |record| record["record"] == "sample"));
        }
        let figures = |sample: &Value| sample["groups"][0].clone();
        let last = figures(&samples[14]);
        assert_eq!(last["threads"], 601);
        assert!(last["rss_bytes"].as_u64().unwrap() > 1_000_000);
        if !has_account(server) {
            eprintln!("left out: CPU time in every sample, which takes cgroup v2");
            continue;
        }
        let before = Instant::now();
        let all = figures(&host.ask(json!({"command": "sample"})));
        assert!(all["minor_faults"].as_u64().unwrap() > 0);
        assert!(last["minor_faults"].is_null());
        let seen: Vec<(u64, f64)> =
            samples.iter().map(|sample| (sample["t_ns"].as_u64().unwrap(), cpu(&figures(sample)))).collect();
        let grown = seen.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
        // Its threads' own figures are read once a second: twice in these. On a busy machine it may not run between two
        // samples.
        assert!(grown >= 7, "{mode}: it has worked all the time: {seen:?}");
        let stopped = host.stop("app", 5.0);
        // Since the sample, one thread at most has worked.
        let worked = -0.3..before.elapsed().as_secs_f64() + 0.3;
        assert!(worked.contains(&(cpu(&stopped) - cpu(&all))), "{worked:?} {stopped} {all}");
    }
}

/// Whether the host counts in control groups: whether a server that runs is in another of version 2 than this test.
fn has_account(server: i32) -> bool {
    let group = |process: &str| {
        let groups = std::fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
        let line = groups.lines().find(|line| line.starts_with("0::"));
        line.map(str::to_owned)
    };
    group(&server.to_string()) != group("self")
}

#[test]
fn cpu_of_killed_processes_counts() {
    for mode in modes() {
        let mut host = Host::new(mode);
        let burn_and_stay = BURN.replace('}', "} print STDERR q(burnt); sleep 1000;");
        let script = format!("(trap '' TERM; exec setsid {burn_and_stay}) & exec sleep 1000");
        host.start("app", &script);
        wait_for("the burning", || host.log("app").contains("burnt").then_some(()));
        let total = cpu(&host.stop("app", 5.0));
        assert!((0.9 * BURN_S..1.5 * BURN_S).contains(&total), "{mode}: {total} s, expected about {BURN_S} s");
    }
}

#[test]
fn samples_are_periodic_and_never_fall() {
    for mode in modes() {
        let mut host = Host::new(mode);
        let script = "while :; do (i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done) & /bin/true; wait; done";
        host.start("app", script);
        let command = json!({"command": "observe", "period_s": 0.05, "memory_period_s": 0.5});
        assert_eq!(host.ask(command)["record"], "observing");
        let mut samples = Vec::new();
        while samples.len() < 40 {
            samples.push(host.record("sample", |record| record["record"] == "sample"));
        }
        assert_eq!(host.ask(json!({"command": "unobserve"}))["record"], "unobserved");
        for pair in samples.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            assert!(after["t_ns"].as_u64() > before["t_ns"].as_u64());
            for key in ["cpu_user_s", "cpu_system_s", "voluntary_switches", "involuntary_switches"] {
                let value = |sample: &Value| sample["groups"][0][key].as_f64().unwrap();
                assert!(value(after) >= value(before), "{key}: {before} then {after}");
            }
        }
        let span = samples[39]["t_ns"].as_u64().unwrap() - samples[0]["t_ns"].as_u64().unwrap();
        // On a busy machine points of the grid pass without a sample; no point has two.
        let periods = span as f64 / 50e6;
        assert!(periods > 38.0, "40 samples in {periods} periods");
        let with_memory = samples.iter().filter(|sample| !sample["groups"][0]["pss_bytes"].is_null());
        let with_memory = with_memory.count();
        // Memory is due every 0.5 s. The span is longer than 2 s on a busy machine.
        let most = (span as f64 / 500e6) as usize + 2;
        assert!((1..=most).contains(&with_memory), "{with_memory} of 40 samples have memory, expected at most {most}");
        let last = &samples[39];
        assert!(cpu(&last["groups"][0]) > 0.0);
        assert!(last["groups"][0]["rss_bytes"].as_u64().unwrap() > 0);
        let cpus = last["cpus"].as_array().unwrap();
        assert_eq!(cpus.len(), std::thread::available_parallelism().unwrap().get());
        assert!(cpus[0]["idle_s"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn sample_command_reads_every_value() {
    for mode in modes() {
        let mut host = Host::new(mode);
        let mark = marker();
        host.start("one", &format!("sleep {mark} & exec sleep {mark}"));
        host.start("two", "exec sleep 1000");
        wait_until_count(&mark, 2);
        let sample = host.ask(json!({"command": "sample"}));
        let groups = sample["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0]["name"], "one");
        assert_eq!(groups[0]["tier"], "app");
        assert_eq!(groups[0]["processes"], 2);
        assert_eq!(groups[0]["threads"], 2);
        assert_eq!(groups[1]["processes"], 1);
        for group in groups {
            let bytes = |key: &str| group[key].as_u64().unwrap();
            // The kernel counts resident pages by CPU and may be some behind in `stat`; smaps_rollup counts them one by
            // one.
            let behind = 1024 * 1024;
            let resident = bytes("rss_bytes") + behind;
            assert!((1..=resident).contains(&bytes("pss_bytes")), "{group}");
            assert!(bytes("private_bytes") <= bytes("pss_bytes"), "{group}");
            assert_eq!(bytes("swap_bytes"), 0);
        }
        host.stop("one", 5.0);
        let sample = host.ask(json!({"command": "sample"}));
        assert_eq!(sample["groups"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn cpus_and_niceness_are_inherited() {
    for mode in modes() {
        let mut host = Host::new(mode);
        let mut bound = host.shell("bound", "exec sleep 1000");
        bound["cpus"] = json!([0]);
        bound["nice"] = json!(7);
        let pid = host.ask(bound)["pid"].as_i64().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let nice = stat.rsplit(')').next().unwrap().split_whitespace().nth(16);
        assert_eq!(nice, Some("7"));
    }
}

#[test]
fn unbound_server_may_use_every_cpu() {
    let mut command = std::process::Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_weir-engine"), "host"]);
    let mut host = Host::spawn(command);
    let pid = host.start("app", "exec sleep 1000");
    let allowed = |pid: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list"));
        line.unwrap().to_owned()
    };
    assert_eq!(allowed(&pid.to_string()), allowed("self"));
    assert_eq!(allowed(&host.child.id().to_string()), "Cpus_allowed_list:\t0");
}

#[test]
fn no_descriptor_of_the_host_reaches_a_server() {
    for mode in modes() {
        // The host itself inherits descriptor 9 from a careless parent.
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "exec 9</dev/null; exec \"$0\" host --isolation \"$1\""]);
        command.args([env!("CARGO_BIN_EXE_weir-engine"), mode]);
        let mut host = Host::spawn(command);
        host.start("first", "exec sleep 1000");
        // The shell stays and speaks once it runs, since a program that is still being loaded holds its libraries open.
        let pid = host.start("app", "echo ready; sleep 1000; true");
        wait_for("the server to run", || host.log("app").contains("ready").then_some(()));
        let mut open: Vec<(String, String)> = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .flatten()
            .map(|entry| {
                let target = std::fs::read_link(entry.path()).unwrap();
                (entry.file_name().into_string().unwrap(), target.display().to_string())
            })
            .collect();
        open.sort();
        let log = host.folder().join("app.log").display().to_string();
        let expected = [("0", "/dev/null"), ("1", &log), ("2", &log)];
        let open: Vec<_> = open.iter().map(|(fd, to)| (fd.as_str(), to.as_str())).collect();
        assert_eq!(open, expected);
    }
}

#[test]
fn server_has_default_signals() {
    for mode in modes() {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "trap '' INT HUP CHLD PIPE; exec \"$0\" host --isolation \"$1\""]);
        command.args([env!("CARGO_BIN_EXE_weir-engine"), mode]);
        let mut host = Host::spawn(command);
        let pid = host.start("app", "exec sleep 1000");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        for key in ["SigBlk", "SigIgn"] {
            let line = status.lines().find(|line| line.starts_with(key));
            let mask = line.unwrap().split_whitespace().nth(1).unwrap();
            let mask = u64::from_str_radix(mask, 16).unwrap();
            // 32 and 33 are the C library's own; its posix_spawn leaves them ignored and no program can change them
            // through it.
            let own_of_libc = 0b11 << 31;
            assert_eq!(mask & !own_of_libc, 0, "{key}: {mask:x}");
        }
    }
}

#[test]
fn namespace_has_its_own_proc() {
    if !is_root() {
        eprintln!("left out: namespaces need root");
        return;
    }
    let before = std::fs::read_to_string("/proc/mounts").unwrap();
    let mut host = Host::new("namespace");
    host.start(
        "app",
        "[ \"$(readlink /proc/self)\" -lt 20 ] && [ -r /proc/$$/stat ] && touch /dev/shm/mine && echo own-proc; exec sleep 1000",
    );
    wait_for("the check", || host.log("app").contains("own-proc").then_some(()));
    assert!(!std::path::Path::new("/dev/shm/mine").exists());
    assert_eq!(std::fs::read_to_string("/proc/mounts").unwrap(), before);
}
