//! The event loop of all servers except most faults: one thread, level-triggered epoll.
//!
//! Hot path (null): one `recv` and one `send` per readable connection, also for pipelined requests. It does not
//! allocate: it parses requests in the receive buffer, and reuses a connection's output buffer. One `epoll_wait` serves
//! all ready connections.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, sockopt};

use crate::connection::{Connection, FlushResult};
use crate::delayed::{self, DelayedResponse, DelayedResponses};
use crate::fault;
use crate::queue::Queue;
use crate::request::{self, Parsed, Persistence, Request};
use crate::{Behaviour, Error, Fault, Listener, ServerEnd};
use weir_schedule::Random;
use weir_sys::pipe::is_closed;

const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const WATCH: u64 = u64::MAX - 2;

const SMALL_OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
const SMALL_OK_HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n";

/// Events of a connection without unsent output.
const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

/// Size of one `recv`: enough for a pipelined batch, and small enough for the L2 cache.
const RECEIVE_BYTES: usize = 64 * 1024;

/// The event loop and its connections.
pub struct Server<'a> {
    listener: &'a Listener,
    behaviour: Behaviour,
    watch: Option<BorrowedFd<'a>>,
    epoll: OwnedFd,
    delayed: DelayedResponses,
    /// The index is the connection's epoll token.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    generation: u32,
    /// Service times and faults, for [`Behaviour::Times`].
    random: Random,
    /// The queue of [`Behaviour::Times`] with a limited number of servers.
    queue: Option<Queue>,
    /// Start of the server, and of the first period of [`Behaviour::Stall`].
    began: Instant,
    buffer: Vec<u8>,
    response_count: u64,
    /// Whether accepting waits for a connection to end, because no descriptor was left.
    accepting_paused: bool,
}

