//! Starts the load threads together, merges their results, and emits them as records.

mod end_record;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use weir_http::Http1;
use weir_net::tls::{Client, TlsDriver};
use weir_net::{Backend as NetBackend, Driver, EpollDriver, Errno, Stamping, UringDriver};
use weir_plan::{Backend, Plan, Protocol, Until};
use weir_record::{
    BestSecond, BucketCounts, CHECK_INTERVAL_NS, Event, Hello, Interval, IntervalMerger, IntervalPart, Record, SCHEMA,
    Slowest, StallDetector,
};
use weir_schedule::Shard;

use crate::clock::{moment, now_ns, unix_ns};
use crate::prepare::shard;
use crate::recorder::{Blocks, First, KernelClock, LogWriter, Opened, Pool, Recorder, RequestLog, Tally};
use crate::thread::{LoadThread, ThreadResult};
use crate::wait::WaitStrategy;
use crate::workload::{Demand, Requests, Workload};
use crate::{LoadError, Prepared, Stop, VERSION};

/// Time from the decision to start to the start, so that every thread has received it.
const START_DELAY_NS: u64 = 1_000_000;
/// Additional time for each connection, so that the server can empty its accept queue. A connection that is still in
/// the queue when the load starts may stay there for seconds: nginx accepts one connection in each pass over its
/// events, and a pass over thousands of busy connections takes milliseconds. With 108 of 9,500 connections in the
/// queue, 99 requests exceeded a timeout of 2 s.
const SETTLE_NS_EACH: u64 = 20_000;
/// The longest such pause.
const LONGEST_SETTLE_NS: u64 = 1_000_000_000;

/// Connections of a thread up to which io_uring is chosen: the most for which it was measured against epoll, and was no
/// worse.
const URING_CONNECTIONS: usize = 16_384;

/// The niceness of threads that work beside a load thread.
pub const NICE: i32 = 19;

/// A message from a load thread to the collecting one.
pub(crate) enum Message {
    /// The connections are open, or failed to.
    Opened(Opened),
    /// An interval is over.
    Part(IntervalPart),
    /// Something worth knowing happened.
    Event(Event),
    /// The load is over.
    Done(Box<ThreadResult>),
    /// The thread could not go on.
    Failed(LoadError),
}

/// Runs a load and passes its records to `emit`, which should not block. Returns when the load is over or was stopped;
/// the last record is [`Record::End`]. A held load emits [`Record::Ready`] and starts at the moment of CLOCK_MONOTONIC
/// that `begin` receives. A held load that is stopped before its start has no `End`.
///
/// # Errors
/// When no connection could be opened or a system call failed. Then there is no `End`.
pub fn run(
    prepared: &Prepared,
    stop: &Stop,
    begin: &Receiver<u64>,
    emit: &mut dyn FnMut(Record),
) -> Result<(), LoadError> {
    let backend = prepared.plan.backend;
    // Held until the load is over.
    let _stamping = match prepared.plan.kernel_timestamps {
        true => Some(Stamping::begin().map_err(LoadError::KernelTimestamps)?),
        false => None,
    };
    if wants_uring(&prepared.plan) {
        match UringDriver::new(0) {
            Ok(_) => return run_on::<UringDriver>(prepared, stop, begin, emit),
            Err(problem) if backend == Backend::IoUring => return Err(LoadError::Uring(problem)),
            // Many containers forbid it. `hello` names the back end.
            Err(_) => {}
        }
    }
    run_on::<EpollDriver>(prepared, stop, begin, emit)
}

/// Returns whether the plan asks for io_uring, or leaves the choice and io_uring is no worse.
fn wants_uring(plan: &Plan) -> bool {
    match plan.backend {
        Backend::IoUring => true,
        Backend::Epoll => false,
        Backend::Auto => plan.load.connections().div_ceil(plan.all_threads()) <= URING_CONNECTIONS,
    }
}

