//! A packet socket whose ring of blocks is shared with the kernel (TPACKET_V3, Documentation/networking/packet_mmap).
//!
//! The kernel fills one block after the other. It hands a block over when the block is full or a timeout has passed. If
//! the next block is not returned yet, it drops packets and counts them.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket3_hdr as Head;

use crate::filter::{Instruction, SNAP_BYTES};

/// Size of a block: room for 1,380 packets of about 190 bytes.
const BLOCK_BYTES: usize = 256 * 1024;
/// Number of blocks, 32 MiB: almost one second at 200,000 packets per second.
const BLOCKS: usize = 128;
/// Time after which the kernel hands over a block that is not full.
pub(crate) const BLOCK_TIMEOUT_MS: u32 = 10;
/// Only for the ring's size: TPACKET_V3 packets have any size.
const FRAME_BYTES: usize = 2048;

/// The captured start of a packet.
pub(crate) struct Packet<'a> {
    pub(crate) bytes: &'a [u8],
    /// Length of the whole packet, with its network header.
    pub(crate) length: u32,
    /// The kernel's time stamp, as time of day.
    pub(crate) at_unix_ns: u64,
}

/// A packet socket and its ring.
pub(crate) struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    next: usize,
}

impl Ring {
    /// Opens a ring for the packets of an interface that pass `program`.
    ///
    /// # Errors
    /// The interface does not exist, or this process may not capture its packets.
    pub(crate) fn open(interface: &str, program: &[Instruction], ignores_outgoing: bool) -> io::Result<Self> {
        let index = interface_index(interface)?;
        // SAFETY: the arguments are numbers, and the result is a new descriptor or -1. With protocol 0 it receives no
        // packets yet.
        let socket = unsafe {
            let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
            let descriptor = libc::socket(libc::AF_PACKET, kind, 0);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(descriptor)
        };
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        attach(&socket, program)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (BLOCKS * BLOCK_BYTES / FRAME_BYTES) as u32,
            tp_retire_blk_tov: BLOCK_TIMEOUT_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a new mapping of the ring's size, shared with the kernel. The result is checked before use.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BLOCKS * BLOCK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let ring = Self { socket, memory, next: 0 };
        if ignores_outgoing {
            // Saves copies of packets that the program drops; unknown before Linux 4.20.
            let yes: libc::c_int = 1;
            let _ = set(&ring.socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &yes);
        }
        ring.bind(index)?;
        Ok(ring)
    }

    /// Starts to receive packets.
    fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: zeros are a valid address of this form.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        // SAFETY: the descriptor is open, and the address lives during the call and is as long as is said.
        let done = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Reads the next block and returns it to the kernel. Returns false if the kernel has not handed it over.
    pub(crate) fn read_block(&mut self, mut on_packet: impl FnMut(Packet<'_>)) -> bool {
        // SAFETY: `next` is below BLOCKS, so the block lies in the mapping, which lives as long as this and is aligned
        // to pages.
        let block = unsafe { self.memory.add(self.next * BLOCK_BYTES) };
        let descriptor: NonNull<libc::tpacket_block_desc> = block.cast();
        // SAFETY: the descriptor is at the start of the block. Its fields are accessed by pointers, because the kernel
        // writes them. The status is a u32 that both sides access atomically.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*descriptor.as_ptr()).hdr.bh1.block_status) };
        // Acquire: the kernel wrote the block before this status.
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the kernel does not write the block until the status is returned.
        let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), BLOCK_BYTES) };
        // SAFETY: as above; this is a copy.
        let head = unsafe { (*descriptor.as_ptr()).hdr.bh1 };
        let mut at = head.offset_to_first_pkt as usize;
        for _ in 0..head.num_pkts {
            let Some((packet, next)) = packet_at(bytes, at) else {
                break;
            };
            on_packet(packet);
            at += next;
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }

    /// Returns the number of packets that the kernel dropped since the last call, because the ring was full.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        // SAFETY: zeros are valid counts.
        let mut statistics: libc::tpacket_stats_v3 = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the descriptor is open. The kernel writes at most `length` bytes, into memory that lives during the
        // call.
        let done = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        match done {
            0 => Ok(u64::from(statistics.tp_drops)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping has this length, and no reference to it is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCKS * BLOCK_BYTES) };
    }
}

/// Returns the packet at an offset of a block, and the distance to the next one.
fn packet_at(block: &[u8], at: usize) -> Option<(Packet<'_>, usize)> {
    let word = |offset: usize| Some(u32::from_ne_bytes(*block.get(at + offset..)?.first_chunk()?));
    let half = |offset: usize| Some(u16::from_ne_bytes(*block.get(at + offset..)?.first_chunk()?));
    let network = at + usize::from(half(offset_of!(Head, tp_net))?);
    let copied = word(offset_of!(Head, tp_snaplen))?.min(SNAP_BYTES) as usize;
    let seconds = u64::from(word(offset_of!(Head, tp_sec))?);
    let rest_ns = u64::from(word(offset_of!(Head, tp_nsec))?);
    let packet = Packet {
        bytes: block.get(network..network + copied)?,
        length: word(offset_of!(Head, tp_len))?,
        at_unix_ns: seconds * 1_000_000_000 + rest_ns,
    };
    Some((packet, word(offset_of!(Head, tp_next_offset))? as usize))
}

fn interface_index(interface: &str) -> io::Result<u32> {
    let unknown = || io::Error::from(io::ErrorKind::NotFound);
    let name = CString::new(interface).map_err(|_| unknown())?;
    // SAFETY: the name ends with a zero and lives during the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(unknown()),
        index => Ok(index),
    }
}

fn attach(socket: &OwnedFd, program: &[Instruction]) -> io::Result<()> {
    let mut lines: Vec<libc::sock_filter> = program
        .iter()
        .map(|one| libc::sock_filter { code: one.code, jt: one.if_true, jf: one.if_false, k: one.operand })
        .collect();
    let whole = libc::sock_fprog { len: lines.len() as u16, filter: lines.as_mut_ptr() };
    // The program lives during the call, in which the kernel copies it.
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &whole)
}

fn set<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the descriptor is open. The kernel reads the value, of this length, during the call only.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
