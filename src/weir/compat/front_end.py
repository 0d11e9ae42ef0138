"""A drop-in front end: turns a command line of wrk, wrk2, hey or ab into a load, and its result into the tool's report.

It reads only the files that flags name; `weir.cli.front_ends` measures and prints.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from weir.load_spec import LoadSpec
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


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The records of a load that has ended."""

    end: "LoadEnd"
    intervals: "Sequence[Interval]" = ()
    """All intervals, without their histograms. Each is a tenth of a second long, the last one is shorter."""
    events: "Sequence[LoadEvent]" = ()
    """Failures in order: the first of each kind, then at most one a second."""
    request_log: Path | None = None
    """The log of all requests (`weir.model.request_log`) if the front end needs one. It exists until the report."""


@dataclass(frozen=True, kw_only=True)
class FrontEnd(ABC):
    """A command line of a tool. Every text that it formats is printed as it is."""

    flags: SimpleNamespace
    """The values of the tool's flags, by the names in its table."""
    spec: LoadSpec
    waits_for_answers: bool = False
    """Whether the tool waits for the answers to its last requests after its time."""
    needs_request_log: bool = False
    """Whether the report needs every single request."""

    @cached_property
    def plan(self) -> LoadPlan:
        """The plan of the load, without a request log."""
        plan = self.spec.to_plan()
        return plan.answered_to_the_end() if self.waits_for_answers else plan

    @property
    def command(self) -> str:
        """The `weir load …` command line of the same load."""
        return self.spec.without_implied_settings().to_command()

    def format_heading(self) -> str:
        """Returns the tool's output at the start of its load."""
        return ""

    def format_progress(self, before: int, now: int, *, has_ended: bool) -> str:
        """Returns the tool's line on standard error when the number of requests goes from `before` to `now`."""
        return ""

    @abstractmethod
    def format_report(self, result: LoadResult) -> str:
        """Returns the tool's output at the end of its load."""

    def format_files(self, result: LoadResult) -> Mapping[str, str]:
        """Returns the content of the files that the tool writes, by their paths."""
        return {}

    @abstractmethod
    def list_differences(self, result: LoadResult) -> list[str]:
        """Returns a sentence, without a full stop, for each figure that the tool would have measured differently."""

    def choose_exit_code(self, result: LoadResult) -> int:
        """Returns the tool's exit code after a load."""
        return 0

    @abstractmethod
    def format_failed_start(self, error: WeirError) -> tuple[str, int]:
        """Returns the tool's output and exit code after a `TargetError` (no connection) or a `UsageError`."""


def read_command_line(tool: str, words: Sequence[str]) -> FrontEnd:
    """Parses the arguments after the name of a tool, which is one of `TOOLS`, and returns the front end for them.

    Raises:
        ToolError: the command line is wrong, or asks for something that weir does not offer.
        ToolExit: the command line asks for help or for the version.
    """
    module = import_module(f"weir.compat.{tool.removesuffix('2')}")
    front_end: FrontEnd = module.read_command_line(tool, words)
    return front_end


def is_unknown_host(error: WeirError) -> bool:
    """Tells whether a load could not begin because its host has no address."""
    return error.message.startswith("plan, key target:")
