"""Conditions of `weir compare --fail-if`, on the ratio of a side to the first side."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weir.cli.output import say
from weir.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from weir.findings import RunFindings

P99 = "response_time_us.p99"
_METRICS = {
    "throughput": "throughput_rps", "p50": "response_time_us.p50", "p99": P99,
    "cpu": "cpu_us_per_request", "memory": "pss_bytes", "start": "ready_s",
}  # fmt: skip
"""A dict from the name of each metric in a condition to the metric's key in findings."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a side's ratio to the first side. The comparison fails if the condition is true."""

    text: str
    metric: str
    is_below: bool
    bound: float


def read_condition(text: str) -> Condition:
    """Returns the condition in a value of `--fail-if`. Raises UsageError if the text has another form."""
    match = re.fullmatch(r"\s*(\w+)\s*([<>])\s*(\d+(?:\.\d+)?)\s*", text)
    if match is None or match[1] not in _METRICS:
        found = f"--fail-if: found {text!r}, expected a metric, < or >, and a ratio, such as 'throughput<0.95'"
        raise UsageError(found, hint=f"use one of these metrics: {', '.join(_METRICS)}")
    return Condition(text.strip(), _METRICS[match[1]], match[2] == "<", float(match[3]))


def judge_conditions(findings: "RunFindings", conditions: Sequence[Condition]) -> ExitCode:
    """Prints for each side whether each condition is true. Returns the exit code."""
    from weir.findings.formatting import ratio_text
    from weir.findings.metrics import BY_KEY
    from weir.stats import SAMPLES_BEYOND

    codes = []
    compared = findings.points[0].comparisons if findings.points else ()
    for condition, found in itertools.product(conditions, compared):
        if found.metric != condition.metric:
            continue
        value = "not measured"
        if found.ratio is not None:
            ratio, interval = ratio_text(found.ratio, found.low, found.high)
            value = f"{ratio} ({interval or 'no interval'})"
        elif quantile := BY_KEY[found.metric].quantile:
            value += f", because a trial needs {SAMPLES_BEYOND / (1 - quantile):,.0f} requests: use a longer --duration"
        if found.low is None or found.high is None or found.low <= condition.bound <= found.high:
            verdict, code = "inconclusive", ExitCode.NOT_VALID
        elif (found.high < condition.bound) == condition.is_below:
            verdict, code = "true", ExitCode.MISSED
        else:
            verdict, code = "false", ExitCode.DONE
        say(f"{condition.text}: {verdict} for {found.name}: {value}")
        codes.append(code)
    return ExitCode.MISSED if ExitCode.MISSED in codes else max(codes, default=ExitCode.DONE)
