"""Reads the tables that JMeter (JTL) and k6 (CSV) write while they run, and makes records of their rows."""

import csv
import io
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from weir.compat.reports.failures import classify_failure
from weir.generators.scripted.lines import Claims, Ended, Line, News, RequestRow, Started, Stopped
from weir.generators.scripted.process_use import ProcessUse

_READ_BYTES = 1 << 20
_JITTER_NS = 1_000_000_000
"""A tool may write a sample this much later than a sample that ended later."""
_MS_NS = 1_000_000
_TRANSACTION = re.compile(r"Number of samples in transaction : (\d+)")
_HOP = re.compile(r"(.+)-\d+")


@dataclass(slots=True)
class Batch:
    """The meaning of some rows. End times of requests, and `begun`, come from the tool's wall clock, in nanoseconds."""

    requests: list[RequestRow] = field(default_factory=list)
    parts: list[RequestRow] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)


class Table(ABC):
    """The meaning of the rows of one tool's table. The totals count from the start of the load."""

    prefixes: tuple[str, ...] = ("",)
    """The beginnings of the lines that weir reads."""

    def __init__(self, columns: Sequence[str]) -> None:
        """Raises ValueError if a necessary column is missing."""
        self._at = {name: index for index, name in enumerate(columns)}
        if missing := [name for name in self.needs if name not in self._at]:
            raise ValueError(f"found no column {missing[0]!r}")
        self.users = self.unsent = 0
        self.unclaimed = (0, 0)

    needs: tuple[str, ...]

    @abstractmethod
    def read(self, rows: Iterator[list[str]]) -> Batch:
        """Returns the meaning of the next rows. Raises ValueError for a row that is not readable."""

    def _get(self, row: Sequence[str], name: str) -> str:
        index = self._at.get(name)
        return "" if index is None else row[index]


class Jtl(Table):
    """JMeter's samples. The parts of a sample (redirects, resources of a page) and transactions are no requests."""

    needs = ("timeStamp", "elapsed", "label")

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__(columns)
        self._wholes: dict[str, tuple[str, int, int]] = {}
        """For each thread: the label, the start and the end of the last request."""
        self._children: dict[str, int] = {}
        """For each thread: the number of requests to come that belong to a transaction with a sample of its own."""

    def read(self, rows: Iterator[list[str]]) -> Batch:
        batch = Batch()
        for row in rows:
            start_ms, took_ms, label = (row[self._at[name]] for name in self.needs)
            start_ns = int(start_ms) * _MS_NS
            elapsed_ms = int(took_ms)
            end_ns = start_ns + elapsed_ms * _MS_NS
            code, received = self._get(row, "responseCode"), self._get(row, "bytes")
            kind = _classify(code) if self._get(row, "success") == "false" else None
            status = int(code) if code.isdecimal() and len(code) == 3 else 0
            found = (end_ns, "", label, elapsed_ms, 0, int(received or 0), status, kind, True)
            self.users = max(self.users, int(self._get(row, "allThreads") or 0))
            if self._is_part(row, label, start_ns, end_ns, has_failed=kind is not None):
                batch.parts.append(found)
            else:
                batch.requests.append(found)
                batch.begun.append(start_ns)
        return batch

    def _is_part(self, row: list[str], label: str, start_ns: int, end_ns: int, *, has_failed: bool) -> bool:
        thread = self._get(row, "threadName")
        whole, hop = self._wholes.get(thread), _HOP.fullmatch(label)
        if transaction := _TRANSACTION.match(self._get(row, "responseMessage")):
            # A transaction with a sample of its own comes before its requests, any other transaction after them.
            if whole is None or start_ns > whole[1]:
                self._children[thread] = int(transaction[1])
            return True
        if thread and whole and hop and hop[1] == whole[0] and start_ns <= whole[2]:
            return True
        self._wholes[thread] = (label, start_ns, end_ns)
        if self._children.get(thread):
            self._children[thread] -= 1
            self.unclaimed = (self.unclaimed[0] + 1, self.unclaimed[1] + has_failed)
        return False


class K6Table(Table):
    """k6's metrics. Requests of HTTP and of gRPC are requests."""

    prefixes = ("http_req_duration,", "grpc_req_duration,", "vus,", "vus_max,", "dropped_iterations,")
    needs = ("metric_name", "timestamp", "metric_value")
    time_format = "unix_micro"

    def read(self, rows: Iterator[list[str]]) -> Batch:
        batch = Batch()
        for row in rows:
            metric, at_us, value = (row[self._at[name]] for name in self.needs)
            match metric:
                case "vus" | "vus_max":
                    self.users = max(self.users, int(float(value)))
                    continue
                case "dropped_iterations":
                    self.unsent += int(float(value))
                    continue
            end_ns, took_ms = int(at_us) * 1000, float(value)
            status, method = self._get(row, "status"), self._get(row, "method")
            is_http = metric == "http_req_duration"
            kind = None
            if self._get(row, "expected_response") == "false":
                error = self._get(row, "error")
                kind = "check" if status not in ("", "0") else classify_failure(error or self._get(row, "error_code"))
            name = self._get(row, "name") or self._get(row, "url")
            number = int(status) if is_http and status.isdecimal() else 0
            batch.requests.append((end_ns, method, name, took_ms, 0, 0, number, kind, True))
            batch.begun.append(end_ns - round(took_ms * _MS_NS))
        return batch