fn run_on<D: NetBackend>(
    prepared: &Prepared,
    stop: &Stop,
    begin: &Receiver<u64>,
    emit: &mut dyn FnMut(Record),
) -> Result<(), LoadError> {
    let (messages, inbox) = channel();
    std::thread::scope(|scope| {
        let path = prepared.plan.request_log.as_deref();
        let log = path.map(|path| LogWriter::start(path, scope)).transpose()?;
        let shared = Shared {
            pool: Arc::new(Mutex::new(Vec::new())),
            first: Arc::new(OnceLock::new()),
            blocks: log.as_ref().map(LogWriter::blocks),
        };
        let mut starts = Vec::new();
        for k in 0..prepared.plan.threads {
            let (start, started) = channel();
            starts.push(start);
            let (messages, shared) = (messages.clone(), shared.clone());
            Builder::new()
                .name(format!("load-{k}"))
                .spawn_scoped(scope, move || {
                    if let Err(error) = run_thread::<D>(k, prepared, stop, shared, &messages, &started) {
                        let _ = messages.send(Message::Failed(error));
                    }
                })
                .map_err(LoadError::System)?;
        }
        // Collecting can wait, but a send cannot, and may need this CPU. Always allowed.
        weir_sys::limits::lower_priority(NICE);
        // Now only the threads hold senders. When the threads have ended, receiving ends.
        drop((messages, shared.blocks));
        let collector =
            Collector { prepared, backend: D::NAME, stop, begin, inbox, pool: shared.pool, first: shared.first };
        collector.collect(starts, log, emit)
    })
}

/// The parts that the threads of a load share.
#[derive(Clone)]
struct Shared {
    pool: Pool,
    first: First,
    blocks: Option<Blocks>,
}

/// Runs one load thread.
fn run_thread<D: NetBackend>(
    k: usize,
    prepared: &Prepared,
    stop: &Stop,
    shared: Shared,
    messages: &Sender<Message>,
    started: &Receiver<u64>,
) -> Result<(), LoadError> {
    let plan = &prepared.plan;
    bind(k, &plan.cpus)?;
    let shard = shard(plan, k);
    let connections = shard.count(plan.load.connections() as u64) as usize;
    let mut tally = Tally::new(
        (plan.interval_s * 1e9).round() as u64,
        Slowest::new(plan.slowest),
        shared.first,
        shared.pool,
        messages.clone(),
    );
    if !prepared.tls.is_empty() {
        tally.clocks.tls_handshake = Some(weir_record::new_histogram());
    }
    let has_steps = prepared.scenario.is_some();
    let log = shared.blocks.map(|blocks| RequestLog::new(blocks, shard, has_steps));
    let recorder = Recorder::new(
        tally,
        log,
        plan.kernel_timestamps.then(KernelClock::new),
        plan.until == Some(Until::FirstFailure),
    );
    let mut driver = D::new(connections).map_err(LoadError::System)?;
    if plan.kernel_timestamps {
        driver.stamp_arrivals();
    }
    if prepared.tls.is_empty() {
        return run_over(driver, shard, recorder, prepared, stop, messages, started);
    }
    let clients: Result<Vec<Client>, _> = prepared.tls.iter().map(Client::new).collect();
    let clients = clients.map_err(|error| LoadError::System(std::io::Error::other(error)))?;
    let count = clients.len() as u64;
    let client_of = (0..connections as u64).map(|slot| (shard.index(slot) % count) as usize);
    let driver = TlsDriver::new(driver, clients, client_of);
    run_over(driver, shard, recorder, prepared, stop, messages, started)
}

