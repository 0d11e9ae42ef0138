//! One load thread: its shard of the load, its connections, its clock readings.
//!
//! Hot path. Rules for a request on an open connection: one send and one receive (see `weir_net`), one clock reading when its
//! answer has come, which is also the moment its user is free again and writes the next; in an open loop one more, before the
//! write. No allocation, no lock, no map. What is rare (errors, reconnecting, the ends of intervals) is in functions of its own.

mod boundary;
mod clockwork;
mod completions;
mod parts;
mod pipelined;
mod reconnect;
mod set_up;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use weir_net::{Driver, Endpoint, Slot, Wait};
use weir_record::{FirstFailure, Stopped};
use weir_schedule::Shard;
use weir_wire::ResponseReader;

use crate::Stop;
use crate::clock::now_ns;
use crate::connection::{Connection, Phase};
use crate::demand::{Demand, Source};
use crate::fifo::Fifo;
use crate::kernel_clock::KernelClock;
use crate::pipelines::Pipelines;
use crate::request_log::RequestLog;
use crate::requests::Requests;
use crate::tally::Tally;
use crate::wait::WaitStrategy;

pub(crate) use parts::{ConnectFailure, Opened, Parts, ThreadEnd};

/// Connections that are being made at once while the load is set up, and users that are let in between two looks at answers.
const BATCH: u64 = 64;

/// What a connection is for once it is free.
enum Next {
    /// A request that is due, with its intended start.
    Write(u64),
    /// Nothing for now: its user thinks, or the load has no more requests for it.
    Wait,
    /// Nothing: its user has left.
    Leave,
    /// Whatever arrives.
    Free,
}

/// See the module's description.
pub(crate) struct LoadThread<D> {
    driver: D,
    requests: Requests,
    endpoints: Vec<Endpoint>,
    keep_alive: bool,
    /// Whether a request that is due is written at once and alone, as it is unless connections are made for requests or carry
    /// several at a time.
    is_plain: bool,
    connections: Vec<Connection>,
    connecting: Fifo,
    idle: Fifo,
    /// Written, in the order of writing.
    waiting: Fifo,
    /// Open loop: with requests on them and room for more.
    with_room: Fifo,
    /// The requests of connections that carry several at a time.
    pipelines: Option<Box<Pipelines>>,
    /// Where each request is noted when it has ended, if it is.
    log: Option<Box<RequestLog>>,
    /// When to try again what could not be connected.
    retries: BinaryHeap<Reverse<(u64, Slot)>>,
    /// Slots whose writes the driver gathers: the moment of writing is filled in before the driver waits.
    gathered: Vec<Slot>,
    reader: ResponseReader,
    demand: Demand,
    tally: Tally,
    wait: WaitStrategy,
    timeout_ns: u64,
    shard: Shard,
    /// Where an answer's arrival is when the kernel received it; otherwise it is when it was read.
    kernel_clock: Option<KernelClock>,
    /// The first failed request ends the load.
    until_failure: bool,
    first_failure: Option<FirstFailure>,
    ports_used_up: bool,
    /// Requests that were due when rows had run out.
    unrendered: u64,
    /// Whether the clock runs. Before, connections are opened and nothing is sent or counted.
    is_running: bool,
    opened: Opened,
    start_ns: u64,
    end_ns: u64,
    /// The end of the open interval, or of the load: what happens from here on belongs elsewhere.
    boundary_ns: u64,
}

impl<D: Driver> LoadThread<D> {
    /// Runs the load from a moment to another, or until it is stopped.
    pub(crate) fn run(
        mut self,
        start_ns: u64,
        duration_ns: u64,
        stop: &Stop,
    ) -> io::Result<ThreadEnd> {
        sleep_until(start_ns);
        self.start(start_ns, duration_ns);
        let mut busy_ns = 0;
        let mut now = now_ns();
        loop {
            let woke_ns = now;
            let completed = self.reap();
            if now >= self.boundary_ns {
                self.cross_boundary(now);
            }
            let worked = self.tend(now);
            if completed || worked {
                now = now_ns();
                busy_ns += now - woke_ns;
            }
            if now >= self.end_ns || stop.is_requested() || self.is_complete() {
                break;
            }
            let is_starting = matches!(self.demand.source, Source::Closed) && self.idle.len() > 0;
            let deadline_ns = if is_starting { 0 } else { self.deadline_ns() };
            let wait = self.wait.wait(now, deadline_ns, self.in_flight() > 0);
            now = self.wait(wait, now, &mut busy_ns)?;
        }
        if self.first_failure.is_some() {
            stop.request(Stopped::FirstFailure);
        }
        Ok(self.finish(now, busy_ns))
    }

