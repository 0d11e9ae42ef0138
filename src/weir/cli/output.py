"""Writes weir's output: data to standard output, all other text to standard error. Only terminals receive colour.

If the reader of a pipe ends (EPIPE) or a terminal closes (EIO), weir drops its progress messages and continues. If
nobody reads weir's data, the write raises `OSError`, and `weir.cli.main` handles the error.
"""

import contextlib
import errno
import json
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from weir.model.errors import UsageError
from weir.model.sanitize import sanitize


class _Console(Console):
    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False) -> None:
        # Rich must not read names such as ID[VARIANT] as markup.
        super().__init__(stderr=stderr, soft_wrap=soft_wrap, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Raises the failed write's error again. rich's own method would end the program."""
        raise


class _Output(_Console):
    """The console of standard output. A terminal breaks lines between words. Elsewhere each paragraph is one line."""

    def print(self, *objects: Any, **how: Any) -> None:
        super().print(*objects, **{"soft_wrap": not self.file.isatty(), **how})


stdout = _Output()
# Soft wrapping lets users copy a long address or command.
stderr = _Console(stderr=True, soft_wrap=True)


def nobody_listens(error: OSError) -> bool:
    """Returns whether a write failed because the reader of a pipe has ended or the terminal is closed."""
    return error.errno in (errno.EPIPE, errno.EIO)


def suggest_remedy(error: OSError) -> str | None:
    """Returns the next step for a full disk or a closed standard output. Returns None for other errors."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "check the space left on the disk"
    # `weir.cli.main` opens a closed standard output only for reading, so every write fails.
    return "redirect standard output to a file or to /dev/null" if error.errno == errno.EBADF else None


def was_interrupted(error: BaseException, known: BaseException | None = None) -> bool:
    """Returns whether the user pressed Ctrl-C before the failed write: rich may then write to a closed terminal.

    `known`: the exception that weir was already handling before the write. An earlier Ctrl-C does not count.
    """
    context = error.__context__
    while context is not None and context is not known:
        if isinstance(context, KeyboardInterrupt):
            return True
        context = context.__context__
    return False


def give_up_output() -> None:
    """Discards the rest of the output. Otherwise Python would report the same error again at exit."""
    with contextlib.suppress(OSError):
        sink = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(sink, stream.fileno())


def say_error(message: str, hint: str) -> None:
    """Prints a problem and the next step on standard error."""
    say(f"weir: {message}")
    if hint:
        say(f"  try: {hint}")


def say(message: RenderableType) -> None:
    """Prints progress or a warning on standard error. Prints nothing if standard error has no reader."""
    known = sys.exception()
    try:
        stderr.print(message)
    except OSError as error:
        if not nobody_listens(error):
            raise
        stderr.quiet = True
        if was_interrupted(error, known):
            raise KeyboardInterrupt from None


def teller(*, quiet: bool) -> Callable[[str], None]:
    """Returns `say`. With `quiet`, returns a function that prints nothing."""
    return (lambda _: None) if quiet else say


def print_text(text: str, style: str = "") -> None:
    """Prints one line on standard output. Removes control characters, which may come from files and servers."""
    stdout.print(sanitize(text), style=style)


def make_table(*headings: str, right: Sequence[str] = (), no_wrap: Sequence[str] = ()) -> Table:
    """Returns an empty table. Columns in `right` are aligned right. Cells of columns in `no_wrap` stay on one line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for one in headings:
        whole = one in no_wrap
        table.add_column(
            one, justify="right" if one in right else "left", no_wrap=whole, overflow="ellipsis" if whole else "fold"
        )
    return table


def print_lines(text: str, *, wraps: bool = True) -> None:
    """Prints lines without control characters. At a terminal, breaks long lines between words, with a deeper indent."""
    lines = (sanitize(line) for line in text.split("\n"))
    is_wrapped = wraps and stdout.file.isatty()
    print("\n".join(_wrap(line, stdout.width) if is_wrapped else line for line in lines))


def _wrap(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip())] + "    "
    wrapper = textwrap.TextWrapper(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(line) if len(line) > width else line


def print_json(value: Any) -> None:
    """Prints a value as JSON on standard output, without delay: a caller of `weir stacks start` waits for the value."""
    print(json.dumps(value, indent=2), flush=True)


def write_json(value: Any, target: str, flag: str = "--json") -> None:
    """Writes a value as JSON to the file `target` (`-`: standard output). Raises UsageError if the write fails."""
    if target == "-":
        print_json(value)
        return
    try:
        Path(target).write_text(json.dumps(value, indent=2) + "\n")
    except OSError as error:
        raise UsageError(f"{flag}: {target}: cannot be written: {error.strerror}") from None


def at_terminal() -> bool:
    """Returns whether standard error is a terminal. Only a terminal can redraw lines."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
