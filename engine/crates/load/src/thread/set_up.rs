//! A load thread from its parts to the moment at which its clock starts.

use std::io;

use weir_http::Protocol;
use weir_net::{Driver, Endpoint, Slot, Wait};
use weir_schedule::Shard;

use super::{BATCH, LoadThread};
use crate::Stop;
use crate::clock::now_ns;
use crate::connections::{Connections, Phase};
use crate::in_flight::InFlight;
use crate::recorder::{Opened, Recorder};
use crate::wait::WaitStrategy;
use crate::window::Window;
use crate::workload::{UserId, Workload};

/// The longest wait between two looks at the clock while connections are opened.
const MAX_WAIT_NS: u64 = 20_000_000;

/// The parts of a thread.
pub(crate) struct Parts<D> {
    pub(crate) driver: D,
    /// Endpoints of the connections to each target, in turn.
    pub(crate) endpoints: Vec<Vec<Endpoint>>,
    /// Whether a connection carries more than one request.
    pub(crate) keep_alive: bool,
    /// How many requests a connection carries at a time.
    pub(crate) depth: usize,
    /// Whether a request may be sent again.
    pub(crate) retries: bool,
    pub(crate) connections: usize,
    pub(crate) shard: Shard,
    pub(crate) timeout_ns: u64,
    pub(crate) workload: Workload,
    pub(crate) recorder: Recorder,
    pub(crate) wait: WaitStrategy,
}

impl<D: Driver, P: Protocol> LoadThread<D, P> {
    pub(crate) fn new(parts: Parts<D>) -> Self {
        let joins = parts.depth > 1 && parts.workload.is_open();
        Self {
            driver: parts.driver,
            protocol: P::default(),
            connections: Connections::new(
                parts.connections,
                parts.endpoints,
                parts.shard,
                parts.timeout_ns,
                parts.keep_alive,
                joins,
            ),
            in_flight: InFlight::new(parts.connections, parts.depth, parts.timeout_ns),
            workload: parts.workload,
            recorder: parts.recorder,
            window: Window::before(),
            wait: parts.wait,
            retries: parts.retries,
        }
    }

    /// Opens the connections that the start needs, a batch at a time, until each is open, has failed or has timed out. Without
    /// keep-alive it opens one, to see that there is a server, and closes it.
    pub(crate) fn open(&mut self, stop: &Stop) -> io::Result<Opened> {
        let mut next: Slot = 0;
        let count = match self.connections.keep_alive {
            true => self.workload.needed_at_start(self.connections.len()) as Slot,
            false => 1,
        };
        while (next < count || self.connections.connecting() > 0) && !stop.is_requested() {
            while next < count && self.connections.connecting() < BATCH {
                self.connect(next, now_ns());
                next += 1;
            }
            if self.driver.wait(Wait::AtMostNs(MAX_WAIT_NS))? {
                self.handle_events();
            }
            self.expire(now_ns());
        }
        if let (false, Some(slot)) = (self.connections.keep_alive, self.connections.first_idle()) {
            self.idle_closed(slot, now_ns());
            self.recorder.tally.forget_connections();
        }
        Ok(self.recorder.opened.clone())
    }

    /// The clock starts.
    pub(super) fn start(&mut self, start_ns: u64, duration_ns: u64) {
        self.recorder.start(start_ns);
        self.workload.start(start_ns);
        let interval_end_ns = self.recorder.tally.interval_end_ns();
        self.window.start(start_ns, duration_ns, interval_end_ns);
        for slot in 0..self.connections.len() as Slot {
            let is_present = self.workload.is_present(UserId::on(slot));
            match self.connections.phase(slot) {
                Phase::Closed if is_present && !self.connections.keep_alive => {
                    self.connections.let_idle(slot);
                }
                // A user has its request whether or not its connection is open yet.
                Phase::Closed | Phase::Connecting if is_present => self.go_on(slot, start_ns),
                Phase::Idle if !is_present => self.connections.use_idle(slot),
                _ => {}
            }
        }
    }
}
