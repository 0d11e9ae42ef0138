"""What is compared: each metric with its unit, how one trial gives it, and how a comparison on it reads.

A metric's key is that of the JSON of one load where it comes from there (`response_time_us.p99`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from weir import stats
from weir.model.run import Trial

THROUGHPUT = "throughput_rps"
MEAN = "response_time_us.mean"
P50 = "response_time_us.p50"
P90 = "response_time_us.p90"
P99 = "response_time_us.p99"
P99_9 = "response_time_us.p99_9"
CPU = "cpu_us_per_request"
MEMORY = "pss_bytes"
READY = "ready_s"


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that stacks are compared on."""

    key: str
    title: str
    unit: str
    higher_is_better: bool
    phrase: str
    """'Sanic' + phrase + 'Flask', with {ratio} in it."""
    of: Callable[[Trial], float | None]
    """One trial's value, None where the trial cannot give it."""
    quantile: float | None = None
    """For response-time quantiles: over several trials they come from the merged histogram."""


def _throughput(trial: Trial) -> float | None:
    """Right answers a second: in a trial that counts in spite of failures, fast refusals are no throughput."""
    summary = trial.result.summary
    if summary is None:
        return None
    return summary.requests.ok / summary.duration_s if summary.requests.failed and summary.duration_s else summary.throughput_rps


def _mean(trial: Trial) -> float | None:
    summary = trial.result.summary
    return summary.response_time_us.mean if summary is not None and summary.requests.completed else None


def _quantile(name: str, probability: float) -> Callable[[Trial], float | None]:
    def of(trial: Trial) -> float | None:
        summary = trial.result.summary
        if summary is None or not stats.is_supported(summary.requests.completed, probability):
            return None
        value: float | None = getattr(summary.response_time_us, name)
        return value

    return of


def _cpu(trial: Trial) -> float | None:
    summary, resources = trial.result.summary, trial.result.resources
    if summary is None or resources is None or summary.requests.completed == 0:
        return None
    return resources.cpu_s / summary.requests.completed * 1e6


def _memory(trial: Trial) -> float | None:
    resources = trial.result.resources
    return float(resources.pss_bytes) if resources and resources.pss_bytes is not None else None


METRICS = (
    Metric(THROUGHPUT, "throughput", "req/s", True, "answers {ratio}× as many requests per second as", _throughput),
    Metric(MEAN, "mean response time", "µs", False, "takes {ratio}× as long on average as", _mean),
    Metric(P50, "median response time", "µs", False, "takes {ratio}× as long for the median response as", _quantile("p50", 0.5), 0.5),
    Metric(P90, "p90 response time", "µs", False, "takes {ratio}× as long at the 90th percentile as", _quantile("p90", 0.9), 0.9),
    Metric(P99, "p99 response time", "µs", False, "takes {ratio}× as long at the 99th percentile as", _quantile("p99", 0.99), 0.99),
    Metric(
        P99_9, "p99.9 response time", "µs", False, "takes {ratio}× as long at the 99.9th percentile as", _quantile("p99_9", 0.999), 0.999
    ),
    Metric(CPU, "CPU time per request", "µs", False, "needs {ratio}× the CPU per request of", _cpu),
    Metric(MEMORY, "memory", "bytes", False, "holds {ratio}× the memory of", _memory),
    Metric(READY, "start-up time", "s", False, "takes {ratio}× as long to its first right answer as", lambda trial: trial.result.ready_s),
)
BY_KEY = {metric.key: metric for metric in METRICS}
