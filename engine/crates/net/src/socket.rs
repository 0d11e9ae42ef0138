//! What both back ends do with a socket before anything is sent on it.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::Endpoint;
use weir_sys::socket::{choose_port_when_connecting, stamp_received_packets};

/// A socket that is being connected. It does not block. If so asked, what it receives is stamped.
pub(crate) fn start_connecting(endpoint: &Endpoint, stamps: bool) -> Result<OwnedFd, Errno> {
    let family = match endpoint {
        Endpoint::Tcp { to: SocketAddr::V4(_), .. } => AddressFamily::INET,
        Endpoint::Tcp { to: SocketAddr::V6(_), .. } => AddressFamily::INET6,
        Endpoint::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let descriptor = net::socket_with(family, SocketType::STREAM, flags, None)?;
    if stamps {
        stamp_received_packets(descriptor.as_fd())?;
    }
    let connected = match endpoint {
        Endpoint::Tcp { to, from } => {
            sockopt::set_tcp_nodelay(&descriptor, true)?;
            if let Some(from) = from {
                choose_port_when_connecting(descriptor.as_fd());
                net::bind(&descriptor, &SocketAddr::new(*from, 0))?;
            }
            net::connect(&descriptor, to)
        }
        Endpoint::Unix(address) => net::connect(&descriptor, address),
    };
    match connected {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(descriptor),
        Err(errno) => Err(errno),
    }
}

/// Why connecting failed, of a socket that reports an error or a hang-up; nothing if it was connected and broke since:
/// only what was connected can be reset, and writing to it will tell.
pub(crate) fn connect_error(descriptor: &OwnedFd) -> Option<Errno> {
    match sockopt::socket_error(descriptor) {
        Ok(Ok(()) | Err(Errno::CONNRESET | Errno::PIPE)) => None,
        Ok(Err(errno)) | Err(errno) => Some(errno),
    }
}
