//! The requests of a load: one for all connections, one for each target, or a scenario.
//!
//! Hot path. Rules: one branch decides which it is. A request that is the same each time is sent from memory that the
//! driver has.

use weir_http::Response;
use weir_net::{Driver, Payload, Slot};
use weir_plan::Method;
use weir_record::StepOutcome;
use weir_scenario::Reason;
use weir_schedule::Shard;

use super::{Script, UserId};
use crate::in_flight::InFlightRequest;
use crate::{LoadError, Prepared};

/// Copies of a request that are sent together take no more memory than this, or than one of them.
const COPIES_BYTES: usize = 64 * 1024;

/// A request that was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrittenRequest {
    pub(crate) bytes: u32,
    /// Its step of the scenario, or its target.
    pub(crate) part: u32,
    pub(crate) is_head: bool,
}

/// What is wrong with a response.
pub(crate) enum Wrong {
    Status(u16),
    /// A step of the scenario, and the first failed check.
    Step(usize, Reason),
}

/// Where requests come from.
pub(crate) enum Requests {
    /// All connections send the same.
    Same(Constant, RightStatuses),
    /// Users have targets in turn, those of all threads together.
    ByTarget(Box<Targets>, RightStatuses),
    /// A scenario.
    Scenario(Box<Script>),
}

/// Which statuses are right, by status.
pub(crate) type RightStatuses = Box<[bool; 1000]>;

/// A request that is the same each time.
pub(crate) struct Constant {
    payload: Payload,
    bytes: u32,
    method: Method,
    is_head: bool,
    /// Its bytes several times, for connections that carry several requests at a time.
    copies: Vec<u8>,
    /// Bytes that are written on such a connection and not sent.
    unsent_bytes: usize,
}

/// Several targets on one load thread.
pub(crate) struct Targets {
    constants: Vec<Constant>,
    outcomes: Vec<StepOutcome>,
    /// By user.
    targets: Vec<u32>,
}

impl Constant {
    fn new(request: Vec<u8>, method: Method, depth: usize, driver: &mut impl Driver) -> Self {
        let times = depth.min((COPIES_BYTES / request.len()).max(1));
        Self {
            bytes: request.len() as u32,
            method,
            is_head: method == Method::Head,
            copies: match depth {
                1 => Vec::new(),
                _ => request.repeat(times),
            },
            payload: driver.register(request),
            unsent_bytes: 0,
        }
    }

    #[inline(always)]
    fn write(&mut self, slot: Slot, part: u32, driver: &mut impl Driver) -> WrittenRequest {
        match self.copies.is_empty() {
            true => driver.send(slot, self.payload),
            false => self.unsent_bytes += self.bytes as usize,
        }
        WrittenRequest { bytes: self.bytes, part, is_head: self.is_head }
    }

    fn flush(&mut self, slot: Slot, driver: &mut impl Driver) {
        while self.unsent_bytes > 0 {
            let part = self.unsent_bytes.min(self.copies.len());
            driver.send_bytes(slot, &self.copies[..part]);
            self.unsent_bytes -= part;
        }
    }
}

impl Requests {
    /// Returns the requests of a thread: a scenario, or the same request for all users, or one for each target.
    pub(crate) fn new(prepared: &Prepared, shard: Shard, driver: &mut impl Driver) -> Result<Self, LoadError> {
        let plan = &prepared.plan;
        let users = shard.count(plan.load.connections() as u64);
        if let Some(compiled) = &prepared.scenario {
            let worker = compiled.worker(shard, plan.seed)?;
            let users = (0..users).map(|user| compiled.user(shard.index(user), plan.seed));
            let script = Script::new(compiled, worker, users, plan.pipeline, plan.retries(), driver);
            return Ok(Self::Scenario(Box::new(script)));
        }
        let right = prepared.right_statuses();
        let method = plan.request.method;
        let mut constants: Vec<Constant> = prepared
            .requests
            .iter()
            .map(|request| Constant::new(request.clone(), method, plan.pipeline, driver))
            .collect();
        let urls = &plan.targets;
        if urls.is_empty() {
            return Ok(Self::Same(constants.swap_remove(0), right));
        }
        let count = urls.len() as u64;
        let target = |user| (shard.index(user) % count) as u32;
        let targets = Targets {
            constants,
            outcomes: urls.iter().cloned().map(StepOutcome::new).collect(),
            targets: (0..users).map(target).collect(),
        };
        Ok(Self::ByTarget(Box::new(targets), right))
    }

