//! The subcommand `tap`.
use std::io::stdin;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use weir_record::{Histogram, SCHEMA, Statistics, Stopped, encode, new_histogram};
use weir_sys::clock::monotonic_ns;
use weir_tap::{MOST_PORTS, Tap, TapCounts, TapError, TapSettings};

use crate::{output, serve};

/// The lowest priority: what the kernel has put down waits.
const NICE: i32 = 19;
/// The longest time between two looks at whether a signal came.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Arguments of `weir-engine tap`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A port of the server. May be given several times.
    #[arg(long = "port", required = true, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    ports: Vec<u16>,
    /// Look at one in so many connections.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    one_in: u16,
    /// The network interface between the server and its clients.
    #[arg(long, default_value = "lo", value_name = "NAME")]
    interface: String,
}

/// Packets are looked at.
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

/// What was seen.
#[derive(Serialize)]
struct End {
    record: &'static str,
    stopped: Stopped,
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
    if arguments.ports.len() > MOST_PORTS {
        let found = arguments.ports.len();
        let message = format!("--port: found {found} ports, expected at most {MOST_PORTS}");
        return output::fatal(2, &message, "start another weir-engine tap for the others");
    }
    match observe(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fatal(error.code(), &error.to_string(), error.hint()),
    }
}

/// Looks at packets until standard input closes or a signal comes.
fn observe(arguments: &Arguments) -> Result<(), TapError> {
    // Always allowed.
    weir_sys::limits::lower_priority(NICE);
    let is_signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_signalled)).map_err(TapError::System)?;
    }
    let mut tap = Tap::open(TapSettings {
        ports: arguments.ports.clone(),
        one_in: arguments.one_in,
        interface: arguments.interface.clone(),
    })?;
    let said = output::write_record(&Hello {
        record: "hello",
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        interface: &arguments.interface,
        ports: &arguments.ports,
        one_in: arguments.one_in,
        t_ns: monotonic_ns(),
    });
    if !said {
        return Ok(());
    }
    let is_piped = serve::is_pipe(&stdin());
    let mut response_time = new_histogram();
    let stopped = loop {
        if is_signalled.load(Ordering::Relaxed) {
            break Stopped::Signal;
        }
        if input_closes_before_packets(&tap, is_piped) {
            break Stopped::Input;
        }
        tap.take(|took_ns| response_time.saturating_record(took_ns));
    };
    let counts = tap.finish(|took_ns| response_time.saturating_record(took_ns))?;
    output::write_record(&end(stopped, counts, &response_time));
    Ok(())
}

fn end(stopped: Stopped, counts: TapCounts, response_time: &Histogram) -> End {
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

/// Waits until packets are there, or for a while. Gives whether standard input is closed, if it is a pipe.
fn input_closes_before_packets(tap: &Tap, is_piped: bool) -> bool {
    let stdin = stdin();
    let mut waits = vec![PollFd::new(tap, PollFlags::IN)];
    if is_piped {
        waits.push(PollFd::new(&stdin, PollFlags::IN));
    }
    // A signal ends the wait, too.
    let ready = poll(&mut waits, Some(&LOOK)).unwrap_or(0);
    let is_input = ready > 0 && waits.get(1).is_some_and(|wait| !wait.revents().is_empty());
    is_input && weir_serve::is_closed(stdin.as_fd())
}