/// Runs a load thread over a driver.
fn run_over<D: Driver>(
    mut driver: D,
    shard: Shard,
    recorder: Recorder,
    prepared: &Prepared,
    stop: &Stop,
    messages: &Sender<Message>,
    started: &Receiver<u64>,
) -> Result<(), LoadError> {
    let plan = &prepared.plan;
    let requests = Requests::new(prepared, shard, &mut driver)?;
    let workload = Workload::new(requests, Demand::new(plan, shard));
    let mut thread = match plan.protocol {
        Protocol::Http1 => LoadThread::<D, Http1>::new(prepared, shard, driver, workload, recorder),
    };
    let opened = thread.open(stop).map_err(LoadError::System)?;
    let _ = messages.send(Message::Opened(opened));
    // If the load is given up, the sender is dropped.
    let Ok(start_ns) = started.recv() else {
        return Ok(());
    };
    let end = thread.run(start_ns, (plan.duration_s * 1e9).round() as u64, stop).map_err(LoadError::System)?;
    let _ = messages.send(Message::Done(Box::new(end)));
    Ok(())
}

fn bind(k: usize, cpus: &[usize]) -> Result<(), LoadError> {
    // Timers are late by the slack, 50 us by default. Without the right to change it the slack stays.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
    if cpus.is_empty() {
        return Ok(());
    }
    let cpu = cpus[k % cpus.len()];
    if cpu >= CpuSet::MAX_CPU {
        return Err(LoadError::Cpu { cpu, problem: Errno::INVAL });
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|problem| LoadError::Cpu { cpu, problem })
}

struct Collector<'a> {
    prepared: &'a Prepared,
    backend: &'static str,
    stop: &'a Stop,
    begin: &'a Receiver<u64>,
    inbox: Receiver<Message>,
    pool: Pool,
    first: First,
}

