//! A scenario on one load thread: what each user has sent, and the response that is coming.
//!
//! Hot path. Rules: no allocation once the buffers have grown; a constant step is sent from memory that the driver has;
//! a response is copied only as far as its step needs it.

use std::sync::Arc;

use weir_http::{Http1Writer, Sink};
use weir_net::{Driver, Payload};
use weir_record::{RequestRecord, StepOutcome};
use weir_scenario::{Capture, Compiled, Needs, Response, User, Worker};

use super::requests::Wrong;
use super::{UserId, WrittenRequest};
use crate::in_flight::InFlightRequest;

/// The scenario of a thread's users.
pub(crate) struct Script {
    compiled: Arc<Compiled>,
    worker: Worker,
    users: Vec<ScriptUser>,
    /// By step: its payload and length, if it is constant.
    constants: Vec<Option<(Payload, u32)>>,
    /// Rendered requests that are not sent yet.
    out: Vec<u8>,
    /// Whether connections carry several requests at a time.
    is_pipelined: bool,
    /// Whether a request may be sent again.
    retries: bool,
    may_end: bool,
    /// Whether a user leaves after a failed request.
    pub(crate) leaves_on_failure: bool,
    pub(crate) steps: Vec<StepOutcome>,
}

struct ScriptUser {
    user: User,
    /// The step of its last request.
    last_step: Option<usize>,
    /// Its last request, if that was rendered and may be sent again.
    rendered: Vec<u8>,
    captured: Captured,
}

/// The kept parts of a response.
#[derive(Default)]
struct Captured {
    head: Vec<u8>,
    body: Vec<u8>,
    body_bytes: u64,
}

/// Keeps the parts of a response that a step needs.
pub(crate) struct CaptureSink<'a> {
    needs: Needs,
    captured: &'a mut Captured,
}

impl Sink for CaptureSink<'_> {
    #[inline]
    fn head(&mut self, bytes: &[u8]) {
        if self.needs.head {
            self.captured.head.clear();
            self.captured.head.extend_from_slice(bytes);
        }
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.captured.body_bytes += bytes.len() as u64;
        if let Capture::UpTo(max) = self.needs.body {
            let room = max.saturating_sub(self.captured.body.len());
            let kept = &bytes[..bytes.len().min(room)];
            self.captured.body.extend_from_slice(kept);
        }
    }
}

impl Script {
    /// Returns the scenario of a thread's users. `worker` is the thread's own.
    pub(crate) fn new(
        compiled: &Arc<Compiled>,
        worker: Worker,
        users: impl Iterator<Item = User>,
        depth: usize,
        retries: bool,
        driver: &mut impl Driver,
    ) -> Self {
        let steps: Vec<StepOutcome> = compiled.names().map(|name| StepOutcome::new(name.to_owned())).collect();
        let constants = (0..steps.len()).map(|step| {
            let bytes = compiled.constant(step)?;
            Some((driver.register(bytes.to_vec()), bytes.len() as u32))
        });
        Self {
            constants: constants.collect(),
            worker,
            users: users
                .map(|user| ScriptUser { user, last_step: None, rendered: Vec::new(), captured: Captured::default() })
                .collect(),
            out: Vec::new(),
            is_pipelined: depth > 1,
            retries,
            may_end: compiled.may_end(),
            leaves_on_failure: compiled.leaves_on_failure(),
            steps,
            compiled: Arc::clone(compiled),
        }
    }

    /// Sends the next request of a user, on a pipelined connection with [`Self::flush`]. Returns `None` if there is
    /// none.
    pub(crate) fn write(&mut self, user: UserId, driver: &mut impl Driver) -> Option<WrittenRequest> {
        let of_user = &mut self.users[user.index()];
        let before = self.out.len();
        let next = &mut of_user.user;
        let issued = next.next::<Http1Writer>(&self.compiled, &mut self.worker, &mut self.out)?;
        of_user.last_step = Some(issued.step);
        of_user.rendered.clear();
        self.steps[issued.step].sent += 1;
        let constant = self.constants[issued.step].filter(|_| issued.is_constant);
        let bytes = match constant {
            Some((payload, length)) if !self.is_pipelined => {
                driver.send(user.slot(), payload);
                length
            }
            Some((_, length)) => {
                let bytes = self.compiled.constant(issued.step);
                self.out.extend_from_slice(bytes.unwrap_or_default());
                length
            }
            None => (self.out.len() - before) as u32,
        };
        if !self.is_pipelined && constant.is_none() {
            driver.send_once(user.slot(), &self.out);
            if self.retries && self.compiled.is_idempotent(issued.step) {
                std::mem::swap(&mut self.out, &mut of_user.rendered);
            }
            self.out.clear();
        }
        Some(WrittenRequest { bytes, part: issued.step as u32, is_head: issued.is_head })
    }

