"""The command `weir`, with one module for each command. Only this package prints.

Every command imports this module first. This module imports neither typer nor rich, because both take long to import.
Commands import findings, Ray and the web server only inside functions, so that weir reports a wrong flag at once.
"""

import os
import signal
import sys
from contextlib import suppress

from weir.cli.plain_text import use_plain_text
from weir.compat.front_end import TOOLS
from weir.model.errors import ExitCode, WeirError
from weir.model.variables import Variable


def main() -> None:
    """Runs the command line. Prints one message for an error, and ends the process with an exit code."""
    _open_closed_streams()
    use_plain_text()
    # SIGTERM and a closed terminal are interruptions like Ctrl-C: weir keeps finished work. nohup ignores SIGHUP.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        code = _run_command(sys.argv[1:])
        sys.stdout.flush()
    except WeirError as error:
        _say_error(error.message, error.hint)
        code = error.exit_code
    except KeyboardInterrupt:
        _say_error("interrupted", "")
        code = ExitCode.INTERRUPTED
    except OSError as error:
        code = _report_lost_output(error)
    except Exception as error:
        code = _report_defect(error)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        # Python would exit with its own status. The command's exit code matters more than the lost output.
        from weir.cli.output import give_up_output

        give_up_output()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Opens standard streams that the caller has closed (`>&-`). Otherwise a new file would become standard output.

    A write to the opened standard output fails, as on a full disk. The opened standard error discards all text.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # `open` takes the lowest free descriptor: the descriptor of the closed stream.
            os.open(os.devnull, os.O_WRONLY if descriptor == 2 else os.O_RDONLY)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _report_lost_output(error: OSError) -> ExitCode:
    """Returns the exit code after a failed write of output, and prints the reason. Other errors are defects in weir."""
    from weir.cli.output import give_up_output, nobody_listens, suggest_remedy, was_interrupted

    if nobody_listens(error):
        # The reader of weir's output (head, a pager) has ended, or the terminal is closed.
        give_up_output()
        return ExitCode.INTERRUPTED if was_interrupted(error) else ExitCode.DONE
    if remedy := suggest_remedy(error):
        # The file is standard output or another file. Packages that write large files report their errors themselves.
        with suppress(OSError):
            _say_error(f"{error.filename or 'standard output'}: cannot be written: {error.strerror}", remedy)
        give_up_output()
        return ExitCode.USAGE
    return _report_defect(error)


def _report_defect(error: Exception) -> ExitCode:
    if os.environ.get(Variable.DEBUG):
        import traceback

        traceback.print_exception(error)
    _say_error(f"a defect in weir: {type(error).__name__}: {error}", "set WEIR_DEBUG=1, and report the traceback")
    return ExitCode.DEFECT


def _run_command(words: list[str]) -> int:
    if words and words[0] in TOOLS:
        from weir.cli.front_ends import run_front_end

        return run_front_end(words[0], words[1:])
    if words in (["--version"], ["-V"]):
        from weir import __version__

        print(f"weir {__version__}")
        return ExitCode.DONE
    from weir.cli.commands import run

    try:
        run()
    except SystemExit as end:
        # Typer exits without a message after Ctrl-C.
        if end.__context__ is not None and isinstance(end.__context__.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        # Typer ends the process, but `main` must still flush the output.
        if not isinstance(end.code, int | None):
            raise
        return end.code or ExitCode.DONE
    return ExitCode.DONE


def _say_error(message: str, hint: str) -> None:
    from weir.cli.output import say_error

    say_error(message, hint)
