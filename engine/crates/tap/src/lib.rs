//! What the kernel saw of the requests to a server, whoever made them: the time from a client's data to the last data that answers it.
//!
//! It reads the packets between the two, and so knows nothing of what either of them waited for within itself: no queue of a generator and no
//! time until it looked is in these times. A [`Tap`] costs the kernel a copy of 80 bytes for each packet that it looks at; sampling keeps it
//! small, by connections, since a request is told from the next one by what comes before and after it.
//!
//! Words: the *ring* is the memory in which the kernel puts packets; an *exchange* is a request and its answer.

mod exchanges;
mod filter;
mod packet;
mod ring;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use exchanges::Exchanges;
use ring::{HAND_OVER_MS, Ring};
use weir_sys::clock::monotonic_ns;

/// The most ports of one tap: each is an instruction or two for every packet of the interface.
pub const MOST_PORTS: usize = 16;

/// The interface on which packets that go out come in again.
const LOOPBACK: &str = "lo";

/// What to look at.
#[derive(Debug, Clone)]
pub struct TapSettings {
    /// Ports of servers, at most [`MOST_PORTS`].
    pub ports: Vec<u16>,
    /// One in so many connections is looked at, by the client's port.
    pub one_in: u16,
    /// The network interface.
    pub interface: String,
}

/// What was seen, beside the times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TapCounts {
    /// Connections of which data was seen.
    pub connections: u64,
    /// Packets looked at.
    pub packets: u64,
    /// Packets that should have been and were not, since there was no room for them.
    pub dropped_packets: u64,
    /// Packets of connections beyond those that are held.
    pub ignored_packets: u64,
    /// When the first and the last packet passed, by CLOCK_MONOTONIC.
    pub seen_t_ns: Option<(u64, u64)>,
}

/// See the module's description. It is ready to be read when its descriptor is.
pub struct Tap {
    ring: Ring,
    ports: Vec<u16>,
    exchanges: Exchanges,
    counts: TapCounts,
    /// How far the time of day is ahead of CLOCK_MONOTONIC.
    ahead_ns: u64,
}

impl Tap {
    /// Looks at packets from here on.
    ///
    /// # Errors
    /// When the interface is not there or its packets may not be seen.
    pub fn open(settings: TapSettings) -> Result<Self, TapError> {
        let TapSettings {
            ports,
            one_in,
            interface,
        } = settings;
        let is_loopback = interface == LOOPBACK;
        let program = filter::program(&ports, one_in, is_loopback);
        let ring =
            Ring::open(&interface, &program, is_loopback).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => TapError::NoInterface(interface),
                io::ErrorKind::PermissionDenied => TapError::NotAllowed,
                _ => TapError::System(error),
            })?;
        Ok(Self {
            ring,
            ports,
            exchanges: Exchanges::default(),
            counts: TapCounts::default(),
            ahead_ns: unix_ns().saturating_sub(monotonic_ns()),
        })
    }

    /// Takes the packets that the kernel has handed over, and gives the nanoseconds of each exchange that they end.
    pub fn take(&mut self, mut on_exchange: impl FnMut(u64)) {
        let Self {
            ring,
            ports,
            exchanges,
            counts,
            ahead_ns,
        } = self;
        let mut on_packet = |packet: ring::Packet<'_>| {
            let Some(segment) = packet::parse(packet.bytes, packet.length, ports) else {
                return;
            };
            let at_ns = packet.at_unix_ns.saturating_sub(*ahead_ns);
            counts.packets += 1;
            let (first_ns, last_ns) = counts.seen_t_ns.unwrap_or((at_ns, at_ns));
            counts.seen_t_ns = Some((first_ns, last_ns.max(at_ns)));
            if let Some(took_ns) = exchanges.take(&segment, at_ns) {
                on_exchange(took_ns);
            }
        };
        while ring.take_block(&mut on_packet) {}
    }

    /// The observation is over: waits for what the kernel has not handed over yet, and gives the exchanges behind which nothing followed.
    ///
    /// # Errors
    /// When the kernel does not say what it dropped.
    pub fn finish(mut self, mut on_exchange: impl FnMut(u64)) -> Result<TapCounts, TapError> {
        std::thread::sleep(Duration::from_millis(2 * u64::from(HAND_OVER_MS)));
        self.take(&mut on_exchange);
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

fn unix_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Why packets cannot be looked at.
#[derive(Debug)]
pub enum TapError {
    /// There is no such network interface.
    NoInterface(String),
    /// This process may not see packets.
    NotAllowed,
    /// The kernel does not give what is needed.
    System(io::Error),
}

impl TapError {
    /// The process's exit code: 2 for what the user can change in the arguments.
    pub fn code(&self) -> u8 {
        match self {
            Self::NoInterface(_) => 2,
            Self::NotAllowed | Self::System(_) => 3,
        }
    }

    /// The next thing to try.
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

impl fmt::Display for TapError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInterface(interface) => write!(
                formatter,
                "--interface: found {interface:?}, expected a network interface of this machine"
            ),
            Self::NotAllowed => formatter
                .write_str("packets cannot be looked at without the capability CAP_NET_RAW"),
            Self::System(error) => write!(formatter, "packets cannot be looked at here: {error}"),
        }
    }
}

impl std::error::Error for TapError {}
