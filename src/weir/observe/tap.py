"""What the kernel saw of the requests to a server, whoever made them: the packets between the two, timed (`weir-engine tap`)."""

import threading
from collections.abc import Sequence

from weir.engine_process import EngineProcess, Record
from weir.model.errors import TargetError
from weir.model.tap import TapResult


class Tap:
    """Looks at packets until `result` is asked for. A context manager.

    Args:
        ports: ports of servers, 1 to 16.
        one_in: one in so many connections is looked at: what that saves is in `docs/reference/engine.md`.
        interface: the network interface between the server and its clients.

    Raises:
        UsageError: there is no such interface, or no engine.
        TargetError: this process may not look at packets (CAP_NET_RAW).
    """

    def __init__(self, ports: Sequence[int], one_in: int = 1, interface: str = "lo") -> None:
        self._result: TapResult | None = None
        self._is_looking = False
        self._said = threading.Event()
        arguments = ["tap", *(f"--port={port}" for port in ports), f"--one-in={one_in}", f"--interface={interface}"]
        self._process = EngineProcess(arguments, on_record=self._take, on_end=self._said.set)
        self._said.wait()
        if not self._is_looking:
            self._process.end()
            raise self._process.error()

    def result(self) -> TapResult:
        """Ends it, and gives what it saw: of the last request of a connection, whose end nothing has shown yet, what came until now.

        Raises:
            TargetError: it ended before it was asked to.
        """
        self.close()
        if self._process.failure is not None:
            raise TargetError(f"weir-engine tap: {self._process.failure}")
        if self._result is None:
            raise self._process.error()
        return self._result

    def close(self) -> None:
        """Ends it."""
        self._process.end()

    def __enter__(self) -> "Tap":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, record: Record) -> None:
        if record.get("record") == "hello":
            self._is_looking = True
            self._said.set()
        elif record.get("record") == "end":
            self._result = TapResult.model_validate(record)
