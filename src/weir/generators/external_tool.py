"""An external load generator: its program, the loads that it supports, its command line and its report.
`weir.generators.registry` lists all tools; `ExternalLoad` runs one."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from weir.compat.reports import Reader
from weir.generators.installation import Installation
from weir.generators.load_features import Feature, list_features
from weir.model.errors import UsageError
from weir.model.load import LoadPlan, OpenLoad, highest
from weir.model.reported_result import ReportedResult
from weir.stacks.toolchain import build_base_environment, build_search_path

_ANSWER_S = 20.0
"""Time limit for a program to print its version: a JVM on a busy machine takes seconds."""
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A load generator."""

    name: str
    title: str
    install_hint: str = "weir doctor --install"
    installation: Installation | None = None
    """How weir installs it; None: weir cannot."""
    clock: str
    """The start and the end of its response times, in words."""
    supported: frozenset[Feature]
    """The features of a plan that it carries out exactly."""
    whole_seconds: tuple[str, ...] = ()
    """The times of a plan that it takes in whole seconds only: `duration`, `timeout`."""
    has_whole_rate: bool = False
    """Whether the rate of an open load must be a whole number."""
    equal_shares: str = ""
    """Its word for its users, if each sends the same number of requests."""
    version_arguments: tuple[str, ...] = ("--version",)
    """Arguments that print its version; empty: there are none."""
    start_marker: str = ""
    """A text that it prints at the start of its load; empty: the load starts with the program."""
    start_up_s: float = 5.0
    """Time limit for its start on a busy machine."""
    build_arguments: Callable[[LoadPlan, Path], list[str]]
    """Returns its arguments for a supported plan, and writes its files into the folder, its working directory."""
    count_threads: Callable[[LoadPlan], int] = lambda plan: plan.threads
    build_variables: Callable[[LoadPlan], Mapping[str, str]] = lambda _: {}
    reader: Reader
    report_file: str = ""
    """The file with its report, in its folder; empty: its output."""
    complete_report: Callable[[ReportedResult, Path], ReportedResult] = lambda result, _: result
    """Adds figures from other files of its folder to its report."""

    def find(self) -> Path | None:
        """Returns its program; None if it is neither on the PATH nor installed by `install`."""
        # If weir can install it, only the user's PATH comes first: an extra of weir may have installed another version.
        found = shutil.which(self.name, path=None if self.installation else build_search_path())
        return Path(found) if found else self.installation.find() if self.installation else None

    def require(self) -> Path:
        """Returns its program. Raises UsageError: there is none; the hint says how to install it."""
        program = self.find()
        if program is None:
            raise UsageError(f"{self.name}: not found on the PATH", hint=self.install_hint)
        return program

    def version(self) -> str:
        """Returns its title and version, `wrk 4.1.0`; only the title if the program prints no version. Cached."""
        program = self.find()
        if self.installation and program is not None and program == self.installation.find():
            # Some programs need seconds to print it.
            return f"{self.title} {self.installation.version()}"
        if program is None or not self.version_arguments:
            return self.title
        found = _VERSION.search(_run(str(program), *self.version_arguments))
        return f"{self.title} {found.group()}" if found else self.title

    def unsupported_reason(self, plan: LoadPlan) -> str | None:
        """Returns why it cannot make this load exactly, a sentence per reason; None if it can."""
        reasons = [f"cannot {feature}." for feature in list_features(plan) if feature not in self.supported]
        for name in self.whole_seconds:
            time_s = getattr(plan, f"{name}_s")
            if time_s < 1 or time_s % 1:
                reasons.append(f"takes whole seconds, from 1, and not {time_s:g} ({name}).")
        rate_rps = get_rate(plan)
        if self.has_whole_rate and rate_rps is not None and (rate_rps < 1 or rate_rps % 1):
            reasons.append(f"takes a whole number of requests a second, from 1, and not {rate_rps:g}.")
        users = plan.load.connections
        if self.equal_shares and plan.requests is not None and plan.requests % users:
            reasons.append(
                f"splits requests equally among {users} {self.equal_shares}: it cannot send {plan.requests}."
            )
        return " ".join(f"{self.title} {reason}" for reason in reasons) or None

    def build_environment(self, plan: LoadPlan) -> dict[str, str]:
        """Returns its whole environment but HOME, which is its folder: no proxy and no settings of the user."""
        return {"PATH": build_search_path(), "LC_ALL": "C.UTF-8", "TZ": "UTC", **self.build_variables(plan)}

    def read(self, printed: str, folder: Path) -> ReportedResult:
        """Reads its report from its output and the files in its folder. Raises ValueError, KeyError, OSError: the
        report cannot be read."""
        text = (folder / self.report_file).read_text() if self.report_file else printed
        return self.complete_report(self.reader(text, self.title), folder)


def get_rate(plan: LoadPlan) -> float | None:
    """Returns the constant rate of an open load, or the highest of a changing one; None: the load is closed."""
    return highest(plan.load.rate_rps) if isinstance(plan.load, OpenLoad) else None


@cache
def _run(*command: str) -> str:
    """Returns the output of a command, whatever its exit status; empty if it does not run or takes too long."""
    environment = {**os.environ, **build_base_environment()}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
