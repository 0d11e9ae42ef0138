"""Reads the tables of JMeter (JTL as CSV or XML, summary and aggregate report) and Locust (statistics, history)."""

import csv
import io
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, sqrt
from operator import add
from statistics import fmean
from xml.etree import ElementTree

from weir.compat.reports.failures import count_by_kind
from weir.compat.reports.text_formats import divide, widen
from weir.compat.reports.values import read_count, read_number
from weir.model.reported_result import Figure, ReportedResult

_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)
_JMETER_PERCENTS = {"Median": 0.5, "90% Line": 0.9, "95% Line": 0.95, "99% Line": 0.99}
_TRANSACTION = "Number of samples in transaction"
"""The response message of a transaction controller. Such a sample contains other samples of the same thread."""

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class TableFormat:
    """A table with a header. `read` gets the rows and the load's name, and returns the results."""

    title: str
    columns: frozenset[str]
    read: Callable[[Iterator[Row], str], list[ReportedResult]]


class _Samples:
    """The samples of a JTL file. A file may have a million samples."""

    def __init__(self) -> None:
        self.began, self.took = array("q"), array("q")
        self.first_starts: dict[str, int] = {}
        self.loops, self.codes, self.failures = Counter[str](), Counter[str](), Counter[str]()
        self.received: int | None = 0
        self.resolution_ms = 1

    def add(self, row: Mapping[str, str]) -> None:
        start, resolution_ms = _read_time_stamp(row["timeStamp"])
        self.resolution_ms = max(self.resolution_ms, resolution_ms)
        self.began.append(start)
        self.took.append(int(row["elapsed"]))
        thread, code = row.get("threadName", ""), row.get("responseCode", "")
        self.loops[thread] += 1
        self.first_starts[thread] = min(start, self.first_starts.get(thread, start))
        self.codes[code] += 1
        if row.get("success") == "false":
            # Without a response, the code is the name of an exception.
            self.failures[f"status {code}" if code.isdigit() else code] += 1
        received = row.get("bytes")
        self.received = None if received is None or self.received is None else self.received + int(received)

    def summarize(self, name: str) -> ReportedResult:
        """Returns the samples as one load. Derives users, ramp and loops from thread names."""
        began, took = self.began, self.took
        rounding_s = self.resolution_ms / 1000
        lasted_s = (max(map(add, began, took)) - min(began)) / 1000
        elapsed_ms = sorted(took)
        mean_ms = fmean(elapsed_ms)
        ranks = {quantile: elapsed_ms[ceil(quantile * len(elapsed_ms)) - 1] for quantile in _QUANTILES}
        starts = self.first_starts
        has_threads = "" not in starts
        rate = Figure(len(began) / lasted_s) if lasted_s > 0 else None
        return ReportedResult(
            name=name,
            tool="JMeter",
            users=len(starts) if has_threads else None,
            ramp_s=(max(starts.values()) - min(starts.values())) / 1000 if has_threads else 0.0,
            loops=max(self.loops.values()) if has_threads else None,
            duration_s=Figure(lasted_s, rounding_s),
            throughput_rps=rate if self.resolution_ms == 1 else divide(len(began), Figure(lasted_s, rounding_s)),
            requests=len(began),
            failed=self.failures.total(),
            mean_s=_whole_ms(mean_ms),
            stdev_s=_whole_ms(sqrt(fmean((ms - mean_ms) ** 2 for ms in elapsed_ms))),
            min_s=_whole_ms(elapsed_ms[0]),
            max_s=_whole_ms(elapsed_ms[-1]),
            quantiles_s={quantile: _whole_ms(ms) for quantile, ms in ranks.items()},
            errors=count_by_kind(self.failures.items()),
            statuses={code: often for code, often in sorted(self.codes.items()) if code.isdigit()},
            received_bytes=self.received,
        )


def _read_time_stamp(text: str) -> tuple[int, int]:
    """Returns a time stamp and its resolution, both in milliseconds."""
    if text.isdigit():
        return int(text), 1
    try:
        at = datetime.fromisoformat(text.replace("/", "-").replace(",", "."))
    except ValueError:
        expected = "milliseconds since 1970, or a time such as 2024-01-31 10:00:00.000"
        raise ValueError(f"with the time stamp {text!r}, expected {expected}") from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return round(at.timestamp() * 1000), 1 if "." in text or "," in text else 1000


