"""Describes the JSON reports of load tools: a `JsonFormat` for each tool."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weir.compat.reports.failures import count_by_kind
from weir.compat.reports.text_format import Values
from weir.compat.reports.text_formats import OHA_UNANSWERED, divide, widen, widen_times
from weir.compat.reports.values import is_largest, read_number
from weir.model.reported_result import Figure

K6_FAILURES = "weir_failures_"
"""Prefix of the failure counters in weir's scripts for k6, because k6 does not count failures by kind."""
MS, US, NS = 1e-3, 1e-6, 1e-9


@dataclass(frozen=True)
class JsonFormat:
    """A JSON report of a tool."""

    title: str
    marks: tuple[str, ...]
    """Paths that exist only in this tool's report. A path is a list of keys, separated by `/`."""
    counts: Mapping[str, str] = field(default_factory=dict)
    """The path of each whole number. A count may be missing."""
    figures: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """The path and the unit of each figure. A figure may be missing or null."""
    required: tuple[str, ...] = ()
    """Names of the counts and figures that a report must have."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[Values, Any], Values] = lambda values, report: values
    """Computes further values from `values` and the report."""

    def matches(self, report: Any) -> bool:
        return all(find(report, path) is not None for path in self.marks)

    def has_marked_keys(self, text: str) -> bool:
        """Returns whether a text that is no valid JSON has the keys of all `marks`."""
        return all(f'"{key}"' in text for path in self.marks for key in path.split("/"))

    def read(self, report: Any) -> Values:
        """Returns the values in a report. Raises ValueError if a key is missing, or a value is no number."""
        values: Values = dict(self.fixed)
        paths = {**{name: (path, 0.0) for name, path in self.counts.items()}, **self.figures}
        for name, (path, unit) in paths.items():
            figure = read_figure(find(report, path), unit or 1.0, path)
            if figure is None and name in self.required:
                raise ValueError(f"without the key {path.replace('/', '.')!r}")
            if figure is not None:
                values[name] = figure if unit else _count(figure.value, path)
        return self.finish(values, report)


def find(report: Any, path: str) -> Any:
    """Returns the value at a path; None if the report lacks the path."""
    for key in path.split("/"):
        report = report.get(key) if isinstance(report, dict) else None
    return report


def read_figure(value: Any, unit: float, path: str) -> Figure | None:
    """Returns a JSON number as a figure. Gatling also writes numbers as texts, and `-` for no value."""
    if value is None or value == "-":
        return None
    if isinstance(value, str):
        return read_number(value, unit)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(
            f"with a wrong value of the key {path.replace('/', '.')!r}: found {value!r}, expected a number"
        )
    return Figure(math.inf if is_largest(value) else float(value) * unit)


def _count(value: float, path: str) -> int:
    if not math.isfinite(value) or value % 1:
        key = path.replace("/", ".")
        raise ValueError(f"with a wrong value of the key {key!r}: found {value!r}, expected a whole number")
    return int(value)


def _quantiles(pairs: Iterable[tuple[float, Any]], unit: float = 1.0) -> dict[float, Figure]:
    read = {round(float(percent) / 100, 7): read_figure(value, unit, f"p{percent}") for percent, value in pairs}
    return {quantile: figure for quantile, figure in read.items() if figure is not None and quantile < 1}


def _counts(report: Any, path: str) -> dict[str, int]:
    return {key: int(count) for key, count in (find(report, path) or {}).items()}


def _finish_oha(values: Values, report: Any) -> Values:
    """Corrects the failures: oha's counts include requests in flight at the end, but `errors` leaves them out."""
    statuses, failures = _counts(report, "statusCodeDistribution"), _counts(report, "errorDistribution")
    failed, answered = sum(failures.values()), sum(statuses.values())
    return values | {
        "requests": answered + failed,
        "answered": answered,
        "failed": failed,
        "quantiles_s": _quantiles((float(key[1:]), at) for key, at in report["latencyPercentiles"].items()),
        "errors": count_by_kind((words, count) for words, count in failures.items() if words != OHA_UNANSWERED),
        "statuses": statuses,
    }


