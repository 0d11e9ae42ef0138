"""The command `weir`: one module a command. The only room that prints.

This module is the way in, and every command waits for what it imports: a front end of another tool begins without typer and rich.
"""

import os
import signal
import sys
from contextlib import suppress
from typing import TextIO

from weir.cli.plain_text import use_plain_text
from weir.compat.front_end import TOOLS
from weir.model.errors import ExitCode, WeirError
from weir.model.variables import Variable


def main() -> None:
    """The entry point: turns every problem into one message and an exit status."""
    use_plain_text()
    # A polite end from outside and a closed terminal are interruptions: what was finished is kept, as with Ctrl-C. Under nohup a closed
    # terminal is to be ignored, and stays so.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        code = _command(sys.argv[1:])
        _flush(sys.stdout)
    except WeirError as error:
        _say_error(error.message, error.hint)
        code = error.exit_code
    except KeyboardInterrupt:
        _say_error("interrupted", "")
        code = ExitCode.INTERRUPTED
    except Exception as error:
        from weir.cli.output import give_up_output, interrupted, is_full, nobody_listens

        if isinstance(error, OSError) and nobody_listens(error):
            # The reader of our output (head, a pager) has seen enough, or the terminal was closed.
            give_up_output()
            sys.exit(ExitCode.INTERRUPTED if interrupted(error) else ExitCode.DONE)
        if isinstance(error, OSError) and is_full(error):
            # Whatever was written, a page on standard output or a service's settings: the rooms that write much say more of it themselves.
            with suppress(OSError):
                what = error.filename or "standard output"
                _say_error(f"{what}: cannot be written: {error.strerror}", "check the space left on the disk")
            give_up_output()
            sys.exit(ExitCode.USAGE)
        if os.environ.get(Variable.DEBUG):
            import traceback

            traceback.print_exc()
        _say_error(f"a defect of weir's own: {type(error).__name__}: {error}", "WEIR_DEBUG=1 shows where; please report it")
        code = ExitCode.DEFECT
    try:
        _flush(sys.stdout)
        _flush(sys.stderr)
    except OSError:
        # What ended the command matters more than what could not be printed. Python would exit with a status of its own.
        from weir.cli.output import give_up_output

        give_up_output()
    sys.exit(code)


def _flush(stream: TextIO | None) -> None:
    """Writes what standard output or error still holds; does nothing if its descriptor was closed before weir began."""
    if stream is not None:
        stream.flush()


def _command(words: list[str]) -> int:
    """Does what a command line asks for, and gives the exit code."""
    if words and words[0] in TOOLS:
        from weir.cli.front_ends import front_end

        return front_end(words[0], words[1:])
    from weir.cli.commands import run

    try:
        run()
    except SystemExit as end:
        # Typer ends the process, and what it has printed may still have to be written.
        if not isinstance(end.code, int | None):
            raise
        return end.code or ExitCode.DONE
    return ExitCode.DONE


def _say_error(message: str, hint: str) -> None:
    from weir.cli.output import say_error

    say_error(message, hint)
