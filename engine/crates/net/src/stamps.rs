//! The kernel's stamps of received packets, which arrive as control messages beside the bytes.
//!
//! Words: a *stamp* is the time of day (CLOCK_REALTIME) at which the kernel took a packet from the network, before TCP
//! saw it. TCP reports the stamp of the last packet of which a read had bytes. A read of a stream's end has none.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crate::message::receive_message;
use weir_sys::socket::stamp_received_packets;

/// Space for the one message of control that is asked for: its head and three times, of which the first is the kernel's
/// own, the second unused and the third a network card's.
pub(crate) const CONTROL_BYTES: usize = HEAD_BYTES + STAMP_BYTES;
/// The head of a message of control: its length with the head, the protocol it is of, and its type.
const HEAD_BYTES: usize = size_of::<usize>() + 2 * size_of::<i32>();
const STAMP_BYTES: usize = 3 * 2 * size_of::<i64>();

/// How long a kernel that was asked to stamp is given to begin with it: some do it when they find the time.
const PATIENCE: Duration = Duration::from_secs(2);

/// Keeps the kernel stamping, whatever sockets come and go: each first socket that asks for it, and each last one that
/// is closed, would have it switched on and off for the whole machine, and packets in between without a stamp.
#[derive(Debug)]
pub struct Stamping {
    _asking: TcpStream,
}

impl Stamping {
    /// Makes the kernel stamp received packets, and checks that it does.
    ///
    /// # Errors
    /// When it refuses, or does not do it.
    pub fn begin() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let asking = TcpStream::connect(listener.local_addr()?)?;
        stamp_received_packets(asking.as_fd())?;
        let (mut peer, _) = listener.accept()?;
        peer.set_nodelay(true)?;
        let asked = Instant::now();
        loop {
            peer.write_all(b"?")?;
            let (received, stamp) = receive_message(asking.as_fd(), &mut [0])?;
            if stamp.is_some() {
                return Ok(Self { _asking: asking });
            }
            if received == 0 || asked.elapsed() > PATIENCE {
                let problem = "it stamps nothing that it receives";
                return Err(io::Error::other(problem));
            }
        }
    }
}

/// The stamp in the messages of control of a read, in nanoseconds since 1970.
#[inline]
pub(crate) fn stamp_in(control: &[u8]) -> Option<u64> {
    let (head, times) = control.split_at_checked(HEAD_BYTES)?;
    let (level, kind) = head[size_of::<usize>()..].split_at(size_of::<i32>());
    if level != libc::SOL_SOCKET.to_ne_bytes() || kind != libc::SCM_TIMESTAMPING.to_ne_bytes() {
        return None;
    }
    let (seconds, rest) = times.split_first_chunk()?;
    let (seconds, rest_ns) = (i64::from_ne_bytes(*seconds), rest.first_chunk()?);
    let rest_ns = i64::from_ne_bytes(*rest_ns);
    let ns = seconds.checked_mul(1_000_000_000)?.checked_add(rest_ns)?;
    // Zero is the kernel's word for none.
    u64::try_from(ns).ok().filter(|&ns| ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(level: i32, kind: i32, seconds: i64, ns: i64) -> Vec<u8> {
        let mut bytes = CONTROL_BYTES.to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([seconds, ns, 0, 0, 0, 0].map(i64::to_ne_bytes).concat());
        assert_eq!(bytes.len(), CONTROL_BYTES);
        bytes
    }

    #[test]
    fn the_first_of_the_times_is_the_stamp() {
        let bytes = control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, 3, 7);
        assert_eq!(stamp_in(&bytes), Some(3_000_000_007));
    }

    #[test]
    fn what_is_cut_or_of_another_kind_or_zero_is_no_stamp() {
        let bytes = control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, 3, 7);
        for length in 0..HEAD_BYTES + 2 * size_of::<i64>() {
            assert_eq!(stamp_in(&bytes[..length]), None, "{length}");
        }
        let no_stamps = [
            control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, 0, 0),
            control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, -1, 0),
            control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, i64::MAX, 0),
            control(libc::SOL_SOCKET, libc::SCM_RIGHTS, 3, 7),
            control(libc::IPPROTO_TCP, libc::SCM_TIMESTAMPING, 3, 7),
        ];
        for bytes in no_stamps {
            assert_eq!(stamp_in(&bytes), None);
        }
    }
}
