"""The command `weir`: one module a command. The only room that prints."""

import os
import signal
import sys
import traceback

import typer

from weir.cli import audit, demo, doctor, load, report, run, stacks, study
from weir.cli.output import say_error
from weir.cli.welcome import WELCOME
from weir.model.errors import ExitCode, WeirError

app = typer.Typer(
    name="weir",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A laboratory for HTTP servers: puts a controlled load on real stacks and answers with an interval.",
)
app.command(name="load")(load.load)
app.command(name="run")(run.run)
app.command(name="report")(report.report)
app.command(name="audit")(audit.audit)
app.add_typer(stacks.app, name="stacks")
app.add_typer(study.app, name="study")
app.command(name="doctor")(doctor.doctor)
app.command(name="demo")(demo.demo)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", "-V", help="Print weir's version."),
) -> None:
    if version:
        from weir import __version__

        print(f"weir {__version__}")
    elif context.invoked_subcommand is None:
        print(WELCOME)


def main() -> None:
    """The entry point: turns every problem into one message and an exit status."""
    # A polite end from outside is an interruption: what was finished is kept, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except WeirError as error:
        say_error(error.message, error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say_error("interrupted", "")
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output (head, a pager) has seen enough. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.DONE)
    except Exception as error:
        if os.environ.get("WEIR_DEBUG"):
            traceback.print_exc()
        say_error(f"a defect of weir's own: {type(error).__name__}: {error}", "WEIR_DEBUG=1 shows where; please report it")
        sys.exit(70)
