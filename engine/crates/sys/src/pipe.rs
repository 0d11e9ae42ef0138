//! Pipes and sockets whose other side may close, such as the standard input of a child process.

use std::os::fd::AsFd;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

/// Returns whether a descriptor is a pipe or a socket. A terminal, a file or /dev/null says nothing about the parent
/// process.
pub fn is_pipe(descriptor: impl AsFd) -> bool {
    fstat(descriptor)
        .map(|status| FileType::from_raw_mode(status.st_mode))
        .is_ok_and(|kind| matches!(kind, FileType::Fifo | FileType::Socket))
}

/// Reads once and discards the bytes. Returns whether the other side has closed.
pub fn is_closed(descriptor: impl AsFd) -> bool {
    let mut ignored = [0; 4096];
    match rustix::io::read(descriptor, &mut ignored) {
        Ok(count) => count == 0,
        Err(Errno::AGAIN | Errno::INTR) => false,
        Err(_) => true,
    }
}
