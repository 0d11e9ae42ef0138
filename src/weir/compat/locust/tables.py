"""Locust's tables at the terminal and its CSV files, from weir's figures."""

import csv
import os
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TextIO

from weir.compat.locust.figures import PERCENTILES, Entry, Figures
from weir.compat.locust.gathered import Gathered
from weir.model.errors import UsageError

_TYPE_WIDTH = 8
_LABELS = tuple(f"{100 * share:g}%" for share in PERCENTILES)
_STATS = (
    "Type", "Name", "Request Count", "Failure Count", "Median Response Time", "Average Response Time", "Min Response Time",
    "Max Response Time", "Average Content Size", "Requests/s", "Failures/s", *_LABELS,
)  # fmt: skip
_HISTORY = (
    "Timestamp", "User Count", "Type", "Name", "Requests/s", "Failures/s", *_LABELS, "Total Request Count", "Total Failure Count",
    "Total Median Response Time", "Total Average Response Time", "Total Min Response Time", "Total Max Response Time",
    "Total Average Content Size",
)  # fmt: skip
_FAILURES = ("Method", "Name", "Error", "Occurrences", "First Seen", "Last Seen")
_EXCEPTIONS = ("Count", "Message", "Traceback", "Nodes")
_NOTHING = ["N/A"] * len(PERCENTILES)


def name_width(columns: int | None) -> int:
    """How wide the column of names is at a terminal of so many columns; None: no terminal."""
    return 80 if columns is None else max(min(columns - 80, 80), 0)


def stats_table(figures: Figures, current: Figures, width: int) -> list[str]:
    """Counts and times of all so far.

    Args:
        figures: all so far.
        current: those whose rates are shown.
        width: of the column of names.
    """
    column = width - _TYPE_WIDTH + 4
    rule = "|".join("-" * count for count in (_TYPE_WIDTH, column, 7, 13, 7, 7, 7, 7, 8, 11))
    titles = ("Type", "Name", "# reqs", "# fails", "Avg", "Min", "Max", "Med", "req/s", "failures/s")
    row = f"%-{_TYPE_WIDTH}s %-{column}s %7s %12s |%7s %7s %7s%7s | %7s %11s"
    lines = [_stats_row(row, entry, current.get(entry.name, entry.method)) for entry in figures.entries.values()]
    return [row % titles, rule, *lines, rule, _stats_row(row, figures.total, current.total), ""]


def _stats_row(row: str, entry: Entry, current: Entry) -> str:
    times = (entry.avg_response_time, entry.min_response_time, entry.max_response_time, entry.median_response_time)
    return row % (
        entry.method, entry.name, entry.num_requests, f"{entry.num_failures}({entry.fail_ratio:.2%})", *(int(time_ms) for time_ms in times),
        f"{current.total_rps:.2f}", f"{current.total_fail_per_sec:.2f}",
    )  # fmt: skip


def percentile_table(figures: Figures, width: int) -> list[str]:
    """Within how many milliseconds shares of the requests were done."""
    row = f"%-{_TYPE_WIDTH}s %-{width}s %8s " + " ".join(["%6s"] * len(PERCENTILES))
    rule = "|".join("-" * count for count in (_TYPE_WIDTH, width, 8, *(6 for _ in PERCENTILES)))
    lines = [_percentile_row(row, entry) for entry in figures.entries.values() if entry.num_requests]
    total = figures.total
    title = "Response time percentiles (approximated)"
    return [
        title,
        row % ("Type", "Name", *_LABELS, "# reqs"),
        rule,
        *lines,
        rule,
        *([_percentile_row(row, total)] if total.num_requests else []),
        "",
    ]


def _percentile_row(row: str, entry: Entry) -> str:
    return row % (entry.method, entry.name, *_whole(entry), entry.num_requests)


def last_tables(figures: Figures, width: int) -> list[str]:
    """All of them, as they stand at the end."""
    return [
        *stats_table(figures, figures, width),
        *percentile_table(figures, width),
        *error_table(figures, width),
        *exception_table(figures, width),
    ]