def _whole_ms(value: float) -> Figure:
    return Figure(value / 1000, 0.0005)


def _read_samples(rows: Iterable[Mapping[str, str]], name: str) -> list[ReportedResult]:
    samples, transactions = _Samples(), _Samples()
    for row in rows:
        (transactions if row.get("responseMessage", "").startswith(_TRANSACTION) else samples).add(row)
    # Some plans hide the samples inside transactions.
    samples = samples if samples.began else transactions
    if not samples.began:
        raise ValueError("without samples")
    return [samples.summarize(name)]


_XML_NAMES = {
    "ts": "timeStamp", "t": "elapsed", "rc": "responseCode", "rm": "responseMessage", "tn": "threadName",
    "s": "success", "by": "bytes",
}  # fmt: skip


def read_xml(text: str, name: str) -> list[ReportedResult]:
    """Reads a JTL file in XML: from `<testResults` to `</testResults>`."""

    def list_samples(element: ElementTree.Element) -> Iterator[Row]:
        row = {column: element.attrib[key] for key, column in _XML_NAMES.items() if key in element.attrib}
        inner = [child for child in element if child.tag in ("httpSample", "sample")]
        if inner and row.get("responseMessage", "").startswith(_TRANSACTION):
            for child in inner:
                yield from list_samples(child)
        else:
            # Samples inside other samples are embedded resources and redirections.
            yield row

    def list_all() -> Iterator[Row]:
        depth = 0
        for event, element in ElementTree.iterparse(io.BytesIO(text.encode()), ("start", "end")):
            depth += 1 if event == "start" else -1
            if event == "end" and depth == 1:
                yield from list_samples(element)
                element.clear()

    try:
        return _read_samples(list_all(), name)
    except ElementTree.ParseError as error:
        raise ValueError(f"without its end, </testResults>: {error}") from None


def _read_jmeter_report(rows: Iterator[Row], name: str) -> list[ReportedResult]:
    """Returns a result for each label. Returns only the total if the table has no labels."""
    every = list(rows)
    labels = [row for row in every if row["Label"] != "TOTAL"]
    return [_jmeter_row(row, name if len(labels) == 1 else f"{name}: {row['Label']}") for row in (labels or every)]


def _jmeter_row(row: Row, name: str) -> ReportedResult:
    requests = read_count(row["# Samples"])
    return ReportedResult(
        name=name,
        tool="JMeter",
        requests=requests,
        failed=round(requests * float(row["Error %"].rstrip("%")) / 100) if row.get("Error %") else None,
        throughput_rps=_jmeter_rate(row["Throughput"]),
        mean_s=read_number(row["Average"], 1e-3),
        min_s=read_number(row["Min"], 1e-3),
        max_s=read_number(row["Max"], 1e-3),
        stdev_s=read_number(row["Std. Dev."], 1e-3) if row.get("Std. Dev.") else None,
        quantiles_s={
            share: read_number(row[column], 1e-3) for column, share in _JMETER_PERCENTS.items() if row.get(column)
        },
    )


def _jmeter_rate(text: str) -> Figure:
    """Reads a rate such as `75.8`. Also reads `1.5/min`, the form in JMeter's window."""
    number, _, unit = text.partition("/")
    units = {"": 1.0, "sec": 1.0, "min": 1 / 60, "hour": 1 / 3600}
    if unit not in units:
        raise ValueError(f"with the throughput {text!r}, expected a number, or a number with /sec, /min or /hour")
    return read_number(number, units[unit])


