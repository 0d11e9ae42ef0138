//! The packet filter: a classic BPF program that the kernel runs on every packet of the interface before copying it.
//!
//! A packet begins with its network header, because the socket has no link headers. The filter passes TCP over IPv4 or
//! IPv6, from or to one of the ports, of the sampled client ports. It drops packets without data, except those that
//! open or close a connection.

/// One instruction, like the kernel's `struct sock_filter`: operation, jumps if the condition is true or false,
/// operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) code: u16,
    pub(crate) if_true: u8,
    pub(crate) if_false: u8,
    pub(crate) operand: u32,
}

/// Captured bytes per packet: up to 60 of an IPv4 header, and the fixed part of a TCP header.
pub(crate) const SNAP_BYTES: u32 = 80;

/// Operations by the kernel's numbers (linux/bpf_common.h). A is the accumulator, X the index register, M0 a memory
/// cell.
mod code {
    pub(crate) const LOAD_WORD: u16 = 0x20;
    pub(crate) const LOAD_HALF: u16 = 0x28;
    pub(crate) const LOAD_BYTE: u16 = 0x30;
    pub(crate) const LOAD_HALF_AT_X: u16 = 0x48;
    pub(crate) const LOAD_BYTE_AT_X: u16 = 0x50;
    pub(crate) const LOAD_M0: u16 = 0x60;
    pub(crate) const X_IS: u16 = 0x01;
    pub(crate) const X_IS_IPV4_HEADER: u16 = 0xb1;
    pub(crate) const M0_IS_A: u16 = 0x02;
    pub(crate) const ADD: u16 = 0x04;
    pub(crate) const ADD_X: u16 = 0x0c;
    pub(crate) const AND: u16 = 0x54;
    pub(crate) const SHIFT_RIGHT: u16 = 0x74;
    pub(crate) const MODULO: u16 = 0x94;
    pub(crate) const JUMP: u16 = 0x05;
    pub(crate) const IF_EQUAL: u16 = 0x15;
    pub(crate) const IF_EQUAL_X: u16 = 0x1d;
    pub(crate) const IF_ANY_BIT: u16 = 0x45;
    pub(crate) const X_IS_A: u16 = 0x07;
    pub(crate) const RETURN: u16 = 0x06;
}

/// Offset of a packet's direction in its ancillary data (linux/filter.h).
const PACKET_TYPE_AT: u32 = 0xffff_f000 + 4;
/// PACKET_OUTGOING.
const OUTGOING: u32 = 4;
const TCP: u32 = 6;
/// FIN, SYN and RST.
const BEGINS_OR_ENDS: u32 = 0x07;

/// The target of a jump. Each label is in the program once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Next,
    Ipv4,
    Ipv6,
    Tcp,
    ToServer,
    FromServer,
    Sample,
    Keep,
    Drop,
}

/// A program with labels as targets of its jumps.
#[derive(Debug, Default)]
struct Draft {
    lines: Vec<(u16, Label, Label, u32)>,
    labels: Vec<(Label, usize)>,
}

impl Draft {
    fn place(&mut self, label: Label) {
        self.labels.push((label, self.lines.len()));
    }

    fn line(&mut self, code: u16, operand: u32) {
        self.lines.push((code, Label::Next, Label::Next, operand));
    }

    fn branch(&mut self, code: u16, operand: u32, if_true: Label, if_false: Label) {
        self.lines.push((code, if_true, if_false, operand));
    }

    fn jump(&mut self, to: Label) {
        self.lines.push((code::JUMP, to, Label::Next, 0));
    }

    /// Replaces the labels by distances. All jumps go forward, conditional ones by less than 256 instructions: there
    /// are few ports.
    fn assemble(self) -> Vec<Instruction> {
        let distance = |from: usize, to: Label| {
            let target = self.labels.iter().find(|(label, _)| *label == to);
            target.map_or(0, |&(_, at)| at - from - 1)
        };
        let lines = self.lines.iter().enumerate();
        let instructions = lines.map(|(at, &(code, if_true, if_false, operand))| {
            let is_jump = code == code::JUMP;
            Instruction {
                code,
                if_true: if is_jump { 0 } else { distance(at, if_true) as u8 },
                if_false: distance(at, if_false) as u8,
                operand: if is_jump { distance(at, if_true) as u32 } else { operand },
            }
        });
        instructions.collect()
    }
}

