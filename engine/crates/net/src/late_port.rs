//! One socket option that no safe crate offers.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, OwnedFd};

/// The port of a bound socket is chosen when it is connected and not when it is bound: then it needs to be free only towards that
/// server, and not altogether. Without it (before Linux 4.2) ports run out sooner, which connecting reports.
pub(crate) fn choose_port_when_connecting(descriptor: &OwnedFd) {
    let yes: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the value is read during the call only, as many bytes as are said to be there.
    unsafe {
        libc::setsockopt(
            descriptor.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const yes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}
