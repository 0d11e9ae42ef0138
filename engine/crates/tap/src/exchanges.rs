//! From the packets of connections to the times of requests.
//!
//! A request begins with the first data of a client after the server's data, and ends with the last data of the server before the client's
//! next. So the end is known only when something follows: the client's next data, or the end of the connection or of the observation.
//! Requests that are sent without waiting for answers (pipelining, HTTP/2) count together as one.

use std::collections::HashMap;

use crate::packet::{Ends, Segment};

/// The most connections that are held at a time, some 40 MB; beyond them new ones are counted and not looked at.
pub(crate) const MOST_CONNECTIONS: usize = 262_144;

/// Where a connection is.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// When the request under way began.
    request_ns: Option<u64>,
    /// When the server sent the last data that answers it.
    answer_ns: Option<u64>,
    /// The number behind the last byte of the client, to know what is sent again.
    client_sequence: Option<u32>,
}

impl Place {
    /// Whether its client has asked and heard nothing yet.
    fn is_waiting(&self) -> bool {
        self.request_ns.is_some() && self.answer_ns.is_none()
    }

    /// How long the request under way took, if it was answered.
    fn took_ns(&self) -> Option<u64> {
        Some(self.answer_ns?.saturating_sub(self.request_ns?))
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    connections: HashMap<Ends, Place>,
    seen: u64,
    ignored: u64,
}

impl Exchanges {
    /// Connections of which data was seen.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Packets of connections beyond [`MOST_CONNECTIONS`].
    pub(crate) fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Takes the next packet, which passed at a moment. Gives how long a request took that it shows to be over.
    pub(crate) fn take(&mut self, segment: &Segment, at_ns: u64) -> Option<u64> {
        let ended = if segment.data_bytes > 0 {
            self.take_data(segment, at_ns)
        } else {
            None
        };
        if !segment.begins_or_ends {
            return ended;
        }
        let place = self.connections.get(&segment.ends)?;
        if segment.is_fin && !segment.is_from_server && place.is_waiting() {
            return ended;
        }
        // A SYN is of a new connection between the same ends.
        let took_ns = place.took_ns();
        self.connections.remove(&segment.ends);
        ended.or(took_ns)
    }

    fn take_data(&mut self, segment: &Segment, at_ns: u64) -> Option<u64> {
        let is_known = self.connections.contains_key(&segment.ends);
        if !is_known {
            if self.connections.len() >= MOST_CONNECTIONS {
                self.ignored += 1;
                return None;
            }
            self.seen += 1;
        }
        let place = self.connections.entry(segment.ends).or_default();
        if segment.is_from_server {
            if place.request_ns.is_some() {
                place.answer_ns = Some(at_ns);
            }
            return None;
        }
        let is_again = place
            .client_sequence
            .is_some_and(|before| segment.end_sequence.wrapping_sub(before) as i32 <= 0);
        if is_again {
            return None;
        }
        place.client_sequence = Some(segment.end_sequence);
        let ended = place.took_ns();
        if ended.is_some() || place.request_ns.is_none() {
            place.request_ns = Some(at_ns);
            place.answer_ns = None;
        }
        ended
    }

