//! The subcommand `serve`.
use std::io::stdin;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use weir_serve::{Behaviour, DEFAULT_BACKLOG, Distribution, Fault, Listener, ServerEnd};

use weir_sys::pipe::is_pipe;

use crate::output;

/// Arguments of `weir-engine serve`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    server: ServerKind,
    /// Address to listen on; port 0 chooses a free port.
    #[arg(long, global = true, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Maximum number of connections that wait to be accepted.
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = DEFAULT_BACKLOG,
        value_parser = clap::value_parser!(i32).range(1..)
    )]
    backlog: i32,
}

#[derive(clap::Subcommand)]
enum ServerKind {
    /// Respond with a fixed small 200.
    Null,
    /// Respond with the request's body.
    Echo,
    /// Respond with a fixed small 200 after a fixed time.
    Delay {
        /// Time until the response: 2s, 150ms, 80us.
        #[arg(long, value_parser = parse_duration)]
        wait: Duration,
    },
    /// Respond at once, except at the end of each period.
    Stall {
        /// Length of a period, from the start of the server: 2s, 150ms, 80us.
        #[arg(long, value_parser = parse_duration)]
        every: Duration,
        /// Time without responses at the end of each period.
        #[arg(long = "for", value_name = "LENGTH", value_parser = parse_duration)]
        length: Duration,
    },
    /// Respond after a random service time.
    Times {
        /// constant:2ms, uniform:1ms..3ms or exponential:5ms (mean).
        #[arg(long, value_parser = parse_distribution)]
        distribution: Distribution,
        /// Maximum number of concurrent requests; further ones queue in order of arrival. Default: unlimited.
        #[arg(long, value_name = "N")]
        servers: Option<NonZeroUsize>,
        /// Fault in place of some responses, when they are due; not slow-drip or die-after.
        #[arg(long, value_name = "KIND")]
        fault: Option<FaultKind>,
        /// Share of the requests with the fault.
        #[arg(long, value_name = "SHARE", requires = "fault", default_value_t = 1.0, value_parser = parse_share)]
        fault_share: f64,
        /// Seed of the random numbers.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Serve with one fault.
    Fault {
        /// The fault.
        #[arg(long)]
        kind: FaultKind,
        /// For die-after: number of responses before the exit.
        #[arg(value_name = "N", required_if_eq("kind", "die-after"), value_parser = clap::value_parser!(u64).range(1..))]
        requests: Option<u64>,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FaultKind {
    /// Accept a connection and close it.
    Close,
    /// Read requests and never respond.
    Silent,
    /// Respond with bytes that are not HTTP, then close.
    Garbage,
    /// Send half a response, then close.
    Half,
    /// Reset the connection in place of a response.
    Reset,
    /// Respond to every request with status 500.
    #[value(name = "status-500")]
    Status500,
    /// Respond with one byte every 100 ms.
    SlowDrip,
    /// Respond without a fault, and exit with code 1 after N requests.
    DieAfter,
}

/// The record of a listening socket.
#[derive(Serialize)]
struct Listening {
    record: &'static str,
    address: SocketAddr,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    if let ServerKind::Stall { every, length } = &arguments.server {
        if length >= every {
            let message = format!("--for: found {length:?}, expected less than --every ({every:?})");
            return output::fatal(2, &message, "--every 2s --for 500ms");
        }
    }
    if let ServerKind::Times { fault: Some(FaultKind::SlowDrip | FaultKind::DieAfter), .. } = &arguments.server {
        let message = "--fault: found slow-drip or die-after, expected a fault of single requests";
        return output::fatal(2, message, "weir-engine serve fault --kind slow-drip");
    }
    let listener = match Listener::bind(arguments.listen, arguments.backlog) {
        Ok(listener) => listener,
        Err(error) => return output::fatal(3, &error.to_string(), &error.hint()),
    };
    let address = listener.address();
    if !output::write_record(&Listening { record: "listening", address }) {
        return ExitCode::SUCCESS;
    }
    let stdin = stdin();
    let watch = is_pipe(&stdin).then(|| stdin.as_fd());
    match listener.serve(to_behaviour(&arguments.server), watch) {
        Ok(ServerEnd::WatchClosed) => ExitCode::SUCCESS,
        Ok(ServerEnd::RequestLimit) => ExitCode::from(1),
        Err(error) => output::fatal(3, &error.to_string(), &error.hint()),
    }
}

fn to_behaviour(server: &ServerKind) -> Behaviour {
    match server {
        ServerKind::Null => Behaviour::Null,
        ServerKind::Echo => Behaviour::Echo,
        ServerKind::Delay { wait } => Behaviour::Delay(*wait),
        ServerKind::Stall { every, length } => Behaviour::Stall { every: *every, length: *length },
        ServerKind::Times { distribution, servers, fault, fault_share, seed } => Behaviour::Times {
            distribution: *distribution,
            servers: *servers,
            fault: fault.map(|kind| (to_fault(kind, None), *fault_share)),
            seed: *seed,
        },
        ServerKind::Fault { kind, requests } => Behaviour::Fault(to_fault(*kind, *requests)),
    }
}

fn to_fault(kind: FaultKind, requests: Option<u64>) -> Fault {
    match kind {
        FaultKind::Close => Fault::Close,
        FaultKind::Silent => Fault::Silent,
        FaultKind::Garbage => Fault::Garbage,
        FaultKind::Half => Fault::Half,
        FaultKind::Reset => Fault::Reset,
        FaultKind::Status500 => Fault::Status500,
        FaultKind::SlowDrip => Fault::SlowDrip,
        FaultKind::DieAfter => Fault::DieAfter(requests.unwrap_or(1)),
    }
}

/// Parses a number with a unit: `2s`, `150ms`, `80us`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("`{text}` is not a duration; expected a number and a unit, such as 2s, 150ms or 80us");
    let split = text.find(|character: char| character.is_ascii_alphabetic()).ok_or_else(expected)?;
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "m" => 60.0,
        _ => return Err(expected()),
    };
    let seconds = number.parse::<f64>().map_err(|_| expected())? * factor;
    Duration::try_from_secs_f64(seconds).map_err(|_| expected())
}

/// Parses a share: above 0, at most 1.
fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| format!("`{text}` is not a share; expected a number above 0 and at most 1, such as 0.01"))
}

/// Parses a distribution of times: `constant:2ms`, `uniform:1ms..3ms`, `exponential:5ms`.
fn parse_distribution(text: &str) -> Result<Distribution, String> {
    let expected = || {
        format!(
            "`{text}` is not a distribution; expected one such as constant:2ms, uniform:1ms..3ms or exponential:5ms"
        )
    };
    let (name, times) = text.split_once(':').ok_or_else(expected)?;
    match name {
        "constant" => parse_duration(times).map(Distribution::Constant),
        "exponential" => parse_duration(times).map(Distribution::Exponential),
        "uniform" => {
            let (low, high) = times.split_once("..").ok_or_else(expected)?;
            let (low, high) = (parse_duration(low)?, parse_duration(high)?);
            if low > high {
                return Err(format!("`{text}`: the first time is above the second"));
            }
            Ok(Distribution::Uniform(low, high))
        }
        _ => Err(expected()),
    }
}
