//! The subcommand `tap`.
use std::io::stdin;
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;
use weir_record::{Histogram, SCHEMA, Statistics, StopReason, encode, new_histogram};
use weir_sys::clock::monotonic_ns;
use weir_sys::limits::{LOWEST_PRIORITY, lower_priority};
use weir_sys::pipe::{is_closed, is_pipe};
use weir_sys::process::{SIGINT, SIGTERM, SignalFd};
use weir_tap::{MAX_PORTS, Tap, TapCounts, TapError, TapSettings};

use crate::output;

/// Arguments of `weir-engine tap`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A port of the server; repeatable.
    #[arg(long = "port", required = true, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    ports: Vec<u16>,
    /// Sample one in N connections.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    one_in: u16,
    /// The network interface between the server and its clients.
    #[arg(long, default_value = "lo", value_name = "NAME")]
    interface: String,
}

/// The capture has started.
#[derive(Serialize)]
struct Hello<'a> {
    record: &'static str,
    schema: u32,
    version: &'static str,
    pid: u32,
    interface: &'a str,
    ports: &'a [u16],
    one_in: u16,
    t_ns: u64,
}

/// The result of the capture.
#[derive(Serialize)]
struct End {
    record: &'static str,
    stopped: StopReason,
    requests: u64,
    connections: u64,
    packets: u64,
    dropped_packets: u64,
    ignored_packets: u64,
    first_t_ns: Option<u64>,
    last_t_ns: Option<u64>,
    response_time_us: Statistics,
    histogram: String,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    if arguments.ports.len() > MAX_PORTS {
        let found = arguments.ports.len();
        let message = format!("--port: found {found} ports, expected at most {MAX_PORTS}");
        return output::fatal(2, &message, "start another weir-engine tap for the others");
    }
    match capture(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fatal(error.code(), &error.to_string(), error.hint()),
    }
}

/// Captures packets until standard input closes or a signal arrives.
fn capture(arguments: &Arguments) -> Result<(), TapError> {
    lower_priority(LOWEST_PRIORITY);
    let signals = SignalFd::new(&[SIGINT, SIGTERM]).map_err(TapError::System)?;
    let mut tap = Tap::open(TapSettings {
        ports: arguments.ports.clone(),
        one_in: arguments.one_in,
        interface: arguments.interface.clone(),
    })?;
    let has_reader = output::write_record(&Hello {
        record: "hello",
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        interface: &arguments.interface,
        ports: &arguments.ports,
        one_in: arguments.one_in,
        t_ns: monotonic_ns(),
    });
    if !has_reader {
        return Ok(());
    }
    let mut response_time = new_histogram();
    let stopped = loop {
        if let Some(stopped) = wait(&tap, &signals) {
            break stopped;
        }
        tap.read_packets(|duration_ns| response_time.saturating_record(duration_ns));
    };
    let counts = tap.finish(|duration_ns| response_time.saturating_record(duration_ns))?;
    output::write_record(&end(stopped, counts, &response_time));
    Ok(())
}

fn end(stopped: StopReason, counts: TapCounts, response_time: &Histogram) -> End {
    End {
        record: "end",
        stopped,
        requests: response_time.len(),
        connections: counts.connections,
        packets: counts.packets,
        dropped_packets: counts.dropped_packets,
        ignored_packets: counts.ignored_packets,
        first_t_ns: counts.seen_t_ns.map(|(first_ns, _)| first_ns),
        last_t_ns: counts.seen_t_ns.map(|(_, last_ns)| last_ns),
        response_time_us: Statistics::of(response_time),
        histogram: encode(response_time),
    }
}

/// Waits for packets. Returns the reason if the capture must stop.
fn wait(tap: &Tap, signals: &SignalFd) -> Option<StopReason> {
    let stdin = stdin();
    let mut waits = vec![PollFd::new(tap, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
    if is_pipe(&stdin) {
        waits.push(PollFd::new(&stdin, PollFlags::IN));
    }
    // An interrupted wait has no ready descriptor.
    let _ = poll(&mut waits, None);
    let is_input = waits.get(2).is_some_and(|wait| !wait.revents().is_empty());
    if signals.next().is_some() {
        Some(StopReason::Signal)
    } else {
        (is_input && is_closed(&stdin)).then_some(StopReason::Input)
    }
}
