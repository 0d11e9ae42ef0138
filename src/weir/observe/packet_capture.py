"""Measures a server's response times from packets in the kernel (`weir-engine tap`). Works with any load generator."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from weir.engine_process import Closing, EngineProcess, Record
from weir.model.errors import TargetError, WeirError
from weir.model.run_types import CaptureResult

_CONNECTIONS = 8
"""Approximate number of connections that weir captures. More connections would cost more CPU time."""


class PacketCapture(Closing):
    """A capture of the packets at 1 to 16 ports of an interface, until a call of `result`. Captures only one in
    `one_in` connections, to save CPU time (see `docs/reference/engine.md`). Raises UsageError if the interface or the
    engine is missing, and TargetError if weir lacks the right to capture (CAP_NET_RAW)."""

    def __init__(self, ports: Sequence[int], one_in: int = 1, interface: str = "lo") -> None:
        self._result: CaptureResult | None = None
        self._is_capturing = False
        self._answered = threading.Event()
        arguments = ["tap", *(f"--port={port}" for port in ports), f"--one-in={one_in}", f"--interface={interface}"]
        self._process = EngineProcess(arguments, on_record=self._take, on_end=self._answered.set)
        self._answered.wait()
        if not self._is_capturing:
            self._process.end()
            raise self._process.error()

    def result(self) -> CaptureResult:
        """Ends the capture and returns the result. Counts a connection's last request even if its response is
        incomplete. Raises TargetError if the capture ended too early."""
        self.close()
        if self._process.failure is not None:
            raise TargetError(f"weir-engine tap: {self._process.failure}")
        if self._result is None:
            raise self._process.error()
        return self._result

    def close(self) -> None:
        self._process.end()

    def _take(self, record: Record) -> None:
        if record.get("record") == "hello":
            self._is_capturing = True
            self._answered.set()
        elif record.get("record") == "end":
            self._result = CaptureResult.from_json(record)


@dataclass(slots=True)
class TrialCapture:
    """The result of a trial's packet capture."""

    one_in: int
    """The number N: weir captured one in N connections."""
    result: CaptureResult | None = None
    """The capture's result. None: the study does not use `tap`, or the capture failed."""
    why_not: str = ""
    """The cause of a failed capture. Empty: the capture did not fail."""

    @property
    def all_requests(self) -> int | None:
        """The number of all requests. None if weir captured nothing, or only some connections or packets."""
        if self.result is None or self.one_in > 1 or self.result.dropped_packets:
            return None
        return self.result.requests


@contextmanager
def capture_packets(base_urls: Sequence[str], connections: int, *, enabled: bool) -> Iterator[TrialCapture]:
    """Captures packets at the ports of a load's targets in the `with` block, if `enabled` (`method.tap`). If the
    capture fails, the load continues without a capture. `why_not` then has the cause."""
    found = TrialCapture(max(1, connections // _CONNECTIONS))
    try:
        tap = PacketCapture([_read_port(url) for url in base_urls], one_in=found.one_in) if enabled else None
    except WeirError as error:
        tap, found.why_not = None, error.message
    if tap is None:
        yield found
        return
    with tap:
        yield found
        try:
            found.result = tap.result()
        except WeirError as error:
            found.why_not = error.message


def _read_port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)
