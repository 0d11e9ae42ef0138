//! The loop on epoll: a request costs one `send`, one `recv` and its share of an `epoll_wait`. Sockets are registered
//! once, edge-triggered. A `recv` that does not fill the buffer has emptied the socket.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{Client, Counted, is_complete};
use crate::response;

const EVENTS: usize = 256;
const RECEIVE_BYTES: usize = 64 * 1024;

/// Sends requests on all connections until the time is over.
pub(super) fn run(client: Client, duration: Duration) -> io::Result<Counted> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (slot, stream) in client.streams.iter().enumerate() {
        stream.set_nonblocking(true)?;
        epoll::add(&epoll, stream, EventData::new_u64(slot as u64), EventFlags::IN | EventFlags::ET)?;
    }
    let mut received = vec![0_u32; client.streams.len()];
    let mut buffer = vec![0; RECEIVE_BYTES];
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
    let mut responses = 0;
    let start = Instant::now();
    for stream in &client.streams {
        send_all(stream, &client.request)?;
    }
    while start.elapsed() < duration {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        for event in &events {
            let slot = event.data.u64() as usize;
            let stream = &client.streams[slot];
            let bytes = match recv(stream, &mut buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => return Err(response::closed()),
                Ok((bytes, _)) => bytes,
                Err(Errno::AGAIN) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if is_complete(&mut received[slot], bytes, client.response_bytes)? {
                responses += 1;
                send_all(stream, &client.request)?;
            }
        }
    }
    Ok(Counted { responses, elapsed_s: start.elapsed().as_secs_f64() })
}

/// The loop checks the time at least this often, also without responses.
const TICK: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

#[inline]
fn send_all(stream: &TcpStream, request: &[u8]) -> io::Result<()> {
    response::check_sent(send(stream, request, SendFlags::NOSIGNAL)?, request)
}
