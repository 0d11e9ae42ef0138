"""Describes printed reports as data: a format is a list of templates, one for each line that weir reads.

A template is a printed line with placeholders: `Requests/sec: {throughput_rps:number}`. A placeholder has the name of a
figure and the kind of its value (`values.READERS`; default `count`); `_` matches a value that weir ignores. A space
matches any white space, and `…` matches a row of dots. A template matches only the beginning of a line.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

from weir.compat.reports.values import READERS, TIME_UNITS

Values = dict[str, Any]
"""The values of a report by name. Most names are fields of `ReportedResult`."""

_UNITS = "|".join(sorted(map(re.escape, TIME_UNITS), key=len, reverse=True))
_PLACEHOLDER = re.compile(r"\{(\w+)(?::(\w+))?\}")
_SPACED = {"time": _UNITS, "ms": _UNITS, "whole_ms": _UNITS, "size": "[kmgtp]?i?b(?:ytes)?|bytes"}
"""Patterns of the units that may follow a value after a space, by kind of value."""
_LEVEL = "INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|NOTICE"
_PREFIX = re.compile(
    r"\s*(?:"
    r"[-+*>]\s|>+(?=\S)|\|\s|│\s"  # Marks of Markdown, of a table and of a diff.
    r"|[✓✗]\s(?=\w+\.)"  # k6: a threshold.
    r"|[\w./-]+\s*\|\s"  # docker compose: the service.
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|\s?[+-]\d\d:?\d\d)?\]?:?\s"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?:?\s(?!\d)"
    r"|[A-Z][a-z]{2}\s+\d{1,2}\s\d\d:\d\d:\d\d\s\S+\s[\w.-]+(?:\[\d+\])?:\s"  # syslog.
    rf"|\[?(?:{_LEVEL}|stdout|stderr)\]?(?::[\w.]+)?:?\s(?:[FP]\s)?"
    rf"|\S+/(?:{_LEVEL})/[\w.]+:\s"  # Locust.
    r"|(?:[\w$]+\.)+[A-Z][\w$]*:\s"  # The logger of a Java program.
    r")"
)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def strip_prefix(line: str) -> str:
    """Returns a line without the marks at its start: marks of a log, of Markdown or of a terminal."""
    line = _ESCAPES.sub("", line)
    while match := _PREFIX.match(line):
        line = line[match.end() :]
    return line.strip()


def clean_line(line: str) -> str:
    """Returns a line without its prefix and without units in parentheses. Replaces table borders by spaces."""
    return re.sub(r"[|│┃`]|\*\*|\s\((?:ms|rps)\)", "  ", strip_prefix(line)).strip()


@lru_cache(maxsize=1024)
def compile_template(template: str) -> re.Pattern[str]:
    """Returns a pattern for the beginning of a line. The pattern's groups have the names of the placeholders."""
    pattern, end = "", 0
    for match in _PLACEHOLDER.finditer(template):
        pattern += _escape(template[end : match.start()])
        end = match.end()
        name, kind = match[1], match[2] or "count"
        value = ".*" if kind == "text" else r"\S+?"
        unit = rf"(?:\s(?:{_SPACED[kind]}))?" if kind in _SPACED else ""
        is_open = kind != "text" and template[end : end + 1] in ("", " ")
        border = r"(?=[\s;)\]|/]|,\s|,?$)" if is_open else ""
        group = "?:" if name == "_" else f"?P<{name}>"
        pattern += f"({group}{value}{unit}){border}"
    return re.compile(pattern + _escape(template[end:]), re.IGNORECASE)


def _escape(text: str) -> str:
    escaped = (r"[\s.]*" if part == "…" else re.escape(part) for part in re.split("(…)", text))
    return re.sub(r"(?:\\ )+", lambda _: r"\s+", "".join(escaped))


def describe_template(template: str) -> str:
    """Returns a template as a text for users, with an ellipsis for each placeholder."""
    return re.sub(r"…[\s…]*…", "…", _PLACEHOLDER.sub("…", template))


