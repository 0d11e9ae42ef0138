//! The records on standard output, as `docs/reference/engine.md` defines them.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::Serialize;
use weir_observe::Sample;

use crate::isolation::Isolation;

/// One record.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The first record: who this is and what it can promise.
    Hello {
        /// Of this protocol.
        schema: u32,
        /// Of the engine.
        version: &'static str,
        /// The host's.
        pid: u32,
        /// How processes are kept together.
        isolation: Isolation,
        /// What that promises and what it does not.
        isolation_detail: String,
    },
    /// The server's program runs.
    Started {
        /// The command answered.
        id: u64,
        /// The server.
        name: String,
        /// Its own process, as this PID namespace sees it.
        pid: i32,
        /// When exec had succeeded.
        t_ns: u64,
        /// Its control group; null without limits.
        cgroup: Option<Cgroup>,
        /// Where it is reached; null where it has the host's network.
        address: Option<Ipv4Addr>,
    },
    /// A stop was carried out; every process of the group is gone.
    Stopped {
        /// The command answered.
        id: u64,
        /// Whether SIGTERM and the grace period were not enough.
        killed: bool,
        /// How it ended.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// A process ended without being asked to.
    Exited(Outcome),
    /// What can be asked for in `start` on this machine.
    Capabilities {
        /// The command answered.
        id: u64,
        /// `limits`.
        limits: Ability,
        /// `network`.
        network: Ability,
        /// `network.published_port` other than `network.port`.
        port_translation: Ability,
        /// `network.delay_ms` and `network.loss`.
        netem: Ability,
    },
    /// Sampling began.
    Observing {
        /// The command answered.
        id: u64,
    },
    /// Sampling ended.
    Unobserved {
        /// The command answered.
        id: u64,
    },
    /// A command failed, or the observation did.
    Error {
        /// The command answered; null where it had no readable number.
        id: Option<u64>,
        /// What was found and what was expected.
        message: String,
        /// The next thing to try.
        hint: String,
    },
    /// Figures of every group. It carries its own `record`.
    #[serde(untagged)]
    Sample(Sample),
}

/// How a group ended and what it used.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The server.
    pub name: String,
    /// When its main process had ended and the rest was gone.
    pub t_ns: u64,
    /// Of the main process; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended the main process.
    pub signal: Option<i32>,
    /// CPU of every process of the group.
    pub cpu_user_s: f64,
    /// CPU of every process of the group, in the kernel.
    pub cpu_system_s: f64,
    /// The largest resident size of any one process of the group.
    pub peak_rss_bytes: u64,
    /// Processes of the group that the kernel killed at its limit of memory; null without one.
    pub oom_kills: Option<u64>,
    /// Names of the processes that it left when it was told to end and did; they were killed.
    pub left_behind: Vec<String>,
    /// Files that it wrote outside its folder and that are still there; null where nobody looked.
    pub written: Option<Vec<PathBuf>>,
}

/// The control group of a started process.
#[derive(Clone, Debug, Serialize)]
pub struct Cgroup {
    /// Of control groups: 1 or 2.
    pub version: u8,
    /// Where its CPU is limited and throttling counted (`cpu.stat`).
    pub cpu: PathBuf,
    /// Where its memory is limited and counted; in version 2 the same.
    pub memory: PathBuf,
}

/// What this machine lets the host do.
#[derive(Clone, Debug, Serialize)]
pub struct Ability {
    /// Whether it does.
    pub possible: bool,
    /// By which means, or why not.
    pub detail: String,
}

impl From<Result<String, String>> for Ability {
    fn from(found: Result<String, String>) -> Self {
        let possible = found.is_ok();
        let detail = found.unwrap_or_else(|why_not| why_not);
        Self { possible, detail }
    }
}
