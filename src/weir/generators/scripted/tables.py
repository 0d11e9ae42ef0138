"""Makes records from the samples that JMeter and k6 write while they run. JMeter writes a CSV table (JTL). k6 writes
lines of JSON, or weir's own output."""

import csv
import fcntl
import io
import math
import os
import re
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from weir.compat.reports.failures import classify_failure
from weir.generators.scripted.lines import REQUEST, Claims, Ended, Line, News, Outcome, Started, Stopped
from weir.generators.scripted.process_use import ProcessUse

_READ_BYTES = 1 << 20
_PAUSE_S = 0.01
"""Time between two reads. Without this pause, each write of the tool would wake weir. k6 writes at most 100 MB of JSON
a second. So the pipe needs space for 1 MB."""
_JITTER_NS = 1_000_000_000
"""A tool may write samples out of order: a sample at most this long after a sample with a later end."""
_MS_NS = 1_000_000
_JTL_COLUMNS = (
    "timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "success", "bytes", "allThreads",
)  # fmt: skip
"""Only the first three columns are necessary."""
# A pattern with a line break is six times as fast as one with `^`. k6 writes 13 lines (4 kB) per request.
_K6_LINE = re.compile(
    rb'\n(\{"metric":"(?:http_req_duration|grpc_req_duration|vus|vus_max|dropped_iterations)","type":"Point",[^\n]*)'
)
_TRANSACTION = re.compile(r"Number of samples in transaction : (\d+)")
_HOP = re.compile(r"(.+)-\d+")
Requests = NDArray[np.void]
"""An array of `REQUEST`. The end times come from the tool's wall clock."""


class Samples(ABC):
    """Parses the lines of one tool. The totals count from the start of the load."""

    def __init__(self) -> None:
        self.users = self.unsent = 0
        self.unclaimed = (0, 0)
        self.new_outcomes: list[Outcome] = []
        self._outcomes: dict[Outcome, int] = {}
        """A dict from each outcome to its index."""

    @abstractmethod
    def read(self, unread: bytes) -> tuple[Requests, bytes]:
        """Returns the requests in complete lines, and the bytes of the last, incomplete line. Raises ValueError or
        IndexError for an unreadable line."""

    def _number(self, outcome: Outcome) -> int:
        number = self._outcomes.get(outcome)
        if number is None:
            number = self._outcomes[outcome] = len(self._outcomes)
            self.new_outcomes.append(outcome)
        return number


