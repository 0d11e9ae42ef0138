//! Errors that keep a load from running, in words for the user.

use std::io;

use thiserror::Error;
use weir_net::{Endpoint, Errno};
use weir_plan::PlanError;
use weir_scenario::ScenarioError;

use crate::recorder::ConnectFailure;

/// A load that cannot be run.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The plan cannot be used.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The host of the target has no address.
    #[error("plan, key target: the host {host:?} has no address ({problem})")]
    Resolve {
        /// The host.
        host: String,
        /// The resolver's error.
        problem: String,
    },
    /// The body's file cannot be read.
    #[error("plan, key request.body.file: {path:?} cannot be read: {problem}")]
    Body {
        /// Its path.
        path: String,
        /// The system's error.
        problem: io::Error,
    },
    /// The scenario cannot be used.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A feeder's file cannot be read.
    #[error("plan, key scenario.feeders.{name}.file: {path:?} cannot be read: {problem}")]
    Feeder {
        /// The feeder.
        name: String,
        /// Its path.
        path: String,
        /// The system's error.
        problem: io::Error,
    },
    /// A setting of TLS cannot be used.
    #[error("plan, key {key}: {found:?} cannot be used: {problem}")]
    Tls {
        /// The key of the plan.
        key: &'static str,
        /// Its value.
        found: String,
        /// The error in it.
        problem: String,
    },
    /// The file of the request log cannot be written.
    #[error("plan, key request_log: {path:?} cannot be written: {problem}")]
    RequestLog {
        /// Its path.
        path: String,
        /// The system's error.
        problem: io::Error,
    },
    /// A CPU of the plan cannot be used.
    #[error("plan, key cpus: found {cpu}, expected CPUs that this process may use ({problem})")]
    Cpu {
        /// The CPU.
        cpu: usize,
        /// The system's error.
        problem: Errno,
    },
    /// The plan has more connections than this process may have open files.
    #[error(
        "plan, key load: found {connections} connections, expected at most {limit}, since this process may have no more files open"
    )]
    Files {
        /// Connections of the plan.
        connections: usize,
        /// Limit of open files.
        limit: u64,
    },
    /// None of the connections could be opened.
    #[error("{}", describe_unreachable(.endpoint, *.problem, .text, *.timeout_s))]
    Unreachable {
        /// The server's address.
        endpoint: Box<Endpoint>,
        /// Whether through TLS.
        is_tls: bool,
        /// The system's error of the first attempt, `None` after a timeout.
        problem: Option<Errno>,
        /// The cause, if the number does not name it.
        text: Option<String>,
        /// The timeout.
        timeout_s: f64,
    },
    /// The plan needs io_uring, and the system has none.
    #[error("plan, key backend: found \"io_uring\", which this kernel or container does not allow ({0})")]
    Uring(io::Error),
    /// The plan needs kernel timestamps, and the system has none.
    #[error(
        "plan, key kernel_timestamps: found true, expected false, since this kernel does not stamp what it receives ({0})"
    )]
    KernelTimestamps(io::Error),
    /// A system call of a load thread failed.
    #[error("the load cannot be run here: {0}")]
    System(io::Error),
}

impl LoadError {
    /// Returns the process's exit code: 2 for errors in the plan, 3 for errors of the target.
    pub fn code(&self) -> u8 {
        match self {
            Self::Unreachable { .. } | Self::System(_) => 3,
            _ => 2,
        }
    }

    /// Returns the next thing to try.
    pub fn hint(&self) -> String {
        match self {
            Self::Plan(error) => error.hint(),
            Self::Resolve { host, .. } => format!("check the spelling of {host}, or set address to IP:PORT"),
            Self::Body { .. } => "set request.body.file to a file that can be read from the engine's folder".to_owned(),
            Self::Scenario(error) => error.hint(),
            Self::Feeder { name, .. } => {
                format!("set scenario.feeders.{name}.file to a file that can be read from the engine's folder")
            }
            Self::RequestLog { .. } => {
                "set request_log to a path in a folder that can be written to from the engine's folder".to_owned()
            }
            Self::Tls { key: "tls.server_name", .. } => {
                "set tls.server_name to a host name or an IP address".to_owned()
            }
            Self::Tls { key, .. } => format!("set {key} to a readable file in PEM: -----BEGIN ...-----"),
            Self::Cpu { .. } => "list the CPUs of this machine with: nproc --all; cpus = [] binds to none".to_owned(),
            Self::Files { .. } => {
                "raise the limit (ulimit -Hn, or LimitNOFILE of the service), or ask for fewer connections".to_owned()
            }
            Self::Unreachable { text: Some(_), endpoint, .. } => format!(
                "see what the server says: openssl s_client -connect {endpoint}; tls.ca (--cacert) names an authority to trust, tls.server_name (--sni) the name, tls.insecure (--insecure) trusts any"
            ),
            Self::Unreachable { problem: Some(Errno::ADDRNOTAVAIL), .. } => {
                "set local_addresses to addresses of this machine, as ip address shows them".to_owned()
            }
            Self::Unreachable { endpoint, is_tls, .. } => match **endpoint {
                Endpoint::Unix(_) => format!(
                    "start the server, and see that it answers: curl -v --unix-socket {endpoint} http://localhost/"
                ),
                Endpoint::Tcp { to, .. } => format!(
                    "start the server, and see that it answers: curl -v {}://{to}/",
                    if *is_tls { "https" } else { "http" }
                ),
            },
            Self::Uring(_) => {
                "set backend to \"auto\" or \"epoll\"; see kernel.io_uring_disabled and the container's seccomp profile"
                    .to_owned()
            }
            Self::KernelTimestamps(_) => "set kernel_timestamps to false, or leave out --kernel-timestamps".to_owned(),
            Self::System(_) => {
                "see that the limits of this process and container allow sockets, threads and epoll".to_owned()
            }
        }
    }
}

fn describe_unreachable(endpoint: &Endpoint, problem: Option<Errno>, text: &Option<String>, timeout_s: f64) -> String {
    match (text, problem) {
        (Some(text), _) => format!("no connection to {endpoint}: {text}"),
        (None, Some(Errno::CONNREFUSED)) => format!("connection refused by {endpoint}"),
        (None, Some(errno)) => format!("no connection to {endpoint}: {}", describe(errno)),
        (None, None) => format!("no connection to {endpoint} within {timeout_s} s"),
    }
}

/// Returns an error of the system in a few lower-case words.
pub(crate) fn describe(errno: Errno) -> String {
    let error = io::Error::from(errno);
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::TimedOut
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => error.kind().to_string(),
        _ => error.to_string(),
    }
}

/// Returns in a few words why a connection could not be made.
pub(crate) fn describe_connect(failure: &ConnectFailure) -> String {
    match (&failure.text, failure.errno) {
        (Some(text), _) => text.clone(),
        (None, errno @ Errno::ADDRNOTAVAIL) => format!(
            "{}: this machine's ports towards the target are used up, which more local_addresses (--bind) helps",
            describe(errno)
        ),
        (None, errno) => describe(errno),
    }
}
