"""Defines the metrics of comparisons: unit, value in a trial, and phrase in sentences. A metric has the same key as in
the JSON of a load. Example: `response_time_us.p99`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from weir import stats
from weir.model.run_types import Trial

THROUGHPUT = "throughput_rps"
MEAN = "response_time_us.mean"
P50 = "response_time_us.p50"
P90 = "response_time_us.p90"
P99 = "response_time_us.p99"
P99_9 = "response_time_us.p99_9"
CPU = "cpu_us_per_request"
MEMORY = "pss_bytes"
READY = "ready_s"
REPORTED_P50 = "reported_time_us.p50"
REPORTED_P99 = "reported_time_us.p99"
KERNEL_P50 = "kernel_time_us.p50"
KERNEL_P99 = "kernel_time_us.p99"
GENERATOR_CPU = "generator_cpu_us_per_request"
GENERATOR_MEMORY = "generator_rss_bytes"
_ANSWERS = "answers {ratio}× as many requests per second as"
_LONG, _REPORTS, _WAITS = "takes {ratio}× as long", "reports {ratio}× as long", "waits {ratio}× as long"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric on which weir compares stacks or generators."""

    key: str
    title: str
    unit: str
    phrase: str
    """The text between two names, as in 'Sanic' + phrase + 'Flask', with the placeholder {ratio}."""
    of: Callable[[Trial], float | None]
    """A function that returns a trial's value, or None if the trial lacks the metric."""
    quantile: float | None = None
    """The quantile of a response-time metric, computed from the trials' merged histogram; None for other metrics."""
    higher_is_better: bool = False
    is_count: bool = False
    """Whether the metric counts whole requests. Such a count has a rounding error."""


def _throughput(trial: Trial) -> float | None:
    """Returns correct responses per second. Leaves out failed requests, even if the study allows failures."""
    summary = trial.result.summary
    if summary is not None and summary.requests.failed and summary.duration_s:
        return summary.requests.ok / summary.duration_s
    return None if summary is None else summary.throughput_rps


def _mean(trial: Trial) -> float | None:
    summary = trial.result.summary
    return summary.response_time_us.mean if summary is not None and summary.requests.completed else None


def _quantile(name: str, probability: float) -> Callable[[Trial], float | None]:
    def of(trial: Trial) -> float | None:
        summary = trial.result.summary
        is_supported = summary is not None and stats.is_supported(summary.requests.completed, probability)
        return _reported(name)(trial) if is_supported else None

    return of


def _cpu(trial: Trial) -> float | None:
    summary, resources = trial.result.summary, trial.result.resources
    if summary is None or resources is None or summary.requests.completed == 0:
        return None
    return resources.cpu_s / summary.requests.completed * 1e6


def _memory(trial: Trial) -> float | None:
    resources = trial.result.resources
    return float(resources.pss_bytes) if resources and resources.pss_bytes is not None else None


def _reported(name: str) -> Callable[[Trial], float | None]:
    """Returns a function that reads a response time from the load's summary, even for few requests."""
    return lambda trial: getattr(trial.result.summary.response_time_us, name) if trial.result.summary else None


def _kernel(name: str) -> Callable[[Trial], float | None]:
    return lambda trial: getattr(trial.result.tap.response_time_us, name) if trial.result.tap else None


def _generator_cpu(trial: Trial) -> float | None:
    summary = trial.result.summary
    if summary is None or summary.requests.completed == 0:
        return None
    use = summary.generator
    # `cpu_fraction` is relative to the CPU time available to the generator's threads.
    parallel = min(use.threads, len(use.cpus)) if use.cpus else use.threads
    return use.cpu_fraction * max(1, parallel) * summary.duration_s / summary.requests.completed * 1e6 or None


def _generator_memory(trial: Trial) -> float | None:
    summary = trial.result.summary
    return float(summary.generator.peak_rss_bytes) or None if summary is not None else None


METRICS = (
    Metric(THROUGHPUT, "throughput", "req/s", _ANSWERS, _throughput, higher_is_better=True, is_count=True),
    Metric(MEAN, "mean response time", "µs", "takes {ratio}× as long on average as", _mean),
    Metric(P50, "median response time", "µs", f"{_LONG} for the median response as", _quantile("p50", 0.5), 0.5),
    Metric(P90, "p90 response time", "µs", f"{_LONG} at the 90th percentile as", _quantile("p90", 0.9), 0.9),
    Metric(P99, "p99 response time", "µs", f"{_LONG} at the 99th percentile as", _quantile("p99", 0.99), 0.99),
    Metric(
        P99_9, "p99.9 response time", "µs", f"{_LONG} at the 99.9th percentile as", _quantile("p99_9", 0.999), 0.999
    ),
    Metric(CPU, "CPU time per request", "µs", "needs {ratio}× the CPU per request of", _cpu),
    Metric(MEMORY, "memory", "bytes", "holds {ratio}× the memory of", _memory),
    Metric(
        READY, "start-up time", "s", f"{_LONG} to its first correct response as", lambda trial: trial.result.ready_s
    ),
)
BY_KEY = {metric.key: metric for metric in METRICS}
GENERATOR_METRICS = (
    replace(BY_KEY[THROUGHPUT], phrase="gets {ratio}× as many responses per second as"),
    Metric(REPORTED_P50, "reported median", "µs", f"{_REPORTS} for the median response as", _reported("p50"), 0.5),
    Metric(REPORTED_P99, "reported p99", "µs", f"{_REPORTS} for the 99th percentile as", _reported("p99"), 0.99),
    Metric(KERNEL_P50, "median by the kernel", "µs", f"{_WAITS} for the median response as", _kernel("p50"), 0.5),
    Metric(KERNEL_P99, "p99 by the kernel", "µs", f"{_WAITS} at the 99th percentile as", _kernel("p99"), 0.99),
    Metric(
        GENERATOR_CPU, "generator CPU time per request", "µs", "takes {ratio}× the CPU per request of", _generator_cpu
    ),
    Metric(GENERATOR_MEMORY, "generator memory", "bytes", "holds {ratio}× the memory of", _generator_memory),
)
"""The metrics on which weir compares generators: throughput, response times and resources."""
UNITS = {metric.key: metric.unit for metric in (*METRICS, *GENERATOR_METRICS)}