OHA_JSON = JsonFormat(
    "oha (JSON)",
    marks=("summary", "latencyPercentiles"),
    figures={
        "duration_s": ("summary/total", 1.0),
        "throughput_rps": ("summary/requestsPerSec", 1.0),
        "mean_s": ("summary/average", 1.0),
        "min_s": ("summary/fastest", 1.0),
        "max_s": ("summary/slowest", 1.0),
    },
    required=("duration_s", "throughput_rps"),
    finish=_finish_oha,
)


def _finish_k6(values: Values, report: Any) -> Values:
    """Sets `users` to the maximum number of virtual users: an upper bound, because some of them may be idle."""
    # Only the data of `handleSummary` has the values in an object `values`. k6 leaves out metrics without a sample.
    metrics = {name: metric.get("values", metric) for name, metric in report["metrics"].items()}
    times, requests = metrics.get("http_req_duration", {}), metrics.get("http_reqs", {"rate": 0, "count": 0})
    users = metrics.get("vus_max", {})
    steps = [(float(key[2:-1]), at) for key, at in times.items() if key.startswith("p(")]
    steps += [(50.0, times["med"])] if "med" in times else []
    received = metrics.get("data_received", {}).get("count")
    return values | {
        "users": users.get("max", users.get("value")) or None,
        "throughput_rps": Figure(float(requests["rate"])),
        "requests": int(requests["count"]),
        # `passes` of this metric counts the failed requests.
        "failed": metrics.get("http_req_failed", {}).get("passes"),
        "unsent": metrics.get("dropped_iterations", {}).get("count"),
        "mean_s": read_figure(times.get("avg"), MS, "http_req_duration"),
        "min_s": read_figure(times.get("min"), MS, "http_req_duration"),
        "max_s": read_figure(times.get("max"), MS, "http_req_duration"),
        "quantiles_s": _quantiles(steps, MS),
        "errors": {
            name.removeprefix(K6_FAILURES): int(metric["count"])
            for name, metric in metrics.items()
            if name.startswith(K6_FAILURES)
        },
        "received_bytes": None if received is None else int(received),
    }


K6_JSON = JsonFormat(
    "k6 (JSON summary)",
    marks=("root_group", "metrics"),
    figures={"duration_s": ("state/testRunDurationMs", MS)},
    # A script may send a batch of requests.
    fixed={"requests_in_flight": None},
    finish=_finish_k6,
)
# Scripts often write only the metrics.
K6_METRICS_JSON = replace(K6_JSON, marks=("metrics/http_req_duration",))


def _finish_vegeta(values: Values, report: Any) -> Values:
    codes = _counts(report, "status_codes")
    steps = ((key[:-2], at) for key, at in report["latencies"].items() if key[0].isdigit())
    return values | {
        # Code 0: no response.
        "failed": sum(often for code, often in codes.items() if not 200 <= int(code) < 400),
        "statuses": {code: often for code, often in codes.items() if code != "0"},
        "quantiles_s": _quantiles(((float(percent), at) for percent, at in steps), NS),
    }


VEGETA_JSON = JsonFormat(
    "vegeta (JSON)",
    marks=("latencies/mean", "bytes_in", "status_codes"),
    counts={"requests": "requests"},
    figures={
        "duration_s": ("duration", NS),
        "throughput_rps": ("rate", 1.0),
        "mean_s": ("latencies/mean", NS),
        "min_s": ("latencies/min", NS),
        "max_s": ("latencies/max", NS),
    },
    required=("requests", "duration_s", "throughput_rps", "mean_s", "max_s"),
    finish=_finish_vegeta,
)