    /// Waits and gives the time after it. Where sends are gathered, sending and receiving are done by the kernel inside the wait:
    /// a look that does not wait comes first then, and its time counts as busy if it had something to do. Where it found answers
    /// there is no wait, so that a thread with its hands full makes one system call a batch all the same.
    #[inline]
    fn wait(&mut self, wait: Wait, now: u64, busy_ns: &mut u64) -> io::Result<u64> {
        if D::GATHERS_SENDS {
            let sends = !self.gathered.is_empty();
            self.stamp_gathered(now);
            let completed = self.driver.wait(Wait::Poll)?;
            let looked_ns = now_ns();
            if sends || completed {
                *busy_ns += looked_ns - now;
            }
            if completed || wait == Wait::Poll {
                return Ok(looked_ns);
            }
        }
        for _ in 0..self.wait.looks(wait, self.in_flight() > 0) {
            if self.driver.wait(Wait::Poll)? {
                return Ok(now_ns());
            }
        }
        self.driver.wait(wait)?;
        Ok(now_ns())
    }

    /// Everything that is due by the clock and not by a completion. Gives whether there was something.
    #[inline]
    fn tend(&mut self, now: u64) -> bool {
        let sent = self.act_by_the_clock(now);
        let let_in = matches!(self.demand.source, Source::Closed)
            && self.idle.len() > 0
            && self.let_users_in();
        let expired = self.expire(now);
        sent || let_in || expired
    }

    /// Whether all is done that was asked for.
    #[inline]
    fn is_complete(&self) -> bool {
        self.in_flight() == 0 && self.demand.is_exhausted()
    }

    /// Closed loop, at its start: users come in one after the other, a batch between two looks at the answers of the others.
    fn let_users_in(&mut self) -> bool {
        for _ in 0..BATCH {
            let Some(slot) = self.idle.first() else { break };
            self.idle.remove(&mut self.connections, slot);
            self.go_on(slot, now_ns());
        }
        true
    }

    /// An open connection is free: it gets its user's next request, or the oldest of the queue, or waits.
    #[inline]
    fn go_on(&mut self, slot: Slot, now: u64) {
        match self.next_of(slot, now) {
            Next::Write(intended_ns) => self.send(slot, intended_ns, now),
            Next::Free => self.serve_queue(slot, now),
            Next::Wait => self.connections[slot as usize].phase = Phase::Thinking,
            Next::Leave => {
                self.connections[slot as usize].phase = Phase::Closed;
                self.driver.close(slot);
                self.user_left(slot);
            }
        }
    }

    /// What the user of a connection does next, who is free. A request of the open loop's queue stays there.
    #[inline]
    fn next_of(&mut self, slot: Slot, now: u64) -> Next {
        if self.demand.users.is_some() {
            return self.next_of_user(slot, now);
        }
        if matches!(self.demand.source, Source::Open { .. }) {
            return Next::Free;
        }
        if !self.take_one(slot) {
            return Next::Wait;
        }
        self.tally.counts.due += 1;
        Next::Write(now)
    }

    /// Takes one request from those that the load may have; false if it has no more, or the connection's user has none.
    #[inline]
    fn take_one(&mut self, slot: Slot) -> bool {
        if self.requests.are_done(slot) {
            self.demand.end();
        }
        self.demand.take_one()
    }

    /// The user of a connection has left: the next one begins anew.
    fn user_left(&mut self, slot: Slot) {
        if let Some(script) = self.requests.script() {
            script.restart(slot);
        }
    }

    /// Gives a connection that is nobody's the oldest arrival of the queue, or lets it wait for one.
    #[inline]
    fn serve_queue(&mut self, slot: Slot, now: u64) {
        match self.demand.take_from_queue() {
            Some(due_ns) => self.begin(slot, due_ns, now),
            None => self.let_idle(slot),
        }
    }

