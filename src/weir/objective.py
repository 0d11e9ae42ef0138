"""Parses objectives such as `p99<50ms`, `errors<0.1%` and `throughput>1000`, and checks whether a load meets them.

The response time at quantile q is below a limit L if

(late + failed + unsent + unanswered older than L) ÷ intended <= 1 - q.

So a server without responses cannot meet an objective. The measured value is the smallest L that meets this condition.
`weir capacity` counts requests in the same way. A wrong and late response counts twice, because the histogram of
response times holds all complete responses. The rule is exact if no request failed.
"""

import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import ge, gt, le, lt
from typing import Any, Final, Literal

from weir.model.errors import UsageError
from weir.model.hdr import Hdr
from weir.model.load_observer import LoadObserver
from weir.model.load_records import Interval, LoadEnd

Unit = Literal["us", "fraction", "count", "rps"]
Times = Mapping[int, int]
"""A dict from a bucket's time in nanoseconds to the number of requests."""

_EXAMPLES = "'p99<50ms', 'errors<0.1%' or 'throughput>1000'"
_METRICS = "a percentile such as p50 or p99.9, mean, max, errors, unanswered, unsent or throughput"
_US = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_SHARES = ("errors", "unanswered", "unsent")
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that compares a figure of a load with a limit."""

    text: str
    metric: str
    comparison: str
    """One of <, <=, > and >=."""
    limit: float
    unit: Unit

    @property
    def quantile(self) -> float | None:
        """Returns the metric's quantile: 0.99 for `p99`, 1 for `max`, None for other metrics."""
        if self.metric == "max":
            return 1.0
        return float(self.metric[1:]) / 100 if re.fullmatch(r"p[\d.]+", self.metric) else None

    def holds(self, value: float) -> bool:
        return _COMPARISONS[self.comparison](value, self.limit)


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition, its measured value, and whether the value meets the condition."""

    condition: Condition
    found: float | None
    """The measured value. None: weir measured nothing, or too many requests have no response time."""
    met: bool

    def to_json(self) -> dict[str, Any]:
        """Returns the condition and its measured value, with the keys of `weir load --json`."""
        condition = asdict(self.condition)
        return {"objective": condition.pop("text"), **condition, "found": self.found, "met": self.met}


def judged_from_json(value: Mapping[str, Any]) -> Judged:
    """Returns the `Judged` from its JSON. Inverse of `Judged.to_json`."""
    condition = Condition(value["objective"], value["metric"], value["comparison"], value["limit"], value["unit"])
    return Judged(condition, value["found"], value["met"])


def parse_objective(text: str) -> Condition:
    """Parses `--objective`: a time or share below a limit, or a throughput above a limit. Raises UsageError if invalid.

    >>> parse_objective("p99 < 50ms").limit, parse_objective("errors<=0.1%").limit
    (50000.0, 0.001)
    """
    return _parse(text, "--objective", wanted=True)


def parse_abort_condition(text: str) -> Condition:
    """Parses `--abort-on`: times or errors above a limit, throughput below a limit. Raises UsageError if invalid."""
    condition = _parse(text, "--abort-on", wanted=False)
    if condition.metric in ("unanswered", "unsent"):
        problem = f"found {text!r}, expected another metric: weir counts {condition.metric} requests only at the end"
        raise UsageError(f"--abort-on: {problem}", hint="--abort-on 'errors>5%'")
    return condition


def judge(condition: Condition, end: LoadEnd) -> Judged:
    """Returns the measured value of a condition for a whole load, and whether the load meets the condition."""
    summary, requests = end.summary, end.summary.requests
    found: float | None
    if requests.intended == 0:
        return Judged(condition, None, False)
    if condition.quantile is not None:
        wrong = summary.errors.check
        times, ages = (_times(end.histograms[name]) for name in ("response_time_ns", "unanswered_age_ns"))
        counts = {"timeless": requests.failed - wrong + requests.unsent, "wrong": wrong, "intended": requests.intended}
        found = _quantile(condition.quantile, times=times, ages=ages, **counts)
    elif condition.metric == "mean":
        found = summary.response_time_us.mean
    elif condition.metric == "throughput":
        found = summary.throughput_rps
    else:
        counts = {"errors": requests.failed, "unanswered": requests.unanswered, "unsent": requests.unsent}
        count = counts[condition.metric]
        found = count / requests.intended if condition.unit == "fraction" else float(count)
    return Judged(condition, found, found is not None and condition.holds(found))


def count_missed(condition: Condition, end: LoadEnd) -> int:
    """Counts the requests without a correct response within the limit: late, failed, unsent, or unanswered for longer
    than the limit. `condition` must limit a percentile of response times, such as `p99<=50ms`."""
    requests = end.summary.requests
    times = [*_times(end.histograms["response_time_ns"]).items(), *_times(end.histograms["unanswered_age_ns"]).items()]
    late = sum(count for time, count in times if not condition.holds(time / 1e3))
    return min(requests.intended, late + requests.failed + requests.unsent)


class AbortWatch(LoadObserver):
    """An observer of a load. Calls `end_load` once, when a condition holds over the last second."""

    def __init__(self, conditions: Sequence[Condition], end_load: Callable[[], None]) -> None:
        self._conditions = conditions
        self._end_load = end_load
        self.reason: Judged | None = None
        """The condition that ended the load, and its measured value. None: no condition has ended the load."""
        self._needs_times = any(one.quantile is not None or one.metric == "mean" for one in conditions)
        self._window: deque[tuple[Interval, Hdr]] = deque()
        self._times = Hdr()

    def on_interval(self, interval: Interval) -> None:
        if self.reason is None:
            self.reason = self._judge(interval)
            if self.reason is not None:
                self._end_load()

    def _judge(self, interval: Interval) -> Judged | None:
        """Returns the first condition that holds over the last second. None during the first second."""
        times = Hdr.from_text(interval.histogram) if self._needs_times else Hdr()
        self._window.append((interval, times))
        self._times.merge(times)
        while interval.end_s - self._window[0][0].end_s >= 1 - 1e-6:
            self._times.remove(self._window.popleft()[1])
        span_s = interval.end_s - self._window[0][0].start_s
        if span_s < 1 - 1e-6:
            return None
        for condition in self._conditions:
            found = self._measure(condition, span_s)
            if found is not None and condition.holds(found):
                return Judged(condition, found if math.isfinite(found) else None, True)
        return None

    def _measure(self, condition: Condition, span_s: float) -> float | None:
        intervals = [interval for interval, _ in self._window]
        failed = sum(interval.failed for interval in intervals)
        ended = sum(interval.ok for interval in intervals) + failed
        if condition.metric == "throughput":
            return sum(interval.completed for interval in intervals) / span_s
        if condition.metric == "errors":
            if condition.unit == "count":
                return float(failed)
            return failed / ended if ended else None
        times = self._times
        oldest_us = intervals[-1].oldest_age_us
        if not times.counts:
            # Without responses, the response time is at least the age of the oldest request.
            return oldest_us or None
        if condition.metric == "mean":
            return times.mean / 1e3
        wrong = sum(interval.errors.check for interval in intervals)
        q = condition.quantile or 1.0
        found = _quantile(q, times=times.by_value(), ages={}, timeless=failed - wrong, wrong=wrong, intended=ended)
        return math.inf if found is None else found


def _quantile(q: float, *, times: Times, ages: Times, timeless: int, wrong: int, intended: int) -> float | None:
    """Returns the response time at quantile q, in µs. None if too many requests have no response time."""
    # Computes in parts per billion, so that 1 % of 100 is exactly 1.
    allowed = intended * round((1 - q) * 1e9) // 1_000_000_000
    beyond = timeless + wrong + sum(times.values()) + sum(ages.values())
    found = 0
    for time in sorted({*times, *ages}):
        if beyond <= allowed:
            break
        beyond -= times.get(time, 0) + ages.get(time, 0)
        found = time
    return found / 1e3 if beyond <= allowed else None


def _times(encoded: str) -> Times:
    return Hdr.from_text(encoded).by_value()


def _parse(text: str, flag: str, *, wanted: bool) -> Condition:
    match = re.fullmatch(r"\s*([a-z][\w.]*)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*([a-zµ%]*)\s*", text)
    if match is None:
        raise UsageError(f"{flag}: found {text!r}, expected a metric, a comparison and a limit, such as {_EXAMPLES}")
    metric, comparison, number, unit = match.groups()
    limit = float(number)
    quantile = re.fullmatch(r"p(\d+(?:\.\d+)?)", metric)
    if quantile is not None and not 0 < float(quantile.group(1)) < 100:
        raise UsageError(f"{flag}: found {text!r}, expected a percentile between 0 and 100")
    if quantile is None and metric not in ("mean", "max", "throughput", *_SHARES):
        raise UsageError(f"{flag}: found {text!r}, expected {_METRICS} in place of {metric!r}")
    is_upper = (metric != "throughput") == wanted
    if comparison[0] != ("<" if is_upper else ">"):
        raise UsageError(f"{flag}: found {text!r}, expected {'< or <=' if is_upper else '> or >='} after {metric}")
    kind: Unit
    scales: Mapping[str, float]
    if metric == "throughput":
        kind, scales = "rps", {"": 1.0}
    elif metric in _SHARES:
        kind, scales = ("fraction" if unit == "%" else "count"), {"": 1.0, "%": 0.01}
    else:
        kind, scales = "us", _US
    if unit not in scales:
        known = ", ".join(filter(None, scales))
        expected = f"one of the units {known}" if known else "no unit"
        raise UsageError(f"{flag}: found {text!r}, expected {expected} after {number}")
    # Rounding makes 0.1 % exactly 0.001.
    return Condition(text.strip(), metric, comparison, round(limit * scales[unit], 12), kind)
