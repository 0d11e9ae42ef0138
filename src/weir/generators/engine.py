"""weir's own generator: one `weir-engine load`, from plan to summary."""

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weir.engine_process import EngineProcess, Record, StartEngine
from weir.model.errors import GeneratorError, TargetError
from weir.model.load import LoadPlan

if TYPE_CHECKING:
    # At run time they come with the first record that is validated: see `EngineLoad._take`.
    from weir.model.records import Interval, LoadEnd, LoadEvent, LoadReady, LoadStarted

_END_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class LoadListener:
    """What is called while a load runs, on the reader's thread."""

    on_ready: "Callable[[LoadReady], None]" = lambda _: None
    """Of a plan that is held, once."""
    on_start: "Callable[[LoadStarted], None]" = lambda _: None
    on_interval: "Callable[[Interval], None]" = lambda _: None
    on_event: "Callable[[LoadEvent], None]" = lambda _: None
    on_record: Callable[[Record], None] | None = None
    """Takes all of these as they come, in place of those above: nothing is validated then before the load is over."""


class EngineLoad:
    """A load that has been started. Use `result` to wait for it; `close` in any case.

    Args:
        plan: the load.
        listener: what is called meanwhile.
        start: starts the engine, here or on another machine.

    Raises:
        UsageError: there is no engine.
    """

    def __init__(self, plan: LoadPlan, listener: LoadListener | None = None, *, start: StartEngine = EngineProcess) -> None:
        self._listener = listener or LoadListener()
        self._end: LoadEnd | None = None
        self._finished = threading.Event()
        self._process = start(["load"], on_record=self._take, on_end=self._finished.set)
        self._process.write_line(plan.to_json())

    @property
    def pid(self) -> int:
        """The generator's process id."""
        return self._process.pid

    def begin(self, start_monotonic_ns: int) -> None:
        """Says when a load begins that is held, by the clock of the machine that it runs on."""
        self._process.write_line({"start_monotonic_ns": start_monotonic_ns})

    def stop(self) -> None:
        """Ends the load early; `result` then gives what was measured so far."""
        self._process.signal(signal.SIGTERM)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the load; False when that took longer than `timeout_s`."""
        return self._finished.wait(timeout_s)

    def result(self) -> "LoadEnd":
        """Waits for the end of the load and gives what it came to.

        Raises:
            UsageError: the plan was not accepted.
            TargetError: the target could not be reached.
            GeneratorError: the generator died.
        """
        self._finished.wait()
        if self._process.failure is not None:
            self.close()
            raise self._process.failure
        if self._end is None:
            self._process.wait(_END_GRACE_S)
            error = self._process.error()
            # What it said itself is of its target or of its plan.
            raise error if self._process.has_said_why else GeneratorError(error.message, hint=error.hint)
        return self._end

    def close(self) -> None:
        """Ends the process if it is still there."""
        self._process.end()

    def __enter__(self) -> "EngineLoad":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, record: Record) -> None:
        if self._listener.on_record is not None and record.get("record") != "end":
            self._listener.on_record(record)
            return
        # Here and not above: pydantic takes longer to import than all else that a load needs, and who asks for records as they come begins
        # its load without it.
        from pydantic import ValidationError

        from weir.model.records import Interval, LoadEnd, LoadEvent, LoadReady, LoadStarted

        try:
            match record.get("record"):
                case "ready":
                    self._listener.on_ready(LoadReady.model_validate(record))
                case "hello":
                    self._listener.on_start(LoadStarted.model_validate(record))
                case "interval":
                    self._listener.on_interval(Interval.model_validate(record))
                case "event":
                    self._listener.on_event(LoadEvent.model_validate(record))
                case "end":
                    self._end = LoadEnd.model_validate(record)
        except ValidationError as error:
            raise TargetError(
                f"weir-engine load: a record that this weir does not understand: {error.errors(include_url=False)[0]}",
                hint="weir doctor shows whether weir and weir-engine are of the same version",
            ) from None
