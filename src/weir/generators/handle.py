"""Defines `LoadHandle`, a running load of weir's engine or an external tool, and `LoadSource`, which starts loads."""

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from weir.engine_process import Closing
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver
from weir.model.load_records import LoadEnd


class LoadHandle(Closing):
    """A running load. `result` waits for the load's end. The caller must call `close`."""

    _finished: threading.Event
    """Set when the load has ended."""

    @abstractmethod
    def stop(self) -> None:
        """Ends the load early. `result` then returns the measurements so far."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the load. Returns whether the load has ended within `timeout_s` seconds."""
        return self._finished.wait(timeout_s)

    @abstractmethod
    def result(self) -> "LoadEnd":
        """Waits for the end of the load, and returns the load's result. Raises UsageError if the generator rejects the
        plan, TargetError if the target is not reachable, and GeneratorError if the generator fails."""

    def result_or_stop(self, *others: "LoadHandle") -> "LoadEnd":
        """Waits for the load like `result`. Ctrl-C stops this load and `others`, and keeps all measurements so far."""
        try:
            return self.result()
        except KeyboardInterrupt:
            for load in {self, *others}:
                load.stop()
            return self.result()


class StopSwitch:
    """A switch that stops a load. An observer may get the switch before the load exists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_stopped = False
        self._load: LoadHandle | None = None

    def stop(self) -> None:
        """Ends the load early: now, or at the next call of `connected`. Any thread may call this method."""
        with self._lock:
            self._is_stopped = True
            if self._load is not None:
                self._load.stop()

    @contextmanager
    def connected(self, load: LoadHandle) -> Iterator[None]:
        """Connects the switch to a load within the `with` block."""
        with self._lock:
            self._load = load
            if self._is_stopped:
                load.stop()
        try:
            yield
        finally:
            with self._lock:
                self._load = None


StartLoad = Callable[[LoadPlan, LoadObserver | None], LoadHandle]


@dataclass(frozen=True, slots=True)
class LoadSource:
    """The machines for loads of weir's engine, and a function that starts a load there."""

    start: StartLoad
    address: str | None = None
    """Address of this machine to which the load's machine can connect. None: loopback."""
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """A mapping from the name of each load machine to facts about the load machine, for the run file."""
    threads: tuple[int, ...] | None = None
    """Number of load threads on each machine. None: the number in the plan."""
