//! One load thread: the loop, and a request's life from top to bottom. A request is due, is written, and gets a
//! response or fails. Then its user is free for the next request.
//!
//! Hot path. Rules for a request on an open connection: one send and one receive (see `weir_net`), and one clock
//! reading when its response has come, which is also the moment at which its user is free again and writes the next. An
//! open loop reads the clock once more before the write. No allocation, no lock, no map. Rare events (errors,
//! connecting, ends of intervals) have functions of their own. A failure only closes its connection: the loop gives the
//! freed user its next request.

mod connection_events;
mod response_reader;
mod result;
mod set_up;
#[cfg(test)]
mod tests;

use std::io;

use weir_http::Protocol;
use weir_net::{Driver, Event, Slot, Wait};
use weir_record::StopReason;

use self::response_reader::{Detail, Reception, ResponseReader};
use crate::Stop;
use crate::clock::now_ns;
use crate::connections::{Connections, Phase};
use crate::in_flight::{InFlight, InFlightRequest};
use crate::recorder::Recorder;
use crate::wait::{WaitStrategy, sleep_until};
use crate::window::Window;
use crate::workload::{Next, UserId, Woken, Workload};
pub(crate) use result::ThreadResult;

/// Users that start or wake between two looks at events.
const BATCH: u64 = 64;

pub(crate) struct LoadThread<D, P: Protocol> {
    driver: D,
    protocol: P,
    connections: Connections<P::State>,
    in_flight: InFlight,
    workload: Workload,
    recorder: Recorder,
    window: Window,
    wait: WaitStrategy,
    /// Whether a request may be sent again.
    retries: bool,
}

impl<D: Driver, P: Protocol> LoadThread<D, P> {
    /// Runs the load from `start_ns` for a duration, or until it is stopped.
    pub(crate) fn run(mut self, start_ns: u64, duration_ns: u64, stop: &Stop) -> io::Result<ThreadResult> {
        sleep_until(start_ns);
        self.start(start_ns, duration_ns);
        let mut busy_ns = 0;
        let mut now = now_ns();
        loop {
            let woke_ns = now;
            let handled = self.handle_events();
            if now >= self.window.boundary_ns {
                self.split().1.cross_boundary(now);
            }
            let worked = self.run_timers(now);
            if handled || worked {
                now = now_ns();
                busy_ns += now - woke_ns;
            }
            if now >= self.window.end_ns || stop.is_requested() || self.is_complete() {
                break;
            }
            let is_starting = !self.workload.is_open() && self.connections.first_idle().is_some();
            let deadline_ns = if is_starting { 0 } else { self.deadline_ns() };
            let wait = self.wait.wait(now, deadline_ns, self.in_flight.len() > 0);
            now = self.wait(wait, now, &mut busy_ns)?;
        }
        if self.recorder.first_failure.is_some() {
            stop.request(StopReason::FirstFailure);
        }
        Ok(self.finish(now, busy_ns))
    }

    /// Waits, and returns the time after it. If sends are gathered, the kernel sends and receives inside the wait. Then
    /// a poll comes first, and its time counts as busy if it had something to do. If the poll found responses there is
    /// no wait, so that a busy thread makes one system call for each batch.
    #[inline]
    fn wait(&mut self, wait: Wait, now: u64, busy_ns: &mut u64) -> io::Result<u64> {
        if D::GATHERS_SENDS {
            let sends = self.in_flight.stamp_gathered(now);
            let completed = self.driver.wait(Wait::Poll)?;
            let looked_ns = now_ns();
            if sends || completed {
                *busy_ns += looked_ns - now;
            }
            if completed || wait == Wait::Poll {
                return Ok(looked_ns);
            }
        }
        for _ in 0..self.wait.looks(wait, self.in_flight.len() > 0) {
            if self.driver.wait(Wait::Poll)? {
                return Ok(now_ns());
            }
        }
        self.driver.wait(wait)?;
        Ok(now_ns())
    }

    /// Returns the next moment at which a timer fires.
    #[inline]
    fn deadline_ns(&self) -> u64 {
        self.window
            .boundary_ns
            .min(self.in_flight.next_timeout_ns())
            .min(self.connections.next_ns())
            .min(self.workload.next_ns())
    }

    /// Returns whether the whole load is done.
    #[inline]
    fn is_complete(&self) -> bool {
        self.in_flight.len() == 0 && self.connections.parked() == 0 && self.workload.demand.is_exhausted()
    }

