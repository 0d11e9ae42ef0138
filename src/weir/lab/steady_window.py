"""Finds the part of a load that counts: the steady part at the end; without a steady part, the whole load.

The ramp of the users is warm-up and never counts. weir starts a load that is longer than the study's duration. If the
load is steady at the end of this duration, weir ends the load. Otherwise, the load continues: this is its extension.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from weir.model.load import Load, constant_from_s
from weir.model.load_observer import LoadObserver
from weir.model.load_records import Interval
from weir.model.run_types import MeasurementWindow, Segment

MIN_POINTS = 30
"""Minimum number of intervals for a steady state. Equal to `stats.steady.POINTS`, which is slow to import."""
_TARGET_POINTS = 60
"""Wanted number of points after merging intervals. Shorter points are noise. In 30 s of load, a point has 500 ms."""


def can_be_steady(load: Load, duration_s: float, interval_s: float) -> bool:
    """Returns whether a load can have a steady state: it must be constant after its ramp, and have enough intervals."""
    from_s = constant_from_s(load)
    return from_s is not None and round((duration_s - from_s) / interval_s) >= MIN_POINTS


def find_window(intervals: Sequence[Interval], *, asked_s: float, level_from_s: float = 0.0) -> MeasurementWindow:
    """Returns the part of a load that counts. `intervals`: all intervals of the load, in order. `asked_s`: the study's
    duration; a load that is over 10 % longer counts as extended. `level_from_s`: the start of the load's constant part;
    earlier intervals do not count."""
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
        why = f"the last level (after {start_s:.1f} s) drifts by {by}"
    else:
        lasts = f"lasts for {found.share:.0%} of the load, less than {MIN_STEADY_SHARE:.0%}"
        why = f"the last level begins at {start_s:.1f} s of {end_s:.1f} s and {lasts}"
    # Without a steady state the whole constant part counts, and the verdict reports the missing steady state.
    return MeasurementWindow(points[0].start_s if level_from_s else 0.0, end_s, False, why, extended, segments)


def use_whole_load(end_s: float, why: str) -> MeasurementWindow:
    """Returns a window of the whole load. `why`: the reason why weir cannot judge the steady state."""
    return MeasurementWindow(0.0, end_s, None, why)


@dataclass(slots=True)
class SteadyWatch(LoadObserver):
    """Observer that stores the intervals of a load, and ends a steady load after the study's duration."""

    asked_s: float
    """The study's duration of a load, without an extension."""
    end_load: Callable[[], None]
    level_from_s: float = 0.0
    """Start of the load's constant part."""
    can_judge: bool = True
    """Whether the load can have a steady state."""
    may_end_load: bool = True
    """Whether this observer may end the load. A load without `extension_s` always runs for its whole duration."""
    ended_with: MeasurementWindow | None = None
    """The window that made `on_interval` end the load; None if `on_interval` did not end the load."""
    has_judged: bool = False
    intervals: list[Interval] = field(default_factory=list)

    def on_interval(self, interval: Interval) -> None:
        self.intervals.append(interval)
        if self.has_judged or not self.may_end_load or interval.end_s < self.asked_s - 1e-6:
            return
        self.has_judged = True
        found = find_window(self.intervals, asked_s=self.asked_s, level_from_s=self.level_from_s)
        if found.steady is not False:
            self.ended_with = found
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
    """Merges intervals into points. Omits intervals that are at most half as long as the longest interval."""
    longest = max((one.end_s - one.start_s for one in intervals), default=0.0)
    full = [_Point.read(one) for one in intervals if one.end_s - one.start_s > longest / 2]
    together = max(1, len(full) // _TARGET_POINTS)
    points = [_Point.merge(full[at : at + together]) for at in range(0, len(full), together)]
    if len(full) % together:
        # The remaining intervals are too few for a separate point, so the last point includes them.
        points[-2:] = [_Point.merge(full[(len(points) - 2) * together :])]
    return points
