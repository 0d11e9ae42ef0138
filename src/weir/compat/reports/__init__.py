"""Reports of other tools, each read into claims. Which tool wrote a report is seen from its text."""

from collections.abc import Callable
from dataclasses import dataclass

from weir.compat.reports import csv_tables, json_reports, text_reports
from weir.model.claim import Claim

Reader = Callable[[str, str], list[Claim]]


class ReportError(Exception):
    """A report that is a tool's and lacks what it should have."""


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of report."""

    title: str
    is_mine: Callable[[str], bool]
    read: Reader
    """Takes the text and a name for what it holds."""


FORMATS = (
    Format("wrk2", text_reports.is_wrk2, text_reports.read_wrk2),
    Format("wrk", text_reports.is_wrk, text_reports.read_wrk),
    Format("hey", text_reports.is_hey, text_reports.read_hey),
    Format("ab", text_reports.is_ab, text_reports.read_ab),
    Format("h2load", text_reports.is_h2load, text_reports.read_h2load),
    Format("oha (JSON)", json_reports.is_oha, json_reports.read_oha),
    Format("k6 (JSON summary)", json_reports.is_k6, json_reports.read_k6),
    Format("JMeter (JTL)", csv_tables.is_jtl, csv_tables.read_jtl),
    Format("JMeter (summary or aggregate report)", csv_tables.is_jmeter_report, csv_tables.read_jmeter_report),
    Format("Locust (stats CSV)", csv_tables.is_locust, csv_tables.read_locust),
)


def read_report(text: str, name: str) -> list[Claim] | None:
    """The claims of a report; None where it is no known tool's.

    Raises:
        ReportError: it looks like a tool's report and a figure is missing or no number.
    """
    for format_ in FORMATS:
        if format_.is_mine(text):
            try:
                return format_.read(text, name)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise ReportError(f"looks like a report of {format_.title}, and cannot be read as one: {error}") from None
    return None
