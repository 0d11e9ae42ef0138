"""Describes the printed reports of load tools: a `TextFormat` for each tool."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from weir.compat.reports.failures import count_by_kind
from weir.compat.reports.text_format import TextFormat, Values
from weir.compat.reports.values import read_count, read_number, read_time, read_whole_ms
from weir.model.reported_result import Figure

OHA_UNANSWERED = "aborted due to deadline"
"""oha's message for a request in flight at the end. oha counts a failure, but the server did not fail."""


def widen(figure: Figure, rounding: float = 0.0, share: float = 0.0) -> Figure:
    """Returns a figure with a rounding of at least `rounding`, and of at least `share` of the value."""
    return Figure(figure.value, max(figure.rounding, rounding, share * abs(figure.value)))


def widen_times(values: Values, rounding: float) -> Values:
    """Returns `values` with a rounding of at least `rounding` for mean, deviation, minimum and maximum."""
    times = [name for name in ("mean_s", "stdev_s", "min_s", "max_s") if name in values]
    return values | {name: widen(values[name], rounding) for name in times}


def divide(count: float, duration_s: Figure, uncertain: float = 0.0) -> Figure | None:
    """Returns `count` ÷ `duration_s` with its rounding. `uncertain`: `count` may be too high by this number."""
    if duration_s.low <= 0:
        return None
    low, high = (count - uncertain) / duration_s.high, count / duration_s.low
    return Figure((low + high) / 2, (high - low) / 2)


def _widen_quantiles(values: Values) -> Values:
    """Accepts an error of 1 % in quantiles, because the tool sorts times into classes of this width."""
    quantiles = values.get("quantiles_s", {}).items()
    return values | {"quantiles_s": {quantile: widen(at, share=0.01) for quantile, at in quantiles}}


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {kind: often for kind, often in counts.items() if often > 0}


def _finish_wrk(values: Values) -> Values:
    """Adjusts wrk's counts. Each connection is a user in a closed loop. wrk's timeouts are late responses: `requests`
    includes them, but the latencies do not. wrk2 makes an open load, so connections do not limit its requests."""
    wrong, late, read, write = (values.get(key, 0) for key in ("wrong", "late", "read", "write"))
    errors = {"connect": values.get("connect", 0), "reset": read + write, "timeout": late, "check": wrong}
    values |= {"failed": min(values["requests"], wrong + late), "errors": _some(errors)}
    if values["max_s"].value == 0:
        # A script that sends several requests at once may leave wrk without a sample.
        values["answered"] = 0
    if values.keys() & {"histogram", "calibration"}:
        # wrk2 rounds percentiles up to a bucket of its histogram, so a percentile may exceed the exact Max.
        values |= {"tool": "wrk2", "users": None, "max_s": values.get("quantiles_s", {}).get(1.0, values["max_s"])}
    return values


WRK = TextFormat(
    "wrk",
    starts=("Running {_:text}test @", "{_} threads and {_} connections", "Thread Stats"),
    marks=("Thread Stats",),
    lines=(
        "Latency {mean_s:time} {stdev_s:time} {max_s:time}",
        "{requests} requests in {duration_s:time}, {received_bytes:size} read",
        "Requests/sec: {throughput_rps:number}",
    ),
    optional=(
        "{_} threads and {users} connections",
        "Non-2xx or 3xx responses: {wrong}",
        "Socket errors: connect {connect}, read {read}, write {write}, timeout {late}",
        "Latency Distribution (HdrHistogram{histogram:text}",
        "Thread calibration: {calibration:text}",
    ),
    repeated=("{percent:percent}% {quantile_s:time}",),
    ends=("Transfer/sec:",),
    # A script may send several requests at once.
    fixed={"requests_in_flight": None},
    finish=_finish_wrk,
)


def _finish_hey(values: Values) -> Values:
    failures, statuses = values.get("failures", []), values.get("statuses", {})
    failed, answered = sum(count for _, count in failures), sum(statuses.values())
    known = ((message, count) for message, count in failures if message != OHA_UNANSWERED)
    return values | {
        "requests": answered + failed,
        "answered": answered,
        "failed": failed,
        "errors": count_by_kind(known),
    }


