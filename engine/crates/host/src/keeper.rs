//! A keeper: the process that removes a host's control groups when the host was killed.
//!
//! The kernel ends a killed host's processes by itself but removes no group. The host starts one keeper with its first group and tells it of
//! every group before making it; the keeper sleeps until the host's end of their socket closes, which any end of the host does, and
//! removes what is then still there. It leads a session of its own, so that what ends the host's does not end it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cgroup;
use crate::{Attempting, Error};

/// How long the processes of a killed host may take to be gone: on a machine with far more to do than it has CPUs, seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A keeper, as its host sees it.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
    /// None once it was told that there is nothing more to come.
    socket: Option<UnixStream>,
}

impl Keeper {
    pub fn start(program: &Path) -> io::Result<Self> {
        let (here, there) = UnixStream::pair()?;
        let child = Command::new(program)
            .arg("keeper")
            .stdin(Stdio::from(OwnedFd::from(there)))
            .stdout(Stdio::null())
            // Whoever reads what the host says there must see it end with the host.
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            child,
            socket: Some(here),
        })
    }

    /// The process, which is none of a server's.
    pub fn pid(&self) -> i32 {
        weir_sys::process::child_pid(&self.child)
    }

    /// From now on the group at `path` is removed if this process ends before it has done so itself.
    pub fn keep(&mut self, path: &Path) -> io::Result<()> {
        let mut line = path.as_os_str().as_encoded_bytes().to_vec();
        line.push(b'\n');
        self.socket
            .as_mut()
            .map_or(Ok(()), |socket| socket.write_all(&line))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.socket = None;
        let _ = self.child.wait();
    }
}

/// Runs a keeper whose host is at the other end of `socket`, until it may end.
pub fn run(socket: OwnedFd) -> Result<(), Error> {
    if !rustix::net::sockopt::socket_domain(&socket)
        .is_ok_and(|domain| domain == rustix::net::AddressFamily::UNIX)
    {
        return Err(Error::NotStartedByHost);
    }
    rustix::process::setsid().attempting("setsid")?;
    let told = BufReader::new(File::from(socket)).lines();
    let groups: Vec<PathBuf> = told.map_while(Result::ok).map(PathBuf::from).collect();
    let begin = Instant::now();
    for group in groups {
        while !cgroup::remove(&group) && begin.elapsed() < PATIENCE {}
    }
    Ok(())
}
