//! The program by which the kernel chooses packets: classic BPF, run on every packet of the interface before it is copied.
//!
//! It sees packets from their network header on, as a socket without link headers does. What it lets through: TCP over IPv4 or IPv6, from or to
//! one of the ports, of one in so many client ports, and only what has data or begins or ends a connection.

/// One instruction: operation, jumps where the condition holds and where not, operand. `struct sock_filter` of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) code: u16,
    pub(crate) if_true: u8,
    pub(crate) if_false: u8,
    pub(crate) operand: u32,
}

/// Bytes of a packet that are copied: the longest IPv4 and TCP headers are 60 each, of which the fixed parts are read.
pub(crate) const SNAP_BYTES: u32 = 80;

/// Instructions, by the kernel's numbers (linux/bpf_common.h). A is the accumulator, X the index, M0 a place of memory.
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

/// Where ancillary data of a packet lies, and in it whether it comes or goes (linux/filter.h).
const PACKET_TYPE_AT: u32 = 0xffff_f000 + 4;
/// PACKET_OUTGOING.
const OUTGOING: u32 = 4;
const TCP: u32 = 6;
/// FIN, SYN and RST.
const BEGINS_OR_ENDS: u32 = 0x07;

/// Where a jump goes; each is in the program once.
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

/// A program whose jumps are still names.
#[derive(Debug, Default)]
struct Draft {
    lines: Vec<(u16, Label, Label, u32)>,
    places: Vec<(Label, usize)>,
}

impl Draft {
    fn place(&mut self, label: Label) {
        self.places.push((label, self.lines.len()));
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

    /// All jumps go forward, by less than 256 instructions where they have a condition: the ports are few.
    fn finished(self) -> Vec<Instruction> {
        let distance = |from: usize, to: Label| {
            let place = self.places.iter().find(|(label, _)| *label == to);
            place.map_or(0, |&(_, at)| at - from - 1)
        };
        let lines = self.lines.iter().enumerate();
        let instructions = lines.map(|(at, &(code, if_true, if_false, operand))| {
            let is_jump = code == code::JUMP;
            Instruction {
                code,
                if_true: if is_jump {
                    0
                } else {
                    distance(at, if_true) as u8
                },
                if_false: distance(at, if_false) as u8,
                operand: if is_jump {
                    distance(at, if_true) as u32
                } else {
                    operand
                },
            }
        });
        instructions.collect()
    }
}

/// The program for these ports of servers and one in so many client ports: those whose half is a multiple. Client ports of one process are even
/// or odd as the kernel chooses, so that the lowest bit says nothing.
pub(crate) fn program(ports: &[u16], one_in: u16, ignores_outgoing: bool) -> Vec<Instruction> {
    use Label::{Drop, FromServer, Ipv4, Ipv6, Keep, Next, Sample, Tcp, ToServer};
    let mut draft = Draft::default();
    if ignores_outgoing {
        // On loopback what goes out comes in again.
        draft.line(code::LOAD_WORD, PACKET_TYPE_AT);
        draft.branch(code::IF_EQUAL, OUTGOING, Drop, Next);
    }
    draft.line(code::LOAD_BYTE, 0);
    draft.line(code::AND, 0xf0);
    draft.branch(code::IF_EQUAL, 0x40, Ipv4, Next);
    draft.branch(code::IF_EQUAL, 0x60, Ipv6, Drop);

    // X is where TCP begins, M0 where its data ends.
    draft.place(Ipv4);
    draft.line(code::LOAD_BYTE, 9);
    draft.branch(code::IF_EQUAL, TCP, Next, Drop);
    draft.line(code::LOAD_HALF, 6);
    // Of a fragment that is not the first there is no TCP header.
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
    // Whether there is data: whether the headers end before the packet does.
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
    draft.finished()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::{Built, built};

    /// What the kernel does with the program, as far as it goes; gives how many bytes are copied.
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
            // A packet that is too short is dropped.
            let Some(loaded) = loaded else { return 0 };
            a = loaded;
        }
    }

    fn passes(program: &[Instruction], packet: &Built) -> bool {
        run(program, &built(packet), 0) == SNAP_BYTES
    }

    const DATA: Built = Built {
        is_ipv6: false,
        options_bytes: 0,
        from: 40_000,
        to: 8_080,
        flags: 0x18,
        sequence: 1,
        data_bytes: 5,
    };

    #[test]
    fn data_from_and_to_the_ports_passes_and_nothing_else_does() {
        let program = program(&[8_080, 9_090], 1, false);
        for is_ipv6 in [false, true] {
            for options_bytes in [0, 12, 40] {
                let data = Built {
                    is_ipv6,
                    options_bytes,
                    ..DATA
                };
                assert!(passes(&program, &data));
                assert!(passes(
                    &program,
                    &Built {
                        from: 9_090,
                        to: 1,
                        ..data
                    }
                ));
                assert!(!passes(&program, &Built { to: 8_081, ..data }));
                let bare = Built {
                    data_bytes: 0,
                    ..data
                };
                assert!(
                    !passes(
                        &program,
                        &Built {
                            flags: 0x10,
                            ..bare
                        }
                    ),
                    "a bare ACK"
                );
                for flags in [0x02, 0x12, 0x11, 0x14] {
                    assert!(passes(&program, &Built { flags, ..bare }), "{flags:#x}");
                }
            }
        }
    }

    #[test]
    fn of_client_ports_one_in_so_many_passes_in_both_directions() {
        let program = program(&[8_080], 8, false);
        let passing = |is_from: bool| {
            let ports = 32_768..49_152;
            let all = ports.filter(|&port| {
                let (from, to) = if is_from {
                    (port, 8_080)
                } else {
                    (8_080, port)
                };
                passes(&program, &Built { from, to, ..DATA })
            });
            all.collect::<Vec<u16>>()
        };
        assert_eq!(passing(true).len(), 16_384 / 8);
        assert_eq!(passing(true), passing(false));
        assert_eq!(passing(true)[..3], [32_768, 32_769, 32_784]);
    }

    #[test]
    fn what_is_no_tcp_or_too_short_is_dropped() {
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
    fn what_goes_out_is_dropped_where_it_comes_in_again() {
        let packet = built(&DATA);
        for ignores_outgoing in [false, true] {
            let program = program(&[8_080], 1, ignores_outgoing);
            let passed = run(&program, &packet, OUTGOING) > 0;
            assert_eq!(passed, !ignores_outgoing);
            assert!(run(&program, &packet, 0) > 0);
        }
    }
}