/// Returns the program for the servers' `ports`. It samples client ports whose half is a multiple of `one_in`: the
/// kernel gives the ports of one process the same lowest bit.
pub(crate) fn program(ports: &[u16], one_in: u16, ignores_outgoing: bool) -> Vec<Instruction> {
    use Label::{Drop, FromServer, Ipv4, Ipv6, Keep, Next, Sample, Tcp, ToServer};
    let mut draft = Draft::default();
    if ignores_outgoing {
        // The loopback receives its outgoing packets again.
        draft.line(code::LOAD_WORD, PACKET_TYPE_AT);
        draft.branch(code::IF_EQUAL, OUTGOING, Drop, Next);
    }
    draft.line(code::LOAD_BYTE, 0);
    draft.line(code::AND, 0xf0);
    draft.branch(code::IF_EQUAL, 0x40, Ipv4, Next);
    draft.branch(code::IF_EQUAL, 0x60, Ipv6, Drop);

    // X is the offset of the TCP header, M0 the end of the data.
    draft.place(Ipv4);
    draft.line(code::LOAD_BYTE, 9);
    draft.branch(code::IF_EQUAL, TCP, Next, Drop);
    draft.line(code::LOAD_HALF, 6);
    // Only the first fragment has a TCP header.
    draft.branch(code::IF_ANY_BIT, 0x1fff, Drop, Next);
    draft.line(code::LOAD_HALF, 2);
    draft.line(code::M0_IS_A, 0);
    draft.line(code::X_IS_IPV4_HEADER, 0);
    draft.jump(Tcp);

    draft.place(Ipv6);
    draft.line(code::LOAD_BYTE, 6);
    draft.branch(code::IF_EQUAL, TCP, Next, Drop);
    draft.line(code::LOAD_HALF, 4);
    draft.line(code::ADD, 40);
    draft.line(code::M0_IS_A, 0);
    draft.line(code::X_IS, 40);

    draft.place(Tcp);
    draft.line(code::LOAD_HALF_AT_X, 0);
    for &port in ports {
        draft.branch(code::IF_EQUAL, u32::from(port), FromServer, Next);
    }
    draft.line(code::LOAD_HALF_AT_X, 2);
    for &port in ports {
        draft.branch(code::IF_EQUAL, u32::from(port), ToServer, Next);
    }
    draft.jump(Drop);

    draft.place(FromServer);
    draft.line(code::LOAD_HALF_AT_X, 2);
    draft.jump(Sample);
    draft.place(ToServer);
    draft.line(code::LOAD_HALF_AT_X, 0);

    draft.place(Sample);
    draft.line(code::SHIFT_RIGHT, 1);
    draft.line(code::MODULO, u32::from(one_in));
    draft.branch(code::IF_EQUAL, 0, Next, Drop);
    draft.line(code::LOAD_BYTE_AT_X, 13);
    draft.branch(code::IF_ANY_BIT, BEGINS_OR_ENDS, Keep, Next);
    // The packet has data if its headers end before it.
    draft.line(code::LOAD_BYTE_AT_X, 12);
    draft.line(code::AND, 0xf0);
    draft.line(code::SHIFT_RIGHT, 2);
    draft.line(code::ADD_X, 0);
    draft.line(code::X_IS_A, 0);
    draft.line(code::LOAD_M0, 0);
    draft.branch(code::IF_EQUAL_X, 0, Drop, Keep);

    draft.place(Keep);
    draft.line(code::RETURN, SNAP_BYTES);
    draft.place(Drop);
    draft.line(code::RETURN, 0);
    draft.assemble()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::{Built, built};

    /// Interprets the program like the kernel. Returns the number of captured bytes.
    fn run(program: &[Instruction], packet: &[u8], packet_type: u32) -> u32 {
        let (mut a, mut x, mut m0, mut at) = (0u32, 0u32, 0u32, 0usize);
        let byte = |at: u32| packet.get(at as usize).copied().map(u32::from);
        let half = |at: u32| Some(byte(at)? << 8 | byte(at + 1)?);
        loop {
            let one = program[at];
            at += 1;
            let k = one.operand;
            let taken = |condition: bool| match condition {
                true => usize::from(one.if_true),
                false => usize::from(one.if_false),
            };
            let loaded = match one.code {
                code::LOAD_WORD if k == PACKET_TYPE_AT => Some(packet_type),
                code::LOAD_HALF => half(k),
                code::LOAD_BYTE => byte(k),
                code::LOAD_HALF_AT_X => half(x + k),
                code::LOAD_BYTE_AT_X => byte(x + k),
                code::LOAD_M0 => Some(m0),
                code::ADD => Some(a + k),
                code::ADD_X => Some(a + x),
                code::AND => Some(a & k),
                code::SHIFT_RIGHT => Some(a >> k),
                code::MODULO => Some(a % k),
                code::X_IS_IPV4_HEADER => {
                    x = byte(k).map_or(0, |byte| 4 * (byte & 0xf));
                    continue;
                }
                code::X_IS => {
                    x = k;
                    continue;
                }
                code::X_IS_A => {
                    x = a;
                    continue;
                }
                code::M0_IS_A => {
                    m0 = a;
                    continue;
                }
                code::JUMP => {
                    at += k as usize;
                    continue;
                }
                code::IF_EQUAL => {
                    at += taken(a == k);
                    continue;
                }
                code::IF_EQUAL_X => {
                    at += taken(a == x);
                    continue;
                }
                code::IF_ANY_BIT => {
                    at += taken(a & k != 0);
                    continue;
                }
                code::RETURN => return k,
                other => panic!("{other:#x} is not used"),
            };
            // The kernel drops a packet that is too short.
            let Some(loaded) = loaded else { return 0 };
            a = loaded;
        }
    }

    fn passes(program: &[Instruction], packet: &Built) -> bool {
        run(program, &built(packet), 0) == SNAP_BYTES
    }

    const DATA: Built =
        Built { is_ipv6: false, options_bytes: 0, from: 40_000, to: 8_080, flags: 0x18, sequence: 1, data_bytes: 5 };

    #[test]
    fn only_data_of_the_ports_passes() {
        let program = program(&[8_080, 9_090], 1, false);
        for is_ipv6 in [false, true] {
            for options_bytes in [0, 12, 40] {
                let data = Built { is_ipv6, options_bytes, ..DATA };
                assert!(passes(&program, &data));
                assert!(passes(&program, &Built { from: 9_090, to: 1, ..data }));
                assert!(!passes(&program, &Built { to: 8_081, ..data }));
                let bare = Built { data_bytes: 0, ..data };
                assert!(!passes(&program, &Built { flags: 0x10, ..bare }), "a bare ACK");
                for flags in [0x02, 0x12, 0x11, 0x14] {
                    assert!(passes(&program, &Built { flags, ..bare }), "{flags:#x}");
                }
            }
        }
    }

    #[test]
    fn sampled_ports_pass_in_both_directions() {
        let program = program(&[8_080], 8, false);
        let passing = |is_from: bool| {
            let ports = 32_768..49_152;
            let all = ports.filter(|&port| {
                let (from, to) = if is_from { (port, 8_080) } else { (8_080, port) };
                passes(&program, &Built { from, to, ..DATA })
            });
            all.collect::<Vec<u16>>()
        };
        assert_eq!(passing(true).len(), 16_384 / 8);
        assert_eq!(passing(true), passing(false));
        assert_eq!(passing(true)[..3], [32_768, 32_769, 32_784]);
    }

    #[test]
    fn other_protocols_are_dropped() {
        let program = program(&[8_080], 1, false);
        let whole = built(&DATA);
        assert_eq!(run(&program, &whole, 0), SNAP_BYTES);
        for length in 0..34 {
            assert_eq!(run(&program, &whole[..length], 0), 0, "{length}");
        }
        let changed = |at: usize, byte: u8| {
            let mut packet = whole.clone();
            packet[at] = byte;
            run(&program, &packet, 0)
        };
        assert_eq!(changed(0, 0x25), 0, "no version of IP");
        assert_eq!(changed(9, 17), 0, "UDP");
        assert_eq!(changed(7, 1), 0, "a later fragment");
    }

    #[test]
    fn outgoing_packets_of_loopback_are_dropped() {
        let packet = built(&DATA);
        for ignores_outgoing in [false, true] {
            let program = program(&[8_080], 1, ignores_outgoing);
            let passed = run(&program, &packet, OUTGOING) > 0;
            assert_eq!(passed, !ignores_outgoing);
            assert!(run(&program, &packet, 0) > 0);
        }
    }
}
