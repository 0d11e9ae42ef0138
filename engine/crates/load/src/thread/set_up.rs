//! A load thread from its parts to the moment at which its clock starts.

use std::collections::BinaryHeap;
use std::io;

use weir_net::{Driver, Slot, Wait};
use weir_wire::ResponseReader;

use super::{BATCH, LoadThread, Next, Opened, Parts};
use crate::Stop;
use crate::clock::now_ns;
use crate::connection::{Connection, Phase};
use crate::fifo::Fifo;
use crate::pipelines::Pipelines;
use crate::requests::Requests;
use crate::script::Script;

/// The most that one look at a clock can be away from the next while the load is set up.
const SET_UP_WAIT_NS: u64 = 20_000_000;

impl<D: Driver> LoadThread<D> {
    pub(crate) fn new(parts: Parts<D>) -> Self {
        let mut driver = parts.driver;
        let pipelines = (parts.pipeline > 1)
            .then(|| Pipelines::new(parts.connections, parts.pipeline, &parts.requests));
        let script = parts.scenario.map(|(compiled, seed, worker)| {
            let connections = parts.connections;
            let script = Script::new(
                compiled,
                worker,
                &mut driver,
                connections,
                parts.shard,
                seed,
            );
            Box::new(script)
        });
        let requests = match script {
            Some(script) => Requests::Scenario(script),
            None => {
                let (connections, shard) = (parts.connections, parts.shard);
                Requests::of(parts.requests, parts.urls, &mut driver, connections, shard)
            }
        };
        Self {
            driver,
            requests,
            endpoints: parts.endpoints,
            is_plain: parts.keep_alive && pipelines.is_none(),
            keep_alive: parts.keep_alive,
            connections: (0..parts.connections).map(|_| Connection::new()).collect(),
            connecting: Fifo::new(),
            idle: Fifo::new(),
            waiting: Fifo::new(),
            with_room: Fifo::new(),
            pipelines: pipelines.map(Box::new),
            log: parts.log.map(Box::new),
            retries: BinaryHeap::new(),
            gathered: Vec::new(),
            reader: ResponseReader::new(parts.to_head_request),
            demand: parts.demand,
            tally: parts.tally,
            wait: parts.wait,
            timeout_ns: parts.timeout_ns,
            shard: parts.shard,
            kernel_clock: parts.kernel_clock,
            until_failure: parts.until_failure,
            first_failure: None,
            ports_used_up: false,
            unrendered: 0,
            is_running: false,
            opened: Opened {
                connected: 0,
                first_failure: None,
            },
            start_ns: 0,
            end_ns: u64::MAX,
            boundary_ns: u64::MAX,
        }
    }

    /// Opens the connections that are needed at the start, a batch at a time, until each is there, has failed or has run out of time.
    /// Without keep-alive one is opened, to see that the target is there, and closed.
    pub(crate) fn open(&mut self, stop: &Stop) -> io::Result<Opened> {
        let mut next: Slot = 0;
        let count = if self.keep_alive {
            self.demand.needed_at_start(self.connections.len()) as Slot
        } else {
            1
        };
        while (next < count || self.connecting.len() > 0) && !stop.is_requested() {
            while next < count && self.connecting.len() < BATCH {
                self.connect(next, now_ns());
                next += 1;
            }
            if self.driver.wait(Wait::AtMostNs(SET_UP_WAIT_NS))? {
                self.reap();
            }
            self.expire(now_ns());
        }
        if let (false, Some(slot)) = (self.keep_alive, self.idle.first()) {
            self.idle_closed(slot, now_ns());
            self.tally.forget_connections();
        }
        Ok(self.opened.clone())
    }

    /// The clock starts.
    pub(super) fn start(&mut self, start_ns: u64, duration_ns: u64) {
        self.is_running = true;
        if let Some(clock) = &mut self.kernel_clock {
            clock.renew();
        }
        self.start_ns = start_ns;
        self.end_ns = start_ns + duration_ns;
        self.tally.start(start_ns);
        if let Some(log) = &mut self.log {
            log.start(start_ns);
        }
        self.boundary_ns = self.tally.interval_end_ns().min(self.end_ns);
        // What is not connected yet has a user, or is needed, all the same.
        for slot in 0..self.connections.len() as Slot {
            let is_used = self.is_used(slot);
            match self.connections[slot as usize].phase {
                Phase::Closed if is_used && !self.keep_alive => self.let_idle(slot),
                Phase::Closed if is_used => self.reconnect(slot, start_ns),
                Phase::Connecting if is_used => {
                    if let Next::Write(intended_ns) = self.next_of(slot, start_ns) {
                        self.let_request_wait(slot, intended_ns);
                    }
                }
                Phase::Idle if !is_used => {
                    self.idle.remove(&mut self.connections, slot);
                    self.connections[slot as usize].phase = Phase::Thinking;
                }
                _ => {}
            }
        }
    }
}