    /// Sends due requests, starts users, and fires timeouts. Returns whether anything was due.
    #[inline]
    fn run_timers(&mut self, now: u64) -> bool {
        let sent = self.send_due(now);
        let started = !self.workload.is_open() && self.start_users();
        let expired = self.expire(now);
        sent || started || expired
    }

    // A request is due: at once for a free user of a closed loop, by the clock for arrivals and for users with a time
    // of their own.
    /// Sends the requests that are due by the clock before the end of the load.
    #[inline]
    fn send_due(&mut self, now: u64) -> bool {
        let now = self.window.clamp(now);
        let sent = self.workload.is_open() && self.send_arrivals(now);
        let woke = self.workload.has_own_time() && self.wake_users(now);
        sent || woke
    }

    /// Open loop: each due arrival takes an idle connection, or else the one that has had room longest.
    #[inline]
    fn send_arrivals(&mut self, now: u64) -> bool {
        self.recorder.tally.counts.due += self.workload.arrive(now);
        let mut sent = false;
        while let Some(slot) = self.connections.first_idle() {
            let Some(intended_ns) = self.workload.take_queued(UserId::on(slot)) else {
                return sent;
            };
            self.connections.use_idle(slot);
            self.send(slot, intended_ns, now_ns());
            sent = true;
        }
        while self.workload.demand.queue() > 0 {
            let Some(slot) = self.connections.next_with_room() else {
                break;
            };
            let Some(intended_ns) = self.workload.take_queued(UserId::on(slot)) else {
                break;
            };
            self.send(slot, intended_ns, now_ns());
            sent = true;
        }
        sent
    }

    /// Wakes users whose moment has come, a batch at most.
    fn wake_users(&mut self, now: u64) -> bool {
        for woken in 0..BATCH {
            match self.workload.wake(now) {
                None => return woken > 0,
                Some(Woken::Send(user, intended_ns)) => {
                    self.recorder.tally.counts.due += 1;
                    self.send(user.slot(), intended_ns, now_ns());
                }
                Some(Woken::Leave(user)) => self.leave(user.slot()),
            }
        }
        true
    }

    /// Closed loop, at its start: starts a batch of users. The loop handles responses between two batches.
    fn start_users(&mut self) -> bool {
        let mut any = false;
        for _ in 0..BATCH {
            let Some(slot) = self.connections.first_idle() else {
                break;
            };
            self.connections.use_idle(slot);
            self.go_on(slot, now_ns());
            any = true;
        }
        any
    }

    /// A user leaves with its connection.
    fn leave(&mut self, slot: Slot) {
        if self.connections.phase(slot) == Phase::Away {
            self.driver.close(slot);
            self.connections.close(slot);
        }
        self.workload.user_left(UserId::on(slot));
    }

    /// The user of a connection is free, or the connection has room: sends the next request, if there is one.
    // A call would cost 25 of a request's 1,000 instructions.
    #[inline(always)]
    fn go_on(&mut self, slot: Slot, now: u64) {
        if !self.connections.is_usable(slot) {
            return self.go_on_closed(slot, now);
        }
        loop {
            let next = self.next(slot, now);
            let Next::Send(intended_ns) = next else {
                return self.rest(slot, next);
            };
            if !self.write(slot, intended_ns, now) {
                return self.rest(slot, Next::Wait);
            }
            if !self.in_flight.has_room(slot) {
                return self.flush(slot);
            }
        }
    }

    /// As [`Self::go_on`], of a connection that is not open or carries one request.
    fn go_on_closed(&mut self, slot: Slot, now: u64) {
        match self.next(slot, now) {
            Next::Send(intended_ns) => self.send(slot, intended_ns, now),
            Next::Queue if self.connections.phase(slot) == Phase::Connecting => {}
            // For the arrivals to come.
            Next::Queue if self.connections.keep_alive => self.connect(slot, now),
            Next::Queue => self.connections.let_idle(slot),
            Next::Leave => self.workload.user_left(UserId::on(slot)),
            // A user who is away has the connection made again when it sends again.
            Next::Wait => {}
        }
    }

    /// Returns what a free user does next. `Queue` means that the queue is empty.
    #[inline(always)]
    fn next(&mut self, slot: Slot, now: u64) -> Next {
        let user = UserId::on(slot);
        match self.workload.next(user, now) {
            Next::Send(intended_ns) => {
                self.recorder.tally.counts.due += 1;
                Next::Send(intended_ns)
            }
            Next::Queue => match self.workload.take_queued(user) {
                Some(intended_ns) => Next::Send(intended_ns),
                None => Next::Queue,
            },
            next => next,
        }
    }

