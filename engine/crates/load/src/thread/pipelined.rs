//! Connections that carry several requests at once.
//!
//! In a closed loop each answer lets another request be written, and answers that arrive together as many together, in one send.
//! In an open loop an arrival takes an idle connection, or else the one with room on which it is longest that an arrival was
//! written. What breaks a connection fails all that is unanswered on it, for the same reason: no answer can be told from what
//! follows any more, and nothing is sent twice.

use weir_net::{Driver, Errno, Slot};
use weir_record::{Ending, ErrorKind};
use weir_wire::{Answer, Progress, ResponseReader};

use super::LoadThread;
use crate::clock::now_ns;
use crate::connection::{Connection, Phase};
use crate::demand::Source;
use crate::error::describe;
use crate::pipelines::Pipelines;
use crate::request_log::{Moments, RequestLog};
use crate::requests::Requests;
use crate::tally::{Readings, Tally};

/// What becomes of a connection whose answers were looked at.
enum Turn {
    /// It goes on.
    On,
    /// A wrong answer was the first failure, at which the load ends.
    Over,
    /// It carries no more requests.
    Broken(ErrorKind, String),
}

impl<D: Driver> LoadThread<D> {
    /// Requests that were written and are not answered.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        let pipelined = self.pipelines.as_ref();
        self.waiting.len() + pipelined.map_or(0, |pipelines| pipelines.unanswered())
    }

    /// Writes a request on a connection that has room, and in a closed loop as many more as it has room for.
    pub(super) fn write_pipelined(&mut self, slot: Slot, intended_ns: u64, now: u64) {
        let mut given = Some(intended_ns);
        let takes_more = matches!(self.demand.source, Source::Closed);
        self.write_while(slot, now, |thread| match given.take() {
            None if takes_more => thread.take_due(now),
            given => given,
        });
    }

    /// The intended start of a request that is due for a connection with room, if there is one.
    #[inline]
    fn take_due(&mut self, now: u64) -> Option<u64> {
        if let Source::Open { .. } = self.demand.source {
            return Some(self.start_ns + self.demand.take_from_queue()?);
        }
        let is_due = self.demand.take_one();
        self.tally.counts.due += u64::from(is_due);
        is_due.then_some(now)
    }

    /// Writes requests on a connection while it has room and there is one that is due, all in one send.
    #[inline]
    fn write_while(
        &mut self,
        slot: Slot,
        now: u64,
        mut next: impl FnMut(&mut Self) -> Option<u64>,
    ) {
        let Some(mut pipelines) = self.pipelines.take() else {
            return;
        };
        let mut count = 0;
        while pipelines.has_room(slot) {
            let Some(intended_ns) = next(self) else { break };
            pipelines.push(slot, intended_ns, now);
            count += 1;
        }
        let connection = &mut self.connections[slot as usize];
        if count > 0 {
            connection.requests = connection.requests.saturating_add(count);
            self.tally.counts.sent += u64::from(count);
            let target = self.requests.sent(slot, count);
            self.tally.counts.bytes_sent += pipelines.send(slot, target, count, &mut self.driver);
            if let Some(log) = &mut self.log {
                log.sent(slot, pipelines.request_bytes(target));
            }
            if D::GATHERS_SENDS {
                self.gathered.push(slot);
            } else {
                pipelines.stamp(slot, now);
            }
        }
        connection.phase = Phase::Pipelined;
        let is_empty = pipelines.len(slot) == 0;
        self.pipelines = Some(pipelines);
        self.list_by_room(slot);
        match self.demand.source {
            _ if !is_empty => {}
            Source::Closed => self.connections[slot as usize].phase = Phase::Thinking,
            Source::Open { .. } => self.let_idle(slot),
        }
    }

    /// Open loop: what is due and found no idle connection is written on those with room.
    pub(super) fn send_due_pipelined(&mut self) -> bool {
        let mut sent = false;
        while let Some(slot) = self.with_room.first() {
            let Some(due_ns) = self.demand.take_from_queue() else {
                break;
            };
            self.write_pipelined(slot, self.start_ns + due_ns, now_ns());
            // If it has room still, it is the last to be asked again.
            if self.with_room.first() == Some(slot) {
                self.with_room.remove(&mut self.connections, slot);
                self.with_room.push(&mut self.connections, slot);
            }
            sent = true;
        }
        sent
    }

    /// Bytes came on a connection on which requests are unanswered.
    pub(super) fn received_in_turn(&mut self, slot: Slot, now: u64) {
        let Some(pipelines) = self.pipelines.as_deref_mut() else {
            return;
        };
        let connection = &mut self.connections[slot as usize];
        let mut rest = self.driver.received();
        let arrival_ns = self.kernel_clock.as_ref().and_then(|clock| {
            // Whether it can be true is seen at each answer.
            clock.arrival_ns(self.driver.received_at_unix_ns(), 0, now)
        });
        let came = Came { arrival_ns, now };
        let turn = loop {
            if connection.first_byte_ns == 0 {
                connection.first_byte_ns = arrival_ns.unwrap_or(now);
            }
            let fed = self.reader.feed(&mut connection.response, rest, |_| {});
            if let Some(log) = &mut self.log {
                let used = match fed {
                    Ok(Progress::Complete { used, .. }) => used,
                    _ => rest.len(),
                };
                log.received(slot, used);
            }
            let answer = match fed {
                Ok(Progress::More) => break Turn::On,
                Ok(Progress::Complete { answer, used }) => {
                    rest = &rest[used..];
                    answer
                }
                Err(error) => break Turn::Broken(ErrorKind::Protocol, error.to_string()),
            };
            if !rest.is_empty() && pipelines.len(slot) == 1 {
                let detail = format!("{} bytes beyond the end of the last answer", rest.len());
                break Turn::Broken(ErrorKind::Protocol, detail);
            }
            let books = Books {
                requests: &mut self.requests,
                tally: &mut self.tally,
                log: self.log.as_deref_mut(),
                reader: &self.reader,
            };
            let is_right = books.complete(pipelines, connection, slot, answer, came);
            if !is_right && self.until_failure {
                break Turn::Over;
            }
            if !answer.keep_alive {
                break Turn::Broken(ErrorKind::Reset, CLOSED.to_owned());
            }
            if rest.is_empty() {
                break Turn::On;
            }
        };
        match turn {
            Turn::On => self.write_while(slot, now, |thread| thread.take_due(now)),
            Turn::Over => self.end_at_failure(ErrorKind::Check, now),
            Turn::Broken(kind, detail) => self.pipeline_failed(slot, kind, now, detail),
        }
    }

    /// The server has closed its side of a connection on which requests are unanswered.
    pub(super) fn ended_in_turn(&mut self, slot: Slot, now: u64) {
        let Some(pipelines) = self.pipelines.as_deref_mut() else {
            return;
        };
        let connection = &mut self.connections[slot as usize];
        let begun = !connection.response.is_untouched();
        match connection.response.end_of_stream() {
            Ok(Some(answer)) => {
                // The end of a stream is not stamped.
                let came = Came {
                    arrival_ns: None,
                    now,
                };
                let books = Books {
                    requests: &mut self.requests,
                    tally: &mut self.tally,
                    log: self.log.as_deref_mut(),
                    reader: &self.reader,
                };
                let is_right = books.complete(pipelines, connection, slot, answer, came);
                if !is_right && self.until_failure {
                    return self.end_at_failure(ErrorKind::Check, now);
                }
                self.pipeline_failed(slot, ErrorKind::Reset, now, CLOSED.to_owned());
            }
            Ok(None) => {
                let detail = match begun {
                    true => "connection closed in the middle of an answer",
                    false => "connection closed without an answer",
                };
                self.pipeline_failed(slot, ErrorKind::Reset, now, detail.to_owned());
            }
            Err(error) => self.pipeline_failed(slot, ErrorKind::Protocol, now, error.to_string()),
        }
    }

    /// A connection on which requests are unanswered broke.
    #[cold]
    pub(super) fn failed_in_turn(
        &mut self,
        slot: Slot,
        errno: Errno,
        text: Option<String>,
        now: u64,
    ) {
        let kind = self.kind_of_failure(slot, errno);
        let detail = text.unwrap_or_else(|| describe(errno));
        self.pipeline_failed(slot, kind, now, detail);
    }

    /// Fails what is unanswered on a connection, and the connection with it. If the first failure ends the load, the others are
    /// what was unanswered then.
    #[cold]
    fn pipeline_failed(&mut self, slot: Slot, kind: ErrorKind, now: u64, detail: String) {
        while self.first_failure.is_none() {
            let pipelines = self.pipelines.as_deref_mut();
            let Some(asked) = pipelines.and_then(|pipelines| pipelines.pop(slot)) else {
                break;
            };
            // Only the first of them can have a part of its answer.
            let first_byte_ns = &mut self.connections[slot as usize].first_byte_ns;
            let moments = Moments::of_pipelined(asked, std::mem::take(first_byte_ns));
            if let Some(log) = &mut self.log {
                let origin = self.requests.origin(slot);
                log.ended(slot, origin, moments, None, Ending::Failed(kind));
            }
            self.requests.lost(slot);
            self.fail(kind, now, || detail.clone());
        }
        if self.first_failure.is_some() {
            return;
        }
        self.connections[slot as usize].first_byte_ns = 0;
        self.list_by_room(slot);
        self.driver.close(slot);
        self.reconnect(slot, now);
    }

    /// Fails what has run out of time. Gives whether there was something.
    pub(super) fn expire_pipelines(&mut self, now: u64) -> bool {
        let mut any = false;
        loop {
            let oldest = self.pipelines.as_ref().and_then(|all| all.oldest());
            let Some((slot, asked)) = oldest else {
                return any;
            };
            if now < asked.written_ns + self.timeout_ns || self.first_failure.is_some() {
                return any;
            }
            let detail = self.describe_timeout();
            self.pipeline_failed(slot, ErrorKind::Timeout, now, detail);
            any = true;
        }
    }

    /// Open loop: keeps the list of connections with room.
    fn list_by_room(&mut self, slot: Slot) {
        let (Some(pipelines), Source::Open { .. }) = (&mut self.pipelines, &self.demand.source)
        else {
            return;
        };
        match pipelines.changes_list(slot) {
            Some(true) => self.with_room.push(&mut self.connections, slot),
            Some(false) => self.with_room.remove(&mut self.connections, slot),
            None => {}
        }
    }
}