def _finish_bombardier(values: Values, report: Any) -> Values:
    """Divides the number of requests by the time, because `rps` is a mean of samples."""
    result = report["result"]
    requests = sum(int(result[key]) for key in ("req1xx", "req2xx", "req3xx", "req4xx", "req5xx", "others"))
    percentiles = find(result, "latency/percentiles") or {}
    return values | {
        "requests": requests,
        "answered": requests - int(result["others"]),
        "throughput_rps": divide(requests, values["duration_s"]),
        "quantiles_s": _quantiles(((float(percent), at) for percent, at in percentiles.items()), US),
    }


BOMBARDIER_JSON = JsonFormat(
    "bombardier (JSON)",
    marks=("spec/numberOfConnections", "result/timeTakenSeconds"),
    counts={"users": "spec/numberOfConnections", "received_bytes": "result/bytesRead"},
    figures={
        "duration_s": ("result/timeTakenSeconds", 1.0),
        "mean_s": ("result/latency/mean", US),
        "stdev_s": ("result/latency/stddev", US),
        "max_s": ("result/latency/max", US),
    },
    required=("users", "duration_s", "mean_s", "max_s"),
    finish=_finish_bombardier,
)


def _finish_autocannon(values: Values, report: Any) -> Values:
    """Accounts for rounding: autocannon rounds times down to whole milliseconds. Its rates are means of samples."""
    steps = ((key[1:].replace("_", "."), at) for key, at in report["latency"].items() if key[1:2].isdigit())
    quantiles = _quantiles(((float(percent), at) for percent, at in steps), MS)
    codes = {code: int(one["count"]) for code, one in report.get("statusCodeStats", {}).items()}
    return widen_times(values, MS) | {
        "throughput_rps": divide(values["requests"], values["duration_s"]),
        "failed": report.get("non2xx"),
        "statuses": codes if sum(codes.values()) == values["requests"] else {},
        "quantiles_s": {quantile: widen(at, MS) for quantile, at in quantiles.items()},
    }  # fmt: skip


AUTOCANNON_JSON = JsonFormat(
    "autocannon (JSON)",
    marks=("latency/p97_5", "requests/total"),
    counts={"users": "connections", "requests_in_flight": "pipelining", "requests": "requests/total"},
    figures={
        "duration_s": ("duration", 1.0),
        "mean_s": ("latency/average", MS),
        "stdev_s": ("latency/stddev", MS),
        "min_s": ("latency/min", MS),
        "max_s": ("latency/max", MS),
    },
    required=("requests", "duration_s", "mean_s", "max_s"),
    finish=_finish_autocannon,
)


def _finish_fortio(values: Values, report: Any) -> Values:
    """Widens the percentiles: each percentile may lie anywhere in its class of the histogram."""
    classes = [(one["Percent"], one["Start"], one["End"]) for one in find(report, "DurationHistogram/Data") or ()]
    quantiles = {}
    for step in find(report, "DurationHistogram/Percentiles") or ():
        ends = ((begin, end) for percent, begin, end in classes if percent >= step["Percentile"])
        begin, end = next(ends, (step["Value"], step["Value"]))
        quantiles[round(step["Percentile"] / 100, 7)] = Figure((begin + end) / 2, (end - begin) / 2)
    values["quantiles_s"] = quantiles
    # Code -1: no response. The codes of gRPC have one digit.
    statuses = {code: often for code, often in _counts(report, "RetCodes").items() if len(code) == 3}
    good = sum(often for code, often in statuses.items() if int(code) < 400)
    return values | ({"statuses": statuses, "failed": values["requests"] - good} if statuses else {})


