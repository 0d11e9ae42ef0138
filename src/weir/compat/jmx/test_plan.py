"""Plain types for the content of a test plan. Each sampler includes the settings of all elements in its scope."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weir.compat.jmx.references import Text
from weir.model.load import Think

NO_TIMEOUT_S = 3600.0
"""The timeout if a plan sets none: the engine's maximum. JMeter would wait without limit."""

Role = Literal["main", "setup", "teardown"]
OnError = Literal["continue", "stop thread"]
Cookies = Literal["user", "round", "off"]
Comparison = Literal["contains", "matches", "equals", "substring"]


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on a response."""

    is_for_status: bool
    """Whether the assertion checks the status code instead of the body."""
    comparison: Comparison
    texts: tuple[str, ...]
    """The expected texts. For the comparisons `contains` and `matches`, the texts are regular expressions."""
    is_negated: bool
    any_is_enough: bool
    """Whether one matching text is enough. Otherwise the response must match all `texts`."""
    ignores_status: bool
    """Whether a status of 400 or above can be right."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """One HTTP request."""

    name: str
    method: str
    origin: str
    """`http://HOST[:PORT]`. The port is missing if it is the scheme's default port."""
    path: Text
    """Path and query, percent-encoded except for placeholders."""
    headers: tuple[tuple[str, Text], ...]
    body: Text | None
    delay: Think
    """The sum of the timers' waits before the request."""
    assertions: tuple[Assertion, ...]
    statuses: tuple[int, ...] | None
    """The statuses that the assertions accept; None: every status below 400."""
    keep_alive: bool
    timeout_s: float
    follows_redirects: bool
    """Whether JMeter would follow a redirect. The engine does not."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """Rows of values for users. Each iteration of a user takes the next row. The first row follows the last row."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def list_values(self, column: str) -> list[str]:
        at = self.columns.index(column)
        return [row[at] for row in self.rows]


@dataclass(frozen=True, slots=True)
class ThreadGroup:
    """A group of users and their requests."""

    name: str
    number: int
    """The position of the group in the plan, from 1. Thread names in the JTL contain this number."""
    role: Role
    threads: int
    ramp_s: float
    loops: int | None
    """Number of iterations of each user; None: endless."""
    delay_s: float
    duration_s: float | None
    """Seconds from the end of `delay_s` to the end of the group. None: the group runs until its loops end."""
    on_error: OnError
    samplers: tuple[Sampler, ...]
    """The requests in order, with unrolled loops. All requests have the same origin."""
    cookies: Cookies
    keep_alive: bool
    timeout_s: float
    data_sets: Sequence[DataSet]


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """A test plan that the engine can run: the engine sends exactly JMeter's requests."""

    path: Path
    groups: tuple[ThreadGroup, ...]
    is_serial: bool
    """Whether thread groups run one after the other."""

    def phases(self) -> list[list[ThreadGroup]]:
        """Returns lists of thread groups that run at the same time, in the order setup, main, teardown."""
        phases: list[list[ThreadGroup]] = []
        for role in ("setup", "main", "teardown"):
            groups = [group for group in self.groups if group.role == role]
            phases += [[group] for group in groups] if self.is_serial else [groups] if groups else []
        return phases
