//! Socket options and a receive call that no safe crate offers.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Memory for control messages, aligned like their headers.
#[derive(Debug)]
#[repr(align(8))]
pub struct Control<const BYTES: usize>(pub [u8; BYTES]);

/// `IP_BIND_ADDRESS_NO_PORT`: chooses the port of a bound socket in connect(2), so that the port need only be unique
/// per destination. Without this option (before Linux 4.2) ports run out sooner, and connecting reports that.
pub fn choose_port_when_connecting(socket: BorrowedFd<'_>) {
    let _ = set(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
}

/// `SO_TIMESTAMPING`: the kernel stamps each packet that it receives. [`receive_message`] returns the stamps as control
/// messages.
///
/// # Errors
/// The kernel does not support software stamps.
pub fn stamp_received_packets(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let by_the_kernel = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    let value = by_the_kernel as libc::c_int;
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, value)
}

fn set(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and the value is read during the call only, as many bytes as are said to be
    // there.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// Reads once, like recv(2). Returns the number of bytes read, and the number of bytes of control messages.
///
/// # Errors
/// Those of recvmsg(2).
#[inline]
pub fn receive_message<const BYTES: usize>(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    control: &mut Control<BYTES>,
) -> Result<(usize, usize), Errno> {
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a header of zeros has no address, no pieces and no control messages.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = BYTES as _;
    // SAFETY: the descriptor is open. The header and its memory live and stay untouched during the call. The kernel
    // writes at most as many bytes as each length allows.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    match usize::try_from(received) {
        Ok(received) => Ok((received, (header.msg_controllen as usize).min(BYTES))),
        Err(_) => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
