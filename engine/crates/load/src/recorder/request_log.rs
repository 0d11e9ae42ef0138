//! The request log: a record of each request that ended, in a file.
//!
//! Hot path. Rules: a record is 64 bytes into a block of memory that is there. A full block goes to the writing thread
//! through a channel with room for [`WAITING_BLOCKS`]. If a slow disk has filled the channel, the block's records are
//! lost and counted: the load never waits for a disk. At its end it waits until all blocks are written.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use weir_http::Response;
use weir_record::{RequestLogSummary, RequestOutcome, RequestRecord};
use weir_schedule::Shard;

use crate::LoadError;
use crate::in_flight::InFlightRequest;
use crate::workload::UserId;

/// 64 KiB: a thousand requests between two looks at the channel.
const BLOCK_BYTES: usize = 1024 * RequestRecord::BYTES;
/// Blocks of all threads that may wait to be written: 32 MiB bridge a disk that stops for seconds.
const WAITING_BLOCKS: usize = 512;
/// The niceness of the writing thread: above the collecting thread, because records that it does not write in time are
/// lost. It needs some 3 % of a CPU for 100,000 requests a second.
const NICE: i32 = 10;

/// Written blocks, to be filled again.
type Spares = Arc<Mutex<Vec<Vec<u8>>>>;

/// The channel of full blocks to the writing thread, and the empty ones that come back.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    full: SyncSender<Vec<u8>>,
    spares: Spares,
}

impl Blocks {
    /// Returns an empty block. Does not wait for the lock: its holder may not be running.
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
    /// Creates or truncates the file, and starts the thread.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub(crate) fn start(path: &str, scope: &'scope Scope<'scope, '_>) -> Result<Self, LoadError> {
        let file = File::create(path).map_err(|problem| LoadError::RequestLog { path: path.to_owned(), problem })?;
        let (full, written) = sync_channel(WAITING_BLOCKS);
        let spares = Spares::default();
        let blocks = Blocks { full, spares: Arc::clone(&spares) };
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

    /// Returns the channel to it.
    pub(crate) fn blocks(&self) -> Blocks {
        self.blocks.clone()
    }

    /// Waits until everything is written. The threads of the load are gone, and lost `lost` records.
    pub(crate) fn finish(self, lost: u64) -> RequestLogSummary {
        drop(self.blocks);
        // It does not panic.
        let mut summary = self.thread.join().unwrap_or_default();
        summary.lost += lost;
        summary
    }
}

/// Writes blocks until no thread can fill one. From the first error of the file on, all records are lost.
fn write(mut file: File, blocks: &Receiver<Vec<u8>>, spares: &Spares) -> RequestLogSummary {
    let mut summary = RequestLogSummary::default();
    for mut block in blocks {
        let records = (block.len() / RequestRecord::BYTES) as u64;
        if summary.problem.is_none() {
            if let Err(problem) = file.write_all(&block) {
                summary.problem = Some(problem.to_string());
                // A part of a block is cut off if possible, so that the file holds the counted records.
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

/// One thread's part of the log.
#[derive(Debug)]
pub(crate) struct RequestLog {
    start_ns: u64,
    shard: Shard,
    /// Whether a request's part is a step of a scenario; otherwise it is a target.
    has_steps: bool,
    block: Vec<u8>,
    blocks: Blocks,
    lost: u64,
}

impl RequestLog {
    pub(crate) fn new(blocks: Blocks, shard: Shard, has_steps: bool) -> Self {
        Self { start_ns: 0, shard, has_steps, block: blocks.empty(), blocks, lost: 0 }
    }

    /// The clock starts.
    pub(crate) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// Records a request that has ended, with its response if that is complete. `connect_ns` is how long making its
    /// connection took; 0 if the connection had carried a request before.
    #[inline]
    pub(crate) fn record(
        &mut self,
        user: UserId,
        request: &InFlightRequest,
        outcome: RequestOutcome,
        response: Option<Response>,
        connect_ns: u64,
    ) {
        let since_start = |at_ns: u64| at_ns as i64 - self.start_ns as i64;
        let or_never = |at_ns: u64| match at_ns {
            0 => -1,
            at_ns => since_start(at_ns),
        };
        let part = u16::try_from(request.part).unwrap_or(RequestRecord::NO_STEP);
        let (step, target) = match self.has_steps {
            true => (part, 0),
            false => (0, part),
        };
        let record = RequestRecord {
            intended_ns: since_start(request.intended_ns),
            written_ns: or_never(request.written_ns),
            first_byte_ns: or_never(request.first_byte_ns),
            last_byte_ns: or_never(request.last_byte_ns),
            connect_ns: connect_ns as i64,
            received_bytes: saturated(request.received_bytes),
            body_bytes: response.map_or(0, |response| saturated(response.body_bytes)),
            sent_bytes: request.sent_bytes,
            user: self.shard.index(user.index() as u64) as u32,
            step,
            target,
            status: response.map_or(0, |response| response.status),
            outcome,
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

    /// The load is over: hands over the rest, waiting as long as needed, and returns how many records were lost.
    pub(crate) fn finish(self) -> u64 {
        // Fails only if the load was given up.
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
        let mut log = RequestLog::new(Blocks { full, spares }, Shard::WHOLE, true);
        log.start(1_000);
        (log, written)
    }

    /// A request that was due at a moment.
    fn note(log: &mut RequestLog, at_ns: u64) {
        let request = InFlightRequest::unsent(1_000 + at_ns, 0);
        log.record(UserId::on(0), &request, RequestOutcome::Unanswered, None, 0);
    }

    fn intended(blocks: impl IntoIterator<Item = Vec<u8>>) -> Vec<u64> {
        let bytes = blocks.into_iter().collect::<Vec<_>>().concat();
        bytes.chunks(RequestRecord::BYTES).map(|record| u64::from_le_bytes(record[..8].try_into().unwrap())).collect()
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
        let blocks = Blocks { full, spares: Arc::clone(&spares) };
        let mut log = RequestLog::new(blocks, Shard::WHOLE, true);
        spares.lock().unwrap().push(Vec::new());
        (0..2 * 1_024).for_each(|at_ns| note(&mut log, at_ns));
        assert_eq!(spares.lock().unwrap().len(), 1);
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
