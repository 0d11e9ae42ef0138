//! The counters of one network namespace, through any of its processes. The formats are those of proc_pid_net(5).

use std::os::fd::OwnedFd;

use crate::parse;
use crate::procfs::Procfs;
use crate::sample::{Network, Sockets};

/// One network namespace. Its `net/netstat` stays open, because the first read of an open file takes twice as long as
/// later ones: the kernel writes the text again into a larger buffer.
///
/// This value keeps the namespace and its veth pair alive.
pub struct OpenNetwork {
    /// Target of the link `/proc/PID/ns/net`.
    link: Vec<u8>,
    netstat: OwnedFd,
}

impl OpenNetwork {
    /// Opens the namespace of process `pid`, whose link has the target `link`. Returns `None` if the process has ended.
    pub fn open(procfs: &mut Procfs, pid: i32, link: &[u8]) -> Option<Self> {
        let netstat = procfs.open(format_args!("{pid}/net/netstat")).ok()?;
        Some(Self { link: link.to_vec(), netstat })
    }

    pub fn has_link(&self, link: &[u8]) -> bool {
        self.link == link
    }

    /// Reads the counters through process `pid` of this namespace. Returns `None` if the process has ended.
    pub fn read(&self, procfs: &mut Procfs, pid: i32) -> Option<Network> {
        let mut network = Network::default();
        let text = procfs.read_again(&self.netstat).ok()?;
        network.listen_overflows = table_value(text, b"TcpExt:", b"ListenOverflows").unwrap_or(0);
        network.listen_drops = table_value(text, b"TcpExt:", b"ListenDrops").unwrap_or(0);
        let text = procfs.read(format_args!("{pid}/net/snmp")).ok()?;
        network.tcp_retransmits = table_value(text, b"Tcp:", b"RetransSegs").unwrap_or(0);
        network.sockets.established = table_value(text, b"Tcp:", b"CurrEstab").unwrap_or(0);
        let text = procfs.read(format_args!("{pid}/net/sockstat")).ok()?;
        add_sockets(text, &mut network.sockets);
        // The file is missing without IPv6.
        if let Ok(text) = procfs.read(format_args!("{pid}/net/sockstat6")) {
            add_sockets(text, &mut network.sockets);
        }
        let text = procfs.read(format_args!("{pid}/net/dev")).ok()?;
        add_interfaces(text, &mut network);
        Some(network)
    }
}

/// Returns a value of a table with two lines: `Table: name name …` and `Table: value value …`.
fn table_value(text: &[u8], table: &[u8], name: &[u8]) -> Option<u64> {
    let mut lines = text.split(|&byte| byte == b'\n').filter(|line| parse::words(line).next() == Some(table));
    let index = parse::words(lines.next()?).position(|word| word == name)?;
    parse::number(parse::words(lines.next()?).nth(index)?)
}

/// Adds the line `TCP: inuse 4 orphan 0 tw 0 alloc 5 mem 0` of IPv4, or `TCP6: inuse 1` of IPv6.
fn add_sockets(text: &[u8], sockets: &mut Sockets) {
    for (_, value) in parse::keyed_lines(text).filter(|(name, _)| matches!(*name, b"TCP" | b"TCP6")) {
        let mut words = parse::words(value);
        while let (Some(name), Some(count)) = (words.next(), words.next()) {
            let count = parse::number(count).unwrap_or(0);
            match name {
                b"inuse" => sockets.in_use += count,
                b"orphan" => sockets.orphaned += count,
                b"tw" => sockets.time_wait += count,
                _ => {}
            }
        }
    }
}

fn add_interfaces(text: &[u8], network: &mut Network) {
    for (name, value) in parse::keyed_lines(text) {
        let mut words = parse::words(value);
        let received = words.next().and_then(parse::number);
        let sent = words.nth(7).and_then(parse::number);
        let (Some(received), Some(sent)) = (received, sent) else {
            continue;
        };
        if name.trim_ascii() == b"lo" {
            // The loopback receives what it sends.
            network.loopback_bytes += sent;
        } else {
            network.received_bytes += received;
            network.sent_bytes += sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_value_is_below_its_name() {
        let text = b"TcpExt: A ListenOverflows ListenDrops\nTcpExt: 1 7 9\nIpExt: ListenDrops\nIpExt: 3\n";
        assert_eq!(table_value(text, b"TcpExt:", b"ListenOverflows"), Some(7));
        assert_eq!(table_value(text, b"IpExt:", b"ListenDrops"), Some(3));
        assert_eq!(table_value(text, b"TcpExt:", b"Missing"), None);
        assert_eq!(table_value(b"", b"TcpExt:", b"ListenDrops"), None);
    }

    #[test]
    fn sockets_of_ipv4_and_ipv6_add_up() {
        let mut sockets = Sockets::default();
        add_sockets(b"sockets: used 9\nTCP: inuse 4 orphan 1 tw 2 alloc 5 mem 0\nUDP: inuse 8 mem 0\n", &mut sockets);
        add_sockets(b"TCP6: inuse 3\nUDP6: inuse 8\n", &mut sockets);
        let expected = Sockets { established: 0, time_wait: 2, orphaned: 1, in_use: 7 };
        assert_eq!(sockets, expected);
    }

    #[test]
    fn loopback_is_counted_apart() {
        let text = b"Inter-| Receive | Transmit\n face |bytes packets errs\n    lo: 100 1 0 0 0 0 0 0 100 1 0\n  eth0: 10 1 0 0 0 0 0 0 20 1 0\nveth1:5 1 0 0 0 0 0 0 6 1 0\n";
        let mut network = Network::default();
        add_interfaces(text, &mut network);
        assert_eq!(network.loopback_bytes, 100);
        assert_eq!((network.received_bytes, network.sent_bytes), (15, 26));
    }
}
