//! The observer thread: samples at fixed times, at the lowest priority, so that it does not delay a load generator on
//! the same CPU.
//!
//! It owns the observer. The host's event loop sends it commands over a channel and never waits for it.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use weir_observe::{Observer, Reading, Ticker};

use crate::isolation::Isolation;
use crate::record::Record;
use weir_sys::limits::LOWEST_PRIORITY;
use weir_sys::process::leads_session;

/// A started process for the observer.
pub struct ObservedGroup {
    pub name: String,
    pub tier: String,
    /// The parent of the server's processes.
    pub init: i32,
    pub isolation: Isolation,
    /// Folder of a control group that holds this server only.
    pub cpu_cgroup: Option<PathBuf>,
}

/// A command to the observer thread.
pub enum ObserverCommand {
    Add(ObservedGroup),
    Remove {
        name: String,
    },
    StartSampling {
        period: Duration,
        memory_period: Duration,
    },
    StopSampling {
        id: u64,
    },
    /// Take one full sample now.
    Sample {
        id: u64,
    },
}

/// The times of periodic samples.
struct Sampling {
    usual: Ticker,
    memory: Ticker,
}

/// Executes commands until the host drops its sender.
pub fn run(mut observer: Observer, commands: &Receiver<ObserverCommand>, records: &Sender<Record>) {
    lower_priority();
    let mut sampling: Option<Sampling> = None;
    loop {
        let command = match &sampling {
            None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(sampling) => commands.recv_timeout(sampling.usual.due().saturating_duration_since(Instant::now())),
        };
        // A failed send is ignored: the host itself ends when its output closes.
        match command {
            Ok(ObserverCommand::Add(group)) => add(&mut observer, &group),
            Ok(ObserverCommand::Remove { name }) => observer.remove(&name),
            Ok(ObserverCommand::StartSampling { period, memory_period }) => {
                let now = Instant::now();
                sampling = Some(Sampling { usual: Ticker::new(now, period), memory: Ticker::new(now, memory_period) });
            }
            Ok(ObserverCommand::StopSampling { id }) => {
                sampling = None;
                let _ = records.send(Record::Unobserved { id });
            }
            Ok(ObserverCommand::Sample { id }) => {
                let _ = records.send(sample(&mut observer, Reading::Full, Some(id)));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        if let Some(sampling) = &mut sampling {
            if sampling.usual.tick(now) {
                let reading = if sampling.memory.tick(now) { Reading::Memory } else { Reading::Usual };
                let _ = records.send(sample(&mut observer, reading, None));
            }
        }
    }
}

/// Lowers the priority of this thread. With the kernel's autogroups, niceness counts inside a session only. So a host
/// that leads a session lowers the session's priority too. Servers lead sessions of their own.
fn lower_priority() {
    weir_sys::limits::lower_priority(LOWEST_PRIORITY);
    if leads_session() {
        // The file is missing if the kernel has no autogroups.
        let _ = std::fs::write("/proc/self/autogroup", LOWEST_PRIORITY.to_string());
    }
}

fn add(observer: &mut Observer, group: &ObservedGroup) {
    let ObservedGroup { name, tier, init, .. } = group;
    let is_namespace = group.isolation == Isolation::Namespace && observer.add_namespace(name, tier, *init).is_ok();
    if !is_namespace {
        // Fails only if the init has ended. The host is then about to remove the group.
        let _ = observer.add_tree(name, tier, *init, false);
    }
    if let Some(folder) = &group.cpu_cgroup {
        // If this fails, the observer adds up the CPU time of the processes.
        let _ = observer.set_cpu_cgroup(name, folder);
    }
}

fn sample(observer: &mut Observer, reading: Reading, id: Option<u64>) -> Record {
    match observer.sweep(reading) {
        Ok(mut sample) => {
            sample.id = id;
            Record::Sample(sample)
        }
        Err(error) => Record::Error { id, message: error.to_string(), hint: error.hint().to_owned() },
    }
}
