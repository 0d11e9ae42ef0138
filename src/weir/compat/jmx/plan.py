"""What a test plan asks for, in plain types: read once, with everything that JMeter's scopes decide already decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weir.compat.jmx.values import Text

NO_TIMEOUT_S = 3600.0
"""JMeter waits for ever where nobody says how long: the longest that the engine waits."""

Role = Literal["main", "setup", "teardown"]
OnError = Literal["continue", "stop thread"]
Cookies = Literal["user", "round", "off"]
Asked = Literal["contains", "matches", "equals", "substring"]


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Something of a test plan that weir does not do."""

    kind: str
    """The element: `JSR223PreProcessor`."""
    place: tuple[str, ...]
    """The names of the elements above it, and its own."""
    line: int
    """Of the file."""
    why: str

    def __str__(self) -> str:
        *above, name = self.place
        return f"line {self.line}: {self.kind} {name!r}" + (f" in {' > '.join(above)}" if above else "") + f": {self.why}"


@dataclass(frozen=True, slots=True)
class Delay:
    """What timers make of the time before a request: any length between the two as likely."""

    shortest_s: float = 0.0
    longest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Assertion:
    """What an answer must be, or must not."""

    name: str
    of_status: bool
    """Whether it looks at the status code, not at the body."""
    asked: Asked
    texts: tuple[str, ...]
    """Texts, or regular expressions of `contains` and `matches`."""
    is_denied: bool
    """Whether it must not hold."""
    any_of: bool
    """Whether one of `texts` is enough."""
    ignores_status: bool
    """Whether a status from 400 on is no failure by itself."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """One HTTP request."""

    name: str
    method: str
    secure: bool
    host: str
    port: int
    path: Text
    """Path and query, percent-encoded but for what stands in placeholders."""
    headers: tuple[tuple[str, Text], ...]
    body: Text | None
    delay: Delay
    """Before it."""
    assertions: tuple[Assertion, ...]
    statuses: tuple[int, ...] | None
    """That are right by the assertions; None: every one below 400."""

    @property
    def origin(self) -> str:
        """`http://HOST[:PORT]`, the port where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == (443 if self.secure else 80) else f":{self.port}"
        return f"{'https' if self.secure else 'http'}://{host}{port}"


@dataclass(frozen=True, slots=True)
class DataSet:
    """Rows that are given out to users, one for each iteration."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    stops: bool
    """Whether the load ends after the last row, instead of beginning again."""


@dataclass(frozen=True, slots=True)
class ThreadGroup:
    """Users, and what each of them does."""

    name: str
    number: int
    """Its place among the thread groups, from 1: a part of its threads' names."""
    role: Role
    threads: int
    ramp_s: float
    loops: int | None
    """None: for ever."""
    delay_s: float
    duration_s: float | None
    """After the delay; None: until the loops are done."""
    on_error: OnError
    samplers: tuple[Sampler, ...]
    """In their order; what loop controllers repeat is there as often as it is repeated."""
    cookies: Cookies
    keep_alive: bool
    timeout_s: float
    data_sets: Mapping[str, DataSet]


@dataclass(frozen=True, slots=True)
class TestPlan:
    """A test plan."""

    path: Path
    name: str
    groups: tuple[ThreadGroup, ...]
    is_serial: bool
    """Whether one thread group follows the other."""
    unsupported: tuple[Unsupported, ...]

    __test__ = False  # No test, whatever its name begins with.

    def phases(self) -> list[list[ThreadGroup]]:
        """The thread groups that run at the same time, phase by phase: those that set up, the plan's own, those that tear down."""
        found: list[list[ThreadGroup]] = []
        for role in ("setup", "main", "teardown"):
            groups = [group for group in self.groups if group.role == role]
            found += [[group] for group in groups] if self.is_serial else [groups] if groups else []
        return found