FORTIO_JSON = JsonFormat(
    "fortio (JSON)",
    marks=("DurationHistogram/Count", "ActualQPS"),
    counts={"users": "NumThreads", "requests_in_flight": "Streams", "requests": "DurationHistogram/Count"},
    figures={
        "duration_s": ("ActualDuration", NS),
        "throughput_rps": ("ActualQPS", 1.0),
        "mean_s": ("DurationHistogram/Avg", 1.0),
        "stdev_s": ("DurationHistogram/StdDev", 1.0),
        "min_s": ("DurationHistogram/Min", 1.0),
        "max_s": ("DurationHistogram/Max", 1.0),
    },
    required=("users", "requests", "duration_s", "throughput_rps", "mean_s", "max_s"),
    finish=_finish_fortio,
)
SIEGE_JSON = JsonFormat(
    "siege (JSON)",
    marks=("transactions", "availability", "transaction_rate"),
    counts={"requests": "transactions"},
    figures={
        "duration_s": ("elapsed_time", 1.0),
        "throughput_rps": ("transaction_rate", 1.0),
        "mean_s": ("response_time", 1.0),
        "min_s": ("shortest_transaction", 1.0),
        "max_s": ("longest_transaction", 1.0),
    },
    required=("requests", "duration_s", "throughput_rps", "mean_s"),
    # siege measures and prints hundredths of a second.
    finish=lambda values, _: {
        name: widen(value, 0.01) if isinstance(value, Figure) else value for name, value in values.items()
    },
)


def _finish_gatling(values: Values, report: Any) -> Values:
    """Accounts for rounding to whole milliseconds. weir reads no percentiles, because the file does not name them."""
    return widen_times(values, MS)


_GATLING_COUNTS = {"requests": "numberOfRequests/total", "failed": "numberOfRequests/ko"}
_GATLING_FIGURES = {
    "throughput_rps": ("meanNumberOfRequestsPerSecond/total", 1.0),
    "mean_s": ("meanResponseTime/total", MS),
    "stdev_s": ("standardDeviation/total", MS),
    "min_s": ("minResponseTime/total", MS),
    "max_s": ("maxResponseTime/total", MS),
}
GATLING_GLOBAL_JSON = JsonFormat(
    "Gatling (global_stats.json)",
    marks=("numberOfRequests/total", "meanResponseTime"),
    counts=_GATLING_COUNTS,
    figures=_GATLING_FIGURES,
    required=("requests", "throughput_rps"),
    finish=_finish_gatling,
)
GATLING_JSON = JsonFormat(
    "Gatling (stats.json)",
    marks=("stats/numberOfRequests/total", "stats/meanResponseTime"),
    counts={name: f"stats/{path}" for name, path in _GATLING_COUNTS.items()},
    figures={name: (f"stats/{path}", unit) for name, (path, unit) in _GATLING_FIGURES.items()},
    required=("requests", "throughput_rps"),
    finish=_finish_gatling,
)


def _finish_artillery(values: Values, report: Any) -> Values:
    """Widens the times, because artillery sorts times into classes of 1 %. The keys of the report contain dots."""
    counters, times = report["aggregate"]["counters"], report["aggregate"]["summaries"].get("http.response_time", {})
    codes = {name.rpartition(".")[2]: often for name, often in counters.items() if name.startswith("http.codes.")}
    requests = counters["http.requests"]
    steps = ((float(key[1:].replace("999", "99.9")), at) for key, at in times.items() if key[1:].isdigit())
    return values | {
        "requests": requests,
        "answered": counters.get("http.responses", requests),
        "failed": requests - sum(often for code, often in codes.items() if int(code) < 400),
        "statuses": codes,
        "mean_s": read_figure(times.get("mean"), MS, "mean"),
        "min_s": read_figure(times.get("min"), MS, "min"),
        "max_s": read_figure(times.get("max"), MS, "max"),
        "quantiles_s": {quantile: widen(at, share=0.01) for quantile, at in _quantiles(steps, MS).items()},
    }


ARTILLERY_JSON = JsonFormat(
    "Artillery (JSON)",
    marks=("aggregate/counters", "aggregate/summaries"),
    finish=_finish_artillery,
)

JSON_FORMATS = (
    OHA_JSON, K6_JSON, K6_METRICS_JSON, VEGETA_JSON, BOMBARDIER_JSON, AUTOCANNON_JSON, FORTIO_JSON, SIEGE_JSON, GATLING_JSON,
    GATLING_GLOBAL_JSON, ARTILLERY_JSON,
)  # fmt: skip