HEY = TextFormat(
    "hey",
    starts=("Summary:", "Total: {_:time}", "Slowest: {_:time}"),
    marks=("Slowest:", "Fastest:"),
    # oha, ghz and etcd's benchmark print similar summaries.
    excludes=("Success rate:", "Count:", "Stddev:"),
    lines=(
        "Total: {duration_s:time}",
        "Slowest: {max_s:time}",
        "Fastest: {min_s:time}",
        "Average: {mean_s:time}",
        "Requests/sec: {throughput_rps:number}",
        "Status code distribution:",
    ),
    repeated=(
        "{percent:percent}% in {quantile_s:time}",
        "{percent:percent}%% in {quantile_s:time}",
        "[{status}] {responses} responses",
        "[{failures}] {message:text}",
    ),
    finish=_finish_hey,
)
OHA = replace(HEY, title="oha", starts=("Summary:", "Success rate:"), marks=("Success rate:", "Slowest:"), excludes=())


def _finish_ab(values: Values) -> Values:
    """Corrects ab's failures: ab omits wrong statuses, and counts a failed connection twice (Exceptions, Receive)."""
    failed, wrong = values["failed"], values.get("wrong", 0)
    receive, exceptions = values.get("receive", failed), values.get("exceptions", 0)
    errors = {
        "connect": values.get("connect", 0),
        "reset": max(receive, exceptions),
        "check": values.get("length", 0) + wrong,
    }
    return values | {"failed": min(values["requests"], failed + wrong), "errors": _some(errors)}


AB = TextFormat(
    "ab",
    starts=("This is ApacheBench", "Server Software:", "Server Hostname:", "Document Path:", "Concurrency Level:"),
    marks=("Concurrency Level:",),
    lines=(
        "Concurrency Level: {users}",
        "Time taken for tests: {duration_s:time}",
        "Complete requests: {requests}",
        "Failed requests: {failed}",
        "Requests per second: {throughput_rps:number}",
        "Total transferred: {received_bytes:size}",
    ),
    optional=(
        "(Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: {exceptions})",
        "Non-2xx responses: {wrong}",
        # ab computes `Time per request` from the rate. The mean is in the table.
        "Total: {min_s:whole_ms} {mean_s:whole_ms} {stdev_s:ms} {_} {max_s:whole_ms}",
    ),
    repeated=("{percent:percent}% {quantile_s:whole_ms}",),
    finish=_finish_ab,
)


def _finish_h2load(values: Values) -> Values:
    """Finds columns by name, because versions have different columns. In a timed load, the rate covers only the main
    duration, not the time in which clients stop."""
    errored, late = values["errored"], values.get("late", 0)
    names = re.split(r"\s{2,}", values.pop("columns"))
    columns = dict(zip(names, map(read_time, values.pop("times").split()[:-1]), strict=False))
    fields = {"mean": "mean_s", "sd": "stdev_s", "max": "max_s", "min": "min_s"}
    quantiles = {"median": 0.5, "p95": 0.95, "p99": 0.99}
    return values | {
        "users": sum(values["clients"]) if "clients" in values else None,
        "duration_s": Figure(values["main_s"].value) if "main_s" in values else values["duration_s"],
        "answered": values["requests"] - errored,
        **{fields[name]: at for name, at in columns.items() if name in fields},
        "quantiles_s": {quantiles[name]: at for name, at in columns.items() if name in quantiles},
        # A response with an error status is a failure too.
        "errors": _some({"timeout": late, "reset": errored - late, "check": values["failed"] - errored}),
    }


H2LOAD = TextFormat(
    "h2load",
    starts=("starting benchmark...", "spawning thread #0:", "finished in {_}, {_} req/s"),
    marks=("finished in {_}, {_} req/s",),
    lines=(
        "finished in {duration_s:time}, {throughput_rps:number} req/s",
        "requests: {_:text} {requests} done, {_} succeeded, {failed} failed, {errored} errored",
        "traffic: {_:text}({received_bytes}) total",
        "{columns:text} +/- sd",
        "time for request: {times:text}",
    ),
    optional=("requests: {_:text} {late} timeout", "spawning thread {_:text}time and {main_s:time} of main duration"),
    repeated=("spawning thread {_}: {clients} total client(s)",),
    # Each client may have several streams.
    fixed={"requests_in_flight": None},
    finish=_finish_h2load,
)

_K6_NAMES = {"avg": "mean_s", "min": "min_s", "max": "max_s"}


def _finish_k6(values: Values) -> Values:
    """Sets `users` to the maximum number of virtual users: an upper bound, because some of them may be idle."""
    times = {name: read_time(text) for name, text in re.findall(r"(\w+(?:\([\d.]+\))?)=(\S+)", values.pop("times"))}
    quantiles = {float(name[2:-1]) / 100: at for name, at in times.items() if name.startswith("p(")}
    quantiles |= {0.5: times["med"]} if "med" in times else {}
    return (
        values | {_K6_NAMES[name]: at for name, at in times.items() if name in _K6_NAMES} | {"quantiles_s": quantiles}
    )


