//! A load thread from its parts to the moment at which its clock starts.

use std::io;

use weir_http::Protocol;
use weir_net::{Driver, Slot, Wait};
use weir_schedule::Shard;

use super::{BATCH, LoadThread};
use crate::clock::now_ns;
use crate::connections::{Connections, Phase};
use crate::in_flight::InFlight;
use crate::recorder::{Opened, Recorder};
use crate::wait::WaitStrategy;
use crate::window::Window;
use crate::workload::{UserId, Workload};
use crate::{Prepared, Stop};

/// The longest wait between two looks at the clock while connections are opened.
const MAX_WAIT_NS: u64 = 20_000_000;

impl<D: Driver, P: Protocol> LoadThread<D, P> {
    /// Returns a thread with closed connections.
    pub(crate) fn new(prepared: &Prepared, shard: Shard, driver: D, workload: Workload, recorder: Recorder) -> Self {
        let plan = &prepared.plan;
        let count = shard.count(plan.load.connections() as u64) as usize;
        let timeout_ns = (plan.timeout_s * 1e9).round() as u64;
        let joins = plan.pipeline > 1 && workload.is_open();
        let endpoints = prepared.endpoints.clone();
        Self {
            driver,
            protocol: P::default(),
            connections: Connections::new(count, endpoints, shard, timeout_ns, plan.keeps_connections(), joins),
            in_flight: InFlight::new(count, plan.pipeline, timeout_ns),
            workload,
            recorder,
            window: Window::before(),
            wait: WaitStrategy::of(plan),
            retries: plan.retries(),
        }
    }

    /// Opens the connections that the start needs, a batch at a time, until each is open, has failed or has timed out.
    /// Without keep-alive it opens one, to see that there is a server, and closes it.
    pub(crate) fn open(&mut self, stop: &Stop) -> io::Result<Opened> {
        let mut next: Slot = 0;
        let count = match self.connections.keep_alive {
            true => self.workload.demand.needed_at_start(self.connections.len()) as Slot,
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
            let is_present = self.workload.demand.is_present(UserId::on(slot));
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
