//! Starts, observes, reaps and stops the processes of one machine.
//!
//! ```text
//! weir-engine host ─┬─ weir-engine init ── server ── its children …      one init per server
//!                   └─ weir-engine init ── server …
//! ```
//!
//! The *host* reads commands and writes records. It has three threads: the event loop, the observer and the writer.
//!
//! An *init* is the parent of one server. It is the first process of new PID, IPC and mount namespaces, if the host may
//! make them. Otherwise it is a child subreaper. The host sends it the server's command over a socket, and the init
//! reports the server's exit.
//!
//! No process survives, whichever ends first:
//!
//! | end of | cleaned up by |
//! |---|---|
//! | the server | the init kills and reaps the server's descendants, which counts their CPU time, and ends |
//! | an init, killed | the kernel kills its PID namespace; without one, the host becomes the parent of the orphans and kills them |
//! | the host, killed | the kernel kills every init by its parent-death signal, and so each namespace; without namespaces, each init sees its socket close and kills its descendants |
//! | the last process of a network namespace | the kernel removes the namespace, the veth pair and the port translation |
//!
//! A killed host leaves empty control groups behind. The next host removes them: no process holds their locks.
//!
//! The host is no supervisor: it restarts nothing and knows no other machine. The crate never prints; records go to
//! `emit`.

mod cgroup;
mod command;
mod group;
mod host;
mod init;
mod isolation;
mod launch;
mod link;
mod network;
mod probe;
mod record;
mod watch;
mod writer;
mod writes;

pub use host::{Host, Options};
pub use init::run as run_init;
pub use isolation::{Choice, Isolation};
pub use record::Record;
pub use writer::Writer;

/// An error of the host itself. An error of a command is an error record.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed that the host needs.
    #[error("{0}: {1}")]
    System(&'static str, std::io::Error),
    /// The user asked for namespaces, and the host may not make them.
    #[error("--isolation namespace is not possible: {0}")]
    NoNamespaces(String),
    /// Something other than a host started `init`.
    #[error("init: standard input is not a host's socket")]
    NotStartedByHost,
    /// The observer cannot read /proc.
    #[error(transparent)]
    Observe(#[from] weir_observe::Error),
}

impl Error {
    /// Returns the next thing to try.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::System(..) => "`dmesg` and `ulimit -a` show what the kernel refuses",
            Self::NoNamespaces(_) => "run as root (CAP_SYS_ADMIN), or take --isolation process-group",
            Self::NotStartedByHost => "start `weir-engine host` and send it a `start` command",
            Self::Observe(error) => error.hint(),
        }
    }
}

/// Adds the failed action to a system error.
trait Attempting<T> {
    fn attempting(self, what: &'static str) -> Result<T, Error>;
}

impl<T, E: Into<std::io::Error>> Attempting<T> for Result<T, E> {
    fn attempting(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::System(what, error.into()))
    }
}
