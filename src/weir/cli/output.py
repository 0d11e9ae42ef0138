"""How weir speaks: data on standard output, everything else on standard error, colour only at a terminal that wants it.

Whoever listens may go away: a pipe whose reader ended (EPIPE), a terminal that was closed (EIO). Progress is then left out and the work
goes on; data that nobody takes raises `OSError`, which `weir.cli.main` knows.
"""

import contextlib
import errno
import json
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, RenderableType

from weir.model.errors import UsageError


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the program here, in the middle of whatever it does."""
        raise


class _Output(_Console):
    """Standard output: paragraphs break between words at a terminal; whatever else reads them gets each as one line."""

    def print(self, *objects: Any, **how: Any) -> None:
        """As Rich's own, which lets a terminal cut words where lines are soft."""
        super().print(*objects, **{"soft_wrap": not self.file.isatty(), **how})


stdout = _Output(highlight=False)
# An address or a command stays in one piece, to be copied.
stderr = _Console(stderr=True, soft_wrap=True, highlight=False)


def nobody_listens(error: OSError) -> bool:
    """Whether writing failed since the reader of a pipe ended or the terminal was closed."""
    return error.errno in (errno.EPIPE, errno.EIO)


def is_full(error: OSError) -> bool:
    """Whether writing failed for want of space."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def interrupted(error: BaseException, known: BaseException | None = None) -> bool:
    """Whether it came while an interruption was on its way out: Rich still writes what it has then, and a closed terminal takes nothing.

    Args:
        error: what came.
        known: what was being handled already when the writing began.
    """
    context = error.__context__
    while context is not None and context is not known:
        if isinstance(context, KeyboardInterrupt):
            return True
        context = context.__context__
    return False


def give_up_output() -> None:
    """What is still to be written goes nowhere: Python would complain again when it flushes at exit."""
    with contextlib.suppress(OSError):
        sink = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(sink, stream.fileno())


def say_error(message: str, hint: str) -> None:
    """One problem, and what to try next."""
    say(f"weir: {message}")
    if hint:
        say(f"  try: {hint}")


def say(message: RenderableType) -> None:
    """Prints progress or a warning on standard error, if anybody is there to read it."""
    known = sys.exception()
    try:
        stderr.print(message, markup=False)
    except OSError as error:
        if not nobody_listens(error):
            raise
        stderr.quiet = True
        if interrupted(error, known):
            raise KeyboardInterrupt from None


QUIET_OPTION = typer.Option("-q", "--quiet", help="Say nothing while it goes on: the answer alone.")


def teller(*, quiet: bool) -> Callable[[str], None]:
    """What tells how far something is: `say`, or nothing that does."""
    return (lambda _: None) if quiet else say


def print_lines(text: str) -> None:
    """Lines on standard output. At a terminal those that are too long for it break between words, and go on further in than they began."""
    if stdout.file.isatty():
        text = "\n".join(_folded(line, stdout.width) for line in text.split("\n"))
    print(text)


def _folded(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    further = line[: len(line) - len(line.lstrip())] + "    "
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=further, break_long_words=False, break_on_hyphens=False))


def print_json(value: Any) -> None:
    """Prints a value as JSON on standard output, at once: `weir stacks start` goes on afterwards."""
    print(json.dumps(value, indent=2), flush=True)


def write_json(value: Any, target: str) -> None:
    """A value as JSON into the file `target`, or on standard output for `-`.

    Raises:
        UsageError: the file cannot be written.
    """
    if target == "-":
        print_json(value)
        return
    try:
        Path(target).write_text(json.dumps(value, indent=2) + "\n")
    except OSError as error:
        raise UsageError(f"--json: {target}: cannot be written: {error.strerror}") from None


def at_terminal() -> bool:
    """True where lines can be drawn and drawn over."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
