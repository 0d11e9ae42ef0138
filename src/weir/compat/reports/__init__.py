"""Reads the reports of other tools. Recognises a report by its text, not by the file's name."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from typing import TypeVar

from weir.compat.reports.json_formats import JSON_FORMATS
from weir.compat.reports.tables import TABLE_FORMATS, TableRows, find_table, read_xml
from weir.compat.reports.text_format import (
    TextFormat,
    Values,
    clean_line,
    compile_template,
    describe_template,
    find_blocks,
    strip_prefix,
)
from weir.compat.reports.text_formats import TEXT_FORMATS
from weir.model.reported_result import Figure, ReportedResult

_T = TypeVar("_T")
_XML = "JMeter (JTL in XML)"
_FORMATS = (*TEXT_FORMATS, *JSON_FORMATS, *TABLE_FORMATS)
TOOLS = tuple(dict.fromkeys(("wrk", "wrk2", *(known.title.partition(" (")[0] for known in _FORMATS))))
"""The names of all tools whose reports weir reads."""
_FIELDS = frozenset(each.name for each in fields(ReportedResult))
_TIMES = {
    "mean_s": "mean response time",
    "stdev_s": "standard deviation",
    "min_s": "shortest response time",
    "max_s": "longest response time",
}


class ReportError(ValueError):
    """An error in a known tool's report: a figure is missing or is not a number."""


@dataclass(frozen=True, slots=True)
class _Report:
    """A report in a file. `values`: the figures of a text report, to recognise an interim report; else None."""

    line: int
    format: object
    results: list[ReportedResult]
    values: Values | None = None


def read_report(text: str, name: str) -> list[ReportedResult] | None:
    """Returns the results in all reports of a file, in their order; None without a report by a known tool.

    With several reports, the name of a result is `name` and the line in which its report begins. Raises ReportError
    if a figure in a known tool's report is missing or is not a number.
    """
    lines = text.splitlines()
    reports = sorted(_read_all(lines, name), key=lambda report: report.line)
    kept = [one for one, later in pairwise([*reports, None]) if one and not (later and _is_interim(one, later))]
    if not kept:
        _refuse_interim(lines)
    if len(kept) < 2:
        return kept[0].results if kept else None
    return [
        replace(result, name=f"{name}, line {report.line}{result.name.removeprefix(name)}")
        for report in kept
        for result in report.results
    ]


def read_single_report(text: str, name: str) -> ReportedResult:
    """Returns the only result in a text. Raises ReportError for no result or several results."""
    results = read_report(text, name)
    if results is None or len(results) != 1:
        raise ReportError(f"found {len(results or ())} reports, expected one")
    return results[0]


def _refuse_interim(lines: list[str]) -> None:
    """Raises ReportError if a text has only interim reports."""
    for number, line in enumerate(map(clean_line, lines), start=1):
        for known in TEXT_FORMATS:
            if any(compile_template(one).match(line) for one in known.interim):
                final = describe_template(known.starts[-1])
                expected = f"expected the report at the end, which begins with {final!r}"
                raise ReportError(f"line {number}: found only interim reports by {known.title}; {expected}")


def _is_interim(report: _Report, later: _Report) -> bool:
    known = report.format
    return (
        isinstance(known, TextFormat)
        and known is later.format
        and report.values is not None
        and later.values is not None
        and known.is_interim(report.values, later.values)
    )


def _read_all(lines: list[str], name: str) -> Iterator[_Report]:
    """Yields the reports of all formats. Empties lines of tables, XML and JSON before the search for text reports."""
    yield from _read_tables(lines, name)
    yield from _read_xml(lines, name)
    yield from _read_objects(lines, name)
    cleaned = [line and clean_line(line) for line in lines]
    for block in find_blocks(cleaned, TEXT_FORMATS):
        values = _guard(block.format.title, block.first, partial(block.format.read, cleaned[block.first : block.end]))
        result = _guard(block.format.title, block.first, partial(_build_result, block.format.title, values, name))
        yield _Report(block.first + 1, block.format, [result], values)


def _guard(title: str, first: int, read: Callable[[], _T]) -> _T:
    """Calls `read`. Raises ReportError, with the title and the line of the report, for an error in the report."""
    try:
        return read()
    except ValueError as error:
        raise ReportError(f"line {first + 1}: found a report by {title} {error}; expected a whole report") from None
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        problem = f"with an unreadable value ({type(error).__name__}: {error})"
        raise ReportError(f"line {first + 1}: found a report by {title} {problem}; expected a whole report") from None