class Jtl(Samples):
    """JMeter's samples. Transactions, and parts of a sample (redirects, page resources), do not count as requests."""

    def __init__(self) -> None:
        super().__init__()
        self._columns: list[str] = []
        """The heading. Empty: not read yet."""
        self._numbers: dict[tuple[str, str, str, bool], int] = {}
        """The index of the outcome for a label, a response code, the column `success` and `Outcome.is_part`."""
        self._delimiter = ","
        self._wholes: dict[str, tuple[str, int, int]] = {}
        """For each thread: the label, the start and the end of the last request."""
        self._children: dict[str, int] = {}
        """For each thread: the number of requests to come that belong to a transaction with a sample of its own."""

    def read(self, unread: bytes) -> tuple[Requests, bytes]:
        end = unread.rfind(b"\n") + 1
        # A line break within quotes does not end a row.
        while end and unread.count(b'"', 0, end) % 2:
            end = unread.rfind(b"\n", 0, end - 1) + 1
        text = unread[:end].decode(errors="replace")
        if end and not self._columns:
            heading, _, text = text.partition("\n")
            self._delimiter = next((mark for mark in ",;\t|" if mark in heading), ",")
            self._columns = heading.strip().split(self._delimiter)
            if missing := [name for name in _JTL_COLUMNS[:3] if name not in self._columns]:
                raise ValueError(f"found no column {missing[0]!r} in {heading.strip()[:60]!r}")
        # Whole columns: a loop over the rows would take CPU time from JMeter.
        if '"' in text:
            rows = list(csv.reader(io.StringIO(text, newline="\n"), delimiter=self._delimiter))
            number, values = len(rows), list(chain.from_iterable(rows))
        else:
            number, values = text.count("\n"), text.replace("\n", self._delimiter).split(self._delimiter)[:-1]
        width, requests = len(self._columns), np.zeros(number, REQUEST)
        if len(values) != number * width:
            raise ValueError(f"found a row that does not have {width} columns")
        if number:
            starts, took, labels, codes, messages, threads, successes, received, users = (
                values[self._columns.index(name) :: width] if name in self._columns else [""] * number
                for name in _JTL_COLUMNS
            )
            starts_ms, took_ms = np.array(list(map(int, starts))), np.array(list(map(int, took)))
            ends_ms = starts_ms + took_ms
            parts = self._find_parts(labels, messages, threads, starts_ms.tolist(), ends_ms.tolist(), successes)
            for outcome in dict.fromkeys(zip(labels, codes, successes, parts, strict=True)):
                if outcome not in self._numbers:
                    self._numbers[outcome] = self._number_outcome(*outcome)
            requests["end_ns"], requests["response_time_ms"] = ends_ms * _MS_NS, took_ms
            requests["outcome"] = [self._numbers[key] for key in zip(labels, codes, successes, parts, strict=True)]
            requests["received_bytes"] = [int(size or 0) for size in received]
            self.users = max(self.users, *(int(then or 0) for then in set(users)))
        return requests, unread[end:]

    def _number_outcome(self, label: str, code: str, success: str, is_part: bool) -> int:
        kind = classify_failure(f"status {code}" if code.isdecimal() or not code else code)
        status = int(code) if code.isdecimal() and len(code) == 3 else 0
        failure = kind if success == "false" else None
        return self._number(Outcome("", label, status, failure, has_start=False, is_part=is_part))

    def _find_parts(
        self,
        labels: Sequence[str],
        messages: Sequence[str],
        threads: Sequence[str],
        starts_ms: Sequence[int],
        ends_ms: Sequence[int],
        successes: Sequence[str],
    ) -> list[bool]:
        """Returns `Outcome.is_part` for each row."""
        if any(self._children.values()) or any(map(_find_whole, set(labels))) or any(map(_count_requests, messages)):
            rows = zip(labels, messages, threads, starts_ms, ends_ms, successes, strict=True)
            return [self._is_part(*row) for row in rows]
        self._wholes.update(zip(threads, zip(labels, starts_ms, ends_ms, strict=True), strict=True))
        return [False] * len(labels)

    def _is_part(self, label: str, message: str, thread: str, start_ms: int, end_ms: int, success: str) -> bool:
        whole, hop_of = self._wholes.get(thread), _find_whole(label)
        if requests := _count_requests(message):
            # A transaction with a sample of its own comes before its requests, any other transaction after them.
            if whole is None or start_ms > whole[1]:
                self._children[thread] = int(requests)
            return True
        if thread and whole and hop_of == whole[0] and start_ms <= whole[2]:
            return True
        self._wholes[thread] = (label, start_ms, end_ms)
        if self._children.get(thread):
            self._children[thread] -= 1
            self.unclaimed = (self.unclaimed[0] + 1, self.unclaimed[1] + (success == "false"))
        return False


@cache
def _find_whole(label: str) -> str | None:
    """Returns `X` for a label such as `X-1`. Redirects and resources of a request `X` have such labels."""
    found = _HOP.fullmatch(label)
    return found and found[1]


@lru_cache(4096)
def _count_requests(message: str) -> str | None:
    """Returns the number in the message of a transaction; None for the message of a request."""
    found = _TRANSACTION.match(message)
    return found and found[1]


class _Tags(msgspec.Struct):
    method: str = ""
    name: str = ""
    url: str = ""
    status: str = ""
    expected_response: str = ""
    error: str = ""
    error_code: str = ""


class _Data(msgspec.Struct):
    time: datetime
    value: float
    tags: _Tags | None


class _Point(msgspec.Struct):
    metric: str
    data: _Data


class _K6News(msgspec.Struct):
    outcomes: list[list[str]] | None
    """The metric and the values of `_Tags` for each new set of tags."""
    users: float
    unsent: float


_POINT, _K6_NEWS = msgspec.json.Decoder(_Point), msgspec.json.Decoder(_K6News)
_SIZES = struct.Struct("=2I")
_GRPC = "grpc_req_duration"
"""The metric of gRPC calls. k6's totals of HTTP leave out these calls."""


class K6Points(Samples):
    """k6's metrics as lines of JSON, which cost k6 much less than its CSV. Records HTTP requests and gRPC calls."""

    def read(self, unread: bytes) -> tuple[Requests, bytes]:
        end, rows = unread.rfind(b"\n") + 1, []
        for line in _K6_LINE.findall(b"\n" + unread[:end]):
            point = _POINT.decode(line)
            match point.metric:
                case "vus" | "vus_max":
                    self.users = max(self.users, int(point.data.value))
                    continue
                case "dropped_iterations":
                    self.unsent += int(point.data.value)
                    continue
            end_ns = round(point.data.time.timestamp() * 1e6) * 1000
            number = self._number(_describe_k6(point.metric, point.data.tags or _Tags()))
            self.unclaimed = (self.unclaimed[0] + (point.metric == _GRPC), 0)
            rows.append((end_ns, number, point.data.value, 0, 0))
        return np.array(rows, REQUEST), unread[end:]


