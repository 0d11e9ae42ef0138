//! The smallest possible clients, as references beside the load generators.
//!
//! | subcommand | measures |
//! |---|---|
//! | `bare` | the requests per second of a client that only sends and counts, on epoll or io_uring |
//! | `floor` | the response times of a client that only waits for one response at a time |
//!
//! Both send one fixed request, and all responses have the length of the first. They have no parser. So the further
//! costs of a load generator are its own. Each prints one JSON object. Bind it to a CPU with taskset.

mod bare;
mod floor;
mod response;

use std::io::{self, Error, ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((name, rest)) if name == "bare" => bare::run(rest),
        Some((name, rest)) if name == "floor" => floor::run(rest),
        _ => Err(usage("bare|floor ...")),
    };
    match result.and_then(|report| writeln!(io::stdout(), "{report}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "weir-bench-clients: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the error that shows the expected arguments.
fn usage(arguments: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("usage: weir-bench-clients {arguments}"))
}

/// Parses a positive number. Returns `None` for other text.
fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}
