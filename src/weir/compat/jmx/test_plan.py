"""The content of a test plan in plain types, with JMeter's scopes resolved."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weir.compat.jmx.references import Text
from weir.model.load import Think

NO_TIMEOUT_S = 3600.0
"""JMeter waits without limit if a plan sets no timeout. This is the longest time that the engine waits."""

Role = Literal["main", "setup", "teardown"]
OnError = Literal["continue", "stop thread"]
Cookies = Literal["user", "round", "off"]
Comparison = Literal["contains", "matches", "equals", "substring"]


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A part of a test plan that weir does not support."""

    line: int
    description: str
    """The element, the names of the elements above it, and the reason."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.description}"


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on a response."""

    is_for_status: bool
    """Whether it checks the status code instead of the body."""
    comparison: Comparison
    texts: tuple[str, ...]
    """Texts; regular expressions for `contains` and `matches`."""
    is_negated: bool
    any_is_enough: bool
    """Whether one of `texts` is enough."""
    ignores_status: bool
    """Whether a status from 400 on can be right."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """One HTTP request."""

    name: str
    method: str
    origin: str
    """`http://HOST[:PORT]`, with the port unless it is the scheme's own."""
    path: Text
    """Path and query, percent-encoded but for placeholders."""
    headers: tuple[tuple[str, Text], ...]
    body: Text | None
    delay: Think
    """The wait of timers before it."""
    assertions: tuple[Assertion, ...]
    statuses: tuple[int, ...] | None
    """Right statuses by the assertions; None: every status below 400."""
    keep_alive: bool
    timeout_s: float


@dataclass(frozen=True, slots=True)
class DataSet:
    """Rows for users: each iteration takes the next one."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    stops: bool
    """Whether the load ends after the last row. Otherwise the first row follows."""


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
    """None: endless."""
    delay_s: float
    duration_s: float | None
    """After the delay; None: until the loops are done."""
    on_error: OnError
    samplers: tuple[Sampler, ...]
    """In their order, with the loops of controllers unrolled. All have the same origin."""
    cookies: Cookies
    keep_alive: bool
    timeout_s: float
    data_sets: Sequence[DataSet]


@dataclass(frozen=True, slots=True)
class TestPlan:
    """A test plan."""

    path: Path
    groups: tuple[ThreadGroup, ...]
    is_serial: bool
    """Whether thread groups run one after the other."""
    unsupported: tuple[Unsupported, ...]

    __test__ = False  # pytest takes classes with such names for tests.

    def phases(self) -> list[list[ThreadGroup]]:
        """Returns the thread groups that run at the same time, phase by phase: setup, main, teardown."""
        phases: list[list[ThreadGroup]] = []
        for role in ("setup", "main", "teardown"):
            groups = [group for group in self.groups if group.role == role]
            phases += [[group] for group in groups] if self.is_serial else [groups] if groups else []
        return phases
