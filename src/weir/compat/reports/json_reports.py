"""The JSON of oha and k6."""

import json
from typing import Any

from weir.model.claim import Claim, Figure


def is_oha(text: str) -> bool:
    """oha's `--output-format json`."""
    return "summary" in (value := _object(text)) and "latencyPercentiles" in value


def is_k6(text: str) -> bool:
    """k6's `--summary-export`, or the data of its `handleSummary`."""
    return "http_req_duration" in _object(text).get("metrics", {})


def read_oha(text: str, name: str) -> list[Claim]:
    """Seconds. It does not say how many connections it had."""
    value = _object(text)
    summary = value["summary"]
    statuses = {status: int(count) for status, count in value.get("statusCodeDistribution", {}).items()}
    failed = sum(int(count) for count in value.get("errorDistribution", {}).values())
    percentiles = value["latencyPercentiles"]
    return [
        Claim(
            name=name,
            tool="oha",
            duration_s=Figure(float(summary["total"])),
            throughput_rps=Figure(float(summary["requestsPerSec"])),
            requests=sum(statuses.values()) + failed,
            failed=failed,
            mean_s=_figure(summary.get("average")),
            min_s=_figure(summary.get("fastest")),
            max_s=_figure(summary.get("slowest")),
            quantiles_s={float(key[1:]) / 100: Figure(float(at)) for key, at in percentiles.items() if at is not None},
            statuses=statuses,
        )
    ]


def read_k6(text: str, name: str) -> list[Claim]:
    """Milliseconds. Its users are the most there were, who also run the script between their requests."""
    metrics = _object(text)["metrics"]
    times, requests = _values(metrics["http_req_duration"]), _values(metrics["http_reqs"])
    users = _values(metrics.get("vus_max", {}))
    most_users = users.get("max", users.get("value"))
    steps = {key: at for key, at in times.items() if key.startswith("p(")}
    return [
        Claim(
            name=name,
            tool="k6",
            users=int(most_users) if most_users else None,
            throughput_rps=Figure(float(requests["rate"])),
            requests=int(requests["count"]),
            mean_s=_figure(times.get("avg"), 1e-3),
            min_s=_figure(times.get("min"), 1e-3),
            max_s=_figure(times.get("max"), 1e-3),
            quantiles_s={float(key[2:-1]) / 100: Figure(float(at) / 1000) for key, at in steps.items() if float(key[2:-1]) < 100},
        )
    ]


def _values(metric: dict[str, Any]) -> dict[str, Any]:
    """`handleSummary` has them in a table of their own, the export beside the thresholds."""
    values: dict[str, Any] = metric.get("values", metric)
    return values


def _figure(value: float | None, unit: float = 1.0) -> Figure | None:
    return None if value is None else Figure(float(value) * unit)


def _object(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
