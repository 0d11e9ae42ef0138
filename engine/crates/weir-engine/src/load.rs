//! The subcommand `load`: plan in, records out.
//!
//! Beside the load's own threads: this one collects; one writes standard output, so that a slow reader holds up nothing; one
//! waits for signals; one watches standard input.

use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread;

use rustix::fs::{FileType, fstat};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weir_load::{LoadError, Prepared, Stop};
use weir_plan::Plan;
use weir_record::{Event, Record, Stopped};

use crate::output::{fatal, write_record};

/// Records that may wait for a slow reader, some 4 kB each; beyond them intervals are left out, and an event says how many.
const WAITING_RECORDS: usize = 4096;

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
        Err(error) => return give_up(&error),
    };
    let stop = Arc::new(Stop::default());
    stop_on_signals(&stop);
    let (told, begin) = channel();
    if prepared.plan.held {
        begin_when_told(told, &stop);
    } else if arguments.plan.is_none() {
        stop_on_end_of_input(&stop);
    }
    let (records, written) = sync_channel(WAITING_RECORDS);
    let writer = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || write_records(&written, &stop))
    };
    let mut outlet = Outlet {
        records,
        left_out: 0,
        last_s: 0.0,
    };
    let result = weir_load::run(&prepared, &stop, &begin, &mut |record| outlet.emit(record));
    drop(outlet);
    // All records are out, or nobody reads them, when the writer ends; it does not panic.
    let _ = writer.join();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => give_up(&error),
    }
}

fn give_up(error: &LoadError) -> ExitCode {
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
            return Err(fatal(
                2,
                "no plan: standard input is a terminal",
                "weir-engine load --plan FILE",
            ));
        }
        None => Plan::from_stream(std::io::stdin().lock()),
    };
    plan.map_err(|error| fatal(2, &error.to_string(), &error.hint()))
}

fn stop_on_signals(stop: &Arc<Stop>) {
    let stop = Arc::clone(stop);
    // Without the handler the signals end the process, which is what they ask for, if less politely.
    if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) {
        thread::spawn(move || {
            for _ in signals.forever() {
                stop.request(Stopped::Signal);
            }
        });
    }
}

/// A pipe whose other end is closed belongs to somebody who has gone: then the load must not go on. A file just ends.
fn stop_on_end_of_input(stop: &Arc<Stop>) {
    let is_pipe = fstat(std::io::stdin())
        .map(|status| FileType::from_raw_mode(status.st_mode))
        .is_ok_and(|kind| matches!(kind, FileType::Fifo | FileType::Socket));
    if !is_pipe {
        return;
    }
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let mut ignored = [0; 512];
        let mut input = std::io::stdin().lock();
        while input.read(&mut ignored).is_ok_and(|count| count > 0) {}
        stop.request(Stopped::Input);
    });
}

/// The line of standard input that says when a load begins that is held.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    start_monotonic_ns: u64,
}

/// Hands over when the load begins, and stops it when its input ends or says something else.
fn begin_when_told(told: Sender<u64>, stop: &Arc<Stop>) {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            // Behind the plan its own line ends.
            match line.as_deref().map(str::trim) {
                Ok("") => {}
                Ok(line) => match serde_json::from_str::<Begin>(line) {
                    Ok(begin) => drop(told.send(begin.start_monotonic_ns)),
                    Err(_) => break,
                },
                Err(_) => break,
            }
        }
        stop.request(Stopped::Input);
    });
}

fn write_records(records: &Receiver<Box<Record>>, stop: &Stop) {
    // As the collecting thread is.
    weir_sys::limits::lower_priority(weir_load::NICE);
    for record in records {
        if !write_record(&record) {
            // Nobody reads any more: there is nobody to run the load for.
            stop.request(Stopped::Input);
            return;
        }
    }
}

/// The way of records to the writing thread, which never blocks the collecting one while the load runs.
struct Outlet {
    records: SyncSender<Box<Record>>,
    left_out: u64,
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
                self.confess();
                // Fails only when nobody reads any more.
                let _ = self.records.send(Box::new(record));
            }
        }
    }

    fn try_emit(&mut self, record: Record) {
        self.confess();
        if let Err(TrySendError::Full(_)) = self.records.try_send(Box::new(record)) {
            self.left_out += 1;
        }
    }

    /// Says how many records were left out, if any.
    fn confess(&mut self) {
        if self.left_out == 0 {
            return;
        }
        let event = Event {
            t_s: self.last_s,
            kind: "records",
            detail: format!(
                "{} records left out: standard output was not read",
                self.left_out
            ),
        };
        if self
            .records
            .try_send(Box::new(Record::Event(event)))
            .is_ok()
        {
            self.left_out = 0;
        }
    }
}
