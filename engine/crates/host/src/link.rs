//! The socket between the host and an init: JSON lines in both directions.
//!
//! An init knows its server by the number it has inside the PID namespace. It sends that number as the socket's credentials, and the kernel
//! gives the host the number that the same process has outside, even if it has ended meanwhile.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, UCred,
};
use rustix::process::{getgid, getuid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::launch::Launch;
use crate::network::Abilities;

/// What the host says. The first message is `Probe` or `Start`.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToInit {
    /// Show that the namespaces can be had, and end.
    Probe,
    /// Start this.
    Start(Box<Launch>),
    /// Show what a network of its own can have, and end.
    ProbeNetwork,
    /// SIGTERM to the server's process group.
    Stop,
    /// SIGKILL to everything.
    Kill,
}

/// What an init says.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToHost {
    /// A probe succeeded.
    Ready,
    /// The program runs.
    Started {
        pid: i32,
        t_ns: u64,
        /// Of its own network.
        address: Option<Ipv4Addr>,
    },
    /// What a network of its own can have.
    Network(Abilities),
    /// It does not, and the init ends.
    Failed { message: String, hint: String },
    /// The server ended, everything below is gone, and the init ends.
    Ended {
        exit_code: Option<i32>,
        signal: Option<i32>,
        t_ns: u64,
        /// What the init itself used; not the server's cost.
        own_user_s: f64,
        own_system_s: f64,
        /// Names of the processes that it left when it was told to end and did.
        left_behind: Vec<String>,
        /// What it wrote outside its folder; None where nobody looked.
        written: Option<Vec<PathBuf>>,
    },
}

/// One end.
pub struct Link {
    socket: OwnedFd,
    /// Received, not yet a whole line.
    received: Vec<u8>,
    /// The process that the last credentials named.
    sender: Option<i32>,
    closed: bool,
}

impl Link {
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            received: Vec::new(),
            sender: None,
            closed: false,
        }
    }

    /// The other side has closed, and everything it said has been read.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The process named with what was last received, as this side's PID namespace sees it.
    pub fn sender(&self) -> Option<i32> {
        self.sender
    }

    /// Sends one message. `pid`: name this process, which takes the right to do so.
    pub fn send(&self, message: &impl Serialize, pid: Option<i32>) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let credentials = pid.and_then(weir_sys::process::pid).map(|pid| UCred {
            pid,
            uid: getuid(),
            gid: getgid(),
        });
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

    /// Reads what has arrived, or waits for something if `wait`; gives whether there was anything.
    pub fn fill(&mut self, wait: bool) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = if wait {
            RecvFlags::CMSG_CLOEXEC
        } else {
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT
        };
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let count = match rustix::net::recvmsg(&self.socket, &mut parts, &mut control, flags) {
            Ok(message) => message.bytes,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(false),
            // The other side was killed with something unread.
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

    /// The next whole message received.
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