    /// Returns whether the request of a step can be sent again with the same effect.
    pub(crate) fn can_repeat(&self, step: u32) -> bool {
        self.compiled.is_idempotent(step as usize)
    }

    /// Sends the last request of a user again. Returns its bytes.
    pub(crate) fn repeat(&self, user: UserId, step: u32, driver: &mut impl Driver) -> u32 {
        let rendered = &self.users[user.index()].rendered;
        match self.constants[step as usize] {
            Some((payload, length)) if rendered.is_empty() => {
                driver.send(user.slot(), payload);
                length
            }
            _ => {
                driver.send_once(user.slot(), rendered);
                rendered.len() as u32
            }
        }
    }

    /// Sends the requests of a pipelined connection that are not sent yet.
    pub(crate) fn flush(&mut self, user: UserId, driver: &mut impl Driver) {
        if !self.out.is_empty() {
            driver.send_bytes(user.slot(), &self.out);
            self.out.clear();
        }
    }

    /// Returns whether a user has no next request because rows have run out.
    #[inline]
    pub(crate) fn is_done(&self, user: UserId) -> bool {
        self.may_end && self.users[user.index()].user.is_done(&self.compiled, &self.worker)
    }

    /// The next response to a user begins.
    pub(crate) fn begin_response(&mut self, user: UserId) {
        let captured = &mut self.users[user.index()].captured;
        captured.head.clear();
        captured.body.clear();
        captured.body_bytes = 0;
    }

    /// Returns the sink for the response to a step.
    #[inline]
    pub(crate) fn capture(&mut self, user: UserId, step: u32) -> CaptureSink<'_> {
        CaptureSink { needs: self.compiled.needs(step as usize), captured: &mut self.users[user.index()].captured }
    }

    /// Takes the whole response to a request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn complete(&mut self, user: UserId, request: &InFlightRequest, status: u16) -> Result<(), Wrong> {
        let ScriptUser { user, captured, .. } = &mut self.users[user.index()];
        let step = request.part as usize;
        let response = Response { status, head: &captured.head, body: &captured.body, body_bytes: captured.body_bytes };
        let checked = user.check_response(&self.compiled, &mut self.worker, step, &response);
        self.steps[step].complete(request.response_ns(), checked.is_ok());
        checked.map_err(|reason| Wrong::Step(step, reason))
    }

    /// Returns what is wrong, in words.
    pub(crate) fn describe(&self, step: usize, reason: weir_scenario::Reason) -> String {
        self.compiled.describe(step, reason)
    }

    /// A request gets no whole response.
    pub(crate) fn lose(&mut self, user: UserId, step: u32) {
        let step = step as usize;
        self.users[user.index()].user.failed(&self.compiled, step);
        self.steps[step].lost += 1;
    }

    /// Returns the step of a user's next request, [`RequestRecord::NO_STEP`] if it is drawn.
    pub(crate) fn next_step(&self, user: UserId) -> u32 {
        let next = self.users[user.index()].user.next_step(&self.compiled);
        next.map_or(u32::from(RequestRecord::NO_STEP), |step| step as u32)
    }

    /// Returns how long a user pauses after its last request, `None` if the step does not say.
    pub(crate) fn think_ns(&mut self, user: UserId) -> Option<u64> {
        let user = &mut self.users[user.index()];
        user.user.think_ns(&self.compiled, user.last_step?)
    }

    /// Another user takes the place of one.
    pub(crate) fn restart(&mut self, user: UserId) {
        self.users[user.index()].user.restart();
    }
}
