"""What a drop-in front end is: a command line of wrk, wrk2, hey or ab understood, run as a load, and told in the tool's own words.

Each tool is a module `weir.compat.TOOL` with a function `read(argv) -> Asked`, which raises `ToolExit` where the tool would end without
putting a load on anything. Nothing here prints, measures or reads anything but the files that flags name; `weir.cli.front_ends` does.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weir.model.errors import WeirError
from weir.model.load import LoadPlan

if TYPE_CHECKING:
    # At run time the records come later, with pydantic: a front end has to start its load at once.
    from weir.model.records import Interval, LoadEnd, LoadEvent

TOOLS = {
    "wrk": "weir wrk -t2 -c100 -d30s http://127.0.0.1:8000/",
    "wrk2": "weir wrk2 -t2 -c100 -d30s -R2000 --latency http://127.0.0.1:8000/",
    "hey": "weir hey -z 30s -c 50 http://127.0.0.1:8000/",
    "ab": "weir ab -n 10000 -c 50 -k http://127.0.0.1:8000/",
}
"""The tools that weir stands in for, each with an example."""


class ToolExit(Exception):  # noqa: N818 - it is an end, and of -h no error
    """The tool's own answer to wrong flags, to -h or -v, or to a target that is not there: it ends with this and reports no load.

    Args:
        out: what it writes on standard output, to the last newline.
        err: what it writes on standard error.
        code: its exit code.
    """

    def __init__(self, *, out: str = "", err: str = "", code: int) -> None:
        super().__init__(err or out)
        self.out = out
        self.err = err
        self.code = code


def not_offered(message: str, hint: str, code: int) -> ToolExit:
    """The answer to what the tool does and weir does not: weir's words, and the exit code that the tool has for wrong flags.

    Args:
        message: the flag, what was found and why not.
        hint: the native way.
        code: the exit code.
    """
    return ToolExit(err=said(message, hint), code=code)


def said(message: str, hint: str) -> str:
    """A message of weir's own, with what to do next where there is something."""
    return f"weir: {message}\n" + (f"  try: {hint}\n" if hint else "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a load."""

    end: "LoadEnd"
    intervals: "Sequence[Interval]"
    """All of them, a tenth of a second each but for the last, without their histograms."""
    requests: Path | None
    """The log of all requests (`weir.model.request_log`), where `Asked.needs_requests`. It is gone when the report has been made."""
    interrupted: bool
    """Whether Ctrl-C or SIGTERM ended it early."""
    events: "Sequence[LoadEvent]" = ()
    """What happened while it ran, in order: the first of each kind of failure, and at most one a second."""
    start_unix_ns: int = 0
    """When its clock started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(ABC):
    """One command line of a tool, understood."""

    plan: LoadPlan
    """The load that it asks for; `request_log` is left to the one who runs it."""
    native: str
    """The `weir load …` command line that does the same."""
    needs_requests: bool = False
    """Whether the report needs every single request."""

    @abstractmethod
    def heading(self) -> str:
        """What the tool prints as its load begins, to the last newline; printed as it is."""

    @abstractmethod
    def report(self, outcome: Outcome) -> str:
        """What the tool prints after its load, on standard output, to the last newline; printed as it is."""

    @abstractmethod
    def notes(self, outcome: Outcome) -> list[str]:
        """What differs from the tool, a sentence each, without a full stop; standard error has them behind the verdict."""

    @abstractmethod
    def exit_code(self, outcome: Outcome) -> int:
        """The tool's exit code."""

    @abstractmethod
    def cannot_begin(self, error: WeirError) -> ToolExit:
        """What the tool says, heading included where it has printed one by then, when the load does not even begin.

        Args:
            error: the engine's. A `TargetError`: no connection can be made; a `UsageError` on `plan, key target`: the host has no address.
        """

    def progress(self, before: int, now: int) -> str:
        """What the tool writes on standard error while its load runs, when after `before` requests `now` are done; printed as it is."""
        return ""

    def complaints(self, outcome: Outcome) -> str:
        """What the tool writes on standard error after its load; printed as it is."""
        return ""

    def files(self, outcome: Outcome) -> Mapping[str, str]:
        """What the tool writes into files, by their paths."""
        return {}

    def cannot_write(self, path: str, error: OSError) -> ToolExit:
        """What the tool says when one of its files cannot be written."""
        return ToolExit(err=f"weir: {path}: cannot be written: {error.strerror}\n", code=1)
