"""Formats values of metrics as text, with the usual unit and a useful number of digits."""

import math
from dataclasses import dataclass

from weir.findings import metrics
from weir.findings.formatting import significant
from weir.findings.point_types import Measure, ObjectiveResult

TABLE_METRICS = (metrics.THROUGHPUT, metrics.P50, metrics.P99, metrics.CPU, metrics.MEMORY, metrics.READY)
"""The metrics in the table of a point, a column for each."""
GENERATOR_METRICS = (
    metrics.THROUGHPUT,
    metrics.REPORTED_P50,
    metrics.KERNEL_P50,
    metrics.REPORTED_P99,
    metrics.KERNEL_P99,
    metrics.GENERATOR_CPU,
    metrics.GENERATOR_MEMORY,
)
"""The metrics in the table that compares generators."""

_DISPLAY = {"req/s": ("req/s", 1.0, 4), "µs": ("ms", 1e-3, 3), "bytes": ("MB", 1e-6, 3), "s": ("s", 1.0, 3)}
MOST_DECIMALS = 3
"""Maximum number of decimals. More decimals of milliseconds or seconds are useless."""
_CPU = ("µs", 1.0, 3)


@dataclass(frozen=True, slots=True)
class Display:
    """The printed unit of a metric, the factor to that unit, and the number of significant digits."""

    unit: str
    scale: float
    digits: int

    def text(self, value: float, *, like: float | None = None) -> str:
        """Returns `value` (in the metric's own unit) as text without unit. With `like`, uses the decimals of `like`."""
        scaled = value * self.scale
        # Rates of 1,000 req/s or more keep all digits before the decimal point.
        if self.unit == "req/s" and abs(like * self.scale if like is not None else scaled) >= 1000:
            return f"{scaled:,.0f}"
        size = abs(like * self.scale if like else scaled)
        decimals = self.digits - 1 - math.floor(math.log10(size)) if size > 0 else 0
        return f"{round(scaled, decimals):,.{min(MOST_DECIMALS, max(0, decimals))}f}"


def display(metric: str) -> Display:
    """Returns the unit, the scale and the digits for the text of `metric`."""
    return Display(*(_CPU if metric in (metrics.CPU, metrics.GENERATOR_CPU) else _DISPLAY[metrics.UNITS[metric]]))


def value_text(measure: Measure, *, unit: bool = False) -> str:
    """Returns the value of `measure` as text, with the unit if `unit` is true. A missing value becomes a dash."""
    if measure.value is None:
        return "–"
    shown = display(measure.metric)
    return f"{shown.text(measure.value)} {shown.unit}" if unit else shown.text(measure.value)


def interval_text(measure: Measure) -> str:
    """Returns an interval such as '9,577–10,304'; empty without an interval. A lower end below 0 becomes 0."""
    if measure.low is None or measure.high is None:
        return ""
    shown = display(measure.metric)
    return f"{shown.text(max(0.0, measure.low), like=measure.value)}–{shown.text(measure.high, like=measure.value)}"


def size_text(size_bytes: int | None) -> str:
    """Returns the size of a file or folder in MB, such as '19.5'. An unknown size becomes a dash."""
    return "–" if size_bytes is None else Display(*_DISPLAY["bytes"]).text(size_bytes)


def size_ratio_text(ratio: float | None) -> str:
    """Returns a size as a multiple of the baseline's size, such as '1.85×'. An unknown ratio becomes a dash."""
    return "–" if ratio is None else f"{significant(ratio)}×"


def found_text(held: ObjectiveResult) -> str:
    """Returns the measured value for an objective, with its unit, such as '43.1 ms' or '0.2 %'."""
    if held.found is None:
        return "not measured"
    match held.unit:
        case "us":
            return f"{significant(held.found / 1e3)} ms"
        case "fraction":
            return f"{significant(held.found * 100)} %"
        case "rps":
            return f"{held.found:,.0f} req/s"
    return f"{held.found:,.0f}"
