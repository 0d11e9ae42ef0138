//! The isolation of a server and its descendants.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The means of isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// PID, IPC and mount namespaces per server.
    Namespace,
    /// A child subreaper and a session per server.
    ProcessGroup,
}

/// The requested isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Namespaces if the host may make them.
    Auto,
    /// This isolation, or an error.
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

/// The guarantees of namespaces.
pub const NAMESPACE_DETAIL: &str = "PID, IPC and mount namespaces, with their own /proc and /dev/shm";

/// The limits of process groups.
pub const PROCESS_GROUP_DETAIL: &str = "child subreaper and process group; processes are left if the host and an init are killed at the \
     same moment, or if they changed their user; shared memory is not cleared";
