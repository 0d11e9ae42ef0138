"""Finds the part of a trial's load that counts: after the last change of level, if this is long and level.

The ramp of the users is warm-up and never counts. weir starts the load together with its extension, in one piece. If
the load is steady at the end of the study's window, the load ends there; otherwise the load continues to the end of the
extension. So a server that warms up slowly has no gap in its load.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from weir.model.load import Load, constant_from_s
from weir.model.load_observer import LoadObserver
from weir.model.records import Interval
from weir.model.run_types import MeasurementWindow, Segment

MIN_POINTS = 30
"""A steady state needs at least this many intervals (as in `stats.steady`, a slow import)."""
_TARGET_POINTS = 60
"""Intervals are merged to about this many points. In a window of up to 30 s, a point is 100 to 500 ms: finer points are
mostly noise."""


def can_be_steady(load: Load, duration_s: float, interval_s: float) -> bool:
    """Returns whether a load can have a steady state: it must be constant after its ramp, and have enough intervals."""
    from_s = constant_from_s(load)
    return from_s is not None and round((duration_s - from_s) / interval_s) >= MIN_POINTS


def find_window(intervals: Sequence[Interval], *, asked_s: float, level_from_s: float = 0.0) -> MeasurementWindow:
    """Finds the part of a load that counts, from the intervals of the whole load, in order. A load longer than
    `asked_s`, the study's duration, by a tenth was extended. The intervals before `level_from_s`, the start of the
    constant part, do not count."""
    end_s = intervals[-1].end_s if intervals else 0.0
    points = _merge_intervals([one for one in intervals if one.start_s >= level_from_s - 1e-6])
    if len(points) < MIN_POINTS:
        return use_whole_load(end_s, f"{len(points)} intervals; a steady state needs at least {MIN_POINTS}")
    # A slow import (scipy and ruptures), which most commands do not need.
    from weir.stats.steady import MIN_STEADY_SHARE, TOLERANCE, find_steady_state

    latencies = [point.p50_us for point in points if point.p50_us is not None]
    rates = [point.throughput_rps for point in points]
    found = find_steady_state([rates, latencies] if len(latencies) == len(points) else [rates])
    levels = [_Point.merge(points[low:high]) for low, high in pairwise([0, *found.changes, len(points)])]
    segments = tuple(
        Segment(round(level.start_s, 3), round(level.end_s, 3), level.throughput_rps, level.p50_us) for level in levels
    )
    extended = end_s > asked_s * 1.1
    start_s = points[found.begin].start_s
    if found.is_steady:
        changed = f"the last change of level was at {start_s:.1f} s" if found.changes else "no change of level"
        return MeasurementWindow(start_s, end_s, True, changed, extended, segments)
    drift = found.drift
    if found.drifts and drift is not None:
        by = f"{drift.value * 100:+.1f} %, more than {TOLERANCE:.0%}"
        why = f"the last level, from {start_s:.1f} s on, drifts by {by}"
    else:
        lasts = f"lasts for {found.share:.0%} of it, less than {MIN_STEADY_SHARE:.0%}"
        why = f"the last level begins at {start_s:.1f} s of {end_s:.1f} s and {lasts}"
    # Without a steady state the whole constant part counts, and the verdict reports it.
    return MeasurementWindow(points[0].start_s if level_from_s else 0.0, end_s, False, why, extended, segments)


def use_whole_load(end_s: float, why: str) -> MeasurementWindow:
    """Returns a window of the whole load, with unknown steadiness."""
    return MeasurementWindow(0.0, end_s, None, why)


@dataclass(slots=True)
class SteadyWatch(LoadObserver):
    """Stores the intervals of a load, judges them once at the end of the study's window, and ends a steady load."""

    asked_s: float
    """Length of the study's window."""
    end_load: Callable[[], None]
    level_from_s: float = 0.0
    """Start of the constant part."""
    can_judge: bool = True
    """Whether the load can have a steady state."""
    may_end_load: bool = True
    """Whether the load has an extension, and so ends before the extension if it is steady."""
    has_ended_load: bool = False
    has_judged: bool = False
    intervals: list[Interval] = field(default_factory=list)

    def on_interval(self, interval: Interval) -> None:
        self.intervals.append(interval)
        if self.has_judged or not self.may_end_load or interval.end_s < self.asked_s - 1e-6:
            return
        self.has_judged = True
        if find_window(self.intervals, asked_s=self.asked_s, level_from_s=self.level_from_s).steady is not False:
            self.has_ended_load = True
            self.end_load()


@dataclass(frozen=True, slots=True)
class _Point:
    start_s: float
    end_s: float
    completed: int
    p50_us: float | None

    @property
    def throughput_rps(self) -> float:
        return self.completed / (self.end_s - self.start_s)

    @classmethod
    def read(cls, interval: Interval) -> "_Point":
        p50_us = interval.response_time_us.p50
        return cls(interval.start_s, interval.end_s, 0 if p50_us is None else interval.completed, p50_us)

    @classmethod
    def merge(cls, parts: Sequence["_Point"]) -> "_Point":
        completed = sum(part.completed for part in parts)
        weighted = sum((part.p50_us or 0.0) * part.completed for part in parts)
        return cls(parts[0].start_s, parts[-1].end_s, completed, weighted / completed if completed else None)


def _merge_intervals(intervals: Sequence[Interval]) -> list[_Point]:
    """Merges intervals into points, without a last interval that is shorter than half of the others."""
    longest = max((one.end_s - one.start_s for one in intervals), default=0.0)
    full = [_Point.read(one) for one in intervals if one.end_s - one.start_s > longest / 2]
    together = max(1, len(full) // _TARGET_POINTS)
    points = [_Point.merge(full[at : at + together]) for at in range(0, len(full), together)]
    if len(full) % together:
        # The rest has fewer intervals than the other points: it joins the last of them.
        points[-2:] = [_Point.merge(full[(len(points) - 2) * together :])]
    return points
