//! Errors that keep a load from running, in words for the user.

use std::fmt;
use std::io;

use weir_net::{Endpoint, Errno};
use weir_plan::PlanError;
use weir_scenario::ScenarioError;

use crate::recorder::ConnectFailure;

/// A load that cannot be run.
#[derive(Debug)]
pub enum LoadError {
    /// The plan cannot be used.
    Plan(PlanError),
    /// The host of the target has no address.
    Resolve {
        /// The host.
        host: String,
        /// The resolver's error.
        problem: String,
    },
    /// The body's file cannot be read.
    Body {
        /// Its path.
        path: String,
        /// The system's error.
        problem: io::Error,
    },
    /// The scenario cannot be used.
    Scenario(ScenarioError),
    /// A feeder's file cannot be read.
    Feeder {
        /// The feeder.
        name: String,
        /// Its path.
        path: String,
        /// The system's error.
        problem: io::Error,
    },
    /// A setting of TLS cannot be used.
    Tls {
        /// The key of the plan.
        key: &'static str,
        /// Its value.
        found: String,
        /// The error in it.
        problem: String,
    },
    /// The file of the request log cannot be written.
    RequestLog {
        /// Its path.
        path: String,
        /// The system's error.
        problem: io::Error,
    },
    /// A CPU of the plan cannot be used.
    Cpu {
        /// The CPU.
        cpu: usize,
        /// The system's error.
        problem: Errno,
    },
    /// The plan has more connections than this process may have open files.
    Files {
        /// Connections of the plan.
        connections: usize,
        /// Limit of open files.
        limit: u64,
    },
    /// None of the connections could be opened.
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
    Uring(io::Error),
    /// The plan needs kernel timestamps, and the system has none.
    KernelTimestamps(io::Error),
    /// A system call of a load thread failed.
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
            Self::Feeder { name, .. } => format!("set scenario.feeders.{name}.file to a file that can be read from the engine's folder"),
            Self::RequestLog { .. } => "set request_log to a path in a folder that can be written to from the engine's folder".to_owned(),
            Self::Tls { key: "tls.server_name", .. } => "set tls.server_name to a host name or an IP address".to_owned(),
            Self::Tls { key, .. } => format!("set {key} to a readable file in PEM: -----BEGIN ...-----"),
            Self::Cpu { .. } => "list the CPUs of this machine with: nproc --all; cpus = [] binds to none".to_owned(),
            Self::Files { .. } => "raise the limit (ulimit -Hn, or LimitNOFILE of the service), or ask for fewer connections".to_owned(),
            Self::Unreachable { text: Some(_), endpoint, .. } => format!(
                "see what the server says: openssl s_client -connect {endpoint}; tls.ca (--cacert) names an authority to trust, tls.server_name (--sni) the name, tls.insecure (--insecure) trusts any"
            ),
            Self::Unreachable { problem: Some(Errno::ADDRNOTAVAIL), .. } => "set local_addresses to addresses of this machine, as ip address shows them".to_owned(),
            Self::Unreachable { endpoint, is_tls, .. } => match **endpoint {
                Endpoint::Unix(_) => format!(
                    "start the server, and see that it answers: curl -v --unix-socket {endpoint} http://localhost/"
                ),
                Endpoint::Tcp { to, .. } => format!(
                    "start the server, and see that it answers: curl -v {}://{to}/",
                    if *is_tls { "https" } else { "http" }
                ),
            },
            Self::Uring(_) => "set backend to \"auto\" or \"epoll\"; see kernel.io_uring_disabled and the container's seccomp profile".to_owned(),
            Self::KernelTimestamps(_) => "set kernel_timestamps to false, or leave out --kernel-timestamps".to_owned(),
            Self::System(_) => "see that the limits of this process and container allow sockets, threads and epoll".to_owned(),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(formatter),
            Self::Resolve { host, problem } => {
                write!(
                    formatter,
                    "plan, key target: the host {host:?} has no address ({problem})"
                )
            }
            Self::Body { path, problem } => {
                write!(
                    formatter,
                    "plan, key request.body.file: {path:?} cannot be read: {problem}"
                )
            }
            Self::Scenario(error) => error.fmt(formatter),
            Self::Feeder {
                name,
                path,
                problem,
            } => {
                write!(
                    formatter,
                    "plan, key scenario.feeders.{name}.file: {path:?} cannot be read: {problem}"
                )
            }
            Self::RequestLog { path, problem } => {
                write!(
                    formatter,
                    "plan, key request_log: {path:?} cannot be written: {problem}"
                )
            }
            Self::Cpu { cpu, problem } => {
                write!(
                    formatter,
                    "plan, key cpus: found {cpu}, expected CPUs that this process may use ({problem})"
                )
            }
            Self::Files { connections, limit } => write!(
                formatter,
                "plan, key load: found {connections} connections, expected at most {limit}, since this process may have no more files open"
            ),
            Self::Tls {
                key,
                found,
                problem,
            } => write!(
                formatter,
                "plan, key {key}: {found:?} cannot be used: {problem}"
            ),
            Self::Unreachable {
                endpoint,
                text: Some(text),
                ..
            } => {
                write!(formatter, "no connection to {endpoint}: {text}")
            }
            Self::Unreachable {
                endpoint,
                problem: Some(Errno::CONNREFUSED),
                ..
            } => {
                write!(formatter, "connection refused by {endpoint}")
            }
            Self::Unreachable {
                endpoint,
                problem: Some(errno),
                ..
            } => {
                write!(
                    formatter,
                    "no connection to {endpoint}: {}",
                    describe(*errno)
                )
            }
            Self::Unreachable {
                endpoint,
                problem: None,
                timeout_s,
                ..
            } => {
                write!(
                    formatter,
                    "no connection to {endpoint} within {timeout_s} s"
                )
            }
            Self::Uring(error) => write!(
                formatter,
                "plan, key backend: found \"io_uring\", which this kernel or container does not allow ({error})"
            ),
            Self::KernelTimestamps(error) => write!(
                formatter,
                "plan, key kernel_timestamps: found true, expected false, since this kernel does not stamp what it receives ({error})"
            ),
            Self::System(error) => write!(formatter, "the load cannot be run here: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<PlanError> for LoadError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<ScenarioError> for LoadError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(error)
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
