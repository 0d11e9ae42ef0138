//! Starts, observes, reaps and stops the processes of one machine.
//!
//! ```text
//! weir-engine host ─┬─ weir-engine init ── server ── its children …      one init a started process
//!                   ├─ weir-engine init ── server …
//!                   └─ weir-engine keeper                         one, where servers have limits
//! ```
//!
//! The *host* reads commands and writes records; it is one thread that waits for events, beside one thread that observes and one that
//! writes. An *init* is the parent of one server: the first process of new PID, IPC and mount namespaces where the host has the right to make
//! them, else a child subreaper. It is told what to start over a socket, tells when it ended, and takes everything below with it:
//!
//! | what ends | why nothing is left |
//! |---|---|
//! | the server | its init kills and reaps what is left, so that its CPU is counted, and ends |
//! | an init, killed | the kernel kills its PID namespace; without one, its orphans come to the host, which kills them |
//! | the host, killed | the kernel kills every init (parent-death signal), and with it its namespace; without namespaces, the init sees its socket close and kills what is below; its [keeper](keeper) removes their control groups |
//! | the last process of a network of its own | the kernel takes the namespace, the veth pair and the translation of ports |
//! | the host and its keeper, killed | the next host removes the empty control groups, whose locks nobody holds |
//!
//! What the host is not: a supervisor. Nothing is restarted, and no other machine is known.
//!
//! The crate never prints; what it has to say goes through the `emit` it is given. An init's `run` ends by returning.

mod cgroup;
mod command;
mod group;
mod host;
mod init;
mod isolation;
mod keeper;
mod launch;
mod link;
mod network;
mod probe;
mod record;
mod watch;
mod writer;
mod writes;

use std::fmt;

pub use host::{Host, Options};
pub use init::run as run_init;
pub use isolation::{Choice, Isolation};
pub use keeper::run as run_keeper;
pub use record::Record;
pub use writer::Writer;

/// What can go wrong with the host itself; what goes wrong with a command is an error record.
#[derive(Debug)]
pub enum Error {
    /// A system call that the host cannot do without failed.
    System(&'static str, std::io::Error),
    /// Namespaces were asked for and cannot be had.
    NoNamespaces(String),
    /// `init` was not started by a host.
    NotStartedByHost,
    /// /proc cannot be read.
    Observe(weir_observe::Error),
}

impl Error {
    /// The next thing to try.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::System(..) => "`dmesg` and `ulimit -a` show what the kernel refuses",
            Self::NoNamespaces(_) => {
                "run as root (CAP_SYS_ADMIN), or take --isolation process-group"
            }
            Self::NotStartedByHost => "start `weir-engine host` and send it a `start` command",
            Self::Observe(error) => error.hint(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(what, error) => write!(formatter, "{what}: {error}"),
            Self::NoNamespaces(why) => {
                write!(formatter, "--isolation namespace is not possible: {why}")
            }
            Self::NotStartedByHost => {
                formatter.write_str("init: standard input is not a host's socket")
            }
            Self::Observe(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for Error {}

impl From<weir_observe::Error> for Error {
    fn from(error: weir_observe::Error) -> Self {
        Self::Observe(error)
    }
}

/// Adds what was attempted to an error of the system.
trait Attempting<T> {
    fn attempting(self, what: &'static str) -> Result<T, Error>;
}

impl<T, E: Into<std::io::Error>> Attempting<T> for Result<T, E> {
    fn attempting(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::System(what, error.into()))
    }
}
