//! The socket between the host and an init: JSON lines in both directions.
//!
//! An init knows its server's PID inside the namespace only, and sends it as the socket's credentials. The kernel
//! translates it into the PID outside, also for a process that has ended meanwhile.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, UCred,
};
use rustix::process::{getgid, getuid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::launch::Launch;
use crate::network::Abilities;

/// A message of the host. The first one is `Probe`, `ProbeNetwork` or `Start`.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToInit {
    /// Try to make the namespaces, and end.
    Probe,
    /// Start a server.
    Start(Box<Launch>),
    /// Try the features of a network namespace, and end.
    ProbeNetwork,
    /// SIGTERM to the server's process group.
    Stop,
    /// SIGKILL to everything.
    Kill,
}

/// A message of an init.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToHost {
    /// A probe succeeded.
    Ready,
    /// The server's program runs.
    Started {
        pid: i32,
        t_ns: u64,
        /// The server's address in its own network.
        address: Option<Ipv4Addr>,
    },
    /// The features of a network namespace.
    Network(Abilities),
    /// A start or a probe failed, and the init ends.
    Failed { message: String, hint: String },
    /// The server and its descendants are gone, and the init ends.
    Ended(ExitReport),
}

/// An init's report of its server's exit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExitReport {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub t_ns: u64,
    /// CPU time of the init itself, which is no cost of the server.
    pub own_user_s: f64,
    pub own_system_s: f64,
    /// Names of the processes that still ran after the server ended by SIGTERM.
    pub left_behind: Vec<String>,
    /// Files that the server wrote outside its folder. `None` without `watch_writes`.
    pub written: Option<Vec<PathBuf>>,
}

/// One end of the socket.
pub struct Link {
    socket: OwnedFd,
    /// Received bytes after the last complete line.
    received: Vec<u8>,
    /// The PID in the last credentials.
    sender: Option<i32>,
    closed: bool,
}

impl Link {
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, received: Vec::new(), sender: None, closed: false }
    }

    /// Returns whether the other side has closed and every message has been read.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns the PID in the last credentials, as this side's PID namespace numbers it.
    pub fn sender(&self) -> Option<i32> {
        self.sender
    }

    /// Sends one message. `pid`: the PID in the credentials; a PID other than the own one needs CAP_SYS_ADMIN.
    pub fn send(&self, message: &impl Serialize, pid: Option<i32>) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let credentials = pid.and_then(weir_sys::process::pid).map(|pid| UCred { pid, uid: getuid(), gid: getgid() });
        let mut rest = &line[..];
        while !rest.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if let Some(credentials) = credentials {
                control.push(SendAncillaryMessage::ScmCredentials(credentials));
            }
            let parts = [IoSlice::new(rest)];
            match rustix::net::sendmsg(&self.socket, &parts, &mut control, SendFlags::NOSIGNAL) {
                Ok(count) => rest = &rest[count..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads received bytes; with `wait`, waits for the first. Returns whether there were any.
    pub fn receive(&mut self, wait: bool) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = if wait { RecvFlags::CMSG_CLOEXEC } else { RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT };
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let count = match rustix::net::recvmsg(&self.socket, &mut parts, &mut control, flags) {
            Ok(message) => message.bytes,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(false),
            // The other side was killed before it read everything.
            Err(rustix::io::Errno::CONNRESET) => 0,
            Err(error) => return Err(error.into()),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmCredentials(credentials) = message {
                self.sender = Some(credentials.pid.as_raw_nonzero().get());
            }
        }
        self.closed = count == 0;
        self.received.extend_from_slice(&buffer[..count]);
        Ok(count > 0)
    }

    /// Returns the next complete message. Returns `None` if there is none.
    pub fn next<T: DeserializeOwned>(&mut self) -> Option<io::Result<T>> {
        let end = self.received.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.received.drain(..=end).collect();
        Some(serde_json::from_slice(&line).map_err(io::Error::from))
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
