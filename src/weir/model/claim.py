"""What somebody says of one load: the figures of a tool's report, of a published table or of weir's own, with how far each was rounded."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Figure:
    """A printed number. The true one lies within `rounding` of it."""

    value: float
    rounding: float = 0.0

    @property
    def low(self) -> float:
        """The least that it may have been before it was rounded."""
        return self.value - self.rounding

    @property
    def high(self) -> float:
        """The most that it may have been."""
        return self.value + self.rounding

    @classmethod
    def printed(cls, text: str, unit: float = 1.0) -> "Figure":
        """A number as it was printed, in a unit: "0.0060" s is 6.0 ms give or take 0.05.

        Raises:
            ValueError: the text is no number.
        """
        mantissa, _, exponent = text.strip().lower().partition("e")
        decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
        return cls(float(text) * unit, 0.5 * 10.0**-decimals * unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One load and what was said to come of it. None is what was not said. Times are seconds."""

    name: str
    tool: str | None = None
    """The program that printed it, where that explains an error."""
    users: int | None = None
    """Closed loop: connections or virtual users, each with one request at a time."""
    think_s: Figure = Figure(0.0)
    """Mean pause of a user between an answer and its next request; its rounding is how far a drawn mean may lie from it."""
    ramp_s: float = 0.0
    """Over which the users come, one by one."""
    loops: int | None = None
    """Requests of each user."""
    duration_s: Figure | None = None
    throughput_rps: Figure | None = None
    requests: int | None = None
    """Those that the throughput counts."""
    failed: int | None = None
    """Of `requests` those that failed, whether they have a status or not."""
    unsent: int | None = None
    """Beside `requests` those that were due and never sent."""
    intended: int | None = None
    """Requests that were to be sent."""
    fates: Mapping[str, int] = field(default_factory=dict)
    """What became of `intended`: `ok`, `failed` and others that exclude one another."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """The failed ones by kind, those that are not in `requests` as well; `check`: answers that came and were wrong."""
    mean_s: Figure | None = None
    stdev_s: Figure | None = None
    min_s: Figure | None = None
    max_s: Figure | None = None
    quantiles_s: Mapping[float, Figure] = field(default_factory=dict)
    """Response times by quantile, 0 to 1."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Answers by status, errors not included."""
    received_bytes: int | None = None
    """Of answers, heads included, as exactly as it was printed."""
    cpu_s: Figure | None = None
    """CPU time that the server's processes used during `duration_s`."""
    cpus: float | None = None
    """How many CPUs they had; a quota is a share of one."""
