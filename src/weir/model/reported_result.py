"""The reported result of one load, with the rounding of each figure: from a tool, a publication, or weir itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Figure:
    """A printed number; the true one lies within `rounding` of it, from `low` to `high`."""

    value: float
    rounding: float = 0.0

    @property
    def low(self) -> float:
        return self.value - self.rounding

    @property
    def high(self) -> float:
        return self.value + self.rounding

    @classmethod
    def printed(cls, text: str, unit: float = 1.0) -> "Figure":
        """Parses a printed number in a unit: "0.0060" s is 6.0 ms ± 0.05. Raises ValueError: the text is no number."""
        mantissa, _, exponent = text.strip().lower().partition("e")
        decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
        return cls(float(text) * unit, 0.5 * 10.0**-decimals * unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedResult:
    """The reported figures of one load; None: the report lacks the figure. Times are in seconds."""

    name: str
    tool: str | None = None
    """The program that printed the report, if that explains an error."""
    users: int | None = None
    """Closed loop: connections or virtual users, each with one request at a time."""
    think_s: Figure = Figure(0.0)
    """Mean pause of a user between an answer and its next request; `rounding` is the error of a random mean."""
    ramp_s: float = 0.0
    """Time in which the users come, one by one."""
    loops: int | None = None
    """Requests of each user."""
    duration_s: Figure | None = None
    throughput_rps: Figure | None = None
    requests: int | None = None
    """Requests that the throughput counts."""
    failed: int | None = None
    """Failed requests among `requests`, with or without a status."""
    unsent: int | None = None
    """Requests beside `requests` that were due and never sent."""
    intended: int | None = None
    fates: Mapping[str, int] = field(default_factory=dict)
    """`intended` by outcome: `ok`, `failed` and others that exclude one another."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Failed requests by kind, also outside `requests`; `check`: wrong answers."""
    mean_s: Figure | None = None
    stdev_s: Figure | None = None
    min_s: Figure | None = None
    max_s: Figure | None = None
    quantiles_s: Mapping[float, Figure] = field(default_factory=dict)
    """Response times by quantile, 0 to 1."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Answers by status, errors not included."""
    received_bytes: int | None = None
    """Bytes of answers with their heads, as exactly as printed."""
    cpu_s: Figure | None = None
    """CPU time that the server's processes used during `duration_s`."""
    cpus: float | None = None
    """Number of CPUs of the server; a quota may be a part of one."""
