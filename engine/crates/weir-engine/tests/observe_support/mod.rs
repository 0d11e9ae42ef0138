//! The kernel's own account of CPU use: events of its scheduler, through tracefs (needs root).
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::PathBuf;

const INSTANCE: &str = "/sys/kernel/tracing/instances/weir-observe-delay";
const EVENTS: [&str; 2] = ["sched/sched_switch", "sched/sched_wakeup"];
/// Ample for two minutes of a CPU that changes hands some thousand times a second.
const BUFFER_KIB: u32 = 128 * 1024;

/// A recording of CPU 0, in an instance of its own.
pub struct SchedulerTrace {
    folder: PathBuf,
}

impl SchedulerTrace {
    /// None where the kernel offers none to this user.
    pub fn start() -> Option<Self> {
        fs::create_dir(INSTANCE).ok()?;
        let trace = Self { folder: PathBuf::from(INSTANCE) };
        trace.set("tracing_cpumask", "1")?;
        trace.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        for event in EVENTS {
            trace.set(&format!("events/{event}/enable"), "1")?;
        }
        trace.set("tracing_on", "1")?;
        Some(trace)
    }

    /// How long each time, in microseconds and ascending, thread `waiter` could run while `holder` had the CPU.
    pub fn waits_us(&self, waiter: &str, holder: &str) -> Vec<f64> {
        self.set("tracing_on", "0").unwrap();
        let stats = fs::read_to_string(self.folder.join("per_cpu/cpu0/stats")).unwrap();
        assert!(stats.contains("\noverrun: 0\n"), "events were lost: {stats}");
        let text = fs::read_to_string(self.folder.join("per_cpu/cpu0/trace")).unwrap();
        waits_us(&text, waiter, holder)
    }

    fn set(&self, file: &str, value: &str) -> Option<()> {
        fs::write(self.folder.join(file), value).ok()
    }
}

impl Drop for SchedulerTrace {
    fn drop(&mut self) {
        self.set("tracing_on", "0");
        let _ = fs::remove_dir(&self.folder);
    }
}

fn waits_us(text: &str, waiter: &str, holder: &str) -> Vec<f64> {
    let mut waits = Vec::new();
    // Since when the waiter could run, since when the one who runs does, and how long the holder has kept the waiter
    // waiting.
    let (mut ready_s, mut running_since_s, mut kept_s) = (None::<f64>, 0.0_f64, 0.0);
    let mut running = "";
    for line in text.lines() {
        let Some((head, fields)) = line.split_once(": sched_") else {
            continue;
        };
        let at_s: f64 = head.rsplit(' ').next().unwrap().parse().unwrap();
        if fields.starts_with("switch: ") {
            let (left, state, come) =
                (value(fields, "prev_comm="), value(fields, "prev_state="), value(fields, "next_comm="));
            if let (Some(ready_s), true) = (ready_s, left == holder) {
                kept_s += at_s - running_since_s.max(ready_s);
            }
            if come == waiter {
                if kept_s > 0.0 {
                    waits.push(kept_s * 1e6);
                }
                (ready_s, kept_s) = (None, 0.0);
            }
            if left == waiter && state.starts_with('R') {
                (ready_s, kept_s) = (Some(at_s), 0.0);
            }
            (running, running_since_s) = (come, at_s);
        } else if ready_s.is_none() && running != waiter && value(fields, "wakeup: comm=") == waiter {
            (ready_s, kept_s) = (Some(at_s), 0.0);
        }
    }
    waits.sort_by(f64::total_cmp);
    waits
}

fn value<'a>(fields: &'a str, key: &str) -> &'a str {
    let Some((_, rest)) = fields.split_once(key) else {
        return "";
    };
    rest.split(' ').next().unwrap()
}

#[test]
fn wait_for_the_cpu_counts_from_the_wakeup() {
    let text = "\
        # tracer: nop\n\
        a-1 [000] d..2. 10.000000: sched_switch: prev_comm=load-0 prev_pid=1 prev_prio=1 prev_state=S ==> next_comm=observe next_pid=2\n\
        b-2 [000] d..2. 10.000010: sched_wakeup: comm=load-0 pid=1 prio=120 target_cpu=000\n\
        b-2 [000] d..2. 10.000030: sched_switch: prev_comm=observe prev_pid=2 prev_prio=1 prev_state=R ==> next_comm=other next_pid=3\n\
        c-3 [000] d..2. 10.000130: sched_switch: prev_comm=other prev_pid=3 prev_prio=1 prev_state=S ==> next_comm=load-0 next_pid=1\n\
        a-1 [000] d..2. 10.000200: sched_switch: prev_comm=load-0 prev_pid=1 prev_prio=1 prev_state=R+ ==> next_comm=observe next_pid=2\n\
        b-2 [000] d..2. 10.000250: sched_switch: prev_comm=observe prev_pid=2 prev_prio=1 prev_state=S ==> next_comm=load-0 next_pid=1\n\
        a-1 [000] d..2. 10.000300: sched_switch: prev_comm=load-0 prev_pid=1 prev_prio=1 prev_state=S ==> next_comm=other next_pid=3\n\
        c-3 [000] d..2. 10.000400: sched_switch: prev_comm=other prev_pid=3 prev_prio=1 prev_state=S ==> next_comm=load-0 next_pid=1\n";
    let found: Vec<i64> = waits_us(text, "load-0", "observe").iter().map(|wait| wait.round() as i64).collect();
    assert_eq!(found, [20, 50]);
}
