//! Servers with one chosen fault, for checks of a client's error handling.
//!
//! Most faults have one thread per connection here. `status-500` and `die-after` are responses of the event loop in
//! `server`.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};

use crate::request::{self, Parsed};
use crate::{Error, Fault, Listener, ServerEnd};
use weir_sys::pipe::is_closed;

/// Time between two bytes of [`Fault::SlowDrip`]: a response of 60 bytes takes 6 s, longer than usual timeouts.
const DRIP_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) const GARBAGE: &[u8] = b"\x00\x01 this is not HTTP \xff\xfe\r\n\r\n";
pub(crate) const HALF: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\n0123456789";
const STATUS_500: &[u8] =
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n";

/// Accepts connections, with one thread each, until `watch` closes.
pub fn serve(listener: &Listener, fault: Fault, watch: Option<BorrowedFd<'_>>) -> Result<ServerEnd, Error> {
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
            return Ok(ServerEnd::WatchClosed);
        }
        if waits[0].revents().is_empty() {
            continue;
        }
        // The listener does not block, but the accepted socket does.
        let Ok(socket) = rustix::net::accept_with(listener, SocketFlags::CLOEXEC) else {
            continue;
        };
        if fault == Fault::Close {
            continue;
        }
        // Without a thread the connection closes, which is a fault too.
        let _ = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            // An error of the client's side needs no handling.
            let _ = serve_connection(TcpStream::from(socket), fault);
        });
    }
}

fn serve_connection(mut stream: TcpStream, fault: Fault) -> std::io::Result<()> {
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
            Fault::Close | Fault::Silent | Fault::Status500 | Fault::DieAfter => {}
        }
    }
    Ok(())
}

/// Appends a complete response with status 500.
pub(crate) fn write_status_500(output: &mut Vec<u8>, is_head: bool) {
    output.extend_from_slice(STATUS_500);
    if !is_head {
        output.extend_from_slice(b"fault");
    }
}

/// Makes close() send a reset.
pub(crate) fn reset_on_close(socket: impl AsFd) {
    // Fails only if the descriptor is no socket.
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// Closes the connection without a reset. Unread bytes would cause one, so this reads until the client closes.
fn close(stream: &TcpStream) -> std::io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    std::io::copy(&mut &*stream, &mut std::io::sink()).map(drop)
}

/// Reads one complete request. Returns false if the client has closed.
fn read_request(stream: &mut TcpStream, input: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut buffer = [0; 8192];
    loop {
        match request::parse(input) {
            Parsed::Complete(request) => {
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
