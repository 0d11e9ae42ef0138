//! The bare loops: how many requests per second does a client reach that only sends and counts?
//!
//! A loop has a fixed number of connections, one thread and one fixed request. All responses have the length of the
//! first. After a complete response the loop sends the next request on the same connection. There is no parser and no
//! histogram, and one look at the clock per batch of events, so a load generator's further costs are its own. One loop
//! uses epoll, one io_uring. They are a reference beside the generators, not generators.
//!
//! `weir-bench-bare epoll|io_uring ADDRESS REQUEST_FILE CONNECTIONS DURATION_S` prints one JSON object. Bind it to a
//! CPU with taskset.

mod client;
mod epoll;
mod uring;

use std::io::{self, Error, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use client::{Client, Counted};

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "weir-bench-bare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> io::Result<()> {
    let usage = || {
        Error::new(
            ErrorKind::InvalidInput,
            "usage: weir-bench-bare epoll|io_uring ADDRESS REQUEST_FILE CONNECTIONS DURATION_S",
        )
    };
    let [back_end, address, request_file, connections, duration_s]: [String; 5] =
        arguments.try_into().map_err(|_| usage())?;
    let connections = connections.parse().map_err(|_| usage())?;
    let duration = duration_s
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(usage)?;
    let client = Client::connect(&address, std::fs::read(request_file)?, connections)?;
    let Counted { answers, elapsed_s } = match back_end.as_str() {
        "epoll" => epoll::run(client, duration)?,
        "io_uring" => uring::run(client, duration)?,
        _ => return Err(usage()),
    };
    writeln!(
        io::stdout(),
        r#"{{"completed": {answers}, "throughput_rps": {}}}"#,
        answers as f64 / elapsed_s
    )
}
