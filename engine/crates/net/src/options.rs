//! Socket options that no safe crate offers.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// The port of a bound socket is chosen when it is connected and not when it is bound: then it needs to be free only towards that
/// server, and not altogether. Without it (before Linux 4.2) ports run out sooner, which connecting reports.
pub(crate) fn choose_port_when_connecting(socket: BorrowedFd<'_>) {
    let _ = set(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
}

/// The kernel notes when it receives a packet, and tells it to whoever reads the packet's bytes by `recvmsg`.
pub(crate) fn stamp_what_is_received(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let by_the_kernel = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    let value = by_the_kernel as libc::c_int;
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, value)
}

fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and the value is read during the call only, as many bytes as are said to be there.
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
