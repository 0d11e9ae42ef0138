//! How a started process is kept together with everything it starts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the host uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// PID, IPC and mount namespaces of its own.
    Namespace,
    /// A child subreaper and a session of its own.
    ProcessGroup,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Namespaces where the host has the right to make them.
    Auto,
    /// This, or an error.
    Only(Isolation),
}

impl fmt::Display for Isolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Namespace => "namespace",
            Self::ProcessGroup => "process-group",
        })
    }
}

/// What namespaces promise.
pub const NAMESPACE_DETAIL: &str =
    "PID, IPC and mount namespaces, with their own /proc and /dev/shm";

/// What the fallback cannot promise.
pub const PROCESS_GROUP_DETAIL: &str = "child subreaper and process group; processes are left if the host and an init are killed at the \
     same moment, or if they changed their user; shared memory is not cleared";
