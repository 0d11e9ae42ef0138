//! The records on standard output, as `docs/reference/engine.md` defines them.

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
}
