//! The event loop of all but the faults that need a thread: one thread, level-triggered epoll.
//!
//! Hot path (null): one `recv` and one `send` a readable connection, however many requests came pipelined in it; no allocation, because
//! requests are understood where they were received and a connection's output buffer is kept. `epoll_wait` is shared by all that are ready.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, sockopt};

use crate::connection::{Connection, Flushed};
use crate::fault::{self, Fault};
use crate::queue::Queue;
use crate::request::{self, Parsed, Persistence, Request};
use crate::service_time::Draws;
use crate::waiting::{self, Due, Waiting};
use crate::{Behaviour, Ended, Error, Listener};

const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const WATCH: u64 = u64::MAX - 2;

const SMALL_OK: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
const SMALL_OK_HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n";

/// What a connection with nothing left to write waits for.
const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

/// One `recv`; large enough for a pipelined batch, small enough to stay in the L2 cache.
const RECEIVE_BYTES: usize = 64 * 1024;

/// The event loop and its connections.
pub struct Server<'a> {
    listener: &'a Listener,
    behaviour: Behaviour,
    watch: Option<BorrowedFd<'a>>,
    epoll: OwnedFd,
    waiting: Waiting,
    /// A slot is the connection's epoll token.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    generation: u32,
    /// Service times and faults, for [`Behaviour::Times`].
    draws: Draws,
    /// Its servers, where they are limited.
    queue: Option<Queue>,
    /// When the server began: where the periods of [`Behaviour::Stall`] are counted from.
    began: Instant,
    buffer: Vec<u8>,
    answered: u64,
    /// No descriptor was left; accepting goes on when a connection ends.
    accepting_paused: bool,
}

impl<'a> Server<'a> {
    pub fn new(
        listener: &'a Listener,
        behaviour: Behaviour,
        watch: Option<BorrowedFd<'a>>,
    ) -> Result<Self, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let began = Instant::now();
        let waiting = Waiting::new(began)?;
        epoll::add(
            &epoll,
            listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        epoll::add(
            &epoll,
            &waiting.timer,
            EventData::new_u64(TIMER),
            EventFlags::IN | EventFlags::ET,
        )?;
        if let Some(watch) = watch {
            epoll::add(&epoll, watch, EventData::new_u64(WATCH), EventFlags::IN)?;
        }
        Ok(Self {
            listener,
            behaviour,
            watch,
            epoll,
            waiting,
            connections: Vec::new(),
            free: Vec::new(),
            generation: 0,
            draws: match behaviour {
                Behaviour::Times { seed, .. } => Draws::new(seed),
                _ => Draws::new(0),
            },
            queue: match behaviour {
                Behaviour::Times { servers, .. } => {
                    servers.map(|servers| Queue::new(servers.get()))
                }
                _ => None,
            },
            began,
            buffer: vec![0; RECEIVE_BYTES],
            answered: 0,
            accepting_paused: false,
        })
    }

