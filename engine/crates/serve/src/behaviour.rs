//! The servers and their options, as the command line names them.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::service_time::Distribution;

/// The response of a server to a request.
#[derive(Clone, Copy, Debug, PartialEq, clap::Subcommand)]
pub enum Behaviour {
    /// Respond with a fixed small 200.
    Null,
    /// Respond with a 200 that has the request's body and content type.
    Echo,
    /// Respond with a fixed small 200 after a fixed time.
    Delay {
        /// Time from the arrival of the complete request until the response: 2s, 150ms, 80us.
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
    /// Respond with a fixed small 200 after a random service time.
    Times {
        /// constant:2ms, uniform:1ms..3ms or exponential:5ms (mean).
        #[arg(long)]
        distribution: Distribution,
        /// Maximum number of concurrent requests; further ones queue in order of arrival. Default: unlimited.
        #[arg(long, value_name = "N")]
        servers: Option<NonZeroUsize>,
        /// Fault in place of some responses, when they are due; not slow-drip or die-after.
        #[arg(long, value_name = "KIND")]
        fault: Option<Fault>,
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
        kind: Fault,
        /// For die-after: number of responses before the exit.
        #[arg(value_name = "N", required_if_eq("kind", "die-after"), value_parser = clap::value_parser!(u64).range(1..))]
        requests: Option<u64>,
    },
}

/// A fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Fault {
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

impl Fault {
    /// Returns whether the fault needs its own thread per connection.
    pub(crate) fn needs_raw_connection(self) -> bool {
        !matches!(self, Self::Status500 | Self::DieAfter)
    }
}

/// Parses a number with a unit: `2s`, `150ms`, `80us`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let parse = || {
        let (number, unit) = text.split_at(text.find(|character: char| character.is_ascii_alphabetic())?);
        let factor = match unit {
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" => 1e-6,
            _ => return None,
        };
        Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()
    };
    let wrong = || format!("`{text}` is not a duration; expected a number and a unit, such as 2s, 150ms or 80us");
    parse().ok_or_else(wrong)
}

/// Parses a share: above 0, at most 1.
fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| format!("`{text}` is not a share; expected a number above 0 and at most 1, such as 0.01"))
}
