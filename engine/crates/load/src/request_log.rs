//! The request log: a record of each request that ended, in a file.
//!
//! Hot path. Rules: a record is 64 bytes into a block of memory that is there. A full block goes to the writing thread through a channel
//! with room for [`WAITING_BLOCKS`]; where there is none, since the disk does not follow, its records are lost and counted: the load never
//! waits for a disk. At its end it does, until what waits is written.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use weir_net::Slot;
use weir_record::{Ending, ErrorKind, RequestLogSummary, RequestRecord};
use weir_schedule::Shard;
use weir_wire::Answer;

use crate::LoadError;
use crate::connection::Connection;
use crate::pipelines::Asked;
use crate::tally::Readings;

/// 64 KiB: a thousand requests between two looks at the channel.
const BLOCK_BYTES: usize = 1024 * RequestRecord::BYTES;
/// Blocks of all threads that may wait to be written, 32 MiB: what a disk that stops for seconds holds up.
const WAITING_BLOCKS: usize = 512;
/// How nice the writing thread is to the load: less than what only collects, since what it does not do in time is lost. It needs some
/// 3 % of a CPU for 100,000 requests a second.
const NICE: i32 = 10;

/// Blocks that are written, to be filled again.
type Spares = Arc<Mutex<Vec<Vec<u8>>>>;

/// The way of full blocks to the writing thread, and of empty ones back.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    full: SyncSender<Vec<u8>>,
    spares: Spares,
}

impl Blocks {
    /// An empty one. A lock that is held is not waited for: its holder may not be running.
    fn empty(&self) -> Vec<u8> {
        let spare = self.spares.try_lock().ok().and_then(|mut all| all.pop());
        spare.unwrap_or_else(|| Vec::with_capacity(BLOCK_BYTES))
    }
}

/// The thread that writes the file.
pub(crate) struct LogWriter<'scope> {
    blocks: Blocks,
    thread: ScopedJoinHandle<'scope, RequestLogSummary>,
}

impl<'scope> LogWriter<'scope> {
    /// Makes the file, or empties the one there is, and starts the thread.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(crate) fn start(path: &str, scope: &'scope Scope<'scope, '_>) -> Result<Self, LoadError> {
        let file = File::create(path).map_err(|problem| LoadError::RequestLog {
            path: path.to_owned(),
            problem,
        })?;
        let (full, written) = sync_channel(WAITING_BLOCKS);
        let spares = Spares::default();
        let blocks = Blocks {
            full,
            spares: Arc::clone(&spares),
        };
        let thread = Builder::new()
            .name("request-log".to_owned())
            .spawn_scoped(scope, move || {
                // Always allowed.
                weir_sys::limits::lower_priority(NICE);
                write(file, &written, &spares)
            })
            .map_err(LoadError::System)?;
        Ok(Self { blocks, thread })
    }

    /// The way to it.
    pub(crate) fn blocks(&self) -> Blocks {
        self.blocks.clone()
    }

    /// Waits until everything is written. The load's threads are gone, and so many records were lost on them.
    pub(crate) fn finish(self, lost: u64) -> RequestLogSummary {
        drop(self.blocks);
        // It does not panic.
        let mut summary = self.thread.join().unwrap_or_default();
        summary.lost += lost;
        summary
    }
}

/// Writes blocks until nobody is left to fill one. What the file does not take is lost, and everything after it.
fn write(mut file: File, blocks: &Receiver<Vec<u8>>, spares: &Spares) -> RequestLogSummary {
    let mut summary = RequestLogSummary::default();
    for mut block in blocks {
        let records = (block.len() / RequestRecord::BYTES) as u64;
        if summary.problem.is_none() {
            if let Err(problem) = file.write_all(&block) {
                summary.problem = Some(problem.to_string());
                // Of a block in pieces nothing stays, where that can be: the file holds what is counted.
                let _ = file.set_len(summary.records * RequestRecord::BYTES as u64);
            }
        }
        match summary.problem {
            None => summary.records += records,
            Some(_) => summary.lost += records,
        }
        block.clear();
        let mut spares = spares.lock().unwrap_or_else(PoisonError::into_inner);
        spares.push(block);
    }
    summary
}

/// The moments of a request, those that came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    pub(crate) intended_ns: u64,
    pub(crate) written_ns: Option<u64>,
    pub(crate) first_byte_ns: Option<u64>,
    pub(crate) last_byte_ns: Option<u64>,
}

