"""Reads the CSV tables of JMeter and Locust."""

import csv
import io
from array import array
from collections import Counter
from math import ceil, sqrt
from operator import add
from statistics import fmean

from weir.compat.reports.failures import count_by_kind
from weir.model.reported_result import Figure, ReportedResult

_PERCENTS = ("50%", "66%", "75%", "80%", "90%", "95%", "98%", "99%", "99.9%", "99.99%")
_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)
_JMETER_PERCENTS = {"Median": 0.5, "90% Line": 0.9, "95% Line": 0.95, "99% Line": 0.99}


def read_jtl(text: str, name: str) -> ReportedResult:
    """Reads a JTL file as one load. Derives users, ramp and loops from the names of threads."""
    table = csv.reader(io.StringIO(text))
    at = {column: index for index, column in enumerate(next(table))}
    start_at, took_at = at["timeStamp"], at["elapsed"]
    thread_at, success_at, code_at, bytes_at = map(at.get, ("threadName", "success", "responseCode", "bytes"))
    # Row by row: there may be a million samples.
    began, took = array("q"), array("q")
    first_starts: dict[str, int] = {}
    loops, codes, failures = Counter[str](), Counter[str](), Counter[str]()
    received = 0
    for row in filter(None, table):
        if len(row) != len(at):
            raise ValueError("a row ends too early")
        start = int(row[start_at])
        began.append(start)
        took.append(int(row[took_at]))
        thread, code = "" if thread_at is None else row[thread_at], "" if code_at is None else row[code_at]
        loops[thread] += 1
        first_starts[thread] = min(start, first_starts.get(thread, start))
        codes[code] += 1
        if success_at is not None and row[success_at] == "false":
            # Without a response, the code is the name of an exception.
            failures[f"status {code}" if code.isdigit() else code] += 1
        if bytes_at is not None:
            received += int(row[bytes_at])
    if not began:
        raise ValueError("the report has no samples")
    lasted_s = (max(map(add, began, took)) - min(began)) / 1000
    elapsed_ms = sorted(took)
    mean_ms = fmean(elapsed_ms)
    has_threads = "" not in first_starts
    return ReportedResult(
        name=name,
        tool="JMeter",
        users=len(first_starts) if has_threads else None,
        ramp_s=(max(first_starts.values()) - min(first_starts.values())) / 1000 if has_threads else 0.0,
        loops=max(loops.values()) if has_threads else None,
        duration_s=Figure(lasted_s, 0.001),
        throughput_rps=Figure(len(began) / lasted_s) if lasted_s > 0 else None,
        requests=len(began),
        failed=failures.total(),
        mean_s=_whole_ms(mean_ms),
        stdev_s=_whole_ms(sqrt(fmean((ms - mean_ms) ** 2 for ms in elapsed_ms))),
        min_s=_whole_ms(elapsed_ms[0]),
        max_s=_whole_ms(elapsed_ms[-1]),
        quantiles_s={quantile: _whole_ms(elapsed_ms[ceil(quantile * len(elapsed_ms)) - 1]) for quantile in _QUANTILES},
        errors=count_by_kind(failures.items()),
        statuses={code: often for code, often in sorted(codes.items()) if code.isdigit()},
        received_bytes=None if bytes_at is None else received,
    )


def _whole_ms(value: float) -> Figure:
    return Figure(value / 1000, 0.0005)


def read_jmeter_report(text: str, name: str) -> list[ReportedResult]:
    """Returns a result for each label, or only the total if the table has no labels."""
    rows = _rows(text)
    labels = [row for row in rows if row["Label"] != "TOTAL"]
    return [_jmeter_row(row, name if len(labels) == 1 else f"{name}: {row['Label']}") for row in (labels or rows)]


def _jmeter_row(row: dict[str, str], name: str) -> ReportedResult:
    requests = int(row["# Samples"])
    return ReportedResult(
        name=name,
        tool="JMeter",
        requests=requests,
        failed=round(requests * float(row["Error %"].rstrip("%")) / 100) if row.get("Error %") else None,
        throughput_rps=Figure.printed(row["Throughput"]),
        mean_s=Figure.printed(row["Average"], 1e-3),
        min_s=Figure.printed(row["Min"], 1e-3),
        max_s=Figure.printed(row["Max"], 1e-3),
        stdev_s=Figure.printed(row["Std. Dev."], 1e-3) if row.get("Std. Dev.") else None,
        quantiles_s={
            share: Figure.printed(row[column], 1e-3) for column, share in _JMETER_PERCENTS.items() if row.get(column)
        },
    )


def read_locust(text: str, name: str) -> ReportedResult:
    """Reads the aggregated row of Locust's table. Locust rounds percentiles to two significant digits."""
    rows = _rows(text)
    row = next((row for row in rows if row["Name"] == "Aggregated"), rows[-1])
    # Without a request Locust prints zeros.
    timed = int(row["Request Count"]) > 0
    return ReportedResult(
        name=name,
        tool="Locust",
        throughput_rps=Figure.printed(row["Requests/s"]),
        requests=int(row["Request Count"]),
        failed=int(row["Failure Count"]),
        mean_s=Figure.printed(row["Average Response Time"], 1e-3) if timed else None,
        min_s=Figure.printed(row["Min Response Time"], 1e-3) if timed else None,
        max_s=Figure.printed(row["Max Response Time"], 1e-3) if timed else None,
        quantiles_s={
            round(float(column[:-1]) / 100, 6): _read_two_digits(row[column])
            for column in _PERCENTS
            if row.get(column, "N/A") != "N/A"
        },
    )


def _read_two_digits(text: str) -> Figure:
    value_ms = float(text)
    return Figure(value_ms / 1000, max(0.0005, value_ms / 1000 * 0.05))


def read_locust_failures(text: str) -> dict[str, int]:
    """Returns the number of failures by kind from Locust's `_failures.csv`."""
    return count_by_kind((row["Error"], int(row["Occurrences"])) for row in csv.DictReader(io.StringIO(text)))


def _rows(text: str) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows or any(value is None for row in rows for value in row.values()):
        raise ValueError("a row is missing or ends too early")
    return rows


def read_columns(text: str) -> set[str]:
    """Returns the column names in the first line of a table."""
    first, _, _ = text.partition("\n")
    return set(next(csv.reader([first.strip()]), []))