def error_table(figures: Figures, width: int) -> list[str]:
    """Failures; nothing where there are none."""
    if not figures.failures:
        return []
    rule = f"{'-' * 18}|{'-' * (80 + width - 19)}"
    lines = [f"{one.count:<18d} {f'{one.method} {one.name}: {_unwrapped(one.error)}':<100s}" for one in figures.failures]
    return ["Error report", f"{'# occurrences':18} {'Error':100}", rule, *lines, rule, ""]


def exception_table(figures: Figures, width: int) -> list[str]:
    """What tasks raised; nothing where they raised nothing."""
    if not figures.exceptions:
        return []
    rule = f"{'-' * 18}|{'-' * (80 + width - 19)}"
    lines = [f"{count:<18d} {trace or message}" for (message, trace), count in figures.exceptions.items()]
    return ["Exceptions", f"{'# occurrences':18} Traceback", rule, *lines, rule, ""]


def _unwrapped(error: str) -> str:
    prefix = "CatchResponseError("
    return error[len(prefix) : -1] if error.startswith(prefix) else error


def _whole(entry: Entry) -> list[int]:
    return [round(value) for value in entry.percentiles_ms(PERCENTILES)]


class CsvFiles:
    """`PREFIX_stats.csv` and its siblings, written anew as the load goes on; the history grows. A context manager.

    Args:
        prefix: `--csv`.
        gathered: the load.
        full_history: whether the history is of each name, too.

    Raises:
        UsageError: they cannot be written.
    """

    def __init__(self, prefix: str, gathered: Gathered, *, full_history: bool) -> None:
        self._prefix = prefix
        self._gathered = gathered
        self._full_history = full_history
        self._history: TextIO = self._opened("stats_history")
        self._rows = csv.writer(self._history)
        self._rows.writerow(_HISTORY)

    def write(self, at_s: float) -> None:
        """All of them, with what there is so long after the load's start."""
        self._append(self._gathered.figures(at_s), self._gathered.current())
        self.write_totals(at_s)

    def write_totals(self, at_s: float) -> None:
        """All but the history."""
        figures = self._gathered.figures(at_s)
        workers = len(self._gathered.workers)
        nodes = "local" if workers == 1 else ", ".join(f"worker {index + 1}" for index in range(workers))
        failures = ((one.method, one.name, one.error, one.count, _at(one.first_unix_s), _at(one.last_unix_s)) for one in figures.failures)
        exceptions = ((count, message, trace, nodes) for (message, trace), count in figures.exceptions.items())
        self._replace("stats", _STATS, (_stats(entry) for entry in [*figures.entries.values(), figures.total]))
        self._replace("failures", _FAILURES, failures)
        self._replace("exceptions", _EXCEPTIONS, exceptions)

    def _append(self, figures: Figures, current: Figures) -> None:
        now = int(time.time())
        pairs = [(entry, current.get(entry.name, entry.method)) for entry in figures.entries.values()] if self._full_history else []
        for entry, recent in [*pairs, (figures.total, current.total)]:
            times = recent if self._full_history else entry
            self._rows.writerow(
                [
                    now, self._gathered.users, entry.method, entry.name, f"{recent.total_rps:2f}", f"{recent.total_fail_per_sec:2f}",
                    *_percentiles(times), entry.num_requests, entry.num_failures, round(entry.median_response_time),
                    entry.avg_response_time, entry.min_response_time, entry.max_response_time, entry.avg_content_length,
                ]
            )  # fmt: skip
        self._history.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._history.close()

    def _replace(self, name: str, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
        with self._opened(name) as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(rows)

    def _opened(self, name: str) -> TextIO:
        path = Path(f"{self._prefix}_{name}.csv")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open("w", newline="")
        except OSError as error:
            raise UsageError(f"--csv: {path}: cannot be written: {error.strerror or os.strerror(error.errno or 0)}") from None


def _stats(entry: Entry) -> list[Any]:
    return [
        entry.method, entry.name, entry.num_requests, entry.num_failures, round(entry.median_response_time), entry.avg_response_time,
        entry.min_response_time, entry.max_response_time, entry.avg_content_length, entry.total_rps, entry.total_fail_per_sec,
        *_percentiles(entry),
    ]  # fmt: skip


def _percentiles(entry: Entry) -> Sequence[Any]:
    return _whole(entry) if entry.num_requests else _NOTHING


def _at(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
