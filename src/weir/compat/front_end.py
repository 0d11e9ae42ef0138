"""Front ends for wrk, wrk2, hey and ab.

A front end converts the tool's command line to a load, and the load's result to the tool's report. A front end opens no
files except the files that flags name. `weir.cli.front_ends` runs the load and prints the report.
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
    # Imported only for type checks: every command imports this module, and few commands need records.
    from weir.model.load_records import Interval, LoadEnd, LoadEvent

TOOLS = {
    "wrk": "weir wrk -t2 -c100 -d30s http://127.0.0.1:8000/",
    "wrk2": "weir wrk2 -t2 -c100 -d30s -R2000 --latency http://127.0.0.1:8000/",
    "hey": "weir hey -z 30s -c 50 http://127.0.0.1:8000/",
    "ab": "weir ab -n 10000 -c 50 -k http://127.0.0.1:8000/",
}
"""The tools that weir can replace, each with an example of a command line."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The records of a finished load."""

    end: "LoadEnd"
    intervals: "Sequence[Interval]" = ()
    """All intervals of 0.1 s, without their histograms. The last interval may be shorter."""
    events: "Sequence[LoadEvent]" = ()
    """Failures, the earliest first: the first failure of each kind, then at most one failure a second."""
    request_log: Path | None = None
    """The log of all requests (`weir.model.request_log`), if the front end's report needs the log."""


@dataclass(frozen=True, kw_only=True)
class FrontEnd(ABC):
    """The load and the report for a tool's command line. weir prints the texts of the `format` methods unchanged."""

    flags: SimpleNamespace
    """The result of `ToolFlags.parse`: the values of the flags, and the URL."""
    spec: LoadSpec
    waits_for_answers: bool = False
    """Whether the tool waits for the requests in flight at the end of the duration."""
    needs_request_log: bool = False

    @cached_property
    def plan(self) -> LoadPlan:
        """The plan of the load, without a request log."""
        plan = self.spec.to_plan()
        return plan.answered_to_the_end() if self.waits_for_answers else plan

    @property
    def command(self) -> str:
        """The `weir load …` command line that runs the same load."""
        return self.spec.without_implied_settings().to_command()

    def format_heading(self) -> str:
        """Returns the tool's output at the start of its load."""
        return ""

    def format_progress(self, before: int, now: int, *, has_ended: bool) -> str:
        """Returns the tool's progress report. The number of finished requests has risen from `before` to `now`."""
        return ""

    @abstractmethod
    def format_report(self, result: LoadResult) -> str:
        """Returns the tool's output at the end of its load."""

    def format_files(self, result: LoadResult) -> Mapping[str, str]:
        """Returns the content of each file that the tool writes, by path."""
        return {}

    @abstractmethod
    def list_differences(self, result: LoadResult) -> list[str]:
        """Returns a sentence, without a full stop, for each difference between weir's measurement and the tool's."""

    def choose_exit_code(self, result: LoadResult) -> int:
        """Returns the tool's exit code after a load."""
        return 0

    @abstractmethod
    def format_failed_start(self, error: WeirError) -> tuple[str, int]:
        """Returns the tool's output and exit code for a load that could not start because of `error`."""


def read_command_line(tool: str, words: Sequence[str]) -> FrontEnd:
    """Parses `words`, the arguments of a tool in `TOOLS`, and returns the front end for this command line. Raises
    ToolError if `words` are invalid or have an unsupported flag, ToolExit if they ask for help or the version."""
    module = import_module(f"weir.compat.{tool.removesuffix('2')}")
    front_end: FrontEnd = module.read_command_line(tool, words)
    return front_end


def is_unknown_host(error: WeirError) -> bool:
    """Returns whether `error` reports a host name without an address."""
    return error.message.startswith("plan, key target:")
