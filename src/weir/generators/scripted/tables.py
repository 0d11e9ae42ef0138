"""Reads the samples that JMeter (a CSV table, JTL) and k6 (lines of JSON) write while they run, and makes records."""

import csv
import io
import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

from weir.compat.reports.failures import classify_failure
from weir.generators.scripted.lines import Claims, Ended, Line, News, RequestRow, Started, Stopped
from weir.generators.scripted.process_use import ProcessUse

_READ_BYTES = 1 << 20
_JITTER_NS = 1_000_000_000
"""A tool may write a sample this much later than a sample that ended later."""
_MS_NS = 1_000_000
_JTL_COLUMNS = ("timeStamp", "elapsed", "label")
_K6_LINE = re.compile(
    rb'^\{"metric":"(?:http_req_duration|grpc_req_duration|vus|vus_max|dropped_iterations)","type":"Point",.*$', re.M
)
_TRANSACTION = re.compile(r"Number of samples in transaction : (\d+)")
_HOP = re.compile(r"(.+)-\d+")


@dataclass(slots=True)
class Batch:
    """The meaning of some rows. End times of requests, and `begun`, come from the tool's wall clock, in nanoseconds."""

    requests: list[RequestRow] = field(default_factory=list)
    parts: list[RequestRow] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)


class Samples(ABC):
    """The meaning of one tool's lines. The totals count from the start of the load."""

    def __init__(self) -> None:
        self.users = self.unsent = 0
        self.unclaimed = (0, 0)

    @abstractmethod
    def split(self, unread: bytes) -> tuple[list[str], bytes]:
        """Returns the complete lines that matter, and the bytes of the last, incomplete line."""

    @abstractmethod
    def read(self, lines: list[str]) -> Batch:
        """Returns the meaning of lines. Raises ValueError, KeyError or IndexError for an unreadable line."""


class Jtl(Samples):
    """JMeter's samples. The parts of a sample (redirects, resources of a page) and transactions are no requests."""

    def __init__(self) -> None:
        super().__init__()
        self._at: dict[str, int] = {}
        """The place of each column. Empty before the heading."""
        self._delimiter = ","
        self._wholes: dict[str, tuple[str, int, int]] = {}
        """For each thread: the label, the start and the end of the last request."""
        self._children: dict[str, int] = {}
        """For each thread: the number of requests to come that belong to a transaction with a sample of its own."""

    def split(self, unread: bytes) -> tuple[list[str], bytes]:
        end = unread.rfind(b"\n") + 1
        # A line break within quotes does not end a row.
        while end and unread.count(b'"', 0, end) % 2:
            end = unread.rfind(b"\n", 0, end - 1) + 1
        return list(io.StringIO(unread[:end].decode(errors="replace"), newline="\n")), unread[end:]

    def read(self, lines: list[str]) -> Batch:
        batch = Batch()
        if lines and not self._at:
            heading = lines.pop(0).strip()
            self._delimiter = next((mark for mark in ",;\t|" if mark in heading), ",")
            columns = heading.split(self._delimiter)
            if missing := [name for name in _JTL_COLUMNS if name not in columns]:
                raise ValueError(f"found no column {missing[0]!r} in {heading[:60]!r}")
            self._at = {name: index for index, name in enumerate(columns)}
        for row in csv.reader(lines, delimiter=self._delimiter):
            start_ms, took_ms, label = (row[self._at[name]] for name in _JTL_COLUMNS)
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

    def _get(self, row: Sequence[str], name: str) -> str:
        index = self._at.get(name)
        return "" if index is None else row[index]


class K6Points(Samples):
    """k6's metrics as lines of JSON, which cost k6 much less than its CSV. Requests of HTTP and gRPC are requests."""

    def split(self, unread: bytes) -> tuple[list[str], bytes]:
        end = unread.rfind(b"\n") + 1
        return [line.decode(errors="replace") for line in _K6_LINE.findall(unread, 0, end)], unread[end:]

    def read(self, lines: list[str]) -> Batch:
        batch = Batch()
        for line in lines:
            point = json.loads(line)
            metric, data = point["metric"], point["data"]
            value, tags = data["value"], data["tags"] or {}
            match metric:
                case "vus" | "vus_max":
                    self.users = max(self.users, int(value))
                    continue
                case "dropped_iterations":
                    self.unsent += int(value)
                    continue
            end_ns = round(datetime.fromisoformat(data["time"]).timestamp() * 1e6) * 1000
            status, kind = tags.get("status", ""), None
            if tags.get("expected_response") == "false":
                error = tags.get("error") or tags.get("error_code", "")
                kind = "check" if status not in ("", "0") else classify_failure(error)
            if metric == "http_req_duration":
                number = int(status) if status.isdecimal() else 0
            else:
                # k6's totals of HTTP leave out calls of gRPC, whose statuses are no statuses of HTTP.
                number, self.unclaimed = 0, (self.unclaimed[0] + 1, self.unclaimed[1])
            name = tags.get("name") or tags.get("url", "")
            batch.requests.append((end_ns, tags.get("method", ""), name, value, 0, 0, number, kind, True))
            batch.begun.append(end_ns - round(value * _MS_NS))
        return batch


_classify = cache(lambda code: classify_failure(f"status {code}" if code.isdecimal() or not code else code))


class TableSource:
    """A source of records (`process.Source`): the lines that a tool appends to a file or writes to a named pipe. An
    existing file keeps its rows, and only new rows count. `read_claims` returns the tool's own figures at the end."""

    def __init__(
        self,
        path: Path,
        samples: Samples,
        version: str,
        script: str,
        read_claims: Callable[[], Claims | None],
        *,
        cpus: int,
    ) -> None:
        self._path, self._samples, self._version, self._script = path, samples, version, script
        self._read_claims, self._cpus = read_claims, cpus
        self._descriptor: int | None = None
        self._unread = b""
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
            lines, self._unread = self._samples.split(self._unread + data)
            try:
                yield from self._take(self._samples.read(lines))
            except (ValueError, KeyError, IndexError) as error:
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

    def _take(self, batch: Batch) -> Iterator[tuple[int, Line | None]]:
        assert self._use is not None
        if not batch.requests and not batch.parts:
            return
        offset_ns = self._offset_ns
        begun = [at_ns + offset_ns for at_ns in batch.begun]
        requests, parts = ([(row[0] + offset_ns, *row[1:]) for row in rows] for rows in (batch.requests, batch.parts))
        if not self._last_ns:
            at_ns = min([*begun, *(row[0] - round((row[3] or 0) * 1e6) for row in parts)])
            self._start_ns = at_ns
            started = Started(
                at_ns=at_ns,
                unix_ns=at_ns - offset_ns,
                pid=self._pid,
                version=self._version,
                files=[self._script],
                cpus=self._cpus,
            )
            yield 0, started
        self._last_ns = max([self._last_ns, *(row[0] for row in (*requests, *parts))])
        # `model_construct`: weir made these values, and a check of each value would take most of the time.
        news = News.model_construct(
            at_ns=self._last_ns - _JITTER_NS,
            requests=requests,
            parts=parts,
            begun=begun,
            unsent=self._samples.unsent,
            users=self._samples.users,
            unclaimed=self._samples.unclaimed,
            cpu_s=self._use.cpu_s(self._start_ns, self._last_ns),
            peak_rss_bytes=self._use.peak_rss_bytes,
        )
        yield 0, news
