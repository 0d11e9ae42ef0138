//! A scenario on one load thread: what each connection's user asked, and what has come of it so far.
//!
//! Hot path. Rules: no allocation once the buffers have grown; a constant step is sent from memory that the driver has, as a plain
//! request is; an answer is copied only as far as its step needs it.

use std::sync::Arc;

use weir_net::{Driver, Payload, Slot};
use weir_record::{RequestRecord, StepOutcome};
use weir_scenario::{Capture, Compiled, Issued, Needs, Reason, Response, User, Worker};
use weir_schedule::Shard;
use weir_wire::{Progress, ResponseReader, ResponseState, Sink, WireError};

/// See the module's description.
pub(crate) struct Script {
    compiled: Arc<Compiled>,
    worker: Worker,
    /// By slot: a connection's user.
    turns: Vec<Turn>,
    /// By step: what is constant of it, and its length.
    constants: Vec<Option<(Payload, u64)>>,
    /// Reads answers to HEAD requests.
    head_reader: ResponseReader,
    out: Vec<u8>,
    may_end: bool,
    /// Whether a user leaves whose request has failed.
    pub(crate) leaves_on_failure: bool,
    pub(crate) steps: Vec<StepOutcome>,
}

/// One user, its last request and what has come of it.
struct Turn {
    user: User,
    issued: Option<Issued>,
    answer: Captured,
}

/// What is kept of an answer.
#[derive(Default)]
struct Captured {
    needs: Option<Needs>,
    head: Vec<u8>,
    body: Vec<u8>,
    body_bytes: u64,
}

impl Sink for Captured {
    #[inline]
    fn head(&mut self, bytes: &[u8]) {
        if self.needs.is_some_and(|needs| needs.head) {
            self.head.clear();
            self.head.extend_from_slice(bytes);
        }
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.body_bytes += bytes.len() as u64;
        if let Some(Needs {
            body: Capture::UpTo(most),
            ..
        }) = self.needs
        {
            let room = most.saturating_sub(self.body.len());
            self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }
}

impl Script {
    /// The scenario of a thread's users. `worker` is the thread's own.
    pub(crate) fn new(
        compiled: Arc<Compiled>,
        worker: Worker,
        driver: &mut impl Driver,
        connections: usize,
        shard: Shard,
        seed: u64,
    ) -> Self {
        let steps: Vec<StepOutcome> = compiled
            .names()
            .map(|name| StepOutcome::new(name.to_owned()))
            .collect();
        let constants = (0..steps.len()).map(|step| {
            let bytes = compiled.constant(step)?;
            Some((driver.register(bytes.to_vec()), bytes.len() as u64))
        });
        Self {
            constants: constants.collect(),
            worker,
            turns: (0..connections as u64)
                .map(|slot| Turn {
                    user: compiled.user(shard.index(slot), seed),
                    issued: None,
                    answer: Captured::default(),
                })
                .collect(),
            head_reader: ResponseReader::new(true),
            out: Vec::new(),
            may_end: compiled.may_end(),
            leaves_on_failure: compiled.leaves_on_failure(),
            steps,
            compiled,
        }
    }

    /// Sends the next request of a connection's user and gives its length; nothing if there is none.
    pub(crate) fn send(&mut self, slot: Slot, driver: &mut impl Driver) -> Option<u64> {
        let turn = &mut self.turns[slot as usize];
        let issued = turn
            .user
            .next(&self.compiled, &mut self.worker, &mut self.out)?;
        turn.issued = Some(issued);
        turn.answer.needs = Some(issued.needs);
        turn.answer.head.clear();
        turn.answer.body.clear();
        turn.answer.body_bytes = 0;
        self.steps[issued.step].sent += 1;
        match self.constants[issued.step] {
            Some((payload, length)) if issued.is_constant => {
                driver.send(slot, payload);
                Some(length)
            }
            _ => {
                driver.send_once(slot, &self.out);
                Some(self.out.len() as u64)
            }
        }
    }

    /// Whether there is no next request for a connection's user, since rows have run out.
    #[inline]
    pub(crate) fn is_done(&self, slot: Slot) -> bool {
        self.may_end
            && self.turns[slot as usize]
                .user
                .is_done(&self.compiled, &self.worker)
    }

    /// Takes bytes of the answer to a connection's last request.
    pub(crate) fn feed(
        &mut self,
        slot: Slot,
        reader: &mut ResponseReader,
        state: &mut ResponseState,
        bytes: &[u8],
    ) -> Result<Progress, WireError> {
        let turn = &mut self.turns[slot as usize];
        let to_head_request = turn.issued.is_some_and(|issued| issued.to_head_request);
        let reader = if to_head_request {
            &mut self.head_reader
        } else {
            reader
        };
        reader.feed_to(state, bytes, &mut turn.answer)
    }

    /// Who read the answer to a connection's last request: `usual`, but for HEAD.
    pub(crate) fn reader<'a>(
        &'a self,
        slot: Slot,
        usual: &'a ResponseReader,
    ) -> &'a ResponseReader {
        match self.turns[slot as usize].issued {
            Some(issued) if issued.to_head_request => &self.head_reader,
            _ => usual,
        }
    }

    /// The step that a connection's last request was of, as the request log gives it.
    pub(crate) fn step(&self, slot: Slot) -> u16 {
        number(self.turns[slot as usize].issued.map(|issued| issued.step))
    }

    /// The step that a connection's next request would be of, where that is known before it is drawn.
    pub(crate) fn next_step(&self, slot: Slot) -> u16 {
        number(self.turns[slot as usize].user.next_step(&self.compiled))
    }

    /// The answer to a connection's last request is whole. Gives what is wrong with it.
    pub(crate) fn answered(
        &mut self,
        slot: Slot,
        status: u16,
        response_ns: u64,
    ) -> Result<(), (usize, Reason)> {
        let turn = &mut self.turns[slot as usize];
        let Some(step) = turn.issued.map(|issued| issued.step) else {
            return Ok(());
        };
        let response = Response {
            status,
            head: &turn.answer.head,
            body: &turn.answer.body,
            body_bytes: turn.answer.body_bytes,
        };
        let verdict = turn
            .user
            .answered(&self.compiled, &mut self.worker, step, &response);
        let outcome = &mut self.steps[step];
        outcome.response_time.saturating_record(response_ns);
        match verdict {
            Ok(()) => outcome.ok += 1,
            Err(_) => outcome.wrong += 1,
        }
        verdict.map_err(|reason| (step, reason))
    }

    /// What is wrong, in words.
    pub(crate) fn describe(&self, (step, reason): (usize, Reason)) -> String {
        self.compiled.describe(step, reason)
    }

    /// A connection's last request gets no whole answer.
    pub(crate) fn failed(&mut self, slot: Slot) {
        let turn = &mut self.turns[slot as usize];
        if let Some(issued) = turn.issued {
            turn.user.failed(&self.compiled, issued.step);
            self.steps[issued.step].lost += 1;
        }
    }

    /// How long a connection's user pauses after its last request, where the step says it.
    pub(crate) fn think_ns(&mut self, slot: Slot) -> Option<u64> {
        let turn = &mut self.turns[slot as usize];
        turn.user.think_ns(&self.compiled, turn.issued?.step)
    }

    /// Another user has come to a connection.
    pub(crate) fn restart(&mut self, slot: Slot) {
        self.turns[slot as usize].user.restart();
    }
}

fn number(step: Option<usize>) -> u16 {
    step.and_then(|step| u16::try_from(step).ok())
        .unwrap_or(RequestRecord::NO_STEP)
}
