//! The ring and the memory that it shares with the kernel: the only unsafe code of the bare loops.
//!
//! The code is sound because it never frees memory that the kernel may use later. It leaks the request, the receive
//! buffers and their ring, once per process. The connections outlive the loop, and a closed descriptor would cause an
//! error but no unsafe access.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{BufRingEntry, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::net::SendFlags;

const SUBMISSIONS: u32 = 1024;
const COMPLETIONS: u32 = 8192;
/// Number of buffers: the number of connections within these bounds, rounded up to a power of two.
const BUFFERS: std::ops::RangeInclusive<usize> = 64..=2048;
const BUFFER_BYTES: usize = 4096;
const BUFFER_GROUP: u16 = 0;
/// The bit of a completion's tag that marks a send. A send completes only if it failed.
const SEND: u64 = 1 << 32;

/// An event on a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completed {
    pub(super) slot: u32,
    /// Number of bytes received, or the error. The kernel has the buffer back already.
    pub(super) result: Result<u32, Errno>,
    /// Whether the receive operation continues without a new request.
    pub(super) goes_on: bool,
}

/// The io_uring instance with its shared memory; the module's description says why the code is sound.
pub(super) struct Ring {
    ring: IoUring,
    request: &'static [u8],
    completed: Vec<Completed>,
    /// Buffers of completed receives; all are given back before the caller sees the events.
    filled: Vec<u16>,
    /// The first byte of the buffers; their number is a power of two.
    buffers: *const u8,
    count: u16,
    entries: *mut BufRingEntry,
    tail: u16,
}

impl Ring {
    /// Makes a ring for a number of connections that all send the same request.
    pub(super) fn new(connections: usize, request: Vec<u8>) -> io::Result<Self> {
        let count = connections.clamp(*BUFFERS.start(), *BUFFERS.end()).next_power_of_two();
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(SUBMISSIONS)?;
        let entries: *mut BufRingEntry = leaked_pages(count * size_of::<BufRingEntry>())?.cast();
        let buffers = leaked_pages(count * BUFFER_BYTES)?;
        // SAFETY: there are `count` entries, page-aligned, zeroed, and never freed.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(entries as u64, count as u16, BUFFER_GROUP, 0)?;
        }
        let mut ring = Self {
            ring,
            request: request.leak(),
            completed: Vec::with_capacity(COMPLETIONS as usize),
            filled: Vec::with_capacity(COMPLETIONS as usize),
            buffers,
            count: count as u16,
            entries,
            tail: 0,
        };
        (0..count as u16).for_each(|buffer| ring.give_back(buffer));
        Ok(ring)
    }

    /// Starts to receive. An event comes for each piece, until an event's `goes_on` is false.
    pub(super) fn receive(&mut self, socket: &impl AsRawFd, slot: u32) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(descriptor(socket), BUFFER_GROUP).build();
        self.push(&entry.user_data(u64::from(slot)))
    }

    /// Sends the request. An event comes only if the send failed.
    #[inline]
    pub(super) fn send(&mut self, socket: &impl AsRawFd, slot: u32) -> io::Result<()> {
        let entry = opcode::Send::new(descriptor(socket), self.request.as_ptr(), self.request.len() as u32)
            .flags(SendFlags::NOSIGNAL.bits() as i32)
            .build()
            .flags(Flags::SKIP_SUCCESS);
        self.push(&entry.user_data(SEND | u64::from(slot)))
    }

    /// Submits the pending operations and waits until one has completed, at most 100 ms.
    pub(super) fn submit_and_wait(&mut self) -> io::Result<()> {
        let time = Timespec::new().nsec(100_000_000);
        let entered = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time));
        match entered.map_err(|error| Errno::from_io_error(&error)) {
            Ok(_) | Err(Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN)) => {}
            Err(errno) => return Err(errno.unwrap_or(Errno::IO).into()),
        }
        self.completed.clear();
        for entry in self.ring.completion() {
            self.filled.extend(cqueue::buffer_select(entry.flags()));
            self.completed.push(Completed {
                slot: entry.user_data() as u32,
                result: match entry.result() {
                    result if result < 0 => Err(Errno::from_raw_os_error(-result)),
                    result => Ok(result as u32),
                },
                goes_on: cqueue::more(entry.flags()) || entry.user_data() & SEND != 0,
            });
        }
        while let Some(buffer) = self.filled.pop() {
            self.give_back(buffer);
        }
        Ok(())
    }

    /// Returns the next event of the last wait.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Completed> {
        self.completed.pop()
    }

    #[inline]
    fn push(&mut self, entry: &Entry) -> io::Result<()> {
        loop {
            // SAFETY: the entry points to the request, which is static, or to no memory.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            match self.ring.submit().map_err(|error| Errno::from_io_error(&error)) {
                Ok(_) | Err(Some(Errno::INTR | Errno::AGAIN)) => {}
                Err(errno) => return Err(errno.unwrap_or(Errno::IO).into()),
            }
        }
    }

    /// Gives a buffer back to the kernel.
    #[inline]
    fn give_back(&mut self, buffer: u16) {
        let index = usize::from(self.tail & (self.count - 1));
        // SAFETY: the index is within the ring, and the kernel does not read an entry beyond the tail.
        let entry = unsafe { &mut *self.entries.add(index) };
        entry.set_addr(self.buffers.wrapping_add(usize::from(buffer) * BUFFER_BYTES) as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the ring, aligned to its two bytes. The kernel may read it at any time, so it is
        // written atomically and after the entry.
        unsafe {
            let tail = BufRingEntry::tail(self.entries).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

fn descriptor(socket: &impl AsRawFd) -> Fd {
    let descriptor: RawFd = socket.as_raw_fd();
    Fd(descriptor)
}

/// Returns zeroed memory that begins at a page and is never freed.
fn leaked_pages(bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: the kernel chooses the address, so no other mapping is replaced.
    let pages =
        unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)? };
    Ok(pages.cast())
}