K6 = TextFormat(
    "k6",
    starts=("█ TOTAL RESULTS", "http_req_blocked…:", "http_req_connecting…:", "http_req_duration…:"),
    marks=("http_req_duration…:",),
    lines=("http_req_duration…: {times:text}", "http_reqs…: {requests} {throughput_rps:number}/s"),
    optional=(
        "vus_max…: {users}",
        # The first number counts the failed requests.
        "http_req_failed…: {_}% ✓ {failed}",
        "http_req_failed…: {_}% {failed} out of",
    ),
    # A script may send a batch of requests.
    fixed={"requests_in_flight": None},
    finish=_finish_k6,
)


def _finish_vegeta(values: Values) -> Values:
    def read_row(name: str) -> dict[str, str]:
        names, cells = (values.pop(f"{name}_{part}").split(", ") for part in ("names", "cells"))
        return dict(zip(names, cells, strict=True))

    requests, duration, times = read_row("request"), read_row("duration"), read_row("time")
    count = read_count(requests["total"])
    codes = {code: read_count(often) for code, often in re.findall(r"(\d+):(\d+)", values.get("codes", ""))}
    return values | {
        "requests": count,
        # Code 0: no response.
        "failed": sum(often for code, often in codes.items() if not 200 <= int(code) < 400),
        "statuses": {code: often for code, often in codes.items() if code != "0"},
        # The rate covers the time of the attack, without the wait for the last response.
        "throughput_rps": read_number(requests["rate"]) if "rate" in requests else None,
        "duration_s": read_time(duration.get("attack", duration["total"])),
        **{f"{name}_s": read_time(text) for name, text in times.items() if name in ("min", "mean", "max")},
        "quantiles_s": {float(name) / 100: read_time(text) for name, text in times.items() if name[0].isdigit()},
    }


VEGETA = TextFormat(
    "vegeta",
    starts=("Requests [total{_:text}]",),
    marks=("Requests [total{_:text}]",),
    lines=(
        "Requests [{request_names:text}] {request_cells:text}",
        "Duration [{duration_names:text}] {duration_cells:text}",
        "Latencies [{time_names:text}] {time_cells:text}",
        "Status Codes [code:count] {codes:text}",
    ),
    ends=("Error Set:",),
    finish=_finish_vegeta,
)


def _finish_bombardier(values: Values) -> Values:
    """Divides the number of requests by the time, because `Reqs/sec` is a mean of samples. At the end, each connection
    may have a request in flight."""
    requests = sum(values.pop(f"class_{number}") for number in range(1, 6)) + values["others"]
    users, duration_s = values.get("users"), values.pop("requested_s", None)
    rate = divide(requests, Figure(duration_s.value), min(requests, users)) if duration_s and users else None
    return values | {"requests": requests, "answered": requests - values["others"], "throughput_rps": rate}


BOMBARDIER = TextFormat(
    "bombardier",
    starts=("Bombarding ", "Statistics Avg Stdev Max"),
    marks=("Statistics Avg Stdev Max",),
    lines=(
        "Latency {mean_s:time} {stdev_s:time} {max_s:time}",
        "1xx - {class_1}, 2xx - {class_2}, 3xx - {class_3}, 4xx - {class_4}, 5xx - {class_5}",
        "others - {others}",
    ),
    optional=(
        "Bombarding {_:text} for {requested_s:time} using {users} connection(s)",
        "Bombarding {_:text} request(s) using {users} connection(s)",
    ),
    repeated=("{percent:percent}% {quantile_s:time}",),
    ends=("Throughput: ",),
    finish=_finish_bombardier,
)


def _finish_autocannon(values: Values) -> Values:
    """Computes the throughput as requests ÷ time, because `Req/Sec` is a mean of samples. The figures are rounded:
    autocannon rounds times down to whole milliseconds, and prints thousands of requests as `2k`."""
    columns = re.findall(r"[\d.]+%|Avg|Stdev|Max", values.pop("columns"))
    cells = re.findall(r"[\d.,]+(?: ?(?:ms|s)\b)?", values.pop("times"))
    times = dict(zip(columns, map(read_whole_ms, cells), strict=True))
    names = {"Avg": "mean_s", "Stdev": "stdev_s", "Max": "max_s"}
    total, duration_s = values["total"], values["duration_s"]
    is_exact = total.rounding < 1
    return values | {
        "requests": round(total.value) if is_exact else None,
        "answered": total.value,
        "throughput_rps": divide(total.high, duration_s, 2 * total.rounding),
        **{names[name]: at for name, at in times.items() if name in names},
        "quantiles_s": {float(name[:-1]) / 100: at for name, at in times.items() if name.endswith("%")},
    }