/// Why requests behind an answer have none.
const CLOSED: &str = "connection closed by the server behind an answer, with requests unanswered";

/// When the last bytes of a connection came.
#[derive(Clone, Copy)]
struct Came {
    /// By the kernel's stamp, if there is one.
    arrival_ns: Option<u64>,
    /// When they were read.
    now: u64,
}

/// What an answer is entered in.
struct Books<'a> {
    requests: &'a mut Requests,
    tally: &'a mut Tally,
    log: Option<&'a mut RequestLog>,
    /// Who read the answer.
    reader: &'a ResponseReader,
}

impl Books<'_> {
    /// The first request of a connection has its whole answer. Gives whether it was a right one.
    #[inline]
    fn complete(
        self,
        pipelines: &mut Pipelines,
        connection: &mut Connection,
        slot: Slot,
        answer: Answer,
        came: Came,
    ) -> bool {
        let Some(asked) = pipelines.pop(slot) else {
            return true;
        };
        connection.has_answered = true;
        connection.failures = 0;
        let arrival_ns = came.arrival_ns.filter(|&at_ns| at_ns >= asked.written_ns);
        let last_byte_ns = arrival_ns.unwrap_or(came.now);
        let first_byte_ns = connection.first_byte_ns.max(asked.written_ns);
        let readings = Readings {
            intended_ns: asked.intended_ns,
            written_ns: asked.written_ns,
            first_byte_ns: first_byte_ns.min(last_byte_ns),
            last_byte_ns,
            is_stamped: arrival_ns.is_some(),
            connection: slot,
        };
        connection.first_byte_ns = 0;
        let is_right = self
            .requests
            .complete(slot, answer, readings, self.reader, self.tally);
        if let Some(log) = self.log {
            log.answered(slot, self.requests.origin(slot), readings, answer, is_right);
        }
        is_right
    }
}
