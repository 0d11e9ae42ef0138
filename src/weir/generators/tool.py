"""One program other than weir's engine that can make a load: where it is, what it can, how it is told, and what it said.

A *tool* is pure but for looking for its program, asking its version and installing it: from a plan it makes a command line and the files
that go with it, and from what the program printed a claim. `ExternalLoad` runs it.
"""

import os
import re
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import ClassVar

from weir.generators.feature import Feature, features_of
from weir.generators.installation import DATA, Installation
from weir.model.claim import Claim
from weir.model.errors import UsageError
from weir.model.load import Load, LoadPlan, OpenLoad, highest
from weir.stacks.tools import base_environment, search_path

_ANSWER_S = 20.0
"""How long a program may take to name its version: a JVM on a busy machine takes seconds."""
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class Tool(ABC):
    """A load generator. There is one object of each (`weir.generators.tools.tool`)."""

    name: ClassVar[str]
    """What it is called in studies, and its command's name."""
    title: ClassVar[str]
    """What it calls itself."""
    origin: ClassVar[str]
    """How to get it: the next command of whoever has none."""
    clock: ClassVar[str]
    """What its response times are, from when to when."""
    can: ClassVar[frozenset[Feature]]
    """Of what a plan may ask for, that which it does as it is asked."""
    ask_version: ClassVar[tuple[str, ...]] = ("--version",)
    """Arguments with which it names its version; empty: it has no such."""
    begins: ClassVar[str] = ""
    """What it prints when its load begins; empty: that begins with the program."""
    is_installable: ClassVar[bool] = False
    """Whether `install` can do more than look."""
    start_up_s: ClassVar[float] = 5.0
    """How long it may take to begin, on a busy machine."""
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT
    """What ends its load early."""

    def where(self) -> Path | None:
        """Its program; None where it is neither on the PATH nor installed by `install`."""
        found = shutil.which(self.name, path=search_path())
        return Path(found) if found else None

    def found(self) -> Path:
        """Its program.

        Raises:
            UsageError: it is not there; the hint says how to get it.
        """
        program = self.where()
        if program is None:
            raise UsageError(f"{self.name}: not found on the PATH", hint=self.origin)
        return program

    def install(self, on_install: Callable[[str], None] = lambda _: None) -> Path:
        """Its program, installed first where weir can do that and it is not there.

        Args:
            on_install: called with what is installed and where its log is, if it has to be.

        Raises:
            UsageError: weir cannot install it, or lacks what that takes; the hint says what to do.
            TargetError: it could not be installed; the message names the log.
        """
        return self.found()

    def version(self) -> str:
        """Its title and its version's number, which it is asked once: `wrk 4.1.0`. The title alone where it does not say that."""
        program = self.where()
        if program is None or not self.ask_version:
            return self.title
        found = _VERSION.search(_said(str(program), *self.ask_version))
        return f"{self.title} {found.group()}" if found else self.title

    def cannot(self, plan: LoadPlan) -> str | None:
        """Why it cannot make this load, a sentence each; None: it can. What it can only do nearly, it cannot."""
        reasons = [f"{self.title} cannot {feature}." for feature in features_of(plan) if feature not in self.can]
        return " ".join(reasons + self._cannot_besides(plan)) or None

    def _cannot_besides(self, plan: LoadPlan) -> list[str]:
        """Further sentences of that kind."""
        return []

    @abstractmethod
    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """Its arguments for a plan that it can make. What it needs as files is written into `folder`, its working directory."""

    def environment(self, plan: LoadPlan) -> Mapping[str, str]:
        """Its whole environment but for HOME, which is its folder: nothing of the user's that could tune it, and no proxy."""
        return {"PATH": search_path(), "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def threads(self, plan: LoadPlan) -> int:
        """How many threads carry the load."""
        return plan.threads

    @abstractmethod
    def read(self, printed: str, folder: Path) -> Claim:
        """What it says of its load.

        Args:
            printed: what it printed.
            folder: where it wrote its files.

        Raises:
            ValueError, KeyError, OSError: that cannot be read.
        """


class InstalledTool(Tool):
    """A tool that weir can install into its cache. One on the PATH comes before that."""

    origin = "weir doctor --install"
    is_installable = True
    installation: ClassVar[Installation]

    def where(self) -> Path | None:
        """On the PATH, else in the cache."""
        return super().where() or self.installation.found()

    def install(self, on_install: Callable[[str], None] = lambda _: None) -> Path:
        """Into the cache."""
        return self.where() or self.installation.install(on_install)

    def version(self) -> str:
        """Of one in the cache as it was installed: some take seconds to say it."""
        program = self.where()
        ours = program is not None and program == self.installation.found()
        return f"{self.title} {self.installation.version()}" if ours else super().version()


def body_file(plan: LoadPlan, folder: Path) -> str:
    """Writes the request's body to a file of that name, in the tool's working directory."""
    assert plan.request.body is not None
    (folder / "body").write_bytes(plan.request.body)
    return "body"


def template(name: str) -> Template:
    """A script or plan that a tool is given, with `$names` for what of it a plan decides."""
    return Template((DATA / name).read_text())


def milliseconds(time_s: float) -> str:
    """A time as tools written in Go and Rust take it: `1500ms`."""
    return f"{round(time_s * 1000)}ms"


def not_whole_seconds(title: str, **times_s: float) -> list[str]:
    """A sentence for each time that a tool would have to round, by its name in the plan."""
    return [
        f"{title} takes whole seconds, from 1, and not {value:g} ({name.removesuffix('_s')})."
        for name, value in times_s.items()
        if value < 1 or value != round(value)
    ]


def no_fewer_than_connections(title: str, plan: LoadPlan) -> list[str]:
    """A sentence where a tool that sends a number of requests would have connections without any."""
    fewer = plan.requests is not None and plan.requests < plan.load.connections
    return [f"{title} cannot send fewer requests than it has connections."] if fewer else []


def whole_rate(title: str, load: Load) -> list[str]:
    """A sentence where a tool would have to round the rate of an open load."""
    rate_rps = rate_of(load) if isinstance(load, OpenLoad) else 1.0
    return [f"{title} takes a whole number of requests a second, from 1, and not {rate_rps:g}."] if rate_rps < 1 or rate_rps % 1 else []


def rate_of(load: OpenLoad) -> float:
    """The rate of a load whose rate does not change, the highest of any other."""
    return highest(load.rate_rps)


@cache
def _said(*command: str) -> str:
    """All that a command prints, which may come with any exit status; nothing where it does not answer."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_ANSWER_S, check=False,
            env={**os.environ, **base_environment()},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
