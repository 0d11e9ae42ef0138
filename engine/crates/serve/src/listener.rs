//! A listening socket: bound before anybody is told its address.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::{Behaviour, Ended, Error};

/// As many connections as may wait to be accepted, unless said otherwise; the kernel lowers it to `net.core.somaxconn`.
pub const DEFAULT_BACKLOG: i32 = 4096;

/// A bound and listening socket.
pub struct Listener {
    socket: OwnedFd,
    address: SocketAddr,
}

impl Listener {
    /// Listens on `address`; port 0 takes a free one. `backlog` connections may wait to be accepted.
    pub fn bind(address: SocketAddr, backlog: i32) -> Result<Self, Error> {
        let bound = || -> rustix::io::Result<Self> {
            let family = if address.is_ipv4() {
                AddressFamily::INET
            } else {
                AddressFamily::INET6
            };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
            // Otherwise connections in TIME_WAIT keep the port from the next server for a minute.
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, &address)?;
            net::listen(&socket, backlog)?;
            let address = SocketAddr::try_from(net::getsockname(&socket)?)?;
            Ok(Self { socket, address })
        };
        bound().map_err(|error| Error::Listen(address, error.into()))
    }

    /// The address clients connect to, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the other side closes `watch`, if one is given.
    pub fn serve(
        self,
        behaviour: Behaviour,
        watch: Option<BorrowedFd<'_>>,
    ) -> Result<Ended, Error> {
        // 1024, the usual soft limit, is fewer than the connections of a load. accept() reports a hard limit that is too low.
        weir_sys::limits::raise_open_files(u64::MAX);
        match behaviour {
            Behaviour::Fault(fault) if fault.needs_raw_connection() => {
                crate::fault::serve(&self, fault, watch)
            }
            _ => crate::server::Server::new(&self, behaviour, watch)?.run(),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
