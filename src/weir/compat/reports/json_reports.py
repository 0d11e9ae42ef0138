"""Reads JSON reports by oha (`--output-format json`) and k6 (`--summary-export`, or the data of `handleSummary`)."""

import json
from typing import Any

from weir.compat.reports.failures import count_by_kind
from weir.model.reported_result import Figure, ReportedResult

_OHA_UNANSWERED = "aborted due to deadline"
K6_FAILURES = "weir_failures_"
"""Prefix of the failure counters in weir's scripts for k6. k6 itself does not count failures by kind."""


def read_oha(text: str, name: str) -> ReportedResult:
    """Reads a report by oha. oha counts requests in flight at the end as failures, but `errors` omits these."""
    value = parse_object(text)
    summary = value["summary"]
    statuses = {status: int(count) for status, count in value.get("statusCodeDistribution", {}).items()}
    failures = {words: int(count) for words, count in value.get("errorDistribution", {}).items()}
    failed = sum(failures.values())
    percentiles = value["latencyPercentiles"]
    return ReportedResult(
        name=name,
        tool="oha",
        duration_s=Figure(float(summary["total"])),
        throughput_rps=Figure(float(summary["requestsPerSec"])),
        requests=sum(statuses.values()) + failed,
        failed=failed,
        mean_s=_figure(summary.get("average")),
        min_s=_figure(summary.get("fastest")),
        max_s=_figure(summary.get("slowest")),
        quantiles_s={
            round(float(key[1:]) / 100, 7): Figure(float(at)) for key, at in percentiles.items() if at is not None
        },
        errors=count_by_kind((words, count) for words, count in failures.items() if words != _OHA_UNANSWERED),
        statuses=statuses,
    )


def read_k6(text: str, name: str) -> ReportedResult:
    """Reads a report by k6. `users` is the maximum number of virtual users. Not all of them wait for a response."""
    report = parse_object(text)
    metrics = report["metrics"]
    # k6 leaves out metrics without a sample.
    times = _values(metrics.get("http_req_duration", {}))
    requests = _values(metrics.get("http_reqs", {"rate": 0, "count": 0}))
    users = _values(metrics.get("vus_max", {}))
    most_users = users.get("max", users.get("value"))
    steps = {f"{float(key[2:-1]) / 100:g}": at for key, at in times.items() if key.startswith("p(")}
    steps |= {"0.5": times["med"]} if "med" in times else {}
    kinds = {
        key.removeprefix(K6_FAILURES): int(_values(metric)["count"])
        for key, metric in metrics.items()
        if key.startswith(K6_FAILURES)
    }
    received = _values(metrics.get("data_received", {})).get("count")
    return ReportedResult(
        name=name,
        tool="k6",
        users=int(most_users) if most_users else None,
        duration_s=_figure(report.get("state", {}).get("testRunDurationMs"), 1e-3),
        throughput_rps=Figure(float(requests["rate"])),
        requests=int(requests["count"]),
        # `passes` of this metric counts the failed requests.
        failed=_values(metrics.get("http_req_failed", {})).get("passes"),
        unsent=_values(metrics.get("dropped_iterations", {})).get("count"),
        mean_s=_figure(times.get("avg"), 1e-3),
        min_s=_figure(times.get("min"), 1e-3),
        max_s=_figure(times.get("max"), 1e-3),
        quantiles_s={float(key): Figure(float(at) / 1000) for key, at in steps.items() if float(key) < 1},
        errors=kinds,
        received_bytes=None if received is None else int(received),
    )


def _values(metric: dict[str, Any]) -> Any:
    """Returns a metric's values. Only the data of `handleSummary` has the values in an object `values`."""
    return metric.get("values", metric)


def _figure(value: float | None, unit: float = 1.0) -> Figure | None:
    return None if value is None else Figure(float(value) * unit)


def parse_object(text: str) -> dict[str, Any]:
    """Returns the JSON object in a text; empty if the text is not a JSON object."""
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else {}
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
