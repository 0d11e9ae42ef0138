//! Parses the IP and TCP headers of a packet, without I/O.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The two endpoints of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Endpoints {
    pub(crate) client: (IpAddr, u16),
    pub(crate) server: (IpAddr, u16),
}

/// One packet of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) endpoints: Endpoints,
    pub(crate) is_from_server: bool,
    /// Whether the packet has FIN, SYN or RST.
    pub(crate) begins_or_ends: bool,
    /// Whether the packet has FIN only: its sender sends no more, but may still receive.
    pub(crate) is_fin: bool,
    /// Sequence number after the last byte.
    pub(crate) end_sequence: u32,
    pub(crate) data_bytes: u32,
}

/// Parses the captured start of a packet of `length` bytes. Returns `None` if it is no TCP packet from or to one of the
/// servers' `ports`.
pub(crate) fn parse(bytes: &[u8], length: u32, ports: &[u16]) -> Option<Segment> {
    let half = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let (from, to, tcp, end) = match bytes.first()? >> 4 {
        4 => {
            let address = |at: usize| {
                let bytes: [u8; 4] = *bytes.get(at..)?.first_chunk()?;
                Some(IpAddr::V4(Ipv4Addr::from(bytes)))
            };
            let end = u32::from(half(2)?);
            (address(12)?, address(16)?, usize::from(bytes[0] & 0xf) * 4, end)
        }
        6 => {
            let address = |at: usize| {
                let bytes: [u8; 16] = *bytes.get(at..)?.first_chunk()?;
                Some(IpAddr::V6(Ipv6Addr::from(bytes)))
            };
            let payload = u32::from(half(4)?);
            let end = if payload == 0 { 0 } else { payload + 40 };
            (address(8)?, address(24)?, 40, end)
        }
        _ => return None,
    };
    // A packet above 64 KiB, before segmentation by the card, has the length 0. Other packets have their length, and
    // padding after it.
    let end = if end == 0 { length } else { end };
    let (from, to) = ((from, half(tcp)?), (to, half(tcp + 2)?));
    let sequence = u32::from_be_bytes(*bytes.get(tcp + 4..)?.first_chunk()?);
    let data = tcp as u32 + u32::from(bytes.get(tcp + 12)? >> 4) * 4;
    let flags = bytes.get(tcp + 13)?;
    let data_bytes = end.saturating_sub(data);
    let is_from_server = ports.contains(&from.1);
    if !is_from_server && !ports.contains(&to.1) {
        return None;
    }
    let (server, client) = if is_from_server { (from, to) } else { (to, from) };
    Some(Segment {
        endpoints: Endpoints { client, server },
        is_from_server,
        begins_or_ends: flags & 0x07 != 0,
        is_fin: flags & 0x07 == 0x01,
        end_sequence: sequence.wrapping_add(data_bytes),
        data_bytes,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The fields of a packet for a test.
    #[derive(Clone, Copy)]
    pub(crate) struct Built {
        pub(crate) is_ipv6: bool,
        /// Bytes of TCP options.
        pub(crate) options_bytes: usize,
        pub(crate) from: u16,
        pub(crate) to: u16,
        pub(crate) flags: u8,
        pub(crate) sequence: u32,
        pub(crate) data_bytes: usize,
    }

    /// Builds a packet from 10.0.0.1 to 10.0.0.2, or from ::1 to ::2.
    pub(crate) fn built(built: &Built) -> Vec<u8> {
        let tcp_bytes = 20 + built.options_bytes + built.data_bytes;
        let mut bytes = if built.is_ipv6 {
            let mut ip = vec![0; 40];
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&(tcp_bytes as u16).to_be_bytes());
            ip[6] = 6;
            (ip[23], ip[39]) = (1, 2);
            ip
        } else {
            let mut ip = vec![0; 20];
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&((20 + tcp_bytes) as u16).to_be_bytes());
            ip[9] = 6;
            ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            ip
        };
        bytes.extend(built.from.to_be_bytes());
        bytes.extend(built.to.to_be_bytes());
        bytes.extend(built.sequence.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.push((((20 + built.options_bytes) / 4) << 4) as u8);
        bytes.push(built.flags);
        bytes.resize(bytes.len() + 6 + built.options_bytes + built.data_bytes, 0);
        bytes
    }

    const REQUEST: Built = Built {
        is_ipv6: false,
        options_bytes: 12,
        from: 40_000,
        to: 80,
        flags: 0x18,
        sequence: u32::MAX - 1,
        data_bytes: 10,
    };

    #[test]
    fn both_directions_have_the_same_endpoints() {
        for is_ipv6 in [false, true] {
            let there = Built { is_ipv6, ..REQUEST };
            let bytes = built(&there);
            let request = parse(&bytes[..72.min(bytes.len())], bytes.len() as u32, &[80]).unwrap();
            assert!(!request.is_from_server && !request.begins_or_ends);
            assert_eq!((request.data_bytes, request.end_sequence), (10, 8));
            assert_eq!((request.endpoints.client.1, request.endpoints.server.1), (40_000, 80));
            assert_eq!(request.endpoints.client.0.is_ipv6(), is_ipv6);
            let from_server = |from: u16, to: u16| {
                let mut bytes = built(&Built { from, to, ..there });
                // The packet comes from the other endpoint.
                let (at, size) = if is_ipv6 { (8, 16) } else { (12, 4) };
                bytes[at..at + 2 * size].rotate_left(size);
                parse(&bytes, bytes.len() as u32, &[80]).unwrap()
            };
            let response = from_server(80, 40_000);
            assert!(response.is_from_server);
            assert_eq!(response.endpoints, request.endpoints);
        }
    }

    #[test]
    fn padding_is_no_data() {
        let mut bytes = built(&Built { options_bytes: 0, data_bytes: 0, flags: 0x11, ..REQUEST });
        let end = parse(&bytes, 46, &[80]).unwrap();
        assert!(end.begins_or_ends);
        assert_eq!(end.data_bytes, 0);
        bytes[2..4].fill(0);
        assert_eq!(parse(&bytes, 100_040, &[80]).unwrap().data_bytes, 100_000);
    }

    #[test]
    fn truncated_or_foreign_packet_is_none() {
        let bytes = built(&Built { data_bytes: 0, ..REQUEST });
        for length in 0..34 {
            assert_eq!(parse(&bytes[..length], 52, &[80]), None, "{length}");
        }
        assert!(parse(&bytes[..34], 52, &[80]).is_some());
        assert_eq!(parse(&bytes, 52, &[81]), None);
    }
}