impl Collector<'_> {
    fn collect(
        self,
        starts: Vec<Sender<u64>>,
        log: Option<LogWriter<'_>>,
        emit: &mut dyn FnMut(Record),
    ) -> Result<(), LoadError> {
        let connected = self.wait_until_open(starts.len())?;
        let settle_ns = (connected * SETTLE_NS_EACH).min(LONGEST_SETTLE_NS);
        let soonest_ns = now_ns() + START_DELAY_NS + settle_ns;
        let start_ns = if self.prepared.plan.held {
            emit(Record::Ready { connected, soonest_monotonic_ns: soonest_ns });
            match self.wait_to_be_told() {
                Some(told_ns) => told_ns.max(now_ns() + START_DELAY_NS),
                None => return Ok(()),
            }
        } else {
            soonest_ns
        };
        for start in &starts {
            // A thread that has ended has sent its error, which is received below.
            let _ = start.send(start_ns);
        }
        emit(Record::Hello(self.hello(connected, start_ns)));
        for note in &self.prepared.notes {
            emit(Record::Event(Event { t_s: 0.0, kind: "address", detail: note.clone() }));
        }
        let begun = moment();
        let mut standstill = StallDetector::new(begun, starts.len());

        let mut merger = IntervalMerger::new(starts.len());
        let mut best = BestSecond::new(self.prepared.plan.interval_s);
        let mut emit_interval = |interval: Interval, emit: &mut dyn FnMut(Record)| {
            best.take(&interval);
            emit(Record::Interval(interval));
        };
        let mut ends = Vec::new();
        while ends.len() < starts.len() {
            let message = self.receive()?;
            let now = moment();
            if let Some(still_ns) = standstill.check(now) {
                emit(Record::Event(stood_still(now.monotonic_ns.saturating_sub(start_ns), still_ns)));
            }
            match message {
                Some(Message::Part(part)) => {
                    if let Some(interval) = self.take_part(&mut merger, part) {
                        emit_interval(interval, emit);
                    }
                }
                Some(Message::Event(event)) => emit(Record::Event(event)),
                Some(Message::Done(end)) => {
                    for interval in merger.thread_ended(end.intervals) {
                        emit_interval(interval, emit);
                    }
                    ends.push(*end);
                }
                Some(Message::Opened(_) | Message::Failed(_)) | None => {}
            }
        }
        let cpu_ns = moment().cpu_ns - begun.cpu_ns;
        for interval in merger.rest() {
            emit_interval(interval, emit);
        }
        let lost = ends.iter().map(|end| end.lost_records).sum();
        let log = log.map(|log| log.finish(lost));
        emit(self.end(&merger, &best, ends, log, cpu_ns, standstill));
        Ok(())
    }

    /// Waits for the start of a held load. Returns `None` if the load was stopped before.
    fn wait_to_be_told(&self) -> Option<u64> {
        loop {
            match self.begin.recv_timeout(Duration::from_nanos(CHECK_INTERVAL_NS)) {
                Ok(start_ns) => return Some(start_ns),
                Err(RecvTimeoutError::Timeout) if !self.stop.is_requested() => {}
                Err(_) => return None,
            }
        }
    }

    /// Waits a moment for a message of a load thread.
    ///
    /// # Errors
    /// When a load thread has failed, which stops the others.
    fn receive(&self) -> Result<Option<Message>, LoadError> {
        let interval = Duration::from_nanos(CHECK_INTERVAL_NS);
        match self.inbox.recv_timeout(interval) {
            Ok(Message::Failed(error)) => {
                self.stop.request(weir_record::StopReason::Input);
                Err(error)
            }
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let problem = std::io::Error::other("a load thread is gone");
                Err(LoadError::System(problem))
            }
        }
    }

    fn wait_until_open(&self, threads: usize) -> Result<u64, LoadError> {
        let mut connected = 0;
        let mut first_failure = None;
        let mut opened = 0;
        while opened < threads {
            if let Some(Message::Opened(thread)) = self.receive()? {
                opened += 1;
                connected += thread.connected;
                first_failure = first_failure.or(thread.first_failure);
            }
        }
        if connected == 0 && !self.stop.is_requested() {
            let failure = first_failure.filter(|failure| failure.errno != Errno::TIMEDOUT);
            return Err(LoadError::Unreachable {
                endpoint: Box::new(self.prepared.endpoints[0][0].clone()),
                is_tls: !self.prepared.tls.is_empty(),
                problem: failure.as_ref().map(|failure| failure.errno),
                text: failure.and_then(|failure| failure.text),
                timeout_s: self.prepared.plan.timeout_s,
            });
        }
        Ok(connected)
    }

    fn hello(&self, connected: u64, start_ns: u64) -> Hello {
        let plan = &self.prepared.plan;
        Hello {
            schema: SCHEMA,
            version: VERSION.to_owned(),
            pid: std::process::id(),
            backend: self.backend,
            wait: WaitStrategy::of(plan).name(),
            kernel_timestamps: plan.kernel_timestamps,
            threads: plan.threads,
            cpus: plan.cpus.clone(),
            connected,
            start_monotonic_ns: start_ns,
            start_unix_ns: unix_ns() + start_ns.saturating_sub(now_ns()),
        }
    }

    fn take_part(&self, merger: &mut IntervalMerger, part: IntervalPart) -> Option<Interval> {
        let mut spares = Vec::new();
        let interval = merger.take(part, &mut spares);
        spares.iter_mut().for_each(BucketCounts::clear);
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).append(&mut spares);
        interval
    }
}

fn stood_still(at_ns: u64, still_ns: u64) -> Event {
    Event {
        t_s: at_ns as f64 / 1e9,
        kind: "stalled",
        detail: format!("nothing ran for {:.2} s until now", still_ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_back_end_is_the_plans_choice_or_that_of_its_connections() {
        let plan = |backend: &str, connections: usize, threads: usize| {
            let text = format!(
                r#"{{"schema": 1, "target": "http://a/", "duration_s": 1, "backend": "{backend}", "threads": {threads},
                    "load": {{"closed": {{"connections": {connections}}}}}}}"#
            );
            wants_uring(&Plan::from_json(&text).unwrap())
        };
        assert!(plan("auto", 16_384, 1));
        assert!(!plan("auto", 16_385, 1));
        assert!(plan("auto", 32_768, 2));
        assert!(plan("io_uring", 20_000, 1));
        assert!(!plan("epoll", 1, 1));
    }
}
