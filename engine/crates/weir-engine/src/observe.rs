//! The subcommand `observe`.
use std::io::stdin;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use weir_observe::{Error, Grid, Observer, Reading, raise_open_files};

use crate::{output, serve};

/// The lowest priority.
const NICE: i32 = 19;

/// Arguments of `weir-engine observe`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A process; what it has started and starts belongs to it. May be given several times.
    #[arg(long = "pid", required = true, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pids: Vec<i32>,
    /// Seconds between two samples.
    #[arg(long, default_value_t = 0.1, value_name = "SECONDS", value_parser = parse_period)]
    period: f64,
    /// Seconds between two readings of proportional memory, which costs milliseconds per GiB.
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

/// Samples until standard input is closed, the processes have ended, or nobody reads.
fn observe(arguments: &Arguments) -> Result<(), Error> {
    // Whatever else wants the CPU gets it first: a load generator may be on the same one. Always allowed.
    weir_sys::limits::lower_priority(NICE);
    raise_open_files();
    let mut observer = Observer::new()?;
    for &pid in &arguments.pids {
        observer.add_tree(&pid.to_string(), "observed", pid, true)?;
    }
    let begin = Instant::now();
    let mut usual = Grid::new(begin, Duration::from_secs_f64(arguments.period));
    let mut memory = Grid::new(begin, Duration::from_secs_f64(arguments.memory_period));
    let mut is_first = true;
    loop {
        let now = Instant::now();
        if usual.take(now) {
            let is_memory_due = memory.take(now);
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

/// Waits until `due`, or until standard input, if it is a pipe, is closed.
fn input_closes_before(due: Instant) -> bool {
    let stdin = stdin();
    let mut waits = Vec::with_capacity(1);
    if serve::is_pipe(&stdin) {
        waits.push(PollFd::new(&stdin, PollFlags::IN));
    }
    let wait = due.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(wait).unwrap_or_default();
    match poll(&mut waits, Some(&timeout)) {
        Ok(0) | Err(_) => false,
        Ok(_) => weir_serve::is_closed(stdin.as_fd()),
    }
}

fn parse_period(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err(format!("found `{text}`, expected 0.001 to 3600 seconds")),
    }
}
