//! `weir-engine`: the one binary of weir's Rust side. It parses arguments and prints; the library crates do everything
//! else.

mod host;
mod load;
mod observe;
mod output;
mod serve;
mod tap;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The load generator, process host, observer and test servers of weir.
#[derive(Parser)]
#[command(name = "weir-engine", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make one load: reads a plan from standard input, prints records.
    Load(load::Arguments),
    /// Start, observe and stop processes, by commands from standard input.
    Host(host::Arguments),
    /// Observe processes that are already running.
    Observe(observe::Arguments),
    /// Measure response times of a server from network packets.
    Tap(tap::Arguments),
    /// Run a test server.
    Serve(serve::Arguments),
    /// Run the parent process of one server; only `host` starts it.
    #[command(hide = true)]
    Init(host::InitArguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Load(arguments) => load::run(&arguments),
        Command::Host(arguments) => host::run(&arguments),
        Command::Observe(arguments) => observe::run(&arguments),
        Command::Tap(arguments) => tap::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Init(arguments) => host::run_init(&arguments),
    }
}
