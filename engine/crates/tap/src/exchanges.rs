//! Turns the packets of connections into the durations of exchanges.
//!
//! An exchange begins with the client's first data after the server's data. It ends with the server's last data before
//! the client's next data. So its end shows only with the client's next data, or at the end of the connection or the
//! capture. Overlapping requests (pipelining, HTTP/2) count as one exchange.

use std::collections::HashMap;

use crate::packet::{Endpoints, Segment};

/// Maximum number of tracked connections, which take about 40 MB. Packets of further ones are only counted.
pub(crate) const MAX_CONNECTIONS: usize = 262_144;

/// The state of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct ConnectionState {
    /// Time of the first data of the current request.
    request_ns: Option<u64>,
    /// Time of the last data of its response so far.
    response_ns: Option<u64>,
    /// Sequence number after the client's last byte, by which retransmissions are recognised.
    client_sequence: Option<u32>,
}

impl ConnectionState {
    /// Returns whether a request has no response data yet.
    fn is_waiting(&self) -> bool {
        self.request_ns.is_some() && self.response_ns.is_none()
    }

    /// Returns the duration of the exchange so far. Returns `None` without response data.
    fn duration_ns(&self) -> Option<u64> {
        Some(self.response_ns?.saturating_sub(self.request_ns?))
    }
}

/// The tracked connections.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    connections: HashMap<Endpoints, ConnectionState>,
    seen: u64,
    ignored: u64,
}

impl Exchanges {
    /// Returns the number of connections with data.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the number of packets of connections beyond [`MAX_CONNECTIONS`].
    pub(crate) fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Adds the next packet. Returns the duration of the exchange that it completes. Returns `None` if it completes
    /// none.
    pub(crate) fn add(&mut self, segment: &Segment, at_ns: u64) -> Option<u64> {
        let ended = if segment.data_bytes > 0 { self.add_data(segment, at_ns) } else { None };
        if !segment.begins_or_ends {
            return ended;
        }
        let state = self.connections.get(&segment.endpoints)?;
        if segment.is_fin && !segment.is_from_server && state.is_waiting() {
            return ended;
        }
        // A SYN starts a new connection between the same endpoints.
        let duration_ns = state.duration_ns();
        self.connections.remove(&segment.endpoints);
        ended.or(duration_ns)
    }

    fn add_data(&mut self, segment: &Segment, at_ns: u64) -> Option<u64> {
        let is_known = self.connections.contains_key(&segment.endpoints);
        if !is_known {
            if self.connections.len() >= MAX_CONNECTIONS {
                self.ignored += 1;
                return None;
            }
            self.seen += 1;
        }
        let state = self.connections.entry(segment.endpoints).or_default();
        if segment.is_from_server {
            if state.request_ns.is_some() {
                state.response_ns = Some(at_ns);
            }
            return None;
        }
        let is_retransmitted =
            state.client_sequence.is_some_and(|before| segment.end_sequence.wrapping_sub(before) as i32 <= 0);
        if is_retransmitted {
            return None;
        }
        state.client_sequence = Some(segment.end_sequence);
        let ended = state.duration_ns();
        if ended.is_some() || state.request_ns.is_none() {
            state.request_ns = Some(at_ns);
            state.response_ns = None;
        }
        ended
    }

