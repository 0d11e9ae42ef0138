"""Which part of a trial's load counts: from the last change of level on, if that part is long enough and does not drift.

While users still come one by one nothing is looked at: that is warm-up in any case.

The load is put on in one piece. It is asked for with its possible extension; when the study's window is over and it is steady, it is ended,
otherwise it goes on to the end of the extension. So a server that needs longer to warm up is never left without load in between.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from weir.model.load import Load, constant_from_s
from weir.model.records import Interval
from weir.model.window import Segment, Window

FEWEST_POINTS = 30
"""Fewer intervals say nothing about a steady state (as in `stats.steady`, which is only loaded where it is needed)."""
_MOST_POINTS = 60
"""Intervals are put together to at least so many points, 100 to 500 ms each in windows of up to 30 s: finer ones are mostly noise."""


def may_be_judged(load: Load, duration_s: float, interval_s: float) -> bool:
    """Whether a load has a steady state to look for: it is the same all the time, but for a ramp, and has enough intervals."""
    from_s = constant_from_s(load)
    return from_s is not None and round((duration_s - from_s) / interval_s) >= FEWEST_POINTS


def window_of(intervals: Sequence[Interval], *, asked_s: float, level_from_s: float = 0.0) -> Window:
    """The part of a load that counts.

    Args:
        intervals: all of it, in order.
        asked_s: how long the study asked for; what goes on beyond a tenth more is an extension.
        level_from_s: since when the load is the same all the time: what came before does not count.
    """
    end_s = intervals[-1].end_s if intervals else 0.0
    points = _points([one for one in intervals if one.start_s >= level_from_s - 1e-6])
    if len(points) < FEWEST_POINTS:
        return whole(end_s, f"{len(points)} intervals, and at least {FEWEST_POINTS} show a steady state")
    # scipy and ruptures take most of a second to load, and most commands never look for a steady state.
    from weir.stats.steady import LEAST_SHARE, TOLERANCE, steady_part

    latencies = [point.p50_us for point in points if point.p50_us is not None]
    rates = [point.throughput_rps for point in points]
    found = steady_part([rates, latencies] if len(latencies) == len(points) else [rates])
    segments = tuple(_segment(points[low:high]) for low, high in pairwise([0, *found.changes, len(points)]))
    extended = end_s > asked_s * 1.1
    start_s = points[found.begin].start_s
    if found.is_steady:
        changed = f"the last change of level was at {start_s:.1f} s" if found.changes else "no change of level"
        return Window(start_s, end_s, True, changed, extended, segments)
    drift = found.drift
    if found.drifts and drift is not None:
        why = f"the last level, from {start_s:.1f} s on, drifts by {drift.value * 100:+.1f} %, more than {TOLERANCE:.0%}"
    else:
        why = (
            f"the last level begins at {start_s:.1f} s of {end_s:.1f} s and lasts for {found.share:.0%} of it, less than {LEAST_SHARE:.0%}"
        )
    # What follows no rule is not cut by one: without a steady state all of the level counts, and the verdict says so.
    return Window(points[0].start_s if level_from_s else 0.0, end_s, False, why, extended, segments)


def whole(end_s: float, why: str) -> Window:
    """All of a load, of which nothing is known."""
    return Window(0.0, end_s, None, why)


class SteadyWatch:
    """Looks once, when the study's window is over, and ends the load if it has been steady.

    Args:
        asked_s: the study's window; None: nobody looks, and the load ends by itself.
        end_load: ends the load.
        level_from_s: since when the load is the same all the time.
    """

    def __init__(self, asked_s: float | None, end_load: Callable[[], None], level_from_s: float = 0.0) -> None:
        self._asked_s = asked_s
        self._level_from_s = level_from_s
        self._end_load = end_load
        self._looked = asked_s is None
        self.has_ended_load = False
        self.intervals: list[Interval] = []

    def take(self, interval: Interval) -> None:
        """The next interval of the load; on the reader's thread, which has the lowest priority there is."""
        self.intervals.append(interval)
        if self._looked or self._asked_s is None or interval.end_s < self._asked_s - 1e-6:
            return
        self._looked = True
        if window_of(self.intervals, asked_s=self._asked_s, level_from_s=self._level_from_s).steady is not False:
            self.has_ended_load = True
            self._end_load()


@dataclass(frozen=True, slots=True)
class _Point:
    start_s: float
    end_s: float
    completed: int
    p50_us: float | None

    @property
    def throughput_rps(self) -> float:
        return self.completed / (self.end_s - self.start_s)


def _points(intervals: Sequence[Interval]) -> list[_Point]:
    """Intervals, some put together; a last one that is shorter than half of the others says too little and is left out."""
    longest = max((one.end_s - one.start_s for one in intervals), default=0.0)
    full = [one for one in intervals if one.end_s - one.start_s > longest / 2]
    together = max(1, len(full) // _MOST_POINTS)
    points = [_point(full[at : at + together]) for at in range(0, len(full), together)]
    if len(full) % together:
        # The rest is fewer intervals than the others: it belongs to the last of them.
        points[-2:] = [_point(full[(len(points) - 2) * together :])]
    return points


def _point(part: Sequence[Interval]) -> _Point:
    answered = [one for one in part if one.completed and one.response_time_us.p50 is not None]
    completed = sum(one.completed for one in answered)
    weighted = sum((one.response_time_us.p50 or 0.0) * one.completed for one in answered)
    return _Point(part[0].start_s, part[-1].end_s, completed, weighted / completed if completed else None)


def _segment(points: Sequence[_Point]) -> Segment:
    completed = sum(point.completed for point in points)
    p50_us = sum((point.p50_us or 0.0) * point.completed for point in points) / completed if completed else None
    start_s, end_s = points[0].start_s, points[-1].end_s
    return Segment(round(start_s, 3), round(end_s, 3), completed / (end_s - start_s), p50_us)
