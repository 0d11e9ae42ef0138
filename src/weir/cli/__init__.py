"""The command `weir`: one module a command. The only room that prints."""

import os
import signal
import sys
import traceback

import typer

from weir.cli import audit, demo, doctor, load, report, run, stacks, study
from weir.cli.output import give_up_output, nobody_listens, say_error
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
    # A polite end from outside and a closed terminal are interruptions: what was finished is kept, as with Ctrl-C. Under nohup a closed
    # terminal is to be ignored, and stays so.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        app()
        sys.stdout.flush()
    except WeirError as error:
        say_error(error.message, error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say_error("interrupted", "")
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        if isinstance(error, OSError) and nobody_listens(error):
            # The reader of our output (head, a pager) has seen enough, or the terminal was closed.
            give_up_output()
            sys.exit(ExitCode.DONE)
        if os.environ.get("WEIR_DEBUG"):
            traceback.print_exc()
        say_error(f"a defect of weir's own: {type(error).__name__}: {error}", "WEIR_DEBUG=1 shows where; please report it")
        sys.exit(70)