_classify = cache(lambda code: classify_failure(f"status {code}" if code.isdecimal() or not code else code))


class TableSource:
    """A source of records (`process.Source`): the table that a tool appends to a file or writes to a named pipe.

    An existing file keeps its rows, and only new rows count. `read_claims` returns the tool's own figures at the end.
    """

    def __init__(
        self,
        path: Path,
        table: type[Table],
        version: str,
        script: str,
        read_claims: Callable[[], Claims | None],
        *,
        cpus: int,
    ) -> None:
        self._path, self._table_type, self._version, self._script = path, table, version, script
        self._read_claims, self._cpus = read_claims, cpus
        self._descriptor: int | None = None
        self._unread = b""
        self._table: Table | None = None
        self._use: ProcessUse | None = None
        self._pid = 0
        self._start_ns = self._last_ns = 0
        self._offset_ns = time.monotonic_ns() - time.time_ns()
        """CLOCK_MONOTONIC minus the wall clock."""
        self.problem = ""
        """Why weir cannot read the table. Empty: weir can read it."""
        if path.is_fifo():
            self._open()
        elif path.exists() and path.stat().st_size:
            self._open()
            with path.open("rb") as file:
                self._unread = file.readline()
            self._lines()
            os.lseek(self._descriptor or 0, 0, os.SEEK_END)

    def begin(self, pid: int) -> None:
        self._pid, self._use = pid, ProcessUse(pid)

    def read(self, timeout_s: float) -> Iterator[tuple[int, Line | None]]:
        now_ns = time.monotonic_ns()
        assert self._use is not None
        self._use.read(now_ns)
        if self._descriptor is None:
            with suppress(FileNotFoundError):
                self._open()
        found = False
        while not self.problem and self._descriptor is not None and (data := self._read_bytes()):
            found = True
            self._unread += data
            try:
                yield from self._take(self._lines())
            except (ValueError, IndexError) as error:
                self.problem = str(error)
        if not found and timeout_s:
            time.sleep(timeout_s)

    def end(self) -> Iterator[tuple[int, Line | None]]:
        if self._last_ns:
            yield 0, Stopped(at_ns=self._last_ns)
            with suppress(OSError, ValueError, KeyError):
                if claims := self._read_claims():
                    yield 0, claims
            yield 0, Ended()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)

    def _read_bytes(self) -> bytes:
        assert self._descriptor is not None
        with suppress(BlockingIOError):
            return os.read(self._descriptor, _READ_BYTES)
        return b""

    def _lines(self) -> list[str]:
        """Returns the complete lines. A line break within quotes does not end a row."""
        end = self._unread.rfind(b"\n") + 1
        while end and self._unread.count(b'"', 0, end) % 2:
            end = self._unread.rfind(b"\n", 0, end - 1) + 1
        text, self._unread = self._unread[:end].decode(errors="replace"), self._unread[end:]
        lines = list(io.StringIO(text, newline="\n"))
        if self._table is None and lines:
            heading = lines.pop(0).strip()
            self._delimiter = next((mark for mark in ",;\t|" if mark in heading), ",")
            try:
                self._table = self._table_type(heading.split(self._delimiter))
            except ValueError as error:
                self.problem = f"{error} in {heading[:60]!r}"
                return []
        return lines

    def _take(self, lines: list[str]) -> Iterator[tuple[int, Line | None]]:
        if self._table is None or self._use is None:
            return
        wanted = (line for line in lines if line.startswith(self._table.prefixes))
        batch = self._table.read(csv.reader(wanted, delimiter=self._delimiter))
        if not batch.requests and not batch.parts:
            return
        offset_ns = self._offset_ns
        begun = [at_ns + offset_ns for at_ns in batch.begun]
        requests, parts = ([(row[0] + offset_ns, *row[1:]) for row in rows] for rows in (batch.requests, batch.parts))
        if not self._last_ns:
            at_ns = min([*begun, *(row[0] - round((row[3] or 0) * 1e6) for row in parts)])
            self._start_ns = at_ns
            yield (
                0,
                Started(
                    at_ns=at_ns,
                    unix_ns=at_ns - offset_ns,
                    pid=self._pid,
                    version=self._version,
                    files=[self._script],
                    cpus=self._cpus,
                ),
            )
        self._last_ns = max([self._last_ns, *(row[0] for row in (*requests, *parts))])
        # `model_construct`: weir made these values, and a check of each value would take most of the time.
        yield (
            0,
            News.model_construct(
                at_ns=self._last_ns - _JITTER_NS,
                requests=requests,
                parts=parts,
                begun=begun,
                unsent=self._table.unsent,
                users=self._table.users,
                unclaimed=self._table.unclaimed,
                cpu_s=self._use.cpu_s(self._start_ns, self._last_ns),
                peak_rss_bytes=self._use.peak_rss_bytes,
            ),
        )
