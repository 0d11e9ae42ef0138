//! Where a connection goes, and where it comes from.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// TCP, over IPv4 or IPv6.
    Tcp {
        /// The server's address.
        to: SocketAddr,
        /// This machine's address, where it matters: each has some 28,000 ports to one server.
        from: Option<IpAddr>,
    },
    /// A Unix socket.
    Unix(SocketAddrUnix),
}

impl Endpoint {
    /// A Unix socket by its path.
    ///
    /// # Errors
    /// When the path is too long for a socket's address (108 bytes).
    pub fn unix(path: &str) -> Result<Self, Errno> {
        SocketAddrUnix::new(path).map(Self::Unix)
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(to: SocketAddr) -> Self {
        Self::Tcp { to, from: None }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { to, from: None } => to.fmt(formatter),
            Self::Tcp { to, from: Some(from) } => write!(formatter, "{to} from {from}"),
            Self::Unix(address) => {
                let path = address.path_bytes().unwrap_or_default();
                formatter.write_str(&String::from_utf8_lossy(path))
            }
        }
    }
}
