//! A listening socket.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::{Behaviour, Error, ServerEnd};

/// Default maximum number of connections that wait to be accepted. The kernel lowers it to `net.core.somaxconn`.
pub const DEFAULT_BACKLOG: i32 = 4096;

/// A bound and listening socket.
pub struct Listener {
    socket: OwnedFd,
    address: SocketAddr,
}

impl Listener {
    /// Listens on `address`; port 0 chooses a free port. `backlog`: maximum number of connections that wait to be
    /// accepted.
    pub fn bind(address: SocketAddr, backlog: i32) -> Result<Self, Error> {
        let bound = || -> rustix::io::Result<Self> {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
            // Otherwise connections in TIME_WAIT block the port for a minute.
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, &address)?;
            net::listen(&socket, backlog)?;
            let address = SocketAddr::try_from(net::getsockname(&socket)?)?;
            Ok(Self { socket, address })
        };
        bound().map_err(|error| Error::Listen(address, error.into()))
    }

    /// Returns the address for clients, with the chosen port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the other side closes `watch`. `None`: serves until the process is killed.
    pub fn serve(self, behaviour: Behaviour, watch: Option<BorrowedFd<'_>>) -> Result<ServerEnd, Error> {
        // 1024, the usual soft limit, is fewer than the connections of a load. accept() reports a hard limit that is
        // too low.
        weir_sys::limits::raise_open_files(u64::MAX);
        match behaviour {
            Behaviour::Fault { kind, .. } if kind.needs_raw_connection() => crate::fault::serve(&self, kind, watch),
            _ => crate::server::Server::new(&self, behaviour, watch)?.run(),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
