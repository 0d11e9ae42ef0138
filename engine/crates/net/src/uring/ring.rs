//! The ring and the memory it shares with the kernel.
//!
//! Soundness: memory that the kernel may read or write later is never freed. Sent bytes are `'static`, in cells if they
//! are overwritten. The receive buffers and their ring are leaked; the engine makes one ring for each load thread,
//! once. The memory of ordered sends is leaked too, and reused after their completions. A descriptor may be closed or
//! reused at any time. The kernel then works on another file or none, which is wrong but not unsafe; the driver
//! prevents it.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{BufRingEntry, Fd, RecvMsgOut, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::net::SendFlags;

use crate::Wait;
use crate::stamps::{CONTROL_BYTES, stamp_in};

/// Requests gathered before the kernel is told; more are submitted early.
const SUBMISSIONS: u32 = 1024;
/// Completions that the kernel can note before it has to keep them elsewhere.
const COMPLETIONS: u32 = 8192;
/// Receive buffers: a power of two, one for each connection within these bounds. If more responses come at once,
/// receiving pauses for some connections. 2,048 buffers were no faster with 10,000 connections (throughput 1.07, 0.94
/// to 1.24, with half of them) and took
/// 3.6 MB more.
const BUFFERS: RangeInclusive<usize> = 64..=1024;
/// A buffer fits most responses; memory is touched only as far as buffers are filled.
const BUFFER_BYTES: usize = 4096;
const BUFFER_GROUP: u16 = 0;
/// Attempts to make room for an entry in a full queue. The kernel refuses for want of memory, or until completions are
/// taken.
const MAX_SUBMIT_ATTEMPTS: u32 = 1000;

/// Bytes to be sent. Never freed, as the module says; those of one request may be written over.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outgoing {
    Payload(&'static [u8]),
    Once(&'static [Cell<u8>]),
}

/// One completion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completed {
    pub(super) tag: u64,
    pub(super) result: Result<u32, Errno>,
    /// The buffer that was filled, to be given back by [`Ring::give_back`].
    pub(super) buffer: Option<u16>,
    /// Whether the request goes on completing.
    pub(super) goes_on: bool,
}

/// Bytes that came: where they are in the buffers, and the kernel's stamp of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incoming {
    pub(super) buffer: u16,
    from: u16,
    pub(super) length: usize,
    pub(super) stamp: Option<u64>,
}

/// Memory of bytes that are sent once, with what the sender wants to know when they were.
#[derive(Debug)]
struct Owned {
    memory: std::mem::ManuallyDrop<Vec<u8>>,
    note: u32,
}

/// A ring of one thread, with its receive buffers and the memory of copied sends.
pub(super) struct Ring {
    ring: IoUring,
    completed: Vec<Completed>,
    position: usize,
    owned: Vec<Owned>,
    /// Which of them the kernel has done with.
    free_owned: Vec<u32>,
    /// The receive buffers. A pointer and no reference: the kernel writes into every buffer that it was given, and a
    /// reference would promise the opposite.
    buffers: NonNull<[u8; BUFFER_BYTES]>,
    buffer_count: usize,
    /// What messages are to look like, where they are asked for instead of their bytes alone. Leaked: the kernel reads
    /// it when a request is submitted.
    message: Option<&'static libc::msghdr>,
    entries: *mut BufRingEntry,
    tail: u16,
    /// The error of a submission that did not work, reported by the next [`Ring::enter`].
    submit_error: Option<io::Error>,
    /// Errors that take the place of the next system calls.
    #[cfg(test)]
    pub(super) faults: std::collections::VecDeque<Option<Errno>>,
}

