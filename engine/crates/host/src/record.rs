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
    /// The first record.
    Hello {
        /// Version of this protocol.
        schema: u32,
        /// Version of the engine.
        version: &'static str,
        /// The host's PID.
        pid: u32,
        /// How the host isolates processes.
        isolation: Isolation,
        /// Guarantees and limits of that isolation.
        isolation_detail: String,
    },
    /// The server's program runs.
    Started {
        /// Number of the command.
        id: u64,
        /// The server's name.
        name: String,
        /// PID of the server, in the host's PID namespace.
        pid: i32,
        /// Time when exec had succeeded.
        t_ns: u64,
        /// The server's control group; null without limits.
        cgroup: Option<Cgroup>,
        /// The server's address; null if it uses the host's network.
        address: Option<Ipv4Addr>,
    },
    /// A stop is complete: every process of the group is gone.
    Stopped {
        /// Number of the command.
        id: u64,
        /// Whether the server ended by SIGKILL after the grace period.
        killed: bool,
        /// The server's exit.
        #[serde(flatten)]
        exit: ServerExit,
    },
    /// A server ended without a `stop` command.
    Exited(ServerExit),
    /// Options of `start` that this machine supports.
    Capabilities {
        /// Number of the command.
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
        /// Number of the command.
        id: u64,
    },
    /// Sampling ended.
    Unobserved {
        /// Number of the command.
        id: u64,
    },
    /// A command failed, or the observation did.
    Error {
        /// Number of the command; null if it has no readable number.
        id: Option<u64>,
        /// The value found and the value expected.
        message: String,
        /// The next thing to try.
        hint: String,
    },
    /// Figures of every group. It carries its own `record`.
    #[serde(untagged)]
    Sample(Sample),
}

/// The exit of a server and its resource usage.
#[derive(Clone, Debug, Serialize)]
pub struct ServerExit {
    /// The server's name.
    pub name: String,
    /// Time when every process of the group was gone.
    pub t_ns: u64,
    /// Exit code of the main process; null if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended the main process.
    pub signal: Option<i32>,
    /// CPU time of the group in user mode.
    pub cpu_user_s: f64,
    /// CPU time of the group in the kernel.
    pub cpu_system_s: f64,
    /// Peak resident memory of the largest process of the group.
    pub peak_rss_bytes: u64,
    /// Number of processes that the kernel killed at the memory limit; null without that limit.
    pub oom_kills: Option<u64>,
    /// Names of the processes that still ran after the server ended by SIGTERM. The init killed them.
    pub left_behind: Vec<String>,
    /// Existing files that the server wrote outside its folder; null without `watch_writes`.
    pub written: Option<Vec<PathBuf>>,
}

/// The control group of a started process.
#[derive(Clone, Debug, Serialize)]
pub struct Cgroup {
    /// Version of the control groups: 1 or 2.
    pub version: u8,
    /// Folder with the CPU limit and the throttling counters (`cpu.stat`).
    pub cpu: PathBuf,
    /// Folder with the memory limit and counters; in version 2 the same folder.
    pub memory: PathBuf,
}

/// Whether this machine supports an option.
#[derive(Clone, Debug, Serialize)]
pub struct Ability {
    /// Whether the option is possible.
    pub possible: bool,
    /// The means, or the reason against it.
    pub detail: String,
}

impl From<Result<String, String>> for Ability {
    fn from(found: Result<String, String>) -> Self {
        let possible = found.is_ok();
        let detail = found.unwrap_or_else(|reason| reason);
        Self { possible, detail }
    }
}