impl Moments {
    /// Those of a request that was due and came no further.
    pub(crate) fn due(intended_ns: u64) -> Self {
        Self {
            intended_ns,
            written_ns: None,
            first_byte_ns: None,
            last_byte_ns: None,
        }
    }

    /// Those of the request on a connection that waits for its answer.
    pub(crate) fn of(connection: &Connection) -> Self {
        Self {
            written_ns: Some(connection.since_ns),
            first_byte_ns: Some(connection.first_byte_ns).filter(|&at_ns| at_ns > 0),
            ..Self::due(connection.intended_ns)
        }
    }

    /// Those of a request among several on a connection, of whose answer the first byte may have come.
    pub(crate) fn of_pipelined(asked: Asked, first_byte_ns: u64) -> Self {
        Self {
            written_ns: Some(asked.written_ns),
            first_byte_ns: Some(first_byte_ns).filter(|&at_ns| at_ns > 0),
            ..Self::due(asked.intended_ns)
        }
    }
}

/// Which step of a scenario a request was, and which of several targets it went to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Origin {
    pub(crate) step: u16,
    pub(crate) target: u16,
}

/// What is known of a connection and of the request on it.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// How long making it took; 0 once a request of it has ended.
    connect_ns: u64,
    sent_bytes: u32,
    received_bytes: u64,
}

/// One thread's part of the log.
#[derive(Debug)]
pub(crate) struct RequestLog {
    start_ns: u64,
    shard: Shard,
    /// By slot.
    places: Vec<Place>,
    block: Vec<u8>,
    blocks: Blocks,
    lost: u64,
}

impl RequestLog {
    pub(crate) fn new(blocks: Blocks, connections: usize, shard: Shard) -> Self {
        Self {
            start_ns: 0,
            shard,
            places: vec![Place::default(); connections],
            block: blocks.empty(),
            blocks,
            lost: 0,
        }
    }

    /// The clock starts.
    pub(crate) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// A connection was made, or could not be, which took so long.
    pub(crate) fn connected(&mut self, slot: Slot, took_ns: u64) {
        self.places[slot as usize] = Place {
            connect_ns: took_ns,
            ..Place::default()
        };
    }

    /// A request of so many bytes is written.
    #[inline]
    pub(crate) fn sent(&mut self, slot: Slot, bytes: u64) {
        self.places[slot as usize].sent_bytes = saturated(bytes);
    }

    /// So many bytes came of an answer.
    #[inline]
    pub(crate) fn received(&mut self, slot: Slot, bytes: usize) {
        self.places[slot as usize].received_bytes += bytes as u64;
    }

    /// A request has a whole answer.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        slot: Slot,
        origin: Origin,
        readings: Readings,
        answer: Answer,
        is_right: bool,
    ) {
        let moments = Moments {
            intended_ns: readings.intended_ns,
            written_ns: Some(readings.written_ns),
            first_byte_ns: Some(readings.first_byte_ns),
            last_byte_ns: Some(readings.last_byte_ns),
        };
        let ending = match is_right {
            true => Ending::Ok,
            false => Ending::Failed(ErrorKind::Check),
        };
        self.ended(slot, origin, moments, Some(answer), ending);
    }

    /// A request has ended, with a whole answer or without.
    #[inline]
    pub(crate) fn ended(
        &mut self,
        slot: Slot,
        origin: Origin,
        moments: Moments,
        answer: Option<Answer>,
        ending: Ending,
    ) {
        let since_start = |at_ns: u64| at_ns as i64 - self.start_ns as i64;
        let or_never = |at_ns: Option<u64>| at_ns.map_or(-1, since_start);
        let place = &mut self.places[slot as usize];
        let record = RequestRecord {
            intended_ns: since_start(moments.intended_ns),
            written_ns: or_never(moments.written_ns),
            first_byte_ns: or_never(moments.first_byte_ns),
            last_byte_ns: or_never(moments.last_byte_ns),
            connect_ns: std::mem::take(&mut place.connect_ns) as i64,
            received_bytes: saturated(std::mem::take(&mut place.received_bytes)),
            body_bytes: answer.map_or(0, |answer| saturated(answer.body_bytes)),
            sent_bytes: place.sent_bytes,
            user: self.shard.index(u64::from(slot)) as u32,
            step: origin.step,
            target: origin.target,
            status: answer.map_or(0, |answer| answer.status),
            ending,
        };
        self.block.extend_from_slice(&record.to_bytes());
        if self.block.len() == BLOCK_BYTES {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        match self.blocks.full.try_send(std::mem::take(&mut self.block)) {
            Ok(()) => self.block = self.blocks.empty(),
            Err(TrySendError::Full(mut block) | TrySendError::Disconnected(mut block)) => {
                self.lost += (block.len() / RequestRecord::BYTES) as u64;
                block.clear();
                self.block = block;
            }
        }
    }

    /// The load is over: hands over the rest, however long that takes, and gives how many records were lost.
    pub(crate) fn finish(self) -> u64 {
        // Fails only when the load was given up.
        let _ = self.blocks.full.send(self.block);
        self.lost
    }
}

fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A log whose channel has room for so many blocks, and the channel's other end.
    fn log(room: usize) -> (RequestLog, Receiver<Vec<u8>>) {
        let (full, written) = sync_channel(room);
        let spares = Spares::default();
        let mut log = RequestLog::new(Blocks { full, spares }, 2, Shard::WHOLE);
        log.start(1_000);
        (log, written)
    }

    /// A request that was due at a moment.
    fn note(log: &mut RequestLog, at_ns: u64) {
        let moments = Moments::due(1_000 + at_ns);
        log.ended(0, Origin::default(), moments, None, Ending::Unanswered);
    }

    fn intended(blocks: impl IntoIterator<Item = Vec<u8>>) -> Vec<u64> {
        let bytes = blocks.into_iter().collect::<Vec<_>>().concat();
        bytes
            .chunks(RequestRecord::BYTES)
            .map(|record| u64::from_le_bytes(record[..8].try_into().unwrap()))
            .collect()
    }

    #[test]
    fn records_come_in_order_and_none_is_missing() {
        let (mut log, written) = log(8);
        (0..5_000).for_each(|at_ns| note(&mut log, at_ns));
        assert_eq!(log.finish(), 0);
        assert_eq!(intended(written), (0..5_000).collect::<Vec<_>>());
    }

    #[test]
    fn what_there_is_no_room_for_is_lost_by_the_block_and_counted() {
        let (mut log, written) = log(2);
        (0..5_000).for_each(|at_ns| note(&mut log, at_ns));
        let writer = std::thread::spawn(move || intended(written));
        assert_eq!(log.finish(), 2 * 1_024);
        let kept: Vec<u64> = (0..2 * 1_024).chain(4 * 1_024..5_000).collect();
        assert_eq!(writer.join().unwrap(), kept);
    }

    #[test]
    fn a_full_channel_takes_no_spare_block() {
        let (full, _written) = sync_channel(0);
        let spares = Spares::default();
        let blocks = Blocks {
            full,
            spares: Arc::clone(&spares),
        };
        let mut log = RequestLog::new(blocks, 2, Shard::WHOLE);
        spares.lock().unwrap().push(Vec::new());
        (0..2 * 1_024).for_each(|at_ns| note(&mut log, at_ns));
        assert_eq!(spares.lock().unwrap().len(), 1);
    }

    #[test]
    fn what_is_known_of_a_request_is_forgotten_with_it() {
        let (mut log, written) = log(1);
        log.connected(1, 77);
        log.sent(1, 30);
        log.received(1, 10);
        log.received(1, usize::MAX / 2);
        let moments = Moments::due(1_000);
        for _ in 0..2 {
            log.ended(1, Origin::default(), moments, None, Ending::Ok);
        }
        log.finish();
        let bytes = written.recv().unwrap();
        let (first, second) = bytes.split_at(RequestRecord::BYTES);
        assert_eq!((first[32], &first[40..44]), (77, &[u8::MAX; 4][..]));
        assert_eq!((second[32], &second[40..44]), (0, &[0; 4][..]));
        assert_eq!((first[48], first[52]), (30, 1));
    }

    #[test]
    fn a_file_that_takes_no_more_holds_whole_blocks_and_the_rest_is_counted() {
        let (full, written) = sync_channel(3);
        for length in [BLOCK_BYTES, BLOCK_BYTES, RequestRecord::BYTES] {
            full.send(vec![0; length]).unwrap();
        }
        drop(full);
        let file = File::options().write(true).open("/dev/full").unwrap();
        let summary = write(file, &written, &Spares::default());
        assert_eq!((summary.records, summary.lost), (0, 2_049));
        let problem = summary.problem.unwrap();
        assert!(problem.starts_with("No space left on device"), "{problem}");
    }
}
