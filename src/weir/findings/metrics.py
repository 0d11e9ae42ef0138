"""What is compared: each metric with its unit, how one trial gives it, and how a comparison on it reads.

A metric's key is that of the JSON of one load where it comes from there (`response_time_us.p99`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

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
SAID_P50 = "said_time_us.p50"
SAID_P99 = "said_time_us.p99"
KERNEL_P50 = "kernel_time_us.p50"
KERNEL_P99 = "kernel_time_us.p99"
GENERATOR_CPU = "generator_cpu_us_per_request"
GENERATOR_MEMORY = "generator_rss_bytes"


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


def _said(name: str) -> Callable[[Trial], float | None]:
    """What the generator says, however few requests it rests on: what it says is the question."""

    def of(trial: Trial) -> float | None:
        summary = trial.result.summary
        value: float | None = None if summary is None else getattr(summary.response_time_us, name)
        return value

    return of


def _kernel(name: str) -> Callable[[Trial], float | None]:
    def of(trial: Trial) -> float | None:
        tap = trial.result.tap
        value: float | None = None if tap is None else getattr(tap.response_time_us, name)
        return value

    return of


def _generator_cpu(trial: Trial) -> float | None:
    summary = trial.result.summary
    if summary is None or summary.requests.completed == 0:
        return None
    use = summary.generator
    # Fractions are of the CPU time that its threads could have had.
    parallel = min(use.threads, len(use.cpus)) if use.cpus else use.threads
    return use.cpu_fraction * max(1, parallel) * summary.duration_s / summary.requests.completed * 1e6 or None


def _generator_memory(trial: Trial) -> float | None:
    summary = trial.result.summary
    return float(summary.generator.peak_rss_bytes) or None if summary is not None else None


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
GENERATOR_METRICS = (
    replace(BY_KEY[THROUGHPUT], phrase="gets {ratio}× as many answers per second as"),
    Metric(SAID_P50, "median as it says", "µs", False, "says {ratio}× as long for the median answer as", _said("p50"), 0.5),
    Metric(SAID_P99, "p99 as it says", "µs", False, "says {ratio}× as long for the 99th percentile as", _said("p99"), 0.99),
    Metric(KERNEL_P50, "median as the kernel saw it", "µs", False, "waits {ratio}× as long for the median answer as", _kernel("p50"), 0.5),
    Metric(KERNEL_P99, "p99 as the kernel saw it", "µs", False, "waits {ratio}× as long at the 99th percentile as", _kernel("p99"), 0.99),
    Metric(GENERATOR_CPU, "its own CPU time per request", "µs", False, "takes {ratio}× the CPU per request of", _generator_cpu),
    Metric(GENERATOR_MEMORY, "its own memory", "bytes", False, "holds {ratio}× the memory of", _generator_memory),
)
"""What generators are compared on that loaded the same server: what they got, what they say of it, and what they took."""
UNITS = {metric.key: metric.unit for metric in (*METRICS, *GENERATOR_METRICS)}
