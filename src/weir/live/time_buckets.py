"""Computes the points of the live charts: at most `MOST_POINTS` slices of a load's time. Pure. In a longer load, weir
merges neighbouring slices in pairs. The histograms of a pair are added up, so that percentiles stay correct."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weir.model.hdr import Hdr
from weir.model.load_records import LIVE_PERCENTILES, Interval

MOST_POINTS = 600
SHORTEST_SLICE_S = 0.5
"""Minimum length of a slice. The kernel counts CPU time in ticks of 10 ms: one tick is 2 % of such a slice."""
_NOW_S = 1.0
_SHARES = {f"{name}_ms": share for name, share in LIVE_PERCENTILES.items()}


@dataclass(slots=True)
class Slice:
    """The sums and maxima of the records in one slice of time."""

    covered_s: float = 0.0
    completed: int = 0
    failed: int = 0
    in_flight: int = 0
    """Maximum number of requests in flight at the ends of intervals. `queued` is the same for queued requests."""
    queued: int = 0
    longest_us: float = 0.0
    times: Hdr = field(default_factory=Hdr)
    """Response times with a precision of 1 %, to save memory: a page has hundreds of slices."""
    cpu: dict[str, tuple[float, float]] = field(default_factory=dict)
    """A dict from tier to the used CPU seconds and the measured seconds."""

    def add(self, other: "Slice") -> None:
        self.covered_s += other.covered_s
        self.completed += other.completed
        self.failed += other.failed
        self.in_flight = max(self.in_flight, other.in_flight)
        self.queued = max(self.queued, other.queued)
        self.longest_us = max(self.longest_us, other.longest_us)
        self.times.merge(other.times)
        for tier, (used_s, within_s) in other.cpu.items():
            before = self.cpu.get(tier, (0.0, 0.0))
            self.cpu[tier] = (before[0] + used_s, before[1] + within_s)

    def rate(self, count: int) -> float | None:
        """Returns `count` per second; None if the slice covers no time."""
        return _rounded(count / self.covered_s) if self.covered_s > 0 else None

    def percentiles(self) -> dict[str, float | None]:
        """Returns `p50_ms`, `p90_ms` and `p99_ms`, each None if the slice has no responses."""
        if not self.times.counts:
            return dict.fromkeys(_SHARES)
        found = zip(_SHARES, self.times.quantiles(_SHARES.values()), strict=True)
        return {name: _rounded(min(value / 1e6, self.longest_us / 1e3)) for name, value in found}


class Points:
    """At most `most` slices of one load. The last slice is incomplete. A slice lasts `shortest_s`, or one interval if
    intervals are longer. If there are too many slices, this class merges them in pairs."""

    def __init__(self, most: int = MOST_POINTS, shortest_s: float = SHORTEST_SLICE_S) -> None:
        self._most = most
        self.step_s = shortest_s
        self._slices: list[Slice] = []
        self._changed = 0
        """The index of the first slice that has changed since the last call of `changes`."""

    def take_interval(self, interval: Interval) -> None:
        length_s = interval.end_s - interval.start_s
        if not self._slices:
            self.step_s = max(self.step_s, round(length_s, 3))
        times, longest_us = Hdr.from_text(interval.histogram).coarsen(), interval.response_time_us.max or 0.0
        part = Slice(
            length_s, interval.completed, interval.failed, interval.in_flight, interval.queued, longest_us, times
        )
        self._add((interval.start_s + interval.end_s) / 2, part)

    def take_cpu(self, from_s: float, to_s: float, used_s: Mapping[str, float]) -> None:
        """Adds the CPU seconds that each tier used (`used_s`) between two readings at `from_s` and `to_s`."""
        if to_s > from_s >= 0:
            cpu = {tier: (max(used, 0.0), to_s - from_s) for tier, used in used_s.items()}
            self._add((from_s + to_s) / 2, Slice(cpu=cpu))

    def now(self) -> Slice:
        """Returns the sum of the slices that cover the last second."""
        recent = Slice()
        for one in reversed(self._slices):
            recent.add(one)
            if recent.covered_s >= _NOW_S - 1e-6:
                break
        return recent

    def columns(self, first: int = 0) -> dict[str, Any]:
        """Returns the charts' points from slice `first` to the last slice. `tiers` has the used CPUs by tier."""
        shown = self._slices[first:]
        times = [_rounded((first + at + 0.5) * self.step_s) for at in range(len(shown))]
        percentiles = [one.percentiles() for one in shown]
        tiers = sorted({tier for one in self._slices for tier in one.cpu})
        return {
            "first": first,
            "step_s": self.step_s,
            "time_s": times,
            "rate_rps": [one.rate(one.completed) for one in shown],
            "failed_rps": [one.rate(one.failed) for one in shown],
            "in_flight": [one.in_flight if one.covered_s > 0 else None for one in shown],
            "queued": [one.queued if one.covered_s > 0 else None for one in shown],
            **{name: [found[name] for found in percentiles] for name in _SHARES},
            "tiers": {tier: [_cpus(one, tier) for one in shown] for tier in tiers},
        }

    def changes(self) -> dict[str, Any]:
        """Returns the points of the first slice that changed since the last call, and of all later slices."""
        first, self._changed = self._changed, max(0, len(self._slices) - 1)
        return self.columns(min(first, len(self._slices)))

    def _add(self, at_s: float, part: Slice) -> None:
        while (at := int(at_s / self.step_s)) >= self._most:
            self._coarsen()
        self._slices += [Slice() for _ in range(at + 1 - len(self._slices))]
        self._slices[at].add(part)
        self._changed = min(self._changed, at)

    def _coarsen(self) -> None:
        self.step_s *= 2
        for one, other in zip(self._slices[::2], self._slices[1::2], strict=False):
            one.add(other)
        del self._slices[1::2]
        self._changed = 0


def _cpus(one: Slice, tier: str) -> float | None:
    used_s, within_s = one.cpu.get(tier, (0.0, 0.0))
    return _rounded(used_s / within_s) if within_s > 0 else None


def _rounded(value: float) -> float:
    """Rounds to four significant digits, enough for a chart."""
    return float(f"{value:.4g}")
