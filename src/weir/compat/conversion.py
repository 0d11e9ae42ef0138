"""What a command line, script or test plan of another tool comes to in weir's terms: the load, and what could not be taken over."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from weir.model.load import LoadPlan
from weir.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that weir cannot say natively."""

    where: str
    """The file and its line, or the flag: `script.js:12`."""
    what: str
    """What stands there, and what weir has instead."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What was read."""

    plan: LoadPlan
    """The load, without what its users do."""
    scenario: Scenario | None = None
    """What they do instead of the plan's one request."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of rows that the scenario needs beside it: their content, by name."""
    notes: Sequence[str] = ()
    """What differs from the tool, a sentence each, without a full stop."""
    gaps: Sequence[Gap] = ()
    """What is left out of the plan."""
    objectives: Sequence[str] = ()
    """What must hold, as for `weir load --objective`."""
    command: str | None = None
    """The `weir load` command line, where the reader knows better than the plan: the names of files."""


Reader = Callable[[Sequence[str]], Conversion]
"""Reads what follows a tool's name: raises `UsageError` where that or a file cannot be read at all."""


def duration_of(text: str) -> float | None:
    """Seconds in a duration as tools written in Go and Python take it, such as `1m30s` or `500ms`; a number alone is milliseconds.

    >>> duration_of("1m30s"), duration_of("soon")
    (90.0, None)
    """
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return float(text) / 1000
    if not re.fullmatch(r"([0-9]+(\.[0-9]+)?(ms|[smhd]))+", text):
        return None
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhd])", text)
    return round(sum(float(number) * units[unit] for number, unit in parts), 9)
