"""The result of one load in a report of a tool, a publication or weir, with the rounding of each figure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Figure:
    """A printed number. The true number lies between `low` and `high`: the printed number ± `rounding`."""

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
        """Parses a printed number. "0.0060" in seconds is 6.0 ms ± 0.05 ms. Raises ValueError for any other text."""
        mantissa, _, exponent = text.strip().lower().partition("e")
        decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
        return cls(float(text) * unit, 0.5 * 10.0**-decimals * unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedResult:
    """The reported figures of one load, with times in seconds. None: the report lacks the figure."""

    name: str
    tool: str | None = None
    """The program that printed the report. None if the name does not help to explain an error."""
    users: int | None = None
    """Number of connections or virtual users of a closed loop."""
    requests_in_flight: int | None = 1
    """Maximum number of requests of a user at the same time (pipelining, streams, batches). None: unknown."""
    think_s: Figure = Figure(0.0)
    """Mean pause of a user between a response and the next request. For random pauses, the figure's `rounding` is the
    probable error of their mean."""
    ramp_s: float = 0.0
    """Time in which the users start, one after the other."""
    loops: int | None = None
    """Number of requests of each user."""
    duration_s: Figure | None = None
    throughput_rps: Figure | None = None
    requests: int | None = None
    """Number of requests that the throughput counts."""
    failed: int | None = None
    """Number of failed requests among `requests`, including failures with a status."""
    unsent: int | None = None
    """Number of requests, in addition to `requests`, that were due but never sent."""
    intended: int | None = None
    fates: Mapping[str, int] = field(default_factory=dict)
    """A dict from outcome (`ok`, `failed` and others) to number of requests. Each request has only one outcome."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """A dict from kind of failure to number of failures, even outside `requests`. `check`: wrong responses."""
    mean_s: Figure | None = None
    stdev_s: Figure | None = None
    min_s: Figure | None = None
    max_s: Figure | None = None
    quantiles_s: Mapping[float, Figure] = field(default_factory=dict)
    """A dict from quantile (0 to 1) to response time."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """A dict from status to number of responses. Failures without a status are in `errors`."""
    received_bytes: int | None = None
    """Bytes of responses including heads, rounded as in the report."""
    cpu_s: Figure | None = None
    """CPU time that the server's processes used during `duration_s`."""
    cpus: float | None = None
    """Number of CPUs of the server. With a quota, the number may be a fraction."""
