//! The subcommand `load`: reads a plan, prints records.
//!
//! Beside the load's own threads, this thread collects, one writes standard output, one waits for signals, and one
//! reads standard input. So a slow reader of the records delays no other thread.

use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use weir_load::{LoadError, Prepared, Stop};
use weir_plan::Plan;
use weir_record::{Event, Record, StopReason};
use weir_sys::pipe::is_pipe;
use weir_sys::process::{SIGINT, SIGTERM, SignalFd};

use crate::output::{fatal, write_record};

/// Maximum number of records, of about 4 kB each, that wait for a slow reader. Further ones are dropped, and an event
/// reports their number.
const MAX_WAITING_RECORDS: usize = 4096;

/// Arguments of `weir-engine load`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Read the plan from a file instead of standard input.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let plan = match read_plan(arguments) {
        Ok(plan) => plan,
        Err(exit) => return exit,
    };
    let prepared = match Prepared::new(plan) {
        Ok(prepared) => prepared,
        Err(error) => return fail(&error),
    };
    let stop = Arc::new(Stop::default());
    stop_on_signals(&stop);
    let (start, begin) = channel();
    if prepared.plan.held {
        read_start_time(start, &stop);
    } else if arguments.plan.is_none() {
        stop_on_end_of_input(&stop);
    }
    let (records, written) = sync_channel(MAX_WAITING_RECORDS);
    let writer = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || write_records(&written, &stop))
    };
    let mut outlet = Outlet { records, dropped: 0, last_s: 0.0 };
    let result = weir_load::run(&prepared, &stop, &begin, &mut |record| outlet.emit(record));
    drop(outlet);
    // The writer ends when all records are written or the reader is gone. It does not panic.
    let _ = writer.join();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &LoadError) -> ExitCode {
    fatal(error.code(), &error.to_string(), &error.hint())
}

fn read_plan(arguments: &Arguments) -> Result<Plan, ExitCode> {
    let plan = match &arguments.plan {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                let message = format!("--plan: {} cannot be read: {error}", path.display());
                fatal(2, &message, "give the path of a plan in JSON")
            })?;
            Plan::from_json(&text)
        }
        None if std::io::stdin().is_terminal() => {
            return Err(fatal(2, "no plan: standard input is a terminal", "weir-engine load --plan FILE"));
        }
        None => Plan::from_stream(std::io::stdin().lock()),
    };
    plan.map_err(|error| fatal(2, &error.to_string(), &error.hint()))
}

fn stop_on_signals(stop: &Arc<Stop>) {
    let stop = Arc::clone(stop);
    // If this fails, the signals end the process at once.
    if let Ok(signals) = SignalFd::new(&[SIGINT, SIGTERM]) {
        thread::spawn(move || {
            loop {
                let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], None);
                if signals.next().is_some() {
                    stop.request(StopReason::Signal);
                }
            }
        });
    }
}

/// Stops the load when standard input closes, if it is a pipe: the parent process has ended. A file just ends.
fn stop_on_end_of_input(stop: &Arc<Stop>) {
    if !is_pipe(std::io::stdin()) {
        return;
    }
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let mut ignored = [0; 512];
        let mut input = std::io::stdin().lock();
        while input.read(&mut ignored).is_ok_and(|count| count > 0) {}
        stop.request(StopReason::Input);
    });
}

/// The line of standard input with the start time of a held load.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    start_monotonic_ns: u64,
}

/// Reads the start time of a held load. Stops the load at the end of the input or after an invalid line.
fn read_start_time(start: Sender<u64>, stop: &Arc<Stop>) {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            // The rest of the plan's line.
            match line.as_deref().map(str::trim) {
                Ok("") => {}
                Ok(line) => match serde_json::from_str::<Begin>(line) {
                    Ok(begin) => drop(start.send(begin.start_monotonic_ns)),
                    Err(_) => break,
                },
                Err(_) => break,
            }
        }
        stop.request(StopReason::Input);
    });
}

fn write_records(records: &Receiver<Box<Record>>, stop: &Stop) {
    // Like the collecting thread.
    weir_sys::limits::lower_priority(weir_load::NICE);
    for record in records {
        if !write_record(&record) {
            // The reader is gone, so the load has no purpose.
            stop.request(StopReason::Input);
            return;
        }
    }
}

/// The queue of records to the writer thread. It never blocks the collecting thread while the load runs.
struct Outlet {
    records: SyncSender<Box<Record>>,
    dropped: u64,
    last_s: f64,
}

impl Outlet {
    fn emit(&mut self, record: Record) {
        match record {
            Record::Interval(ref interval) => {
                self.last_s = interval.end_s;
                self.try_emit(record);
            }
            Record::Event(_) => self.try_emit(record),
            Record::Ready { .. } | Record::Hello(_) | Record::End { .. } => {
                self.report_dropped();
                // Fails only if the reader is gone.
                let _ = self.records.send(Box::new(record));
            }
        }
    }

    fn try_emit(&mut self, record: Record) {
        self.report_dropped();
        if let Err(TrySendError::Full(_)) = self.records.try_send(Box::new(record)) {
            self.dropped += 1;
        }
    }

    /// Reports the number of dropped records, if any.
    fn report_dropped(&mut self) {
        if self.dropped == 0 {
            return;
        }
        let event = Event {
            t_s: self.last_s,
            kind: "records",
            detail: format!("{} records dropped: standard output was not read", self.dropped),
        };
        if self.records.try_send(Box::new(Record::Event(event))).is_ok() {
            self.dropped = 0;
        }
    }
}
