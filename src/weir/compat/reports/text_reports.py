"""Reads the printed reports of wrk, wrk2, hey, ab and h2load."""

import re
from dataclasses import replace

from weir.compat.reports.failures import count_by_kind
from weir.model.reported_result import Figure, ReportedResult

_TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = r"([\d.]+)(us|ms|s|m|h)\b"
_BYTE_UNITS = {unit: 1024**power for power, unit in enumerate(("", "K", "M", "G", "T", "P"))}


def read_wrk(text: str, name: str) -> ReportedResult:
    """Reads a report by wrk. Each connection is a user in a closed loop.

    wrk's timeouts are late responses: `requests` includes timeouts, but the latencies do not.
    """
    latency = _match(rf"^\s*Latency\s+{_TIME}\s+{_TIME}\s+{_TIME}", text)
    ran = _match(rf"^\s*(\d+) requests in {_TIME}, ([\d.]+)([KMGTP]?)B read", text)
    wrong = _count(r"^\s*Non-2xx or 3xx responses: (\d+)", text)
    sockets = re.search(r"^\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text, re.MULTILINE)
    connect, read, write, late = map(int, sockets.groups()) if sockets else (0, 0, 0, 0)
    percentiles = re.findall(rf"^\s+([\d.]+)%\s+{_TIME}\s*$", text, re.MULTILINE)
    quantiles = {round(float(share) / 100, 7): _time(*time) for share, *time in percentiles if float(share) < 100}
    # Without a sample wrk prints zeros.
    timed = int(ran[1]) > 0
    return ReportedResult(
        name=name,
        tool="wrk",
        users=int(_match(r"(\d+) connections", text)[1]),
        duration_s=_time(ran[2], ran[3]),
        requests=int(ran[1]),
        failed=min(int(ran[1]), wrong + late),
        throughput_rps=Figure.printed(_match(r"^Requests/sec:\s*([\d.]+)", text)[1]),
        mean_s=_time(latency[1], latency[2]) if timed else None,
        stdev_s=_time(latency[3], latency[4]) if timed else None,
        max_s=_time(latency[5], latency[6]) if timed else None,
        quantiles_s=quantiles if timed else {},
        errors=_some({"connect": connect, "reset": read + write, "timeout": late, "check": wrong}),
        received_bytes=round(float(ran[4]) * _BYTE_UNITS[ran[5]]),
    )


def read_wrk2(text: str, name: str) -> ReportedResult:
    """Reads a report by wrk2. `users` is None, because connections do not limit the requests of an open loop."""
    result = read_wrk(text, name)
    highest = re.search(rf"^\s*100\.0+%\s+{_TIME}\s*$", text, re.MULTILINE)
    # The exact Max may be below a percentile, because wrk2 rounds percentiles up to a bucket of its histogram.
    max_s = _time(highest[1], highest[2]) if highest and result.requests else result.max_s
    return replace(result, tool="wrk2", users=None, max_s=max_s)


def read_hey(text: str, name: str) -> ReportedResult:
    """Reads a report by hey. The report lacks the number of workers."""

    def seconds(label: str) -> Figure | None:
        # Without a response, hey prints NaN as the average.
        printed = _match(rf"^\s*{label}:\s*([\d.]+|NaN) secs", text)[1]
        return Figure.printed(printed) if statuses or label == "Total" else None

    answers = re.findall(r"^\s*\[(\d{3})\]\s+(\d+) responses", text, re.MULTILINE)
    statuses = {status: int(count) for status, count in answers}
    _, _, errors = text.partition("Error distribution:")
    failures = [(words, int(count)) for count, words in re.findall(r"^\s*\[(\d+)\]\t(.*)$", errors, re.MULTILINE)]
    failed = sum(count for _, count in failures)
    steps = re.findall(r"^\s*(\d+)%+ in ([\d.]+) secs", text, re.MULTILINE)
    return ReportedResult(
        name=name,
        tool="hey",
        duration_s=seconds("Total"),
        throughput_rps=Figure.printed(_match(r"^\s*Requests/sec:\s*([\d.]+)", text)[1]),
        requests=sum(statuses.values()) + failed,
        failed=failed,
        mean_s=seconds("Average"),
        min_s=seconds("Fastest"),
        max_s=seconds("Slowest"),
        quantiles_s={int(percent) / 100: Figure.printed(value) for percent, value in steps},
        errors=count_by_kind(failures),
        statuses=statuses,
    )


def read_ab(text: str, name: str) -> ReportedResult:
    """Reads a report by ab. Takes the mean from the table, because ab computes `Time per request` from the rate."""
    total = re.search(r"^Total:\s+(\d+)\s+(\d+)\s+([\d.]+)\s+(\d+)\s+(\d+)", text, re.MULTILINE)
    steps = re.findall(r"^\s+(\d+)%\s+(\d+)", text, re.MULTILINE)
    requests = int(_match(r"^Complete requests:\s+(\d+)", text)[1])
    failed = int(_match(r"^Failed requests:\s+(\d+)", text)[1])
    kinds = re.search(r"^\s+\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)", text, re.MULTILINE)
    connect, receive, length, exceptions = map(int, kinds.groups()) if kinds else (0, failed, 0, 0)
    wrong = _count(r"^Non-2xx responses:\s+(\d+)", text)
    return ReportedResult(
        name=name,
        tool="ab",
        users=int(_match(r"^Concurrency Level:\s+(\d+)", text)[1]),
        duration_s=Figure.printed(_match(r"^Time taken for tests:\s+([\d.]+)", text)[1]),
        requests=requests,
        # ab never counts a response as failed because of its status.
        failed=min(requests, failed + wrong),
        throughput_rps=Figure.printed(_match(r"^Requests per second:\s+([\d.]+)", text)[1]),
        # ab rounds to whole milliseconds, but not always to the nearest.
        min_s=_whole_ms(total[1]) if total else None,
        mean_s=_whole_ms(total[2]) if total else None,
        stdev_s=Figure.printed(total[3], 1e-3) if total else None,
        max_s=_whole_ms(total[5]) if total else None,
        quantiles_s={int(percent) / 100: _whole_ms(value) for percent, value in steps if percent != "100"},
        # ab counts a failed connection twice: as an exception and as a failed receive.
        errors=_some({"connect": connect, "reset": max(receive, exceptions), "check": length + wrong}),
        received_bytes=int(_match(r"^Total transferred:\s+(\d+)", text)[1]),
    )


def read_h2load(text: str, name: str) -> ReportedResult:
    """Reads a report by h2load. Finds columns by name, because the columns differ between versions."""
    ended = _match(rf"^finished in {_TIME}, ([\d.]+) req/s", text)
    # If the load ends by time, its rate covers only the main duration, without the time in which clients stop.
    timed = re.search(rf"{_TIME} of main duration", text)
    counted = _match(r"^requests: .* (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", text)
    done, _, failed, errored, late = map(int, counted.groups())
    columns = re.split(r"\s{2,}", _match(r"^\s+(min .*)$", text)[1].strip())
    times = dict(zip(columns, re.findall(_TIME, _match(r"^time for request:(.*)$", text)[1]), strict=False))

    def time(column: str) -> Figure | None:
        return _time(*times[column]) if column in times and done > errored else None

    steps = {0.5: time("median"), 0.95: time("p95"), 0.99: time("p99")}
    return ReportedResult(
        name=name,
        tool="h2load",
        users=int(_match(r": (\d+) total client\(s\)", text)[1]),
        duration_s=Figure(_time(timed[1], timed[2]).value) if timed else _time(ended[1], ended[2]),
        requests=done,
        failed=failed,
        throughput_rps=Figure.printed(ended[3]),
        min_s=time("min"),
        mean_s=time("mean"),
        stdev_s=time("sd"),
        max_s=time("max"),
        quantiles_s={quantile: figure for quantile, figure in steps.items() if figure is not None},
        # A failure with a response has an error status.
        errors=_some({"timeout": late, "reset": errored - late, "check": failed - errored}),
        received_bytes=int(_match(r"^traffic: \S+ \((\d+)\) total", text)[1]),
    )


def _whole_ms(text: str) -> Figure:
    return Figure(float(text) / 1000, 0.001)


def _time(number: str, unit: str) -> Figure:
    return Figure.printed(number, _TIME_UNITS[unit])


def _match(pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ValueError(f"found no text that matches {pattern!r}")
    return match


def _count(pattern: str, text: str) -> int:
    """Returns a number in the report; 0 if the number is missing, because the tool does not print 0."""
    match = re.search(pattern, text, re.MULTILINE)
    return int(match[1]) if match else 0


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {kind: often for kind, often in counts.items() if often > 0}
