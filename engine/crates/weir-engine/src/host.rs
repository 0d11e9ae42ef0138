//! The subcommands `host`, `init` and `keeper`.
use std::io::{stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;

use weir_host::{Choice, Error, Host, Isolation, Options};

use crate::output;

/// Arguments of `weir-engine host`.
#[derive(clap::Args)]
pub struct Arguments {
    /// How a server is kept together with what it starts.
    #[arg(long, value_enum, default_value = "auto")]
    isolation: IsolationArgument,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum IsolationArgument {
    /// Namespaces where this process has the right to make them, else process-group.
    Auto,
    /// PID, IPC and mount namespaces.
    Namespace,
    /// Child subreaper and process group; needs no rights.
    ProcessGroup,
}

/// Arguments of `weir-engine init`.
#[derive(clap::Args)]
pub struct InitArguments {}

/// Arguments of `weir-engine keeper`.
#[derive(clap::Args)]
pub struct KeeperArguments {}

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
        // Whatever has become of the file since, this is the same program.
        program: PathBuf::from("/proc/self/exe"),
        input: input.as_fd(),
        output: records.as_fd(),
    };
    let ran = Host::new(options, output::write_record).and_then(|(host, writer)| {
        let ran = host.run();
        writer.finish();
        ran
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fatal(&error),
    }
}

/// Runs the subcommand.
pub fn run_init(_arguments: &InitArguments) -> ExitCode {
    beside_a_host(weir_host::run_init)
}

/// Runs the subcommand.
pub fn run_keeper(_arguments: &KeeperArguments) -> ExitCode {
    beside_a_host(weir_host::run_keeper)
}

/// The host listens at the other end of standard input; nobody does on standard output.
fn beside_a_host(run: impl FnOnce(OwnedFd) -> Result<(), Error>) -> ExitCode {
    let ran = stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| Error::System("taking standard input", error))
        .and_then(run);
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fatal(&error),
    }
}

fn fatal(error: &Error) -> ExitCode {
    output::fatal(2, &error.to_string(), error.hint())
}