@dataclass(frozen=True)
class TextFormat:
    """A printed report of a tool."""

    title: str
    starts: tuple[str, ...]
    """The first lines of a report, in their order. A report may lack some of these lines. In a file, a new report begins
    where a line comes after another line that it should precede."""
    lines: tuple[str, ...]
    """The lines that a report must have."""
    marks: tuple[str, ...] = ()
    """Lines that only this tool prints. A text without all of these lines is not a report by this tool."""
    excludes: tuple[str, ...] = ()
    """Lines that only other tools print. A text with such a line is not a report by this tool."""
    optional: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    """Lines of a list, such as quantiles (`percent`, `quantile_s`), statuses (`status`, `responses`) or failures
    (`failures`, `message`)."""
    ends: tuple[str, ...] = ()
    """Lines that end a report."""
    interim: tuple[str, ...] = ()
    """Lines that the tool prints only in interim reports. A text with these lines must also contain a final report."""
    prepare: Callable[[Sequence[str]], Sequence[str]] = lambda lines: lines
    """Changes the lines before weir matches the templates."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Values that every report of this tool has."""
    finish: Callable[[Values], Values] = lambda values: values
    """Computes further values from the printed ones."""
    is_interim: Callable[[Values, Values], bool] = lambda values, later: False
    """Returns whether a report (`values`) is an interim report of the load that the next report (`later`) describes."""

    def read(self, lines: Sequence[str]) -> Values:
        """Returns the values in a report's lines. Raises ValueError if a line is missing or a value is unreadable."""
        values: Values = dict(self.fixed)
        lines = self.prepare(lines)
        for template in (*self.lines, *self.optional):
            found = next(find_values(template, lines), None)
            if found is None and template in self.lines:
                raise ValueError(f"without the line {describe_template(template)!r}")
            values = (found or {}) | values
        for template in self.repeated:
            for found in find_values(template, lines):
                _add_item(values, found)
        return self.finish(values)


def find_values(template: str, lines: Iterable[str]) -> Iterator[Values]:
    """Yields the values of each line that matches a template. Raises ValueError if a value is unreadable."""
    kinds = {match[1]: match[2] or "count" for match in _PLACEHOLDER.finditer(template)}
    pattern = compile_template(template)
    for line in lines:
        if match := pattern.match(line):
            try:
                yield {name: READERS[kinds[name]](text) for name, text in match.groupdict().items()}
            except ValueError as error:
                raise ValueError(f"with a wrong value in the line {line!r}: {error}") from None


def _add_item(values: Values, found: Values) -> None:
    match found:
        case {"percent": quantile, "quantile_s": time_s}:
            # bombardier and wrk2 print a second list, with other times, after the first list.
            values.setdefault("quantiles_s", {}).setdefault(quantile, time_s)
        case {"status": status, "responses": responses}:
            values.setdefault("statuses", {}).setdefault(str(status), responses)
        case {"failures": failures, "message": message}:
            if not re.fullmatch(r"\d+ responses", message):
                values.setdefault("failures", []).append((message, failures))
        case _:
            for name, value in found.items():
                values.setdefault(name, []).append(value)


@dataclass(frozen=True, slots=True)
class Block:
    """A report in a format: the lines from `first` to `end` (exclusive) of a file."""

    first: int
    end: int
    format: TextFormat


def find_blocks(lines: Sequence[str], formats: Sequence[TextFormat]) -> list[Block]:
    """Returns the reports in `lines`, in order. `lines` are results of `clean_line`."""
    starts = sorted({start for format_ in formats for start in format_.starts}, key=len, reverse=True)
    any_start = re.compile("|".join(re.sub(r"\?P<\w+>", "?:", compile_template(one).pattern) for one in starts), re.I)
    candidates = [number for number, line in enumerate(lines) if any_start.match(line)]
    found = [block for format_ in formats for block in _find_blocks(lines, candidates, format_)]
    found.sort(key=lambda block: block.first)
    ends = [*(block.first for block in found), len(lines)][1:]
    return [Block(block.first, min(block.end, end), block.format) for block, end in zip(found, ends, strict=True)]


def _find_blocks(lines: Sequence[str], candidates: Sequence[int], format_: TextFormat) -> Iterable[Block]:
    begins: list[int] = []
    start_patterns, end_patterns = ([*map(compile_template, part)] for part in (format_.starts, format_.ends))
    last_rank = len(format_.starts)
    for number in candidates:
        rank = next((rank for rank, pattern in enumerate(start_patterns) if pattern.match(lines[number])), None)
        if rank is not None:
            if rank <= last_rank:
                begins.append(number)
            last_rank = rank
    for first, end in pairwise([*begins, len(lines)]):
        ends = (number for number in range(first + 1, end) if any(one.match(lines[number]) for one in end_patterns))
        end = next(ends, end) if end_patterns else end
        part = lines[first:end]

        def has(template: str, part: Sequence[str] = part) -> bool:
            return any(map(compile_template(template).match, part))

        if all(map(has, format_.marks)) and not any(map(has, format_.excludes)):
            yield Block(first, end, format_)
