//! The subcommand `observe`.
use std::io::stdin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use weir_observe::{Error, Observer, Reading, Ticker, raise_open_files};
use weir_sys::limits::{LOWEST_PRIORITY, lower_priority};
use weir_sys::pipe::{is_closed, is_pipe};

use crate::output;

/// Arguments of `weir-engine observe`.
#[derive(clap::Args)]
pub struct Arguments {
    /// PID of a process, which is observed with its descendants; repeatable.
    #[arg(long = "pid", required = true, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pids: Vec<i32>,
    /// Seconds between two samples.
    #[arg(long, default_value_t = 0.1, value_name = "SECONDS", value_parser = parse_period)]
    period: f64,
    /// Seconds between two reads of proportional memory, which take milliseconds per GiB.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = parse_period)]
    memory_period: f64,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match observe(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fatal(2, &message(&error), error.hint()),
    }
}

fn message(error: &Error) -> String {
    match error {
        Error::NoSuchProcess(pid) => {
            format!("--pid: found {pid}, expected the PID of a running process")
        }
        Error::Unreadable(..) => error.to_string(),
    }
}

/// Samples until standard input closes, all processes have ended, or the reader closes standard output.
fn observe(arguments: &Arguments) -> Result<(), Error> {
    // A load generator may run on the same CPU.
    lower_priority(LOWEST_PRIORITY);
    raise_open_files();
    let mut observer = Observer::new()?;
    for &pid in &arguments.pids {
        observer.add_tree(&pid.to_string(), "observed", pid, true)?;
    }
    let begin = Instant::now();
    let mut usual = Ticker::new(begin, Duration::from_secs_f64(arguments.period));
    let mut memory = Ticker::new(begin, Duration::from_secs_f64(arguments.memory_period));
    let mut is_first = true;
    loop {
        let now = Instant::now();
        if usual.tick(now) {
            let is_memory_due = memory.tick(now);
            let reading = if std::mem::take(&mut is_first) {
                Reading::Full
            } else if is_memory_due {
                Reading::Memory
            } else {
                Reading::Usual
            };
            let sample = observer.sweep(reading)?;
            if !output::write_record(&sample) || !observer.has_processes() {
                return Ok(());
            }
        }
        if input_closes_before(usual.due()) {
            output::write_record(&observer.sweep(Reading::Full)?);
            return Ok(());
        }
    }
}

/// Waits until `due`. Returns early, with true, if standard input is a pipe and closes.
fn input_closes_before(due: Instant) -> bool {
    let stdin = stdin();
    let mut waits = Vec::with_capacity(1);
    if is_pipe(&stdin) {
        waits.push(PollFd::new(&stdin, PollFlags::IN));
    }
    let wait = due.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(wait).unwrap_or_default();
    match poll(&mut waits, Some(&timeout)) {
        Ok(0) | Err(_) => false,
        Ok(_) => is_closed(&stdin),
    }
}

fn parse_period(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err(format!("found `{text}`, expected 0.001 to 3600 seconds")),
    }
}