    pub fn run(mut self) -> Result<Ended, Error> {
        let mut events = Vec::with_capacity(256);
        loop {
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                None,
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let (data, flags) = (event.data, event.flags);
                match data.u64() {
                    LISTENER => self.accept()?,
                    TIMER => self.answer_due()?,
                    WATCH => {
                        if self.watch.is_some_and(is_closed) {
                            return Ok(Ended::WatchClosed);
                        }
                    }
                    slot => self.attend(slot as usize, flags)?,
                }
                if self.is_dead() {
                    return Ok(Ended::DiedAsAsked);
                }
            }
        }
    }

    fn is_dead(&self) -> bool {
        matches!(self.behaviour, Behaviour::Fault(Fault::DieAfter(requests)) if self.answered >= requests)
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
                // The connection failed before it was accepted; the next may be well.
                Err(_) => continue,
            };
            // An answer goes out whole in one write; waiting for more to send could only delay it.
            let _ = sockopt::set_tcp_nodelay(&socket, true);
            let slot = self.free.pop().unwrap_or(self.connections.len());
            epoll::add(
                &self.epoll,
                &socket,
                EventData::new_u64(slot as u64),
                READABLE,
            )?;
            self.generation = self.generation.wrapping_add(1);
            let connection = Some(Connection::new(socket, self.generation, READABLE));
            match self.connections.get_mut(slot) {
                Some(place) => *place = connection,
                None => self.connections.push(connection),
            }
        }
    }

    /// Reads from, answers and writes to one connection that epoll reported.
    fn attend(&mut self, slot: usize, flags: EventFlags) -> Result<(), Error> {
        // Taken out while it is worked on: events of a slot that was freed earlier in the same batch find nothing.
        let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else {
            return Ok(());
        };
        let mut alive = true;
        if flags.intersects(READABLE | EventFlags::HUP | EventFlags::ERR) && !connection.is_full() {
            alive = self.receive(slot, &mut connection);
        }
        self.put_back(slot, connection, alive)
    }

    /// Writes what is to be written, then keeps the connection or closes it.
    fn put_back(
        &mut self,
        slot: usize,
        mut connection: Connection,
        alive: bool,
    ) -> Result<(), Error> {
        let flushed = connection.flush();
        let finished = flushed == Flushed::All && connection.closing && connection.delayed == 0;
        if !alive || flushed == Flushed::Gone || finished {
            drop(connection);
            self.free.push(slot);
            if std::mem::take(&mut self.accepting_paused) {
                let data = EventData::new_u64(LISTENER);
                epoll::add(&self.epoll, self.listener, data, EventFlags::IN)?;
            }
            return Ok(());
        }
        let interest = match flushed {
            Flushed::Blocked if connection.is_full() => EventFlags::OUT,
            Flushed::Blocked => READABLE | EventFlags::OUT,
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

    /// Reads once and answers every whole request. False: the connection is to be dropped.
    fn receive(&mut self, slot: usize, connection: &mut Connection) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let received = rustix::net::recv(&connection.socket, &mut buffer[..], RecvFlags::empty());
        let alive = match received {
            Ok((0, _)) => false,
            Ok(_) if connection.closing => true,
            Ok((count, _)) if connection.input.is_empty() => {
                let consumed = self.answer_all(slot, connection, &buffer[..count]);
                connection.input.extend_from_slice(&buffer[consumed..count]);
                true
            }
            Ok((count, _)) => {
                connection.input.extend_from_slice(&buffer[..count]);
                let mut input = std::mem::take(&mut connection.input);
                let consumed = self.answer_all(slot, connection, &input);
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

    /// Answers the whole requests at the start of `input`; gives the number of bytes they took.
    fn answer_all(&mut self, slot: usize, connection: &mut Connection, input: &[u8]) -> usize {
        let mut consumed = 0;
        while consumed < input.len() && !connection.closing && !self.is_dead() {
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
                    let answer = format!(
                        "HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    );
                    connection.output.extend_from_slice(answer.as_bytes());
                    connection.closing = true;
                    return input.len();
                }
                Parsed::Whole(request) => {
                    consumed += request.length;
                    connection.continued = false;
                    connection.closing = !request.persistence.stays();
                    self.answer(slot, connection, &request);
                }
            }
        }
        consumed
    }

    fn answer(&mut self, slot: usize, connection: &mut Connection, request: &Request<'_>) {
        self.answered += 1;
        let output = &mut connection.output;
        match self.behaviour {
            Behaviour::Null => small_ok(output, request.persistence, request.is_head),
            Behaviour::Echo => echo(output, request),
            Behaviour::Delay(wait) => self.answer_later(slot, connection, request, wait, None),
            Behaviour::Times {
                distribution,
                fault,
                ..
            } => {
                let service_time = self.draws.next(distribution);
                let wait = match &mut self.queue {
                    Some(queue) => {
                        let now = Instant::now();
                        queue.done_at(now, service_time) - now
                    }
                    None => service_time,
                };
                let fault =
                    fault.and_then(|(fault, share)| self.draws.chance(share).then_some(fault));
                self.answer_later(slot, connection, request, wait, fault);
            }
            Behaviour::Stall { every, length } => {
                match left_of_stall(self.began.elapsed(), every, length) {
                    // An answer must not overtake one that waits on the same connection.
                    None if connection.delayed == 0 => {
                        small_ok(output, request.persistence, request.is_head);
                    }
                    left => {
                        let wait = left.unwrap_or(Duration::ZERO);
                        self.answer_later(slot, connection, request, wait, None);
                    }
                }
            }
            Behaviour::Fault(Fault::Status500) => {
                fault::status_500(output, request.is_head);
            }
            Behaviour::Fault(_) => small_ok(output, request.persistence, request.is_head),
        }
    }

    /// Puts the answer off by `wait`, or until the requests before it on its connection are answered.
    fn answer_later(
        &mut self,
        slot: usize,
        connection: &mut Connection,
        request: &Request<'_>,
        wait: Duration,
        fault: Option<Fault>,
    ) {
        let now = Instant::now();
        let mut at = now + wait;
        let mut latest = at + waiting::slack(wait);
        if let Some((last_at, last_latest)) = connection.last_due {
            at = at.max(last_at);
            latest = latest.max(last_latest);
        }
        connection.last_due = Some((at, latest));
        connection.delayed += 1;
        let due = Due {
            latest,
            at,
            number: self.answered,
            slot,
            generation: connection.generation,
            persistence: request.persistence,
            is_head: request.is_head,
            fault,
        };
        self.waiting.push(due, now);
    }

    /// Answers the delayed requests whose time has come.
    fn answer_due(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        while let Some(due) = self.waiting.pop(now) {
            let place = self.connections.get_mut(due.slot);
            let same = |connection: &mut Connection| connection.generation == due.generation;
            let Some(mut connection) = place.and_then(|place| place.take_if(same)) else {
                continue;
            };
            let alive = answer_delayed(&mut connection, &due);
            self.put_back(due.slot, connection, alive)?;
        }
        Ok(())
    }
}

/// Answers a request whose time has come, or does what is to be done instead. False: the connection is to be dropped.
fn answer_delayed(connection: &mut Connection, due: &Due) -> bool {
    let Some(fault) = due.fault else {
        connection.delayed -= 1;
        small_ok(&mut connection.output, due.persistence, due.is_head);
        return true;
    };
    match fault {
        // It counts as delayed for as long as the client waits, so that nobody closes; what comes after it is not read.
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
        Fault::Status500 | Fault::SlowDrip | Fault::DieAfter(_) => {
            fault::status_500(&mut connection.output, due.is_head);
        }
    }
    connection.delayed -= 1;
    connection.closing |= matches!(fault, Fault::Garbage | Fault::Half);
    true
}

/// What is left of a stall `elapsed` after the beginning; nothing outside of one. A stall is the last `length` of each `every`.
fn left_of_stall(elapsed: Duration, every: Duration, length: Duration) -> Option<Duration> {
    let period_ns = every.as_nanos().max(1);
    let left_of_period_ns = period_ns - elapsed.as_nanos() % period_ns;
    let left = Duration::from_nanos(u64::try_from(left_of_period_ns).unwrap_or(u64::MAX));
    (left <= length).then_some(left)
}

fn small_ok(output: &mut Vec<u8>, persistence: Persistence, is_head: bool) {
    if persistence == Persistence::Stays && !is_head {
        return output.extend_from_slice(SMALL_OK);
    }
    let body = if is_head { "" } else { "ok" };
    for piece in [SMALL_OK_HEAD, persistence.header(), "\r\n", body] {
        output.extend_from_slice(piece.as_bytes());
    }
}

fn echo(output: &mut Vec<u8>, request: &Request<'_>) {
    use std::io::Write;
    output.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: ");
    output.extend_from_slice(request.content_type.unwrap_or(b"application/octet-stream"));
    // Writing to a Vec cannot fail.
    let _ = write!(
        output,
        "\r\n{}Content-Length: {}\r\n\r\n",
        request.persistence.header(),
        request.body.len()
    );
    if !request.is_head {
        output.extend_from_slice(&request.body);
    }
}

/// Whether the other side closed `watch`. What it sends is read and ignored.
pub fn is_closed(watch: BorrowedFd<'_>) -> bool {
    let mut ignored = [0; 4096];
    match rustix::io::read(watch.as_fd(), &mut ignored) {
        Ok(count) => count == 0,
        Err(Errno::AGAIN | Errno::INTR) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::left_of_stall;
    use std::time::Duration;

    #[test]
    fn a_stall_is_the_end_of_each_period() {
        let at = |ms| {
            left_of_stall(
                Duration::from_millis(ms),
                Duration::from_secs(2),
                Duration::from_millis(500),
            )
        };
        for calm in [0, 1, 1000, 1499, 2000, 3499, 4000] {
            assert_eq!(at(calm), None, "{calm}");
        }
        for (ms, left) in [(1500, 500), (1999, 1), (3500, 500), (3750, 250)] {
            assert_eq!(at(ms), Some(Duration::from_millis(left)), "{ms}");
        }
    }
}