    /// Ends the capture. Returns the durations of the exchanges without a following packet.
    pub(crate) fn finish(&mut self) -> impl Iterator<Item = u64> {
        std::mem::take(&mut self.connections).into_values().filter_map(|state| state.duration_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Packets of connections to one server, and the resulting durations.
    #[derive(Default)]
    struct Wire {
        exchanges: Exchanges,
        sequences: HashMap<u16, u32>,
        duration_ns: Vec<u64>,
    }

    impl Wire {
        fn segment(&mut self, port: u16, is_from_server: bool, bytes: u32) -> Segment {
            let sequence = self.sequences.entry(port).or_insert(u32::MAX - 20);
            if !is_from_server {
                *sequence = sequence.wrapping_add(bytes);
            }
            Segment {
                endpoints: Endpoints { client: (HOST, port), server: (HOST, 80) },
                is_from_server,
                begins_or_ends: false,
                is_fin: false,
                end_sequence: *sequence,
                data_bytes: bytes,
            }
        }

        fn take(&mut self, segment: &Segment, at_ns: u64) {
            let took = self.exchanges.add(segment, at_ns);
            self.duration_ns.extend(took);
        }

        fn client(&mut self, port: u16, at_ns: u64) -> &mut Self {
            let segment = self.segment(port, false, 10);
            self.take(&segment, at_ns);
            self
        }

        fn server(&mut self, port: u16, at_ns: u64) -> &mut Self {
            let segment = self.segment(port, true, 10);
            self.take(&segment, at_ns);
            self
        }

        fn end(&mut self, port: u16, is_from_server: bool, bytes: u32, at_ns: u64) -> &mut Self {
            let segment = Segment { begins_or_ends: true, is_fin: true, ..self.segment(port, is_from_server, bytes) };
            self.take(&segment, at_ns);
            self
        }

        fn times(&mut self) -> Vec<u64> {
            let rest = self.exchanges.finish();
            self.duration_ns.extend(rest);
            std::mem::take(&mut self.duration_ns)
        }
    }

    #[test]
    fn exchange_ends_with_the_servers_last_data() {
        let mut wire = Wire::default();
        wire.client(1, 100).client(1, 110);
        wire.server(1, 150).server(1, 170);
        assert_eq!(wire.duration_ns, [], "the response may continue");
        wire.client(1, 200).server(1, 205);
        assert_eq!(wire.duration_ns, [70]);
        assert_eq!(wire.times(), [70, 5]);
        assert_eq!(wire.exchanges.seen(), 1);
    }

    #[test]
    fn connections_are_separate() {
        let mut wire = Wire::default();
        wire.client(1, 100).client(2, 110).server(2, 120).server(1, 190);
        wire.client(2, 200).client(1, 210);
        assert_eq!(wire.times(), [10, 90]);
        assert_eq!(wire.exchanges.seen(), 2);
    }

    #[test]
    fn closing_ends_the_exchange() {
        let mut wire = Wire::default();
        wire.client(1, 100).server(1, 110).end(1, true, 0, 500);
        assert_eq!(wire.times(), [10]);
        wire.client(1, 600).end(1, true, 10, 640);
        assert_eq!(wire.times(), [40]);
        // A request without a response is no exchange.
        wire.client(1, 700).end(1, true, 0, 710);
        assert_eq!(wire.times(), [0; 0]);
        assert_eq!(wire.exchanges.seen(), 3);
    }

    #[test]
    fn half_closed_client_gets_a_response() {
        let mut wire = Wire::default();
        wire.client(1, 100).end(1, false, 0, 101).server(1, 140);
        assert_eq!(wire.duration_ns, []);
        wire.end(1, true, 0, 141);
        assert_eq!(wire.duration_ns, [40]);
        // A completed exchange ends with the connection.
        wire.client(2, 100).server(2, 120).end(2, false, 0, 130);
        assert_eq!(wire.duration_ns, [40, 20]);
    }

    #[test]
    fn retransmission_starts_no_exchange() {
        let mut wire = Wire::default();
        let request = wire.segment(1, false, 10);
        wire.take(&request, 100);
        wire.server(1, 150);
        wire.take(&request, 160);
        wire.server(1, 170);
        assert_eq!(wire.times(), [70]);
    }

    #[test]
    fn wrapped_sequence_is_no_retransmission() {
        let mut wire = Wire::default();
        for k in 0..6 {
            wire.client(1, 100 * k).server(1, 100 * k + 7);
        }
        assert_eq!(wire.times(), [7; 6]);
    }

    #[test]
    fn unrequested_data_is_no_response() {
        let mut wire = Wire::default();
        wire.server(1, 100).server(1, 110).client(1, 200).server(1, 230);
        assert_eq!(wire.times(), [30]);
    }

    #[test]
    fn further_connections_cost_no_memory() {
        let mut wire = Wire::default();
        let endpoints = |number: usize| Endpoints {
            client: (IpAddr::V4(Ipv4Addr::from(number as u32 >> 16)), number as u16),
            server: (HOST, 80),
        };
        let sample = wire.segment(1, false, 10);
        for number in 0..MAX_CONNECTIONS + 5 {
            let segment = Segment { endpoints: endpoints(number), ..sample };
            wire.take(&segment, 1);
        }
        assert_eq!(wire.exchanges.connections.len(), MAX_CONNECTIONS);
        assert_eq!(wire.exchanges.ignored(), 5);
        // There is room again.
        let end = Segment { endpoints: endpoints(0), begins_or_ends: true, data_bytes: 0, ..sample };
        wire.take(&end, 2);
        wire.client(9, 3);
        assert_eq!(wire.exchanges.ignored(), 5);
    }
}
