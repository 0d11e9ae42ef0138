"""Describes an external load generator: program, supported loads, command line and report. `weir.generators.registry`
lists all tools; `ExternalLoad` runs a tool."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from weir.compat.reports import read_single_report
from weir.generators.installation import Installation
from weir.generators.load_features import Feature, list_features
from weir.model.errors import UsageError
from weir.model.load import LoadPlan, OpenLoad, highest
from weir.model.reported_result import ReportedResult
from weir.stacks.toolchain import build_base_environment, build_search_path

_ANSWER_S = 20.0
"""Timeout, in seconds, for printing a version. A JVM on a busy machine needs several seconds."""
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, kw_only=True)
class Tool:
    """An external load generator, such as wrk."""

    name: str
    title: str
    install_hint: str = "weir doctor --install"
    installation: Installation | None = None
    """How weir installs the tool. None: weir cannot install the tool."""
    clock: str
    """A description of the start and the end of the tool's response times."""
    supported: frozenset[Feature]
    """The features of a plan that the tool supports exactly."""
    whole_seconds: tuple[str, ...] = ()
    """Names of the times that the tool accepts only in whole seconds: `duration`, `timeout`, or both."""
    has_whole_rate: bool = False
    """Whether the tool accepts only whole numbers as the rate of an open load."""
    equal_shares: str = ""
    """If all users must send the same number of requests: the tool's word for users. Otherwise empty."""
    version_arguments: tuple[str, ...] = ("--version",)
    """Arguments with which the program prints its version. Empty: the program cannot print a version."""
    start_marker: str = ""
    """A text that the program prints at the start of the load. Empty: the load starts with the program."""
    start_up_s: float = 5.0
    """Maximum time from the program's start to the load's start, in seconds, on a busy machine."""
    build_arguments: Callable[[LoadPlan, Path], list[str]]
    """A function that returns the tool's arguments for a plan, and writes the tool's files to its working directory."""
    count_threads: Callable[[LoadPlan], int] = lambda plan: plan.threads
    build_variables: Callable[[LoadPlan], Mapping[str, str]] = lambda _: {}
    report_file: str = ""
    """Name of the report's file in the tool's folder. Empty: the tool prints the report."""
    complete_report: Callable[[ReportedResult, Path], ReportedResult] = lambda result, _: result
    """A function that adds figures from other files in the tool's folder to the report."""

    def find(self) -> Path | None:
        """Returns the path of the tool's program, on the PATH or installed by weir. None without a program."""
        # For a tool that weir can install, searches only the user's PATH: weir's extras may contain another version.
        found = shutil.which(self.name, path=None if self.installation else build_search_path())
        return Path(found) if found else self.installation.find() if self.installation else None

    def install(self, tell: Callable[[str], None]) -> Path:
        """Returns the path of the tool's program. Calls `tell` and installs the program if it is missing. Raises
        UsageError if weir cannot install the program, and TargetError if the installation fails."""
        if self.installation is None:
            return self.require()
        return self.find() or self.installation.install(lambda what: tell(f"weir: installing {what}"))

    def require(self) -> Path:
        """Returns the path of the tool's program. Raises UsageError if the program is missing."""
        program = self.find()
        if program is None:
            raise UsageError(f"{self.name}: not found on the PATH", hint=self.install_hint)
        return program

    def version(self) -> str:
        """Returns the tool's title and version, such as `wrk 4.1.0`, or only the title if the version is unknown."""
        program = self.find()
        if self.installation and program is not None and program == self.installation.find():
            # Some programs need seconds to print their version.
            return f"{self.title} {self.installation.version()}"
        if program is None or not self.version_arguments:
            return self.title
        found = _VERSION.search(_run(str(program), *self.version_arguments))
        return f"{self.title} {found.group()}" if found else self.title

    def unsupported_reason(self, plan: LoadPlan) -> str | None:
        """Returns the reasons why the tool cannot make exactly this load; None if it can."""
        reasons = [f"cannot {feature}." for feature in list_features(plan) if feature not in self.supported]
        for name in self.whole_seconds:
            time_s = getattr(plan, f"{name}_s")
            if time_s < 1 or time_s % 1:
                reasons.append(f"needs a {name} in whole seconds, at least 1, found {time_s:g}.")
        rate_rps = get_rate(plan)
        if self.has_whole_rate and rate_rps is not None and (rate_rps < 1 or rate_rps % 1):
            reasons.append(f"needs a rate in whole requests per second, at least 1, found {rate_rps:g}.")
        users = plan.load.connections
        if self.equal_shares and plan.requests is not None and plan.requests % users:
            reasons.append(
                f"splits requests equally among {users} {self.equal_shares}, found {plan.requests} requests."
            )
        return " ".join(f"{self.title} {reason}" for reason in reasons) or None

    def build_environment(self, plan: LoadPlan) -> dict[str, str]:
        """Returns the tool's environment variables, except HOME. Excludes the user's own variables, such as a proxy."""
        return {"PATH": build_search_path(), "LC_ALL": "C.UTF-8", "TZ": "UTC", **self.build_variables(plan)}

    def read(self, printed: str, folder: Path) -> ReportedResult:
        """Reads the tool's report from the program's output (`printed`) and from files in the tool's folder. Raises
        ValueError, KeyError or OSError if the report is not readable."""
        text = (folder / self.report_file).read_text() if self.report_file else printed
        return self.complete_report(read_single_report(text, self.title), folder)


def get_rate(plan: LoadPlan) -> float | None:
    """Returns the constant or highest rate of an open load, in requests per second. None for a closed load."""
    return highest(plan.load.rate_rps) if isinstance(plan.load, OpenLoad) else None


@cache
def _run(*command: str) -> str:
    """Runs a command and returns the output, with any exit status. Returns "" after a failed start or a timeout."""
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
