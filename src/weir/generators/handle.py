"""The handle of a running load, the same for weir's engine and external tools, and the source of a load."""

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
    # Not at run time: a front end starts its load before it imports pydantic.
    from weir.model.records import LoadEnd


class LoadHandle(Closing):
    """A running load. `result` waits for it; always `close` it."""

    @abstractmethod
    def stop(self) -> None:
        """Ends the load early; `result` then returns the measurement so far."""

    @abstractmethod
    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the load; False after `timeout_s`."""

    @abstractmethod
    def result(self) -> "LoadEnd":
        """Waits for the end of the load and returns its result. Raises UsageError: the generator rejected the plan.
        Raises TargetError: the target could not be reached, or the generator failed (`GeneratorError`)."""

    def result_or_stop(self, *others: "LoadHandle") -> "LoadEnd":
        """As `result`, but Ctrl-C stops this load and the others, and their results are the measurements so far."""
        try:
            return self.result()
        except KeyboardInterrupt:
            for load in {self, *others}:
                load.stop()
            return self.result()


class StopSwitch:
    """Stops a load. Observers get it before the load exists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_stopped = False
        self._load: LoadHandle | None = None

    def stop(self) -> None:
        """Ends the load early, now or as soon as it is connected. Any thread may call it."""
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
    """Where a load of weir's engine runs."""

    start: StartLoad
    address: str | None = None
    """This machine's address as the load's machine reaches it; None: loopback."""
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Facts on the load's machines by name, for the run file."""
    threads: tuple[int, ...] | None = None
    """Load threads of each machine; None: the plan's number."""
