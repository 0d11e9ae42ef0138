//! Measures response times from network packets: the time from a request's first data to its response's last data.
//!
//! The times exclude all waits inside the client, such as a load generator's queue, and apply to any client. A [`Tap`]
//! costs the kernel a copy of 80 bytes per captured packet. It samples whole connections, because the packets before
//! and after a request delimit it.
//!
//! The *ring* is the memory into which the kernel writes packets. An *exchange* is a request with its response.

mod exchanges;
mod filter;
mod packet;
mod ring;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use exchanges::Exchanges;
use ring::{BLOCK_TIMEOUT_MS, Ring};
use weir_sys::clock::{monotonic_ns, unix_ns};

/// Maximum number of ports of one tap. Each port costs one or two instructions per packet of the interface.
pub const MAX_PORTS: usize = 16;

/// The interface that receives its own outgoing packets.
const LOOPBACK: &str = "lo";

/// Settings of a [`Tap`].
#[derive(Debug, Clone)]
pub struct TapSettings {
    /// Ports of servers, at most [`MAX_PORTS`].
    pub ports: Vec<u16>,
    /// The sample is one in `one_in` connections, by the client's port.
    pub one_in: u16,
    /// The network interface.
    pub interface: String,
}

/// Counts of a capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TapCounts {
    /// Number of connections with data.
    pub connections: u64,
    /// Number of captured packets.
    pub packets: u64,
    /// Number of packets that the kernel dropped because the ring was full.
    pub dropped_packets: u64,
    /// Number of packets of connections beyond the maximum.
    pub ignored_packets: u64,
    /// CLOCK_MONOTONIC of the first and the last packet.
    pub seen_t_ns: Option<(u64, u64)>,
}

/// A packet capture. Its descriptor is readable when packets have arrived.
pub struct Tap {
    ring: Ring,
    ports: Vec<u16>,
    exchanges: Exchanges,
    counts: TapCounts,
    /// Time of day minus CLOCK_MONOTONIC.
    unix_offset_ns: u64,
}

impl Tap {
    /// Starts a capture.
    ///
    /// # Errors
    /// The interface does not exist, or this process may not capture packets.
    pub fn open(settings: TapSettings) -> Result<Self, TapError> {
        let TapSettings { ports, one_in, interface } = settings;
        let is_loopback = interface == LOOPBACK;
        let program = filter::program(&ports, one_in, is_loopback);
        let ring = Ring::open(&interface, &program, is_loopback).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TapError::NoInterface(interface),
            io::ErrorKind::PermissionDenied => TapError::NotAllowed,
            _ => TapError::System(error),
        })?;
        Ok(Self {
            ring,
            ports,
            exchanges: Exchanges::default(),
            counts: TapCounts::default(),
            unix_offset_ns: unix_ns().saturating_sub(monotonic_ns()),
        })
    }

    /// Reads the captured packets. Calls `on_exchange` with the nanoseconds of each completed exchange.
    pub fn read_packets(&mut self, mut on_exchange: impl FnMut(u64)) {
        let Self { ring, ports, exchanges, counts, unix_offset_ns } = self;
        let mut on_packet = |packet: ring::Packet<'_>| {
            let Some(segment) = packet::parse(packet.bytes, packet.length, ports) else {
                return;
            };
            let at_ns = packet.at_unix_ns.saturating_sub(*unix_offset_ns);
            counts.packets += 1;
            let (first_ns, last_ns) = counts.seen_t_ns.unwrap_or((at_ns, at_ns));
            counts.seen_t_ns = Some((first_ns, last_ns.max(at_ns)));
            if let Some(duration_ns) = exchanges.add(&segment, at_ns) {
                on_exchange(duration_ns);
            }
        };
        while ring.read_block(&mut on_packet) {}
    }

    /// Ends the capture: waits for the last packets, and calls `on_exchange` for the exchanges without a following
    /// packet.
    ///
    /// # Errors
    /// The kernel does not report the number of dropped packets.
    pub fn finish(mut self, mut on_exchange: impl FnMut(u64)) -> Result<TapCounts, TapError> {
        std::thread::sleep(Duration::from_millis(2 * u64::from(BLOCK_TIMEOUT_MS)));
        self.read_packets(&mut on_exchange);
        self.exchanges.finish().for_each(on_exchange);
        Ok(TapCounts {
            connections: self.exchanges.seen(),
            dropped_packets: self.ring.dropped().map_err(TapError::System)?,
            ignored_packets: self.exchanges.ignored(),
            ..self.counts
        })
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// The reason why packets cannot be captured.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The network interface does not exist.
    #[error("--interface: found {0:?}, expected a network interface of this machine")]
    NoInterface(String),
    /// This process may not capture packets.
    #[error("packets cannot be captured without the capability CAP_NET_RAW")]
    NotAllowed,
    /// A system call failed.
    #[error("packets cannot be captured: {0}")]
    System(io::Error),
}

impl TapError {
    /// Returns the exit code of the process: 2 for wrong arguments.
    pub fn code(&self) -> u8 {
        match self {
            Self::NoInterface(_) => 2,
            Self::NotAllowed | Self::System(_) => 3,
        }
    }

    /// Returns the next thing to try.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoInterface(_) => "`ip link` lists the interfaces there are",
            Self::NotAllowed => "run as root, or allow it once: setcap cap_net_raw+ep weir-engine",
            Self::System(_) => {
                "see that this kernel and container allow packet sockets (CONFIG_PACKET) with 32 MiB of memory"
            }
        }
    }
}
