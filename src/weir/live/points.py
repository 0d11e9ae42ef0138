"""The points of the charts: slices of a load's time, of which there are never more than `MOST_POINTS`.

When a load outgrows them, two neighbours become one: its histograms are added up, so that a percentile stays one. Pure.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from weir.model import histogram
from weir.model.records import Interval

MOST_POINTS = 600
SHORTEST_SLICE_S = 0.5
"""A process's CPU is counted in ticks of 10 ms: in a shorter slice one of them is a jump of more than 2 %."""
_NOW_S = 1.0
_COARSER = 8
"""Buckets of a histogram that are kept as one: to 1 %, which is finer than anybody can read while it moves."""
_SHARES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}


@dataclass(slots=True)
class Slice:
    """What happened within a stretch of time."""

    covered_s: float = 0.0
    """How much of it is known."""
    completed: int = 0
    failed: int = 0
    in_flight: int = 0
    """The most at the end of an interval."""
    queued: int = 0
    """The same."""
    longest_us: float = 0.0
    counts: dict[int, int] = field(default_factory=dict)
    """Answers by bucket of their response time."""
    cpu: dict[str, tuple[float, float]] = field(default_factory=dict)
    """CPU seconds, and the seconds in which they were used, by tier."""

    def add(self, other: "Slice") -> None:
        """Adds what happened in another one."""
        self.covered_s += other.covered_s
        self.completed += other.completed
        self.failed += other.failed
        self.in_flight = max(self.in_flight, other.in_flight)
        self.queued = max(self.queued, other.queued)
        self.longest_us = max(self.longest_us, other.longest_us)
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        for tier, (used_s, within_s) in other.cpu.items():
            before = self.cpu.get(tier, (0.0, 0.0))
            self.cpu[tier] = (before[0] + used_s, before[1] + within_s)

    def rate(self, count: int) -> float | None:
        """So many, per second; None where nothing is known."""
        return _rounded(count / self.covered_s) if self.covered_s > 0 else None

    def percentiles(self) -> dict[str, float | None]:
        """`p50_ms`, `p90_ms` and `p99_ms`: the smallest time within which that share of the answers came."""
        buckets = sorted(self.counts)
        up_to = list(accumulate(self.counts[bucket] for bucket in buckets))
        if not up_to:
            return dict.fromkeys(_SHARES)
        found = [buckets[bisect_left(up_to, share * up_to[-1] - 1e-9)] for share in _SHARES.values()]
        highest_us = [histogram.highest_at(bucket * _COARSER + _COARSER - 1) / 1e3 for bucket in found]
        return {name: _rounded(min(value, self.longest_us) / 1e3) for name, value in zip(_SHARES, highest_us, strict=True)}


class Points:
    """The slices of one load, from its start. The last one is still growing.

    Args:
        most: of slices.
        shortest_s: how long one is at first; an interval that is longer makes it as long as itself.
    """

    def __init__(self, most: int = MOST_POINTS, shortest_s: float = SHORTEST_SLICE_S) -> None:
        self._most = most
        self.step_s = shortest_s
        self._slices: list[Slice] = []
        self._changed = 0
        """The first slice that has changed since `changes` was asked."""

    def __len__(self) -> int:
        return len(self._slices)

    def take_interval(self, interval: Interval) -> None:
        """Adds what the generator saw."""
        length_s = interval.end_s - interval.start_s
        if not self._slices:
            self.step_s = max(self.step_s, round(length_s, 3))
        part = Slice(
            covered_s=length_s,
            completed=interval.completed,
            failed=interval.failed,
            in_flight=interval.in_flight,
            queued=interval.queued,
            longest_us=interval.response_time_us.max or 0.0,
        )
        for bucket, count in histogram.counts_in(histogram.bytes_of_text(interval.histogram)).items():
            part.counts[bucket // _COARSER] = part.counts.get(bucket // _COARSER, 0) + count
        self._add((interval.start_s + interval.end_s) / 2, part)

    def take_cpu(self, from_s: float, to_s: float, used_s: Mapping[str, float]) -> None:
        """Adds the CPU time of each tier between two readings."""
        if to_s > from_s >= 0:
            within_s = to_s - from_s
            self._add((from_s + to_s) / 2, Slice(cpu={tier: (max(used, 0.0), within_s) for tier, used in used_s.items()}))

    def now(self) -> Slice:
        """The last second or so."""
        recent = Slice()
        for one in reversed(self._slices):
            recent.add(one)
            if recent.covered_s >= _NOW_S - 1e-6:
                break
        return recent

    def columns(self, first: int = 0) -> dict[str, Any]:
        """The points from one on, as the page's charts take them: `first`, `step_s`, the lines by name, and `tiers` with a line each."""
        shown = self._slices[first:]
        times = [_rounded((first + at + 0.5) * self.step_s) for at in range(len(shown))]
        percentiles = [one.percentiles() for one in shown]
        return {
            "first": first,
            "step_s": self.step_s,
            "time_s": times,
            "rate_rps": [one.rate(one.completed) for one in shown],
            "failed_rps": [one.rate(one.failed) for one in shown],
            "in_flight": [one.in_flight if one.covered_s > 0 else None for one in shown],
            "queued": [one.queued if one.covered_s > 0 else None for one in shown],
            **{name: [found[name] for found in percentiles] for name in _SHARES},
            "tiers": {tier: [_cpus(one, tier) for one in shown] for tier in self._tiers()},
        }

    def changes(self) -> dict[str, Any]:
        """The points that have changed since this was last asked: from the first of them on."""
        first, self._changed = self._changed, max(0, len(self._slices) - 1)
        return self.columns(min(first, len(self._slices)))

    def _tiers(self) -> Sequence[str]:
        return sorted({tier for one in self._slices for tier in one.cpu})

    def _add(self, at_s: float, part: Slice) -> None:
        at = int(at_s / self.step_s)
        while at >= self._most:
            self._coarsen()
            at = int(at_s / self.step_s)
        while len(self._slices) <= at:
            self._slices.append(Slice())
        self._slices[at].add(part)
        self._changed = min(self._changed, at)

    def _coarsen(self) -> None:
        """Two neighbours become one."""
        self.step_s *= 2
        for one, other in zip(self._slices[::2], self._slices[1::2], strict=False):
            one.add(other)
        del self._slices[1::2]
        self._changed = 0


def _cpus(one: Slice, tier: str) -> float | None:
    used_s, within_s = one.cpu.get(tier, (0.0, 0.0))
    return _rounded(used_s / within_s) if within_s > 0 else None


def _rounded(value: float) -> float:
    """Four significant digits are more than a chart can show."""
    return float(f"{value:.4g}")
