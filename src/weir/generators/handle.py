"""Defines the handle of a running load, for weir's engine and external tools alike, and the source of loads."""

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weir.engine_process import Closing
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver

if TYPE_CHECKING:
    # No import at run time: a front end starts its load before it imports pydantic.
    from weir.model.records import LoadEnd


class LoadHandle(Closing):
    """A running load. `result` waits for the load's end. The caller must call `close`."""

    @abstractmethod
    def stop(self) -> None:
        """Ends the load early. `result` then returns the measurement until this moment."""

    @abstractmethod
    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the load. Returns False after `timeout_s` seconds."""

    @abstractmethod
    def result(self) -> "LoadEnd":
        """Waits for the end of the load, and returns the load's result. Raises UsageError if the generator rejects the
        plan, TargetError if the target is not reachable, and GeneratorError if the generator fails."""

    def result_or_stop(self, *others: "LoadHandle") -> "LoadEnd":
        """Returns the same as `result`. Ctrl-C stops this load and the others, and keeps their measurements so far."""
        try:
            return self.result()
        except KeyboardInterrupt:
            for load in {self, *others}:
                load.stop()
            return self.result()


class StopSwitch:
    """A switch that stops a load. An observer can have the switch before the load exists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_stopped = False
        self._load: LoadHandle | None = None

    def stop(self) -> None:
        """Ends the load early, now or as soon as the load is connected. Any thread may call this method."""
        with self._lock:
            self._is_stopped = True
            if self._load is not None:
                self._load.stop()

    @contextmanager
    def connected(self, load: LoadHandle) -> Iterator[None]:
        """Connects the switch to a load for the length of the context."""
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
    """The machines on which weir's engine makes loads, and a function that starts a load there."""

    start: StartLoad
    address: str | None = None
    """This machine's address, as seen from the load's machine. None: loopback."""
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """A mapping from each machine's name to facts about this machine, for the run file."""
    threads: tuple[int, ...] | None = None
    """Number of load threads on each machine. None: the number in the plan."""
