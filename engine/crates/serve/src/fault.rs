//! Servers that misbehave in one chosen way, to see what a client makes of it.
//!
//! The faults that a well-behaved event loop cannot commit have a thread a connection here; `status-500` and `die-after` are answers of the
//! ordinary loop in `server`.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};

use crate::request::{self, Parsed};
use crate::server::is_closed;
use crate::{Ended, Error, Listener};

/// Between two bytes of [`Fault::SlowDrip`]: an answer of 60 bytes takes 6 seconds, longer than any sensible timeout.
const DRIP_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) const GARBAGE: &[u8] = b"\x00\x01 this is not HTTP \xff\xfe\r\n\r\n";
pub(crate) const HALF: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\n0123456789";
const STATUS_500: &[u8] =
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n";

/// A way to misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Accepts a connection and closes it.
    Close,
    /// Reads requests and never answers.
    Silent,
    /// Answers with what is not HTTP, then closes.
    Garbage,
    /// Answers with half of what it announced, then closes.
    Half,
    /// Resets the connection in place of an answer.
    Reset,
    /// Answers every request with status 500.
    Status500,
    /// Answers with a byte every 100 ms.
    SlowDrip,
    /// Serves well and ends after this many answers.
    DieAfter(u64),
}

impl Fault {
    /// Whether the fault needs a thread and a socket of its own.
    pub(crate) fn needs_raw_connection(self) -> bool {
        !matches!(self, Self::Status500 | Self::DieAfter(_))
    }
}

/// Accepts until `watch` is closed; every connection gets a thread.
pub fn serve(
    listener: &Listener,
    fault: Fault,
    watch: Option<BorrowedFd<'_>>,
) -> Result<Ended, Error> {
    loop {
        let mut waits = vec![PollFd::new(listener, PollFlags::IN)];
        if let Some(watch) = &watch {
            waits.push(PollFd::new(watch, PollFlags::IN));
        }
        match poll(&mut waits, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let watch_is_ready = waits.get(1).is_some_and(|wait| !wait.revents().is_empty());
        if watch_is_ready && watch.is_some_and(is_closed) {
            return Ok(Ended::WatchClosed);
        }
        if waits[0].revents().is_empty() {
            continue;
        }
        // The listener does not block; what it accepts does.
        let Ok(socket) = rustix::net::accept_with(listener, SocketFlags::CLOEXEC) else {
            continue;
        };
        if fault == Fault::Close {
            continue;
        }
        // Without a thread the connection is closed: a fault all the same.
        let _ = std::thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(move || {
                // How the other side takes it is its own affair.
                let _ = misbehave(TcpStream::from(socket), fault);
            });
    }
}

fn misbehave(mut stream: TcpStream, fault: Fault) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = Vec::new();
    while read_request(&mut stream, &mut input)? {
        match fault {
            Fault::Garbage => {
                stream.write_all(GARBAGE)?;
                return close(&stream);
            }
            Fault::Half => {
                stream.write_all(HALF)?;
                return close(&stream);
            }
            Fault::Reset => {
                reset_on_close(&stream);
                return Ok(());
            }
            Fault::SlowDrip => {
                for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nabcdefghijklmnopqrst" {
                    stream.write_all(&[*byte])?;
                    std::thread::sleep(DRIP_INTERVAL);
                }
            }
            Fault::Close | Fault::Silent | Fault::Status500 | Fault::DieAfter(_) => {}
        }
    }
    Ok(())
}

/// A whole answer that says that it failed.
pub(crate) fn status_500(output: &mut Vec<u8>, is_head: bool) {
    output.extend_from_slice(STATUS_500);
    if !is_head {
        output.extend_from_slice(b"fault");
    }
}

/// Lingering for no time makes close() send a reset.
pub(crate) fn reset_on_close(socket: impl AsFd) {
    // Refused only by what is no socket.
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// Sends what was written, then the end. Without reading on, unread bytes would turn the end into a reset.
fn close(stream: &TcpStream) -> std::io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    std::io::copy(&mut &*stream, &mut std::io::sink()).map(drop)
}

/// Takes one whole request from the stream. False: the client closed.
fn read_request(stream: &mut TcpStream, input: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut buffer = [0; 8192];
    loop {
        match request::parse(input) {
            Parsed::Whole(request) => {
                let length = request.length;
                input.drain(..length);
                return Ok(true);
            }
            Parsed::Refused(_) => return Ok(false),
            Parsed::Incomplete(_) => match stream.read(&mut buffer)? {
                0 => return Ok(false),
                count => input.extend_from_slice(&buffer[..count]),
            },
        }
    }
}
