"""Reads the reports of other tools. Recognises the tool from the text of the report."""

from collections.abc import Callable
from dataclasses import dataclass

from weir.compat.reports import csv_tables, text_reports
from weir.compat.reports.json_reports import parse_object, read_k6, read_oha
from weir.model.reported_result import ReportedResult

Reader = Callable[[str, str], ReportedResult]
"""Reads a report. The arguments are the text of the report and a name for the load."""


class ReportError(Exception):
    """An error in a known tool's report: a figure is missing or is not a number."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of reports: `matches` recognises the format, and `read` reads a report in the format."""

    title: str
    matches: Callable[[str], bool]
    read: Callable[[str, str], ReportedResult | list[ReportedResult]]


def _has_texts(*texts: str) -> Callable[[str], bool]:
    return lambda report: all(text in report for text in texts)


def _has_columns(*names: str) -> Callable[[str], bool]:
    return lambda report: csv_tables.read_columns(report).issuperset(names)


def _is_wrk2(report: str) -> bool:
    # Only wrk2 prints an HdrHistogram or a calibration.
    return _is_wrk(report) and ("HdrHistogram" in report or "Thread calibration" in report)


_is_wrk = _has_texts("Thread Stats", "Requests/sec:")
_is_jmeter_report = _has_columns("Label", "# Samples", "Average", "Throughput")
_is_locust = _has_columns("Request Count", "Average Response Time", "Requests/s")
FORMATS = (
    Format("wrk2", _is_wrk2, text_reports.read_wrk2),
    Format("wrk", _is_wrk, text_reports.read_wrk),
    Format("hey", _has_texts("Response time histogram:", "Requests/sec:"), text_reports.read_hey),
    Format("ab", _has_texts("Concurrency Level:", "Time per request:"), text_reports.read_ab),
    Format("h2load", _has_texts("finished in", "time for request:"), text_reports.read_h2load),
    Format("oha (JSON)", lambda text: {"summary", "latencyPercentiles"} <= parse_object(text).keys(), read_oha),
    Format("k6 (JSON summary)", lambda text: "http_req_duration" in parse_object(text).get("metrics", {}), read_k6),
    Format("JMeter (JTL)", _has_columns("timeStamp", "elapsed", "label"), csv_tables.read_jtl),
    Format("JMeter (summary or aggregate report)", _is_jmeter_report, csv_tables.read_jmeter_report),
    Format("Locust (stats CSV)", _is_locust, csv_tables.read_locust),
)


def read_report(text: str, name: str) -> list[ReportedResult] | None:
    """Returns the results in a report; None if no known tool wrote the report. Raises ReportError: a figure in a known
    tool's report is missing or is not a number."""
    found = next((known for known in FORMATS if known.matches(text)), None)
    if found is None:
        return None
    try:
        results = found.read(text, name)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ReportError(f"found a damaged report by {found.title} ({error}), expected a whole report") from None
    return results if isinstance(results, list) else [results]
