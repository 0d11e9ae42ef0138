//! The subcommands `host` and `init`.
use std::io::{stdin, stdout};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use weir_host::{Choice, Error, Host, Isolation, Options};

use crate::output;

/// Arguments of `weir-engine host`.
#[derive(clap::Args)]
pub struct Arguments {
    /// How to isolate a server and its descendants.
    #[arg(long, value_enum, default_value = "auto")]
    isolation: IsolationArgument,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum IsolationArgument {
    /// Namespaces if this process may make them, else process-group.
    Auto,
    /// PID, IPC and mount namespaces.
    Namespace,
    /// Child subreaper and process group; needs no privilege.
    ProcessGroup,
}

/// Arguments of `weir-engine init`.
#[derive(clap::Args)]
pub struct InitArguments {}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let (input, records) = (stdin(), stdout());
    let options = Options {
        isolation: match arguments.isolation {
            IsolationArgument::Auto => Choice::Auto,
            IsolationArgument::Namespace => Choice::Only(Isolation::Namespace),
            IsolationArgument::ProcessGroup => Choice::Only(Isolation::ProcessGroup),
        },
        version: env!("CARGO_PKG_VERSION"),
        // The same program, even if its file was replaced since.
        program: PathBuf::from("/proc/self/exe"),
        input: input.as_fd(),
        output: records.as_fd(),
    };
    let result = Host::new(options, output::write_record).and_then(|(host, writer)| {
        let result = host.run();
        writer.finish();
        result
    });
    exit(result)
}

/// Runs the subcommand. Standard input is the socket to the host.
pub fn run_init(_arguments: &InitArguments) -> ExitCode {
    let result = stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| Error::System("taking standard input", error))
        .and_then(weir_host::run_init);
    exit(result)
}

fn exit(result: Result<(), Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fatal(2, &error.to_string(), error.hint()),
    }
}
