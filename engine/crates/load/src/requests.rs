//! What connections ask: all the same, each what its target is asked, or what their users do.
//!
//! Hot path. Rules: one branch decides which it is, and where all ask the same there is nothing beside it.

use weir_net::{Driver, Payload, Slot};
use weir_record::StepOutcome;
use weir_schedule::Shard;
use weir_wire::{Answer, Progress, ResponseReader, ResponseState, WireError};

use crate::request_log::Origin;
use crate::script::Script;
use crate::tally::{Readings, Tally};

/// See the module's description.
pub(crate) enum Requests {
    /// The same on all connections: what is sent, and its length.
    Same(Payload, u64),
    /// By target, with what comes of each.
    ByTarget(Box<Targets>),
    /// A scenario.
    Scenario(Box<Script>),
}

/// Several targets on one load thread. Connections take them in turn, those of all threads together.
pub(crate) struct Targets {
    /// By target: what is sent, and its length.
    requests: Vec<(Payload, u64)>,
    outcomes: Vec<StepOutcome>,
    /// By slot.
    targets: Vec<u32>,
}

impl Targets {
    #[inline]
    fn of(&self, slot: Slot) -> usize {
        self.targets[slot as usize] as usize
    }

    #[inline]
    fn outcome(&mut self, slot: Slot) -> &mut StepOutcome {
        let target = self.of(slot);
        &mut self.outcomes[target]
    }
}

impl Requests {
    /// The same request, or one for each of the targets' URLs, if there are any.
    pub(crate) fn of(
        requests: Vec<Vec<u8>>,
        urls: Vec<String>,
        driver: &mut impl Driver,
        connections: usize,
        shard: Shard,
    ) -> Self {
        let mut registered: Vec<(Payload, u64)> = requests
            .into_iter()
            .map(|request| {
                let length = request.len() as u64;
                (driver.register(request), length)
            })
            .collect();
        if urls.is_empty() {
            let (payload, length) = registered.swap_remove(0);
            return Self::Same(payload, length);
        }
        let count = urls.len() as u64;
        let target = |slot| (shard.index(slot) % count) as u32;
        Self::ByTarget(Box::new(Targets {
            requests: registered,
            outcomes: urls.into_iter().map(StepOutcome::new).collect(),
            targets: (0..connections as u64).map(target).collect(),
        }))
    }

    /// Sends the next request of a connection and gives its length; nothing if there is none.
    #[inline]
    pub(crate) fn send(&mut self, slot: Slot, driver: &mut impl Driver) -> Option<u64> {
        let (payload, length) = match self {
            Self::Same(payload, length) => (*payload, *length),
            Self::ByTarget(targets) => {
                targets.outcome(slot).sent += 1;
                targets.requests[targets.of(slot)]
            }
            Self::Scenario(script) => return script.send(slot, driver),
        };
        driver.send(slot, payload);
        Some(length)
    }

    /// So many requests are sent on a connection by other means. Gives its target.
    #[inline]
    pub(crate) fn sent(&mut self, slot: Slot, count: u32) -> usize {
        let Self::ByTarget(targets) = self else {
            return 0;
        };
        targets.outcome(slot).sent += u64::from(count);
        targets.of(slot)
    }

    /// Takes bytes of the answer to a connection's request.
    #[inline]
    pub(crate) fn feed(
        &mut self,
        slot: Slot,
        reader: &mut ResponseReader,
        state: &mut ResponseState,
        bytes: &[u8],
    ) -> Result<Progress, WireError> {
        match self {
            Self::Same(..) | Self::ByTarget(_) => reader.feed(state, bytes, |_| {}),
            Self::Scenario(script) => script.feed(slot, reader, state, bytes),
        }
    }

    /// Counts the whole answer to a connection's request, which `reader` was given. Gives whether it was a right one.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        slot: Slot,
        answer: Answer,
        readings: Readings,
        reader: &ResponseReader,
        tally: &mut Tally,
    ) -> bool {
        let response_ns = readings.last_byte_ns.saturating_sub(readings.intended_ns);
        match self {
            Self::Same(..) => tally.complete(answer, readings, reader),
            Self::ByTarget(targets) => {
                let is_right = tally.complete(answer, readings, reader);
                let outcome = targets.outcome(slot);
                outcome.response_time.saturating_record(response_ns);
                outcome.ok += u64::from(is_right);
                outcome.wrong += u64::from(!is_right);
                is_right
            }
            Self::Scenario(script) => {
                let verdict = script.answered(slot, answer.status, response_ns);
                let reader = script.reader(slot, reader);
                tally.complete_as(answer, readings, reader, verdict, |wrong| {
                    script.describe(wrong)
                })
            }
        }
    }

    /// Which of several a connection's last request was.
    #[inline]
    pub(crate) fn origin(&self, slot: Slot) -> Origin {
        match self {
            Self::Same(..) => Origin::default(),
            Self::ByTarget(targets) => Origin {
                target: targets.targets[slot as usize] as u16,
                ..Origin::default()
            },
            Self::Scenario(script) => Origin {
                step: script.step(slot),
                ..Origin::default()
            },
        }
    }

    /// Which of several a connection's request would have been that could not be written.
    #[cold]
    pub(crate) fn next_origin(&self, slot: Slot) -> Origin {
        match self {
            Self::Scenario(script) => Origin {
                step: script.next_step(slot),
                ..Origin::default()
            },
            _ => self.origin(slot),
        }
    }

    /// A connection's request gets no whole answer.
    #[cold]
    pub(crate) fn lost(&mut self, slot: Slot) {
        match self {
            Self::Same(..) => {}
            Self::ByTarget(targets) => targets.outcome(slot).lost += 1,
            Self::Scenario(script) => script.failed(slot),
        }
    }

    /// A request fails since its connection could not be made. What it would have been a scenario does not say.
    #[cold]
    pub(crate) fn never_sent(&mut self, slot: Slot) {
        if let Self::ByTarget(targets) = self {
            targets.outcome(slot).lost += 1;
        }
    }

    /// Whether there is no next request for a connection's user, since rows have run out.
    #[inline]
    pub(crate) fn are_done(&self, slot: Slot) -> bool {
        matches!(self, Self::Scenario(script) if script.is_done(slot))
    }

    /// The scenario, if it is one.
    #[inline]
    pub(crate) fn script(&mut self) -> Option<&mut Script> {
        match self {
            Self::Scenario(script) => Some(script),
            _ => None,
        }
    }

    /// What came of the steps of a scenario, and of the targets.
    pub(crate) fn take_outcomes(&mut self) -> (Vec<StepOutcome>, Vec<StepOutcome>) {
        match self {
            Self::Same(..) => (Vec::new(), Vec::new()),
            Self::ByTarget(targets) => (Vec::new(), std::mem::take(&mut targets.outcomes)),
            Self::Scenario(script) => (std::mem::take(&mut script.steps), Vec::new()),
        }
    }
}