    /// An open connection has nothing more to send now.
    fn rest(&mut self, slot: Slot, next: Next) {
        self.flush(slot);
        if self.in_flight.count(slot) > 0 {
            return;
        }
        self.connections.get(slot).phase = Phase::Away;
        match next {
            Next::Queue => self.connections.let_idle(slot),
            Next::Leave => self.leave(slot),
            Next::Send(_) | Next::Wait => {}
        }
    }

    /// Sends a request. It waits for its connection if that is not open.
    #[inline]
    fn send(&mut self, slot: Slot, intended_ns: u64, now: u64) {
        if self.connections.is_usable(slot) {
            self.write(slot, intended_ns, now);
            return self.flush(slot);
        }
        self.connections.park(slot, intended_ns);
        if self.connections.phase(slot) != Phase::Connecting {
            self.connect(slot, now);
        }
    }

    /// Writes a request behind the others of its connection. Returns false if rows have run out; then nothing is sent
    /// any more.
    #[inline(always)]
    fn write(&mut self, slot: Slot, intended_ns: u64, now: u64) -> bool {
        let user = UserId::on(slot);
        let Some(written) = self.workload.write(user, &mut self.driver) else {
            return false;
        };
        let request = InFlightRequest::written(intended_ns, written, now);
        let id = self.in_flight.push(slot, request);
        if D::GATHERS_SENDS {
            self.in_flight.gather(id);
        }
        self.connections.use_for_request(slot);
        self.recorder.sent(written.bytes);
        true
    }

    /// Sends the written requests of a pipelined connection together.
    #[inline(always)]
    fn flush(&mut self, slot: Slot) {
        if self.in_flight.is_pipelined() {
            self.workload.requests.flush(UserId::on(slot), &mut self.driver);
            let has_room = self.in_flight.count(slot) > 0 && self.in_flight.has_room(slot);
            self.connections.update_room(slot, has_room);
        }
    }

    // A response arrives, or another event of a connection.

    /// Handles all events of the last wait. Returns whether there was one.
    #[inline]
    fn handle_events(&mut self) -> bool {
        let mut any = false;
        loop {
            let (driver, mut reader) = self.split();
            let Some(event) = driver.next() else {
                return any;
            };
            any = true;
            let now = now_ns();
            if now >= reader.window.boundary_ns {
                if now >= reader.window.end_ns {
                    // A response after the end is too late, and so are the other events.
                    return any;
                }
                reader.cross_boundary(now);
            }
            match event {
                Event::Received { slot, bytes, stamp_unix_ns } => {
                    let reception = reader.receive(slot, bytes, stamp_unix_ns, now);
                    self.received(slot, reception, now);
                }
                Event::Connected { slot, handshake_began_ns } => self.connected(slot, handshake_began_ns, now),
                Event::Ended { slot } => self.ended(slot, now),
                Event::Failed { slot, errno, text } => {
                    let text = text.map(str::to_owned);
                    self.failed(slot, errno, text, now);
                }
            }
            while let Some(slot) = self.connections.next_freed() {
                self.go_on(slot, now);
            }
            // Handling many events takes longer than the gap between two arrivals. Arrivals do not wait for the rest.
            if self.window.is_running && now >= self.workload.next_ns() {
                self.send_due(now);
            }
        }
    }

    /// Lends the driver, and the parts that a response passes through.
    #[inline(always)]
    fn split(&mut self) -> (&mut D, ResponseReader<'_, P>) {
        let reader = ResponseReader {
            protocol: &mut self.protocol,
            connections: &mut self.connections,
            in_flight: &mut self.in_flight,
            workload: &mut self.workload,
            recorder: &mut self.recorder,
            window: &mut self.window,
        };
        (&mut self.driver, reader)
    }

    /// Responses have come, or bytes that are none.
    #[inline(always)]
    fn received(&mut self, slot: Slot, reception: Reception, now: u64) {
        match reception {
            Reception::More => {}
            Reception::Free => {
                if self.in_flight.count(slot) == 0 && self.driver.has_unsent(slot) {
                    // The server has responded before it had the whole request.
                    self.driver.close(slot);
                    self.connections.close(slot);
                }
                self.go_on(slot, now);
            }
            Reception::Closing { by_server } => self.close_after(slot, by_server, now),
            Reception::Broken(kind, detail) => {
                let detail = match detail {
                    Detail::Http(_) => format!("{detail}; received {}", self.recorder.excerpt()),
                    _ => detail.to_string(),
                };
                self.fail_connection(slot, kind, now, &detail);
            }
            Reception::Unrequested => self.unrequested(slot, now),
            Reception::FirstFailure => self.end_load(now),
        }
    }
}
