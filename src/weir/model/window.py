"""The part of a trial's load that counts: what came before it is warm-up."""

from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the load within which neither throughput nor response time changed its level."""

    start_s: float
    end_s: float
    throughput_rps: float
    p50_us: float | None


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a load counts, and why. Times are seconds since the load's start."""

    start_s: float
    end_s: float
    steady: bool | None
    """None where that cannot be told."""
    why: str
    """In words."""
    extended: bool = False
    """Whether the load was put on for longer than asked, in search of a steady state."""
    segments: tuple[Segment, ...] = ()
    """All that were found, in order; none where it cannot be told."""

    @property
    def is_whole(self) -> bool:
        """Whether the whole load counts."""
        return self.start_s == 0.0

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(**{**value, "segments": tuple(Segment(**segment) for segment in value["segments"])})
