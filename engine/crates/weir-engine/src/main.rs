//! `weir-engine`: the one binary of weir's Rust side. It parses arguments and prints; everything else lives in the library crates.

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
    /// Put one load on a target: plan in on standard input, records out.
    Load(load::Arguments),
    /// Start, observe and stop processes, by commands on standard input.
    Host(host::Arguments),
    /// Observe processes that are already running.
    Observe(observe::Arguments),
    /// Time the requests to a server by the packets that the kernel sees.
    Tap(tap::Arguments),
    /// Serve the null, echo, delay and fault servers.
    Serve(serve::Arguments),
    /// The first process of a started server's group; started by `host` only.
    #[command(hide = true)]
    Init(host::InitArguments),
    /// Removes the control groups of a host that was killed; started by `host` only.
    #[command(hide = true)]
    Keeper(host::KeeperArguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Load(arguments) => load::run(&arguments),
        Command::Host(arguments) => host::run(&arguments),
        Command::Observe(arguments) => observe::run(&arguments),
        Command::Tap(arguments) => tap::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Init(arguments) => host::run_init(&arguments),
        Command::Keeper(arguments) => host::run_keeper(&arguments),
    }
}