class K6Requests(Samples):
    """weir's own output of k6, which takes k6 almost no time. Only weir's build of k6 has this output
    (`data/k6/weir_output.go`). A report has the sizes of its two parts, a `_K6News` as JSON, and rows of `REQUEST`."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: list[int] = []
        """The index of the outcome of each set of tags, in k6's order."""
        self._are_grpc: list[bool] = []

    def read(self, unread: bytes) -> tuple[Requests, bytes]:
        start, packed = 0, []
        while len(unread) >= (text_at := start + _SIZES.size):
            text_bytes, rows_bytes = _SIZES.unpack_from(unread, start)
            rows_at = text_at + text_bytes
            if len(unread) < rows_at + rows_bytes:
                break
            start = rows_at + rows_bytes
            packed.append(unread[rows_at:start])
            news = _K6_NEWS.decode(unread[text_at:rows_at])
            self.users, self.unsent = int(news.users), int(news.unsent)
            for metric, *tags in news.outcomes or ():
                self._numbers.append(self._number(_describe_k6(metric, _Tags(*tags))))
                self._are_grpc.append(metric == _GRPC)
        requests = np.frombuffer(b"".join(packed), REQUEST).copy()
        if any(self._are_grpc):
            of_grpc = np.array(self._are_grpc)[requests["outcome"]]
            self.unclaimed = (self.unclaimed[0] + int(of_grpc.sum()), 0)
        requests["outcome"] = np.array(self._numbers, int)[requests["outcome"]]
        return requests, unread[start:]


def _describe_k6(metric: str, tags: _Tags) -> Outcome:
    kind = None
    if tags.expected_response == "false":
        kind = "check" if tags.status not in ("", "0") else classify_failure(tags.error or tags.error_code)
    # The status of a gRPC call is no status of HTTP.
    status = int(tags.status) if metric != _GRPC and tags.status.isdecimal() else 0
    return Outcome(tags.method, tags.name or tags.url, status, kind, has_start=False)


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
        assert self._use is not None
        self._use.read(time.monotonic_ns())
        if self._descriptor is None:
            with suppress(FileNotFoundError):
                self._open()
        data = [self._unread]
        end_s = time.monotonic() + (timeout_s or math.inf)
        while time.monotonic() < end_s:
            more = self._read_bytes()
            if more:
                data.append(more)
            elif not timeout_s:
                break
            if timeout_s and len(more) < _READ_BYTES:
                time.sleep(_PAUSE_S)
        if len(data) > 1:
            try:
                requests, self._unread = self._samples.read(b"".join(data))
            except (ValueError, IndexError) as error:
                self.problem = str(error)
            else:
                if len(requests):
                    yield from self._take(requests)

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
        with suppress(OSError):
            # Only a pipe has this setting.
            fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, _READ_BYTES)

    def _read_bytes(self) -> bytes:
        if self._descriptor is not None and not self.problem:
            with suppress(BlockingIOError):
                return os.read(self._descriptor, _READ_BYTES)
        return b""

    def _take(self, requests: Requests) -> Iterator[tuple[int, Line | None]]:
        assert self._use is not None
        requests["end_ns"] += self._offset_ns
        if not self._last_ns:
            at_ns = self._start_ns = int(
                (requests["end_ns"] - np.rint(requests["response_time_ms"] * 1e6).astype(int)).min()
            )
            started = Started(
                at_ns=at_ns,
                unix_ns=at_ns - self._offset_ns,
                pid=self._pid,
                version=self._version,
                files=[self._script],
                cpus=self._cpus,
            )
            yield 0, started
        self._last_ns = max(self._last_ns, int(requests["end_ns"].max()))
        outcomes, self._samples.new_outcomes = self._samples.new_outcomes, []
        # `model_construct`: weir made these values, and a check of each value would take most of the time.
        news = News.model_construct(
            at_ns=self._last_ns - _JITTER_NS,
            outcomes=outcomes,
            requests=requests.tobytes(),
            begun=b"",
            unsent=self._samples.unsent,
            users=self._samples.users,
            unclaimed=self._samples.unclaimed,
            cpu_s=self._use.cpu_s(self._start_ns, self._last_ns),
            peak_rss_bytes=self._use.peak_rss_bytes,
        )
        yield 0, news
