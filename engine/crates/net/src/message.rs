//! Receives bytes together with the kernel's stamp of them.

use std::os::fd::BorrowedFd;

use weir_sys::socket::{self, Control};

use crate::Errno;
use crate::stamps::{CONTROL_BYTES, stamp_in};

/// Reads once, like recv(2). Returns the number of bytes read, and the kernel's stamp of them.
#[inline]
pub(crate) fn receive_message(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<(usize, Option<u64>), Errno> {
    let mut control = Control([0; CONTROL_BYTES]);
    let (received, length) = socket::receive_message(socket, buffer, &mut control)?;
    Ok((received, stamp_in(&control.0[..length])))
}