AUTOCANNON = TextFormat(
    "autocannon",
    starts=("Running {_:text}test @", "{_} connections", "Stat 2.5% {_:text}Avg", "Stat Avg Stdev Max"),
    marks=("Stat {_:text}Avg", "Bytes/Sec"),
    lines=(
        "Stat {columns:text}",
        "Latency {times:text}",
        "{total:scaled} requests in {duration_s:time}, {_:size} read",
    ),
    optional=("{users} connections with {requests_in_flight} pipelining factor", "{users} connections"),
    finish=_finish_autocannon,
)


SIEGE = TextFormat(
    "siege",
    starts=("SIEGE {_}", "Preparing {_} concurrent users", "Lifting the server siege", "Transactions: {_} hits"),
    marks=("Transactions: {_} hits",),
    lines=(
        "Transactions: {requests} hits",
        "Elapsed time: {duration_s:time}",
        "Response time: {mean_s:time}",
        "Transaction rate: {throughput_rps:number}",
    ),
    optional=(
        "Preparing {users} concurrent users",
        "Longest transaction: {max_s:time}",
        "Shortest transaction: {min_s:time}",
    ),
    # siege measures in hundredths of a second. `Transactions` leaves out failed requests.
    finish=lambda values: widen_times(values, 0.01),
)


def _finish_gatling(values: Values) -> Values:
    if "throughput_rps" not in values:
        raise ValueError("without the line 'mean requests/sec …' or 'mean throughput (rps) …'")
    if "failed" not in values:
        # The table has the columns Total, OK and KO.
        ko = values.get("ko", "-").split()[0]
        values["failed"] = 0 if ko == "-" else read_count(ko)
    return _widen_quantiles(values)


GATLING = TextFormat(
    "Gatling",
    starts=("---- Global Information",),
    marks=("---- Global Information",),
    lines=(
        "request count {requests}",
        "min response time {min_s:whole_ms}",
        "max response time {max_s:whole_ms}",
        "mean response time {mean_s:whole_ms}",
    ),
    optional=(
        "request count {_} (OK={_} KO={failed}",
        "request count {_} {_} {ko:text}",
        "std deviation {stdev_s:whole_ms}",
        "response time std deviation {stdev_s:whole_ms}",
        "mean requests/sec {throughput_rps:number}",
        "mean throughput {throughput_rps:number}",
    ),
    repeated=("response time {percent:percent}th percentile {quantile_s:whole_ms}",),
    finish=_finish_gatling,
)


def _name_artillery_rows(lines: Sequence[str]) -> list[str]:
    """Returns lines with the metric's name before each row of that metric."""
    named, metric = [], ""
    for line in lines:
        is_row = re.match(r"(?:min|max|mean|median|p\d+):", line)
        metric = metric if is_row else line.partition(":")[0]
        named.append(f"{metric} {line}" if is_row else line)
    return named


def _finish_artillery(values: Values) -> Values:
    values["quantiles_s"] = {at: values.pop(name) for name, at in (("p50_s", 0.5), ("p95_s", 0.95), ("p99_s", 0.99))}
    good = sum(often for code, often in values.get("statuses", {}).items() if int(code) < 400)
    return _widen_quantiles(values) | ({"failed": values["requests"] - good} if "statuses" in values else {})


ARTILLERY = TextFormat(
    "Artillery",
    starts=("Summary report @",),
    marks=("http.{_:text}",),
    # Interim reports. The rate in the summary is the mean of their rates.
    ends=("Metrics for period to:", "Report @", "Report for the previous", "Phase {_:text}"),
    interim=("Metrics for period to:", "Report @", "Report for the previous"),
    prepare=_name_artillery_rows,
    lines=(
        "http.requests: … {requests}",
        "http.response_time min: … {min_s:ms}",
        "http.response_time max: … {max_s:ms}",
        "http.response_time median: … {p50_s:ms}",
        "http.response_time p95: … {p95_s:ms}",
        "http.response_time p99: … {p99_s:ms}",
    ),
    optional=("http.response_time mean: … {mean_s:ms}",),
    repeated=("http.codes.{status}: … {responses}",),
    finish=_finish_artillery,
)
ARTILLERY_1 = replace(
    ARTILLERY,
    title="Artillery (before 2.0)",
    starts=("Complete report @", "Summary report @"),
    marks=("Scenarios launched:",),
    lines=(
        "Requests completed: {requests}",
        *(line.replace("http.response_time", "Request latency").replace("…", "") for line in ARTILLERY.lines[1:]),
    ),
    optional=(),
    repeated=(),
)