def _read_locust(rows: Iterator[Row], name: str) -> list[ReportedResult]:
    """Reads the aggregated row of Locust's table. Locust rounds percentiles to two significant digits."""
    every = list(rows)
    row = next((row for row in every if row["Name"] in ("Aggregated", "Total")), every[-1])
    requests = read_count(row["Request Count"])
    # Without a request Locust prints zeros.
    columns = {column: round(float(column[:-1]) / 100, 6) for column in row if column.endswith("%") and requests}
    total = ReportedResult(
        name=name,
        tool="Locust",
        throughput_rps=read_number(row["Requests/s"]),
        requests=requests,
        failed=read_count(row["Failure Count"]),
        mean_s=read_number(row["Average Response Time"], 1e-3) if requests else None,
        min_s=read_number(row["Min Response Time"], 1e-3) if requests else None,
        max_s=read_number(row["Max Response Time"], 1e-3) if requests else None,
        quantiles_s={
            quantile: widen(read_number(row[column], 1e-3), share=0.05)
            for column, quantile in columns.items()
            if row[column] != "N/A" and quantile < 1
        },
    )
    return [total]


def _read_locust_history(rows: Iterator[Row], name: str) -> list[ReportedResult]:
    """Reads the last aggregated row of Locust's history. Percentiles and rates of a row cover only some seconds."""
    every = [row for row in rows if row["Name"] in ("Aggregated", "Total")]
    if not every:
        raise ValueError("without a row with the name 'Aggregated'")
    last = every[-1]
    requests = read_count(last["Total Request Count"])
    lasted_s = Figure(float(read_count(last["Timestamp"]) - read_count(every[0]["Timestamp"])), 1.0)
    total = ReportedResult(
        name=name,
        tool="Locust",
        users=max(read_count(row["User Count"]) for row in every) or None,
        duration_s=lasted_s,
        throughput_rps=divide(requests, lasted_s),
        requests=requests,
        failed=read_count(last["Total Failure Count"]),
        mean_s=read_number(last["Total Average Response Time"], 1e-3) if requests else None,
        min_s=read_number(last["Total Min Response Time"], 1e-3) if requests else None,
        max_s=read_number(last["Total Max Response Time"], 1e-3) if requests else None,
    )
    return [total]


def read_locust_failures(text: str) -> dict[str, int]:
    """Returns the number of failures by kind from Locust's `_failures.csv`."""
    return count_by_kind((row["Error"], int(row["Occurrences"])) for row in csv.DictReader(io.StringIO(text)))


TABLE_FORMATS = (
    TableFormat("JMeter (JTL)", frozenset(("timeStamp", "elapsed")), _read_samples),
    TableFormat(
        "JMeter (summary or aggregate report)",
        frozenset(("Label", "# Samples", "Average", "Min", "Max", "Throughput")),
        _read_jmeter_report,
    ),
    TableFormat(
        "Locust (history CSV)",
        frozenset(("Timestamp", "User Count", "Name", "Total Request Count", "Total Average Response Time")),
        _read_locust_history,
    ),
    TableFormat(
        "Locust (stats CSV)",
        frozenset(("Name", "Request Count", "Average Response Time", "Requests/s")),
        _read_locust,
    ),
)
_HINTS = ("timeStamp", "# Samples", "Request Count")
"""Texts in the headers of the tables: each header has one of these texts."""


def find_table(line: str) -> tuple[TableFormat, list[str], str] | None:
    """Returns the format, the columns and the delimiter of a table from its header; None if `line` is no header."""
    if not any(hint in line for hint in _HINTS):
        return None
    for delimiter in ",;\t|":
        columns = [column.strip() for column in next(csv.reader([line], delimiter=delimiter), [])]
        for format_ in TABLE_FORMATS:
            if format_.columns <= set(columns):
                return format_, columns, delimiter
    return None


class TableRows:
    """The rows below a header, up to the first line that is not a row. `end`: the number of lines read."""

    def __init__(self, lines: Iterable[str], columns: list[str], delimiter: str) -> None:
        self._reader = csv.reader(lines, delimiter=delimiter)
        self._columns = columns
        self.end = 0

    def __iter__(self) -> Iterator[Row]:
        columns = self._columns
        count = 0
        for cells in self._reader:
            if (len(cells) == 1 and not cells[0][:1].isdigit() and cells[0].strip()) or cells == columns:
                return
            self.end = self._reader.line_num
            if not cells or cells == [""]:
                continue
            if len(cells) != len(columns):
                raise ValueError(f"with a row that ends too early: found {len(cells)} of {len(columns)} values")
            count += 1
            yield dict(zip(columns, cells, strict=True))
        if not count:
            raise ValueError("without rows")
