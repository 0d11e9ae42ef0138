//! The subcommand `serve`.

use std::io::stdin;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::ExitCode;

use serde::Serialize;
use weir_serve::{Behaviour, DEFAULT_BACKLOG, Fault, Listener, ServerEnd};

use weir_sys::pipe::is_pipe;

use crate::output;

/// Arguments of `weir-engine serve`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    behaviour: Behaviour,
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

/// The record of a listening socket.
#[derive(Serialize)]
struct Listening {
    record: &'static str,
    address: SocketAddr,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match arguments.behaviour {
        Behaviour::Stall { every, length } if length >= every => {
            let message = format!("--for: found {length:?}, expected less than --every ({every:?})");
            return output::fatal(2, &message, "--every 2s --for 500ms");
        }
        Behaviour::Times { fault: Some(Fault::SlowDrip | Fault::DieAfter), .. } => {
            let message = "--fault: found slow-drip or die-after, expected a fault of single requests";
            return output::fatal(2, message, "weir-engine serve fault --kind slow-drip");
        }
        _ => {}
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
    match listener.serve(arguments.behaviour, watch) {
        Ok(ServerEnd::WatchClosed) => ExitCode::SUCCESS,
        Ok(ServerEnd::RequestLimit) => ExitCode::from(1),
        Err(error) => output::fatal(3, &error.to_string(), &error.hint()),
    }
}
