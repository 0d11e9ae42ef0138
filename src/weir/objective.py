"""What is asked of a load: `p99<50ms`, `errors<0.1%`, `throughput>1000`; parsed, and held against what was found.

Pure: values in, values out. The counting rule of a time below a limit L at quantile q is that of capacity under an objective: it holds when

    (late + failed + unsent + unanswered older than L) ÷ intended <= 1 - q,

so that a server cannot meet it by not answering. What was found is the smallest time of which that holds. A wrong answer that was also late
counts twice, since the histogram of response times holds all whole answers; where nothing failed the rule is exact.
"""

import math
import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from weir.model import histogram
from weir.model.errors import UsageError
from weir.model.records import Interval, LoadEnd

Unit = Literal["us", "fraction", "count", "rps"]
Times = Mapping[int, int]
"""Samples by time in nanoseconds, as a histogram's buckets have them."""

_EXAMPLES = "'p99<50ms', 'errors<0.1%' or 'throughput>1000'"
_METRICS = "p50, p99.9 and the like, mean, max, errors, unanswered, unsent or throughput"
_US = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_SHARES = ("errors", "unanswered", "unsent")


@dataclass(frozen=True, slots=True)
class Condition:
    """A figure of a load compared with a limit."""

    text: str
    """As it was asked for."""
    metric: str
    comparison: Literal["<", "<=", ">", ">="]
    limit: float
    unit: Unit

    @property
    def quantile(self) -> float | None:
        """The probability of `p99` and of `max`; None of what is no quantile."""
        if self.metric == "max":
            return 1.0
        return float(self.metric[1:]) / 100 if re.fullmatch(r"p[\d.]+", self.metric) else None

    def holds(self, value: float) -> bool:
        """Whether the comparison is true of `value`."""
        match self.comparison:
            case "<":
                return value < self.limit
            case "<=":
                return value <= self.limit
            case ">":
                return value > self.limit
            case ">=":
                return value >= self.limit


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition and what was found: None where there is no such figure, as nothing was measured or too much has no time at all."""

    condition: Condition
    found: float | None
    met: bool

    def to_json(self) -> dict[str, Any]:
        """As `weir load --json` writes it."""
        condition = self.condition
        return {
            "objective": condition.text, "metric": condition.metric, "comparison": condition.comparison,
            "limit": condition.limit, "unit": condition.unit, "found": self.found, "met": self.met,
        }  # fmt: skip


def judged_from_json(value: Mapping[str, Any]) -> Judged:
    """The inverse of `Judged.to_json`."""
    condition = Condition(value["objective"], value["metric"], value["comparison"], value["limit"], value["unit"])
    return Judged(condition, value["found"], value["met"])


def objective(text: str) -> Condition:
    """What `--objective` asks for: times and shares below a limit, throughput above one.

    >>> objective("p99 < 50ms").limit, objective("errors<=0.1%").limit
    (50000.0, 0.001)

    Raises:
        UsageError: it is none.
    """
    return _parse(text, "--objective", wanted=True)


def abort_condition(text: str) -> Condition:
    """What `--abort-on` asks for, the other way round: times and errors above a limit, throughput below one.

    Raises:
        UsageError: it is none.
    """
    condition = _parse(text, "--abort-on", wanted=False)
    if condition.metric in ("unanswered", "unsent"):
        raise UsageError(f"--abort-on: found {text!r}; what is {condition.metric} is known at the end only", hint="--abort-on 'errors>5%'")
    return condition


def judge(condition: Condition, end: LoadEnd) -> Judged:
    """Holds an objective against a whole load."""
    summary = end.summary
    requests = summary.requests
    found: float | None
    if requests.intended == 0:
        return Judged(condition, None, False)
    if condition.quantile is not None:
        found = _quantile(
            condition.quantile,
            times=_times(end.histograms["response_time_ns"]),
            ages=_times(end.histograms["unanswered_age_ns"]),
            timeless=requests.failed - summary.errors.check + requests.unsent,
            wrong=summary.errors.check,
            intended=requests.intended,
        )
    elif condition.metric == "mean":
        found = summary.response_time_us.mean
    elif condition.metric == "throughput":
        found = summary.throughput_rps
    else:
        count = {"errors": requests.failed, "unanswered": requests.unanswered, "unsent": requests.unsent}[condition.metric]
        found = count / requests.intended if condition.unit == "fraction" else float(count)
    return Judged(condition, found, found is not None and condition.holds(found))


def missed(condition: Condition, end: LoadEnd) -> int:
    """How many of the intended requests did not get a right answer in time: late, failed, unsent, or unanswered for longer than that.

    Args:
        condition: about a percentile of response times, such as `p99<=50ms`.
        end: the load.
    """
    requests = end.summary.requests
    times = [*_times(end.histograms["response_time_ns"]).items(), *_times(end.histograms["unanswered_age_ns"]).items()]
    late = sum(count for time, count in times if not condition.holds(time / 1e3))
    return min(requests.intended, late + requests.failed + requests.unsent)


class AbortWatch:
    """Looks at the intervals of a load as they come, the last second together, for the first condition that is true of it."""

    SPAN_S = 1.0

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self._conditions = conditions
        self._needs_times = any(condition.quantile is not None or condition.metric == "mean" for condition in conditions)
        self._window: deque[tuple[Interval, Times]] = deque()

    def take(self, interval: Interval) -> Judged | None:
        """The condition that is true now, if one is. False before a whole second has passed."""
        self._window.append((interval, _times(interval.histogram) if self._needs_times else {}))
        while interval.end_s - self._window[0][0].end_s >= self.SPAN_S - 1e-6:
            self._window.popleft()
        span_s = interval.end_s - self._window[0][0].start_s
        if span_s < self.SPAN_S - 1e-6:
            return None
        for condition in self._conditions:
            found = self._found(condition, span_s)
            if found is not None and condition.holds(found):
                return Judged(condition, found if math.isfinite(found) else None, True)
        return None

    def _found(self, condition: Condition, span_s: float) -> float | None:
        intervals = [interval for interval, _ in self._window]
        failed = sum(interval.failed for interval in intervals)
        ended = sum(interval.ok for interval in intervals) + failed
        if condition.metric == "throughput":
            return sum(interval.completed for interval in intervals) / span_s
        if condition.metric == "errors":
            if condition.unit == "count":
                return float(failed)
            return failed / ended if ended else None
        times: Counter[int] = Counter()
        for _, part in self._window:
            times.update(part)
        samples = sum(times.values())
        oldest_us = intervals[-1].oldest_age_us
        if not samples:
            # Nobody is answered: the time is at least that of the one who waits longest.
            return oldest_us or None
        if condition.metric == "mean":
            return sum(time * count for time, count in times.items()) / samples / 1e3
        wrong = sum(interval.errors.check for interval in intervals)
        found = _quantile(condition.quantile or 1.0, times=times, ages={}, timeless=failed - wrong, wrong=wrong, intended=ended)
        return math.inf if found is None else found


def _quantile(q: float, *, times: Times, ages: Times, timeless: int, wrong: int, intended: int) -> float | None:
    """The smallest time in µs beyond which at most the share 1 - q of `intended` lies; None where no time is long enough."""
    # In parts per billion, so that 1 % of 100 is 1 and not 1.0000000000000009.
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
    return histogram.recorded_in(histogram.bytes_of_text(encoded))


def _parse(text: str, flag: str, *, wanted: bool) -> Condition:
    match = re.fullmatch(r"\s*([a-z][\w.]*)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*([a-zµ%]*)\s*", text)
    if match is None:
        raise UsageError(f"{flag}: found {text!r}, expected a figure, a comparison and a limit: {_EXAMPLES}")
    metric, comparison, number, unit = match.groups()
    limit = float(number)
    quantile = re.fullmatch(r"p(\d+(?:\.\d+)?)", metric)
    if quantile is not None and not 0 < float(quantile.group(1)) < 100:
        raise UsageError(f"{flag}: found {text!r}; a percentile lies between 0 and 100")
    if quantile is None and metric not in ("mean", "max", "throughput", *_SHARES):
        raise UsageError(f"{flag}: found {text!r}, expected {_METRICS} in place of {metric!r}")
    is_upper = (metric != "throughput") == wanted
    if comparison[0] != ("<" if is_upper else ">"):
        raise UsageError(f"{flag}: found {text!r}, expected {'< or <=' if is_upper else '> or >='} after {metric}")
    kind: Unit
    units: tuple[str, ...]
    if metric == "throughput":
        kind, units = "rps", ("",)
    elif metric in _SHARES:
        kind, units = ("fraction" if unit == "%" else "count"), ("", "%")
    else:
        kind, units = "us", tuple(_US)
    if unit not in units:
        expected = ", ".join(unit for unit in units if unit)
        raise UsageError(f"{flag}: found {text!r}, expected {f'one of the units {expected}' if expected else 'no unit'} after {number}")
    scale = _US[unit] if kind == "us" else 0.01 if unit == "%" else 1.0
    # Rounded, so that 0.1 % is 0.001.
    return Condition(text.strip(), metric, comparison, round(limit * scale, 12), kind)  # type: ignore[arg-type]