def _read_tables(lines: list[str], name: str) -> Iterator[_Report]:
    number = 0
    while number < len(lines):
        first, line = number, lines[number]
        number += 1
        found = find_table(line.strip()) or find_table(strip_prefix(line))
        if found is None:
            continue
        table, columns, delimiter = found
        is_plain = find_table(line.strip()) is not None
        rows = TableRows(map(str.strip if is_plain else strip_prefix, lines[number:]), columns, delimiter)
        yield _Report(first + 1, table, _guard(table.title, first, partial(table.read, iter(rows), name)))
        number += rows.end
        lines[first:number] = [""] * (number - first)


def _read_xml(lines: list[str], name: str) -> Iterator[_Report]:
    first = None
    for number, line in enumerate(lines):
        if first is None and "<testResults" in line:
            first = number
        if first is not None and ("</testResults>" in line or number == len(lines) - 1):
            joined = "\n".join(lines[first : number + 1])
            before_end, end, _ = joined[joined.index("<testResults") :].partition("</testResults>")
            yield _Report(first + 1, _XML, _guard(_XML, first, partial(read_xml, before_end + end, name)))
            lines[first : number + 1] = [""] * (number + 1 - first)
            first = None


def _read_objects(lines: list[str], name: str) -> Iterator[_Report]:
    """Yields the reports in JSON. A report begins in a line that begins with a brace."""
    stripped = [strip_prefix(line) if "{" in line else line for line in lines]
    begins = [number for number, line in enumerate(stripped) if line.startswith("{")]
    decoder = json.JSONDecoder()
    end = 0
    for place, first in enumerate(begins):
        if first < end:
            continue
        # A file may have a million JSON objects, one a line.
        column = lines[first].index("{")
        others = (begins[later] for later in range(place + 1, len(begins)))
        after = next((other for other in others if lines[other].index("{") <= column), len(lines))
        text = "\n".join([stripped[first], *map(strip_prefix, lines[first + 1 : after])])
        try:
            value, length = decoder.raw_decode(text)
        except json.JSONDecodeError as error:
            known = next((one for one in JSON_FORMATS if one.has_marked_keys(text)), None)
            if known is None:
                continue
            problem = f"that is no valid JSON ({error.msg}, line {first + error.lineno})"
            expected = "expected a whole report"
            raise ReportError(f"line {first + 1}: found a report by {known.title} {problem}; {expected}") from None
        end = first + text.count("\n", 0, length) + 1
        format_ = next((one for one in JSON_FORMATS if one.matches(value)), None)
        if format_ is not None:
            values = _guard(format_.title, first, partial(format_.read, value))
            result = _guard(format_.title, first, partial(_build_result, format_.title, values, name))
            yield _Report(first + 1, format_, [result])
        lines[first:end] = [""] * (end - first)


def _build_result(title: str, values: Values, name: str) -> ReportedResult:
    """Returns a result from the values of a report. Raises ValueError if a figure is not finite or is negative."""
    tool = title.partition(" (")[0]
    known: Values = {"tool": tool} | {key: value for key, value in values.items() if key in _FIELDS}
    quantiles = known.get("quantiles_s", {}).items()
    # Without enough samples, some tools print NaN as a percentile.
    known["quantiles_s"] = {at: figure for at, figure in quantiles if at < 1 and not math.isnan(figure.value)}
    if values.get("answered", known.get("requests")) == 0:
        # Without a response, some tools print zeros, NaN, or the largest number as times.
        known = {key: value for key, value in known.items() if key not in (*_TIMES, "quantiles_s")}
    times = {**{words: known.get(key) for key, words in _TIMES.items()}, "duration": known.get("duration_s")}
    times |= {"throughput": known.get("throughput_rps")}
    times |= {f"p{at * 100:g}": figure for at, figure in known.get("quantiles_s", {}).items()}
    for words, figure in times.items():
        if isinstance(figure, Figure) and not 0 <= figure.value < math.inf:
            raise ValueError(f"with {figure.value:g} as the {words}: that is no measured value")
    return ReportedResult(name=name, **known)