    /// An arrival has got its connection.
    #[inline]
    fn begin(&mut self, slot: Slot, due_ns: u64, now: u64) {
        if let Some(users) = &mut self.demand.users {
            users.begin_session(slot, due_ns);
            if let Some(script) = self.requests.script() {
                script.restart(slot);
            }
        }
        self.send(slot, self.start_ns + due_ns, now);
    }

    fn let_idle(&mut self, slot: Slot) {
        self.connections[slot as usize].phase = Phase::Idle;
        self.idle.push(&mut self.connections, slot);
    }

    /// A connection has been made.
    fn use_new_connection(&mut self, slot: Slot, now: u64) {
        let connection = &mut self.connections[slot as usize];
        if !self.is_running {
            self.let_idle(slot);
        } else if connection.has_request {
            connection.has_request = false;
            self.demand.waiting -= 1;
            let intended_ns = connection.intended_ns;
            match self.pipelines {
                None => self.write(slot, intended_ns, now),
                Some(_) => self.write_pipelined(slot, intended_ns, now),
            }
        } else if matches!(self.demand.source, Source::Open { .. }) {
            self.serve_queue(slot, now);
        } else {
            connection.phase = Phase::Thinking;
        }
    }

    /// Writes a request on its connection, which without keep-alive is made for it.
    #[inline]
    fn send(&mut self, slot: Slot, intended_ns: u64, now: u64) {
        if self.is_plain {
            self.write(slot, intended_ns, now);
        } else if self.pipelines.is_some() {
            self.write_pipelined(slot, intended_ns, now);
        } else {
            self.let_request_wait(slot, intended_ns);
            self.connect(slot, now);
        }
    }

    #[inline]
    fn write(&mut self, slot: Slot, intended_ns: u64, now: u64) {
        let Some(length) = self.requests.send(slot, &mut self.driver) else {
            return self.no_row_left(slot);
        };
        let connection = &mut self.connections[slot as usize];
        connection.phase = Phase::Waiting;
        connection.intended_ns = intended_ns;
        connection.since_ns = now;
        connection.first_byte_ns = 0;
        connection.requests = connection.requests.saturating_add(1);
        self.waiting.push(&mut self.connections, slot);
        self.tally.counts.sent += 1;
        self.tally.counts.bytes_sent += length;
        if let Some(log) = &mut self.log {
            log.sent(slot, length);
        }
        if D::GATHERS_SENDS {
            self.gathered.push(slot);
        }
    }

    /// A request is due and there is no row for it: nothing becomes due any more.
    #[cold]
    fn no_row_left(&mut self, slot: Slot) {
        self.demand.end();
        self.unrendered += 1;
        self.connections[slot as usize].phase = Phase::Thinking;
    }

    /// The driver is about to write what it gathered: this is the moment of the actual write.
    #[inline]
    fn stamp_gathered(&mut self, now: u64) {
        for slot in self.gathered.drain(..) {
            let connection = &mut self.connections[slot as usize];
            if connection.phase == Phase::Waiting {
                connection.since_ns = now;
            } else if let Some(pipelines) = &mut self.pipelines {
                pipelines.stamp(slot, now);
            }
        }
    }

    /// The next moment at which something is due by the clock.
    #[inline]
    fn deadline_ns(&self) -> u64 {
        let since = |slot: Option<Slot>| {
            slot.map_or(u64::MAX, |slot| {
                self.connections[slot as usize].since_ns + self.timeout_ns
            })
        };
        let mut deadline_ns = self
            .boundary_ns
            .min(since(self.waiting.first()))
            .min(since(self.connecting.first()));
        let oldest = self.pipelines.as_ref().and_then(|all| all.oldest());
        if let Some((_, asked)) = oldest {
            deadline_ns = deadline_ns.min(asked.written_ns + self.timeout_ns);
        }
        if let Some(Reverse((at_ns, _))) = self.retries.peek() {
            deadline_ns = deadline_ns.min(*at_ns);
        }
        deadline_ns.min(self.start_ns.saturating_add(self.demand.next_ns()))
    }
}

/// Sleeps short of a moment and spins the rest: until then the CPU is the server's, if it has no other.
fn sleep_until(at_ns: u64) {
    const SPIN_NS: u64 = 500_000;
    let sleep_ns = at_ns.saturating_sub(now_ns()).saturating_sub(SPIN_NS);
    std::thread::sleep(std::time::Duration::from_nanos(sleep_ns));
    while now_ns() < at_ns {
        std::hint::spin_loop();
    }
}