impl<'a> Server<'a> {
    pub fn new(listener: &'a Listener, behaviour: Behaviour, watch: Option<BorrowedFd<'a>>) -> Result<Self, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let began = Instant::now();
        let delayed = DelayedResponses::new(began)?;
        add(&epoll, listener, LISTENER, EventFlags::IN)?;
        let edge = EventFlags::IN | EventFlags::ET;
        add(&epoll, &delayed.timer, TIMER, edge)?;
        if let Some(watch) = watch {
            add(&epoll, watch, WATCH, EventFlags::IN)?;
        }
        Ok(Self {
            listener,
            behaviour,
            watch,
            epoll,
            delayed,
            connections: Vec::new(),
            free: Vec::new(),
            generation: 0,
            random: match behaviour {
                Behaviour::Times { seed, .. } => Random::new(seed, 0),
                _ => Random::new(0, 0),
            },
            queue: match behaviour {
                Behaviour::Times { servers, .. } => servers.map(|servers| Queue::new(servers.get())),
                _ => None,
            },
            began,
            buffer: vec![0; RECEIVE_BYTES],
            response_count: 0,
            accepting_paused: false,
        })
    }

    pub fn run(mut self) -> Result<ServerEnd, Error> {
        let mut events = Vec::with_capacity(256);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let (data, flags) = (event.data, event.flags);
                match data.u64() {
                    LISTENER => self.accept()?,
                    TIMER => self.send_due()?,
                    WATCH => {
                        if self.watch.is_some_and(is_closed) {
                            return Ok(ServerEnd::WatchClosed);
                        }
                    }
                    slot => self.handle_connection(slot as usize, flags)?,
                }
                if self.is_at_limit() {
                    return Ok(ServerEnd::RequestLimit);
                }
            }
        }
    }

    fn is_at_limit(&self) -> bool {
        matches!(self.behaviour, Behaviour::Fault { requests: Some(limit), .. } if self.response_count >= limit)
    }

    fn accept(&mut self) -> Result<(), Error> {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = match rustix::net::accept_with(self.listener, flags) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    epoll::delete(&self.epoll, self.listener)?;
                    self.accepting_paused = true;
                    return Ok(());
                }
                // The connection failed before it was accepted.
                Err(_) => continue,
            };
            // A response is one write, which Nagle's algorithm could only delay.
            let _ = sockopt::set_tcp_nodelay(&socket, true);
            let slot = self.free.pop().unwrap_or(self.connections.len());
            add(&self.epoll, &socket, slot as u64, READABLE)?;
            self.generation = self.generation.wrapping_add(1);
            let connection = Some(Connection::new(socket, self.generation, READABLE));
            match self.connections.get_mut(slot) {
                Some(entry) => *entry = connection,
                None => self.connections.push(connection),
            }
        }
    }

    /// Reads requests from a ready connection and sends the responses.
    fn handle_connection(&mut self, slot: usize, flags: EventFlags) -> Result<(), Error> {
        // The slot may have been freed earlier in the same batch of events.
        let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else {
            return Ok(());
        };
        let mut alive = true;
        if flags.intersects(READABLE | EventFlags::HUP | EventFlags::ERR) && !connection.is_full() {
            alive = self.receive(slot, &mut connection);
        }
        self.put_back(slot, connection, alive)
    }

    /// Sends the output, then keeps the connection or closes it.
    fn put_back(&mut self, slot: usize, mut connection: Connection, alive: bool) -> Result<(), Error> {
        let flushed = connection.flush();
        let finished = flushed == FlushResult::Complete && connection.closing && connection.delayed == 0;
        if !alive || flushed == FlushResult::Failed || finished {
            drop(connection);
            self.free.push(slot);
            if std::mem::take(&mut self.accepting_paused) {
                add(&self.epoll, self.listener, LISTENER, EventFlags::IN)?;
            }
            return Ok(());
        }
        let interest = match flushed {
            FlushResult::Blocked if connection.is_full() => EventFlags::OUT,
            FlushResult::Blocked => READABLE | EventFlags::OUT,
            _ => READABLE,
        };
        if interest != connection.interest {
            connection.interest = interest;
            let data = EventData::new_u64(slot as u64);
            epoll::modify(&self.epoll, &connection.socket, data, interest)?;
        }
        self.connections[slot] = Some(connection);
        Ok(())
    }

    /// Reads once and responds to every complete request. Returns false if the connection must close.
    fn receive(&mut self, slot: usize, connection: &mut Connection) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let received = rustix::net::recv(&connection.socket, &mut buffer[..], RecvFlags::empty());
        let alive = match received {
            Ok((0, _)) => false,
            Ok(_) if connection.closing => true,
            Ok((count, _)) if connection.input.is_empty() => {
                let consumed = self.respond_to_all(slot, connection, &buffer[..count]);
                connection.input.extend_from_slice(&buffer[consumed..count]);
                true
            }
            Ok((count, _)) => {
                connection.input.extend_from_slice(&buffer[..count]);
                let mut input = std::mem::take(&mut connection.input);
                let consumed = self.respond_to_all(slot, connection, &input);
                input.drain(..consumed);
                connection.input = input;
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        };
        self.buffer = buffer;
        alive
    }

    /// Responds to the complete requests at the start of `input`. Returns their length in bytes.
    fn respond_to_all(&mut self, slot: usize, connection: &mut Connection, input: &[u8]) -> usize {
        let mut consumed = 0;
        while consumed < input.len() && !connection.closing && !self.is_at_limit() {
            match request::parse(&input[consumed..]) {
                Parsed::Incomplete(expects_continue) => {
                    if expects_continue && !connection.continued {
                        connection.continued = true;
                        let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
                        connection.output.extend_from_slice(interim);
                    }
                    break;
                }
                Parsed::Refused(status) => {
                    let response =
                        format!("HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                    connection.output.extend_from_slice(response.as_bytes());
                    connection.closing = true;
                    return input.len();
                }
                Parsed::Complete(request) => {
                    consumed += request.length;
                    connection.continued = false;
                    connection.closing = !request.persistence.is_open();
                    self.respond(slot, connection, &request);
                }
            }
        }
        consumed
    }

    fn respond(&mut self, slot: usize, connection: &mut Connection, request: &Request<'_>) {
        self.response_count += 1;
        let output = &mut connection.output;
        match self.behaviour {
            Behaviour::Null => small_ok(output, request.persistence, request.is_head),
            Behaviour::Echo => echo(output, request),
            Behaviour::Delay { wait } => self.respond_later(slot, connection, request, wait, None),
            Behaviour::Times { distribution, fault, fault_share, .. } => {
                let service_time = distribution.draw(&mut self.random);
                let wait = match &mut self.queue {
                    Some(queue) => {
                        let now = Instant::now();
                        queue.done_at(now, service_time) - now
                    }
                    None => service_time,
                };
                let fault = fault.filter(|_| self.random.unit() <= fault_share);
                self.respond_later(slot, connection, request, wait, fault);
            }
            Behaviour::Stall { every, length } => {
                match stall_rest(self.began.elapsed(), every, length) {
                    // A response must not overtake a delayed one of the same connection.
                    None if connection.delayed == 0 => {
                        small_ok(output, request.persistence, request.is_head);
                    }
                    rest => {
                        let wait = rest.unwrap_or(Duration::ZERO);
                        self.respond_later(slot, connection, request, wait, None);
                    }
                }
            }
            Behaviour::Fault { kind: Fault::Status500, .. } => {
                fault::write_status_500(output, request.is_head);
            }
            Behaviour::Fault { .. } => small_ok(output, request.persistence, request.is_head),
        }
    }

    /// Delays the response by `wait`, or until the responses before it on its connection are sent.
    fn respond_later(
        &mut self,
        slot: usize,
        connection: &mut Connection,
        request: &Request<'_>,
        wait: Duration,
        fault: Option<Fault>,
    ) {
        let now = Instant::now();
        let mut earliest = now + wait;
        let mut latest = earliest + delayed::slack(wait);
        if let Some((last_earliest, last_latest)) = connection.last_due {
            earliest = earliest.max(last_earliest);
            latest = latest.max(last_latest);
        }
        connection.last_due = Some((earliest, latest));
        connection.delayed += 1;
        let response = DelayedResponse {
            latest,
            earliest,
            number: self.response_count,
            slot,
            generation: connection.generation,
            persistence: request.persistence,
            is_head: request.is_head,
            fault,
        };
        self.delayed.push(response, now);
    }

    /// Sends the delayed responses that are due.
    fn send_due(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        while let Some(due) = self.delayed.pop(now) {
            let entry = self.connections.get_mut(due.slot);
            let same = |connection: &mut Connection| connection.generation == due.generation;
            let Some(mut connection) = entry.and_then(|entry| entry.take_if(same)) else {
                continue;
            };
            let alive = write_delayed(&mut connection, &due);
            self.put_back(due.slot, connection, alive)?;
        }
        Ok(())
    }
}