impl Ring {
    /// A ring for so many connections, of the thread that calls this and of no other.
    pub(super) fn new(connections: usize) -> io::Result<Self> {
        let count = connections.clamp(*BUFFERS.start(), *BUFFERS.end()).next_power_of_two();
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_single_issuer()
            .setup_defer_taskrun()
            // An entry that the kernel refuses does not hold back those behind it.
            .setup_submit_all()
            .build(SUBMISSIONS)?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::from(Errno::NOSYS));
        }
        let entries: *mut BufRingEntry = leaked_pages(count * size_of::<BufRingEntry>())?.cast();
        let buffers = NonNull::new(leaked_pages(count * BUFFER_BYTES)?.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the entries are page-aligned, that many, zeroed, and never freed.
        unsafe { ring.submitter().register_buf_ring_with_flags(entries as u64, count as u16, BUFFER_GROUP, 0)? };
        let mut ring = Self {
            ring,
            completed: Vec::with_capacity(1024),
            position: 0,
            owned: Vec::new(),
            free_owned: Vec::new(),
            buffers,
            buffer_count: count,
            message: None,
            entries,
            tail: 0,
            submit_error: None,
            #[cfg(test)]
            faults: std::collections::VecDeque::new(),
        };
        (0..count as u16).for_each(|buffer| ring.give_back(buffer));
        Ok(ring)
    }

    /// Completes once when the socket can be written to, or failed.
    pub(super) fn when_writable(&mut self, socket: BorrowedFd<'_>, tag: u64) {
        self.push(opcode::PollAdd::new(Fd(socket.as_raw_fd()), libc::POLLOUT as u32).build().user_data(tag));
    }

    /// From here on the kernel fills buffers with messages: its control data, then the bytes.
    pub(super) fn receive_messages(&mut self) {
        // SAFETY: a head of zeros is one without an address, without pieces and without control.
        let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
        head.msg_controllen = CONTROL_BYTES as _;
        self.message = Some(Box::leak(Box::new(head)));
    }

    /// Completes for each piece that comes, until it says that it does not go on.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>, tag: u64) {
        let socket = Fd(socket.as_raw_fd());
        let entry = match self.message {
            None => opcode::RecvMulti::new(socket, BUFFER_GROUP).build(),
            Some(head) => opcode::RecvMsgMulti::new(socket, head, BUFFER_GROUP).build(),
        };
        self.push(entry.user_data(tag));
    }

    /// Sends all of the bytes. Completes when that failed, and if it is to be reported, also when it worked.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, bytes: Outgoing, tag: u64, report: bool) {
        let (start, length) = match bytes {
            Outgoing::Payload(bytes) => (bytes.as_ptr(), bytes.len()),
            Outgoing::Once(bytes) => (bytes.as_ptr().cast(), bytes.len()),
        };
        let flags = SendFlags::NOSIGNAL.bits() as i32 | libc::MSG_WAITALL;
        let entry = opcode::Send::new(Fd(socket.as_raw_fd()), start, length as u32).flags(flags).build().user_data(tag);
        self.push(if report { entry } else { entry.flags(Flags::SKIP_SUCCESS) });
    }

    /// Sends a copy of bytes. Completes with the tag of the copy's number, which is to be given to [`Ring::free_owned`]
    /// then.
    pub(super) fn send_owned(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], note: u32, tag: impl FnOnce(u32) -> u64) {
        let number = self.free_owned.pop().unwrap_or_else(|| {
            let memory = std::mem::ManuallyDrop::new(Vec::new());
            self.owned.push(Owned { memory, note });
            (self.owned.len() - 1) as u32
        });
        let owned = &mut self.owned[number as usize];
        owned.note = note;
        // The kernel does not read it now: growing may move it.
        owned.memory.clear();
        owned.memory.extend_from_slice(bytes);
        let flags = SendFlags::NOSIGNAL.bits() as i32 | libc::MSG_WAITALL;
        let (start, length) = (owned.memory.as_ptr(), owned.memory.len() as u32);
        self.push(opcode::Send::new(Fd(socket.as_raw_fd()), start, length).flags(flags).build().user_data(tag(number)));
    }

    /// A copy was sent or has failed, so its memory can be used again. Returns the sender's note.
    pub(super) fn free_owned(&mut self, number: u32) -> u32 {
        self.free_owned.push(number);
        self.owned[number as usize].note
    }

    /// Queues an entry. Submits a full queue first. If that does not work, the entry is dropped, and the next
    /// [`Ring::enter`] fails with the error.
    #[inline]
    fn push(&mut self, entry: Entry) {
        // SAFETY: the entry's memory is static or the ring's own, as the module says. Bytes that are sent once are
        // neither changed nor moved before their completion, which frees their number.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.push_after_submitting(&entry);
        }
    }

    #[cold]
    fn push_after_submitting(&mut self, entry: &Entry) {
        for _ in 0..MAX_SUBMIT_ATTEMPTS {
            match self.submit() {
                Ok(_) => {}
                Err(error) if is_temporary(&error) => self.take_completions(),
                Err(error) => {
                    self.submit_error = Some(error);
                    return;
                }
            }
            // SAFETY: as in `push`.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
        }
        self.submit_error = Some(Errno::AGAIN.into());
    }

    fn submit(&mut self) -> io::Result<usize> {
        #[cfg(test)]
        if let Some(Some(errno)) = self.faults.pop_front() {
            return Err(errno.into());
        }
        self.ring.submit()
    }

    fn take_completions(&mut self) {
        self.completed.extend(self.ring.completion().map(|entry| Completed {
            tag: entry.user_data(),
            result: match entry.result() {
                result if result < 0 => Err(Errno::from_raw_os_error(-result)),
                result => Ok(result as u32),
            },
            buffer: cqueue::buffer_select(entry.flags()),
            goes_on: cqueue::more(entry.flags()),
        }));
    }

    /// Returns whether the kernel has taken every queued entry, so that no entry names a descriptor any more.
    pub(super) fn has_submitted_all(&mut self) -> bool {
        self.ring.submission().is_empty()
    }

    /// Submits the queued entries and waits. Returns whether something has completed.
    ///
    /// # Errors
    /// The kernel refuses submissions for good.
    pub(super) fn enter(&mut self, wait: Wait) -> io::Result<bool> {
        if let Some(error) = self.submit_error.take() {
            return Err(error);
        }
        if self.position == self.completed.len() {
            self.completed.clear();
        } else {
            // `push` has taken completions that were not read yet.
            self.completed.drain(..self.position);
        }
        self.position = 0;
        let entered = self.call(if self.completed.is_empty() { wait } else { Wait::Poll });
        match entered {
            Ok(_) => {}
            // Time is over, a signal came, or completions must be taken before more can be submitted.
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error),
        }
        self.take_completions();
        Ok(!self.completed.is_empty())
    }

    fn call(&mut self, wait: Wait) -> io::Result<usize> {
        #[cfg(test)]
        if let Some(Some(errno)) = self.faults.pop_front() {
            return Err(errno.into());
        }
        match wait {
            Wait::Poll => {
                let submissions = self.ring.submission().len() as u32;
                // SAFETY: no argument is passed; the flag asks for completions without waiting.
                unsafe { self.ring.submitter().enter::<()>(submissions, 0, EnterFlags::GETEVENTS.bits(), None) }
            }
            Wait::AtMostNs(ns) | Wait::AboutNs(ns) => {
                let time = Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        }
    }

    /// Returns the next completion.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Completed> {
        let completed = self.completed.get(self.position).copied()?;
        self.position += 1;
        Some(completed)
    }

    /// Returns the content of a buffer with so many filled bytes.
    #[inline]
    pub(super) fn incoming(&self, buffer: u16, filled: usize) -> Incoming {
        match self.message {
            None => Incoming { buffer, from: 0, length: filled, stamp: None },
            Some(head) => self.incoming_message(buffer, filled, head),
        }
    }

    fn incoming_message(&self, buffer: u16, filled: usize, head: &libc::msghdr) -> Incoming {
        let memory = &self.buffer(buffer)[..filled];
        let message = RecvMsgOut::parse(memory, head).ok();
        let length = message.as_ref().map_or(0, |it| it.payload_data().len());
        Incoming {
            buffer,
            // The bytes are the message's last part.
            from: (filled - length) as u16,
            length,
            stamp: message.and_then(|it| stamp_in(it.control_data())),
        }
    }

    /// The bytes that came, in a buffer that was not given back.
    #[inline]
    pub(super) fn bytes(&self, incoming: &Incoming) -> &[u8] {
        &self.buffer(incoming.buffer)[usize::from(incoming.from)..][..incoming.length]
    }

    /// The memory of a buffer that the kernel has filled and that was not given back.
    #[inline]
    fn buffer(&self, buffer: u16) -> &[u8; BUFFER_BYTES] {
        let index = usize::from(buffer);
        assert!(index < self.buffer_count, "the kernel fills its own buffers");
        // SAFETY: the buffer is within the leaked memory, which was zeroed. The kernel does not write into it before
        // `give_back`, which needs `&mut self` and so ends this reference.
        unsafe { self.buffers.add(index).as_ref() }
    }

    /// Lets the kernel fill a buffer again.
    #[inline]
    pub(super) fn give_back(&mut self, buffer: u16) {
        let index = usize::from(self.tail) & (self.buffer_count - 1);
        // SAFETY: the index is within the ring. The kernel does not look at an entry beyond the tail.
        let entry = unsafe { &mut *self.entries.add(index) };
        entry.set_addr(self.buffers.as_ptr() as u64 + u64::from(buffer) * BUFFER_BYTES as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the ring's base is valid, and the tail lies in it, aligned to its two bytes; the kernel reads it at
        // any time, so that it is written atomically, after the entry.
        unsafe {
            let tail = BufRingEntry::tail(self.entries).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

/// Returns whether a submission that failed may work later: time is over, a signal came, memory is short, or
/// completions must be taken first.
fn is_temporary(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN))
}

/// Zeroed memory at the beginning of a page, never freed, and given by the kernel page by page when it is touched (an
/// aligned allocation would be zeroed, and so touched, at once).
fn leaked_pages(bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: the address is the kernel's to choose, so that no other mapping is replaced.
    let pages =
        unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)? };
    Ok(pages.cast())
}