DRILL = TextFormat(
    "drill",
    starts=("Concurrency {_}", "Iterations {_}", "Concurrency Level {_}", "Time taken for tests {_}"),
    marks=("Time taken for tests {_}",),
    lines=(
        "Time taken for tests {duration_s:time}",
        "Total requests {requests}",
        "Requests per second {throughput_rps:number}",
        "Average time per request {mean_s:whole_ms}",
    ),
    optional=(
        "Concurrency{_:text} {users}",
        "Failed requests {failed}",
        "Sample standard deviation {stdev_s:whole_ms}",
    ),
    repeated=("{percent:percent}'th percentile {quantile_s:whole_ms}",),
)


def _join_percentiles(lines: Sequence[str]) -> list[str]:
    """Returns the lines. Appends plow's row of percentile values to the row of percentile names."""
    return [f"{line} = {after}" if line.startswith("P50 ") else line for line, after in pairwise([*lines, ""])]


def _finish_plow(values: Values) -> Values:
    names, cells = (text.split() for text in (f"P50 {values.pop('names')}", values.pop("cells")))
    quantiles = {float(name[1:]) / 100: read_time(cell) for name, cell in zip(names, cells, strict=True)}
    return values | {"quantiles_s": quantiles}


PLOW = TextFormat(
    "plow",
    starts=("Benchmarking {_:text} using {_} connection", "Summary:", "Elapsed {_:time}"),
    marks=("Elapsed {_:time}", "Count {_}", "RPS {_}"),
    prepare=_join_percentiles,
    lines=(
        "Elapsed {duration_s:time}",
        "Count {requests}",
        "RPS {throughput_rps:number}",
        "Latency {min_s:time} {mean_s:time} {stdev_s:time} {max_s:time}",
        "P50 {names:text} = {cells:text}",
    ),
    optional=("Benchmarking {_:text} using {users} connection",),
    finish=_finish_plow,
)


def _finish_locust(values: Values) -> Values:
    """Takes the percentiles from the second row `Aggregated`. Locust rounds percentiles to two digits."""
    names, cells = values.pop("names", "").split(), values.pop("cells", [""])[-1].split()
    quantiles = {}
    if names and "(" not in cells[1]:
        for name, cell in zip(["50%", *names], cells, strict=False):
            if name.endswith("%"):
                quantiles[round(float(name[:-1]) / 100, 6)] = widen(read_number(cell, 1e-3), share=0.05)
    return values | {"quantiles_s": quantiles}


LOCUST = TextFormat(
    "Locust",
    starts=("Type Name # reqs", "Name # reqs"),
    marks=("{_:text}# reqs # fails",),
    lines=(
        "Aggregated {requests} {failed}({_}%) {mean_s:whole_ms} {min_s:whole_ms} {max_s:whole_ms} {_} "
        "{throughput_rps:number}",
    ),
    optional=("Type Name 50% {names:text}",),
    repeated=("Aggregated {cells:text}", "None Aggregated {cells:text}"),
    finish=_finish_locust,
    # Locust prints percentiles only at the end.
    is_interim=lambda one, later: not one["quantiles_s"] and one["requests"] <= later["requests"],
)
SUMMARISER = TextFormat(
    "JMeter (summariser)",
    starts=("summary + {_} in ", "summary = {_} in "),
    marks=("summary = {_} in ",),
    lines=(
        "summary = {requests} in {duration_s:time} = {throughput_rps:number}/s Avg: {mean_s:whole_ms} "
        "Min: {min_s:whole_ms} Max: {max_s:whole_ms} Err: {failed}",
    ),
    optional=("summary + {added} in ", "summary + {_:text} Started: {users} "),
    interim=("summary + {_} in ",),
    # Each line `summary =` covers all requests since the start.
    is_interim=lambda one, later: one["requests"] + later.get("added", 0) == later["requests"],
)

TEXT_FORMATS = (
    WRK, HEY, OHA, AB, H2LOAD, K6, VEGETA, BOMBARDIER, AUTOCANNON, SIEGE, GATLING, ARTILLERY, ARTILLERY_1, DRILL, PLOW,
    LOCUST, SUMMARISER,
)  # fmt: skip