fn add(epoll: &OwnedFd, source: impl AsFd, token: u64, flags: EventFlags) -> Result<(), Errno> {
    epoll::add(epoll, source, EventData::new_u64(token), flags)
}

/// Writes a delayed response or its fault. Returns false if the connection must close.
fn write_delayed(connection: &mut Connection, due: &DelayedResponse) -> bool {
    let Some(fault) = due.fault else {
        connection.delayed -= 1;
        small_ok(&mut connection.output, due.persistence, due.is_head);
        return true;
    };
    match fault {
        // The response stays delayed, so the connection stays open. Later requests are not read.
        Fault::Silent => {
            connection.closing = true;
            return true;
        }
        Fault::Close => return false,
        Fault::Reset => {
            fault::reset_on_close(&connection.socket);
            return false;
        }
        Fault::Garbage => connection.output.extend_from_slice(fault::GARBAGE),
        Fault::Half => connection.output.extend_from_slice(fault::HALF),
        Fault::Status500 | Fault::SlowDrip | Fault::DieAfter => {
            fault::write_status_500(&mut connection.output, due.is_head);
        }
    }
    connection.delayed -= 1;
    connection.closing |= matches!(fault, Fault::Garbage | Fault::Half);
    true
}

/// Returns the rest of a stall at the time `elapsed`. Returns `None` outside of a stall, which is the last `length` of
/// each `every`.
fn stall_rest(elapsed: Duration, every: Duration, length: Duration) -> Option<Duration> {
    let period_ns = every.as_nanos().max(1);
    let left_of_period_ns = period_ns - elapsed.as_nanos() % period_ns;
    let left = Duration::from_nanos(u64::try_from(left_of_period_ns).unwrap_or(u64::MAX));
    (left <= length).then_some(left)
}

fn small_ok(output: &mut Vec<u8>, persistence: Persistence, is_head: bool) {
    if persistence == Persistence::KeepAlive && !is_head {
        return output.extend_from_slice(SMALL_OK);
    }
    let body = if is_head { "" } else { "ok" };
    for part in [SMALL_OK_HEAD, persistence.header(), "\r\n", body] {
        output.extend_from_slice(part.as_bytes());
    }
}

fn echo(output: &mut Vec<u8>, request: &Request<'_>) {
    use std::io::Write;
    output.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: ");
    output.extend_from_slice(request.content_type.unwrap_or(b"application/octet-stream"));
    // Writing to a Vec cannot fail.
    let _ = write!(output, "\r\n{}Content-Length: {}\r\n\r\n", request.persistence.header(), request.body.len());
    if !request.is_head {
        output.extend_from_slice(&request.body);
    }
}

#[cfg(test)]
mod tests {
    use super::stall_rest;
    use std::time::Duration;

    #[test]
    fn stall_is_the_end_of_each_period() {
        let at = |ms| stall_rest(Duration::from_millis(ms), Duration::from_secs(2), Duration::from_millis(500));
        for outside in [0, 1, 1000, 1499, 2000, 3499, 4000] {
            assert_eq!(at(outside), None, "{outside}");
        }
        for (ms, left) in [(1500, 500), (1999, 1), (3500, 500), (3750, 250)] {
            assert_eq!(at(ms), Some(Duration::from_millis(left)), "{ms}");
        }
    }
}