    /// Sends the next request of a user, on a pipelined connection with [`Self::flush`]. Returns `None` if there is
    /// none.
    #[inline(always)]
    pub(crate) fn write(&mut self, user: UserId, driver: &mut impl Driver) -> Option<WrittenRequest> {
        let slot = user.slot();
        match self {
            Self::Same(constant, _) => Some(constant.write(slot, 0, driver)),
            Self::ByTarget(all, _) => {
                let target = all.targets[user.index()];
                all.outcomes[target as usize].sent += 1;
                Some(all.constants[target as usize].write(slot, target, driver))
            }
            Self::Scenario(script) => script.write(user, driver),
        }
    }

    /// Returns whether a request can be sent again with the same effect.
    #[cold]
    pub(crate) fn can_repeat(&self, part: u32) -> bool {
        match self {
            Self::Same(constant, _) => constant.method.is_idempotent(),
            Self::ByTarget(all, _) => all.constants[part as usize].method.is_idempotent(),
            Self::Scenario(script) => script.can_repeat(part),
        }
    }

    /// Sends the last request of a user again. Returns its bytes.
    #[cold]
    pub(crate) fn repeat(&mut self, user: UserId, part: u32, driver: &mut impl Driver) -> u32 {
        let slot = user.slot();
        match self {
            Self::Same(constant, _) => constant.write(slot, part, driver).bytes,
            Self::ByTarget(all, _) => all.constants[part as usize].write(slot, part, driver).bytes,
            Self::Scenario(script) => script.repeat(user, part, driver),
        }
    }

    /// Sends the requests of a user that were written and not sent.
    pub(crate) fn flush(&mut self, user: UserId, driver: &mut impl Driver) {
        let slot = user.slot();
        match self {
            Self::Same(constant, _) => constant.flush(slot, driver),
            Self::ByTarget(all, _) => {
                let target = all.targets[user.index()];
                all.constants[target as usize].flush(slot, driver);
            }
            Self::Scenario(script) => script.flush(user, driver),
        }
    }

    /// Counts the whole response to a request.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline(always)]
    pub(crate) fn complete(
        &mut self,
        user: UserId,
        request: &InFlightRequest,
        response: Response,
    ) -> Result<(), Wrong> {
        let check = |right: &RightStatuses| match right[usize::from(response.status).min(999)] {
            true => Ok(()),
            false => Err(Wrong::Status(response.status)),
        };
        match self {
            Self::Same(_, right) => check(right),
            Self::ByTarget(all, right) => {
                let checked = check(right);
                all.outcomes[request.part as usize].complete(request.response_ns(), checked.is_ok());
                checked
            }
            Self::Scenario(script) => script.complete(user, request, response.status),
        }
    }

    /// A request gets no whole response.
    #[cold]
    pub(crate) fn lose(&mut self, user: UserId, part: u32) {
        match self {
            Self::Same(..) => {}
            Self::ByTarget(all, _) => all.outcomes[part as usize].lost += 1,
            Self::Scenario(script) => script.lose(user, part),
        }
    }

    /// A request was not sent because its connection could not be made. Returns the step or target that it would have
    /// had. A scenario does not count it.
    #[cold]
    pub(crate) fn drop_unsent(&mut self, user: UserId) -> u32 {
        match self {
            Self::Same(..) => 0,
            Self::ByTarget(all, _) => {
                let target = all.targets[user.index()];
                all.outcomes[target as usize].lost += 1;
                target
            }
            Self::Scenario(script) => script.next_step(user),
        }
    }

    /// Returns whether a user has no next request because rows have run out.
    #[inline]
    pub(crate) fn are_done(&self, user: UserId) -> bool {
        matches!(self, Self::Scenario(script) if script.is_done(user))
    }

    /// Returns the scenario, if it is one.
    #[inline]
    pub(crate) fn script(&mut self) -> Option<&mut Script> {
        match self {
            Self::Scenario(script) => Some(script),
            _ => None,
        }
    }

    /// Returns what is wrong with a response, in words.
    #[cold]
    pub(crate) fn describe(&self, wrong: Wrong) -> String {
        match (self, wrong) {
            (Self::Scenario(script), Wrong::Step(step, reason)) => script.describe(step, reason),
            (_, Wrong::Status(status)) => format!("status {status}"),
            (_, Wrong::Step(..)) => String::new(),
        }
    }

    /// Returns the outcomes of the steps of a scenario and of the targets.
    pub(crate) fn take_outcomes(&mut self) -> (Vec<StepOutcome>, Vec<StepOutcome>) {
        match self {
            Self::Same(..) => (Vec::new(), Vec::new()),
            Self::ByTarget(all, _) => (Vec::new(), std::mem::take(&mut all.outcomes)),
            Self::Scenario(script) => (std::mem::take(&mut script.steps), Vec::new()),
        }
    }
}
