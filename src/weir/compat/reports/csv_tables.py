"""The tables of JMeter and Locust."""

import csv
import io
from collections import Counter

from weir.model.claim import Claim, Figure

_PERCENTS = {
    "50%": 0.5,
    "66%": 0.66,
    "75%": 0.75,
    "80%": 0.8,
    "90%": 0.9,
    "95%": 0.95,
    "98%": 0.98,
    "99%": 0.99,
    "99.9%": 0.999,
    "99.99%": 0.9999,
}
_JMETER_PERCENTS = {"Median": 0.5, "90% Line": 0.9, "95% Line": 0.95, "99% Line": 0.99}


def is_jtl(text: str) -> bool:
    """A row a sample."""
    return {"timeStamp", "elapsed", "label"} <= _columns(text)


def is_jmeter_report(text: str) -> bool:
    """A row a label."""
    return {"Label", "# Samples", "Average", "Throughput"} <= _columns(text)


def is_locust(text: str) -> bool:
    """`_stats.csv`."""
    return {"Request Count", "Average Response Time", "Requests/s"} <= _columns(text)


def read_jtl(text: str, name: str) -> list[Claim]:
    """All samples as one load: who came when, and how often each asked, can be seen in it."""
    rows = _rows(text)
    began = [int(row["timeStamp"]) / 1000 for row in rows]
    took = sorted(int(row["elapsed"]) / 1000 for row in rows)
    ended = [int(row["timeStamp"]) / 1000 + int(row["elapsed"]) / 1000 for row in rows]
    threads = [row.get("threadName", "") for row in rows]
    first_of: dict[str, float] = {}
    for thread, at in zip(threads, began, strict=True):
        first_of[thread] = min(at, first_of.get(thread, at))
    lasted_s = max(ended) - min(began)
    loops = Counter(threads).values()
    failed = sum(row.get("success", "true") == "false" for row in rows)
    has_threads = all(threads)
    return [
        Claim(
            name=name,
            tool="JMeter",
            users=len(first_of) if has_threads else None,
            ramp_s=max(first_of.values()) - min(first_of.values()) if has_threads else 0.0,
            loops=max(loops) if has_threads else None,
            duration_s=Figure(lasted_s, 0.001),
            throughput_rps=Figure(len(rows) / lasted_s) if lasted_s > 0 else None,
            requests=len(rows),
            failed=failed,
            mean_s=Figure(sum(took) / len(took), 0.0005),
            min_s=Figure(took[0], 0.0005),
            max_s=Figure(took[-1], 0.0005),
        )
    ]


def read_jmeter_report(text: str, name: str) -> list[Claim]:
    """A claim for each label, or one for the total where that is the only other row."""
    rows = _rows(text)
    labels = [row for row in rows if row["Label"] != "TOTAL"]
    return [_jmeter_row(row, name if len(labels) == 1 else f"{name}: {row['Label']}") for row in (labels or rows)]


def _jmeter_row(row: dict[str, str], name: str) -> Claim:
    requests = int(row["# Samples"])
    steps = {quantile: Figure.printed(row[column], 1e-3) for column, quantile in _JMETER_PERCENTS.items() if row.get(column)}
    return Claim(
        name=name,
        tool="JMeter",
        requests=requests,
        failed=round(requests * float(row["Error %"].rstrip("%")) / 100) if row.get("Error %") else None,
        throughput_rps=Figure.printed(row["Throughput"]),
        mean_s=Figure.printed(row["Average"], 1e-3),
        min_s=Figure.printed(row["Min"], 1e-3),
        max_s=Figure.printed(row["Max"], 1e-3),
        stdev_s=Figure.printed(row["Std. Dev."], 1e-3) if row.get("Std. Dev.") else None,
        quantiles_s=steps,
    )


def read_locust(text: str, name: str) -> list[Claim]:
    """The aggregated row. Percentiles are rounded to two digits by Locust itself."""
    rows = _rows(text)
    row = next((row for row in rows if row["Name"] == "Aggregated"), rows[-1])
    return [
        Claim(
            name=name,
            tool="Locust",
            throughput_rps=Figure.printed(row["Requests/s"]),
            requests=int(row["Request Count"]),
            failed=int(row["Failure Count"]),
            mean_s=Figure.printed(row["Average Response Time"], 1e-3),
            min_s=Figure.printed(row["Min Response Time"], 1e-3),
            max_s=Figure.printed(row["Max Response Time"], 1e-3),
            quantiles_s={quantile: _two_digits(row[column]) for column, quantile in _PERCENTS.items() if row.get(column, "N/A") != "N/A"},
        )
    ]


def _two_digits(text: str) -> Figure:
    value_ms = float(text)
    return Figure(value_ms / 1000, max(0.0005, value_ms / 1000 * 0.05))


def _rows(text: str) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows or any(value is None for row in rows for value in row.values()):
        raise ValueError("a row is missing or ends too early")
    return rows


def _columns(text: str) -> set[str]:
    first, _, _ = text.partition("\n")
    return set(next(csv.reader([first.strip()]), []))
