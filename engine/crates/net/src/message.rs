//! Reading a socket with what the kernel says beside the bytes, which no safe crate offers for stamps.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::stamps::{CONTROL_BYTES, stamp_in};

/// Memory for messages of control, aligned as their heads are.
#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Reads once, as `recv` does, and gives how many bytes came and the kernel's stamp of them.
#[inline]
pub(crate) fn receive_message(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> Result<(usize, Option<u64>), Errno> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut piece = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: a head of zeros is one without an address, without pieces and without control.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_iov = &raw mut piece;
    head.msg_iovlen = 1;
    head.msg_control = control.0.as_mut_ptr().cast();
    head.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the descriptor is open. The head and what it points to live and are not touched during the call, in which the kernel
    // writes no more bytes than each of the lengths says.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut head, 0) };
    let Ok(received) = usize::try_from(received) else {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
    };
    let length = (head.msg_controllen as usize).min(CONTROL_BYTES);
    Ok((received, stamp_in(&control.0[..length])))
}
