"""Formats a load's result as ab's report and CSV. ab measures whole microseconds, and prints milliseconds, rounded half
up."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

from weir.compat.flags import format_path
from weir.compat.front_end import LoadResult
from weir.compat.latencies import Times, read_answers, read_times, sort_array

VERSION = "This is ApacheBench, Version 2.3"
"""The start of the report's first line. Users' scripts read ab's version from this line."""
_PERCENTS = (50, 66, 75, 80, 90, 95, 98, 99)


@dataclass(frozen=True, slots=True)
class Clocks:
    """The times of all responses, for the four rows of ab's table `Connection Times`."""

    connect: Times
    """Time to connect; 0 for a request on an open connection."""
    processing: Times
    """Time from the write of the request to the last byte of the response."""
    waiting: Times
    """Time from the write of the request to the first byte of the response."""
    total: Times


def read_clocks(result: LoadResult) -> Clocks:
    """Returns the times of a load. With a request log, the times are exact and `connect` includes TLS handshakes."""
    if result.request_log is None:
        end = result.end
        found = max(0, end.summary.requests.completed - read_times(end, "connect_time").count)
        clocks = ("service_time", "time_to_first_byte", "response_time")
        return Clocks(read_times(end, "connect_time", zeros=found), *(read_times(end, clock) for clock in clocks))
    answers = read_answers(result.request_log)
    moments = ("intended", "written", "first_byte", "last_byte")
    intended, written, first, last = (answers[f"{moment}_ns"] for moment in moments)
    return Clocks(*map(sort_array, (answers["connect_ns"], last - written, first - written, last - intended)))


def format_heading(host: str) -> str:
    """Returns ab's banner and the start of the `Benchmarking` line."""
    # Imported late, because reading the package's metadata is slow.
    from weir import __version__

    return (
        f"{VERSION} <flags and report of ab, by weir {__version__}>\n"
        "Measured by weir-engine, in the layout of ab; differences are on standard error\n"
        "Licensed under the Apache License, Version 2.0\n"
        f"\nBenchmarking {host} (be patient)"
    )


def format_report(flags: SimpleNamespace, result: LoadResult, *, has_body: bool) -> str:
    """Returns ab's report without the heading. With `has_body`, the report also has the number of sent bytes."""
    summary, url, clocks = result.end.summary, flags.url, read_clocks(result)
    completed, errors, first = summary.requests.completed, summary.errors, summary.first_response
    failures = {
        "Connect": errors.connect,
        "Receive": errors.reset,
        "Length": 0 if flags.any_length else summary.other_length,
        "Exceptions": errors.timeout + errors.protocol,
    }
    failed = ", ".join(f"{kind}: {count}" for kind, count in failures.items())
    not_2xx = sum(count for status, count in summary.status.items() if not status.startswith("2"))
    length = "Variable" if flags.any_length else f"{0 if first is None else first.body_bytes} bytes"
    lines = [
        "",
        "",
        _label("Server Software", "" if first is None else (first.server.split() or [""])[0]),
        _label("Server Hostname", url.hostname),
        _label("Server Port", url.port or (443 if url.scheme == "https" else 80)),
        "",
        _label("Document Path", format_path(url)),
        _label("Document Length", length),
        "",
        _label("Concurrency Level", flags.concurrency),
        _label("Time taken for tests", f"{summary.duration_s:.3f} seconds"),
        _label("Complete requests", completed),
        _label("Failed requests", sum(failures.values())),
        *([f"   ({failed})"] if any(failures.values()) else []),
        *([_label("Non-2xx responses", not_2xx)] if not_2xx else []),
    ]
    if flags.keep_alive:
        lines.append(_label("Keep-Alive requests", count_kept(clocks.connect, completed, flags.concurrency)))
    lines.append(_label("Total transferred", f"{summary.bytes.received} bytes"))
    lines += [_label("Total body sent", summary.bytes.sent)] if has_body else []
    lines.append(_label("HTML transferred", f"{summary.bytes.received_body} bytes"))
    if completed:
        lines += _list_rates(result, flags.concurrency, has_body=has_body)
        lines += ["", "Connection Times (ms)", *list_times(clocks)]
    if completed > 1 and not flags.no_percentages:
        lines += ["", "Percentage of the requests served within a certain time (ms)", *_list_percentages(clocks.total)]
    return "\n".join([*lines, ""])


def _label(label: str, value: object) -> str:
    return f"{label + ':':<24}{value}"


def _list_rates(result: LoadResult, concurrency: int, *, has_body: bool) -> Iterator[str]:
    summary = result.end.summary
    taken_s, received, sent = summary.duration_s, summary.bytes.received / 1024, summary.bytes.sent / 1024
    each_ms = taken_s * 1000 / summary.requests.completed
    yield _label("Requests per second", f"{summary.requests.completed / taken_s:.2f} [#/sec] (mean)")
    yield _label("Time per request", f"{concurrency * each_ms:.3f} [ms] (mean)")
    yield _label("Time per request", f"{each_ms:.3f} [ms] (mean, across all concurrent requests)")
    yield _label("Transfer rate", f"{received / taken_s:.2f} [Kbytes/sec] received")
    if has_body:
        yield f"{'':24}{sent / taken_s:.2f} kb/s sent"
        yield f"{'':24}{(received + sent) / taken_s:.2f} kb/s total"


def count_kept(connect: Times, answers: int, concurrency: int) -> int:
    """Counts the responses that left their connection open. `connect`: the connect times."""
    made = connect.count - connect.count_up_to(0)
    if made >= answers > concurrency:
        # Every response closed its connection. The load ended before new connections replaced the last ones.
        return 0
    # A failure also causes a new connection, so there may be more connections than responses.
    return max(0, answers - max(0, made - concurrency))


def round_ms(time_ns: float) -> int:
    """Converts nanoseconds to milliseconds as ab does: truncates to whole microseconds, then rounds half up."""
    return (int(time_ns) // 1000 + 500) // 1000


def list_times(clocks: Clocks) -> Iterator[str]:
    """Yields the lines of ab's table `Connection Times`."""
    yield "              min  mean[+/-sd] median   max"
    for label in ("Connect", "Processing", "Waiting", "Total"):
        times: Times = getattr(clocks, label.lower())
        low, mean, median, high = map(round_ms, (times.shortest, times.mean, times.median, times.longest))
        yield f"{label + ':':<12}{low:5} {mean:4} {times.deviation / 1e6:5.1f} {median:6} {high:7}"


def _list_percentages(total: Times) -> Iterator[str]:
    for percent in _PERCENTS:
        yield f"  {percent}%  {round_ms(total.at(total.count * percent // 100)):5}"
    yield f" 100%  {round_ms(total.longest):5} (longest request)"


def format_csv(total: Times) -> str:
    """Returns ab's CSV: the percentiles 0 to 100 of the total times, in milliseconds."""
    rows = (f"{percent},{total.at(int(0.5 + total.count * percent / 100)) / 1e6:.3f}" for percent in range(101))
    return "\n".join(["Percentage served,Time in ms", *rows, ""])