    /// The observation is over: the requests that were answered and have nothing behind them.
    pub(crate) fn finish(&mut self) -> impl Iterator<Item = u64> {
        std::mem::take(&mut self.connections)
            .into_values()
            .filter_map(|place| place.took_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Packets of connections to one server, and the times that come of them.
    #[derive(Default)]
    struct Wire {
        exchanges: Exchanges,
        sequences: HashMap<u16, u32>,
        took_ns: Vec<u64>,
    }

    impl Wire {
        fn segment(&mut self, port: u16, is_from_server: bool, bytes: u32) -> Segment {
            let sequence = self.sequences.entry(port).or_insert(u32::MAX - 20);
            if !is_from_server {
                *sequence = sequence.wrapping_add(bytes);
            }
            Segment {
                ends: Ends {
                    client: (HOST, port),
                    server: (HOST, 80),
                },
                is_from_server,
                begins_or_ends: false,
                is_fin: false,
                end_sequence: *sequence,
                data_bytes: bytes,
            }
        }

        fn take(&mut self, segment: &Segment, at_ns: u64) {
            let took = self.exchanges.take(segment, at_ns);
            self.took_ns.extend(took);
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
            let segment = Segment {
                begins_or_ends: true,
                is_fin: true,
                ..self.segment(port, is_from_server, bytes)
            };
            self.take(&segment, at_ns);
            self
        }

        fn times(&mut self) -> Vec<u64> {
            let rest = self.exchanges.finish();
            self.took_ns.extend(rest);
            std::mem::take(&mut self.took_ns)
        }
    }

    #[test]
    fn a_request_lasts_from_the_clients_first_data_to_the_servers_last() {
        let mut wire = Wire::default();
        wire.client(1, 100).client(1, 110);
        wire.server(1, 150).server(1, 170);
        assert_eq!(wire.took_ns, [], "more of the answer may follow");
        wire.client(1, 200).server(1, 205);
        assert_eq!(wire.took_ns, [70]);
        assert_eq!(wire.times(), [70, 5]);
        assert_eq!(wire.exchanges.seen(), 1);
    }

    #[test]
    fn connections_are_told_apart() {
        let mut wire = Wire::default();
        wire.client(1, 100)
            .client(2, 110)
            .server(2, 120)
            .server(1, 190);
        wire.client(2, 200).client(1, 210);
        assert_eq!(wire.times(), [10, 90]);
        assert_eq!(wire.exchanges.seen(), 2);
    }

    #[test]
    fn the_end_of_a_connection_ends_its_request_and_data_with_it_counts() {
        let mut wire = Wire::default();
        wire.client(1, 100).server(1, 110).end(1, true, 0, 500);
        assert_eq!(wire.times(), [10]);
        wire.client(1, 600).end(1, true, 10, 640);
        assert_eq!(wire.times(), [40]);
        // One without an answer is none.
        wire.client(1, 700).end(1, true, 0, 710);
        assert_eq!(wire.times(), [0; 0]);
        assert_eq!(wire.exchanges.seen(), 3);
    }

    #[test]
    fn a_client_that_says_that_it_will_ask_no_more_is_answered_still() {
        let mut wire = Wire::default();
        wire.client(1, 100).end(1, false, 0, 101).server(1, 140);
        assert_eq!(wire.took_ns, []);
        wire.end(1, true, 0, 141);
        assert_eq!(wire.took_ns, [40]);
        // One that was answered ends with it.
        wire.client(2, 100).server(2, 120).end(2, false, 0, 130);
        assert_eq!(wire.took_ns, [40, 20]);
    }

    #[test]
    fn a_request_that_is_sent_again_begins_no_other() {
        let mut wire = Wire::default();
        let request = wire.segment(1, false, 10);
        wire.take(&request, 100);
        wire.server(1, 150);
        wire.take(&request, 160);
        wire.server(1, 170);
        assert_eq!(wire.times(), [70]);
    }

    #[test]
    fn sequence_numbers_that_wrap_are_no_repetition() {
        let mut wire = Wire::default();
        for k in 0..6 {
            wire.client(1, 100 * k).server(1, 100 * k + 7);
        }
        assert_eq!(wire.times(), [7; 6]);
    }

    #[test]
    fn what_the_server_says_unasked_and_what_was_under_way_before_is_no_answer() {
        let mut wire = Wire::default();
        wire.server(1, 100)
            .server(1, 110)
            .client(1, 200)
            .server(1, 230);
        assert_eq!(wire.times(), [30]);
    }

    #[test]
    fn connections_beyond_the_most_are_counted_and_cost_no_memory() {
        let mut wire = Wire::default();
        let ends = |number: usize| Ends {
            client: (
                IpAddr::V4(Ipv4Addr::from(number as u32 >> 16)),
                number as u16,
            ),
            server: (HOST, 80),
        };
        let sample = wire.segment(1, false, 10);
        for number in 0..MOST_CONNECTIONS + 5 {
            let segment = Segment {
                ends: ends(number),
                ..sample
            };
            wire.take(&segment, 1);
        }
        assert_eq!(wire.exchanges.connections.len(), MOST_CONNECTIONS);
        assert_eq!(wire.exchanges.ignored(), 5);
        // There is room again.
        let end = Segment {
            ends: ends(0),
            begins_or_ends: true,
            data_bytes: 0,
            ..sample
        };
        wire.take(&end, 2);
        wire.client(9, 3);
        assert_eq!(wire.exchanges.ignored(), 5);
    }
}
