"""weir's own generator: one `weir-engine load`, from plan to summary."""

import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from weir.engine_process import EngineProcess, Record, StartEngine
from weir.generators.handle import LoadHandle, LoadSource
from weir.model.errors import GeneratorError, TargetError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver

if TYPE_CHECKING:
    # Imported late at run time: see `EngineLoad._take`.
    from weir.model.records import LoadEnd

_END_GRACE_S = 10.0


class EngineLoad(LoadHandle):
    """A load that runs. `result` waits for it; always `close` it. `start` starts the engine on this machine or another.
    `on_record` receives every record but the last as JSON, in place of the observer; weir then validates nothing during
    the load. Raises UsageError: the engine does not exist."""

    def __init__(
        self,
        plan: LoadPlan,
        observer: LoadObserver | None = None,
        *,
        start: StartEngine = EngineProcess,
        on_record: Callable[[Record], None] | None = None,
    ) -> None:
        self._observer = observer or LoadObserver()
        self._on_record = on_record
        self._end: LoadEnd | None = None
        self._finished = threading.Event()
        self._process = start(["load"], on_record=self._take, on_end=self._finished.set)
        self._process.write_line(plan.to_json())

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self, start_monotonic_ns: int) -> None:
        """Starts a load that waits for its start time, by the clock of the engine's machine."""
        self._process.write_line({"start_monotonic_ns": start_monotonic_ns})

    def stop(self) -> None:
        self._process.signal(signal.SIGTERM)

    def wait(self, timeout_s: float | None = None) -> bool:
        return self._finished.wait(timeout_s)

    def result(self) -> "LoadEnd":
        """Waits for the end of the load and returns its result. Raises UsageError (the engine rejected the plan),
        TargetError (the engine could not reach the target), GeneratorError (the generator died)."""
        self._finished.wait()
        if self._process.failure is not None:
            self.close()
            raise self._process.failure
        if self._end is None:
            self._process.wait(_END_GRACE_S)
            error = self._process.error()
            # An error that the engine reports concerns its target or its plan.
            raise error if self._process.error_record else GeneratorError(error.message, hint=error.hint)
        return self._end

    def close(self) -> None:
        self._process.end()

    def _take(self, record: Record) -> None:
        if self._on_record is not None and record.get("record") != "end":
            self._on_record(record)
            return
        # Imported here: pydantic takes longer to import than everything else that a load needs, and a caller with
        # `on_record` starts its load without it.
        from pydantic import ValidationError

        from weir.model.records import Interval, LoadEnd, LoadEvent, LoadReady, LoadStarted

        observer = self._observer
        try:
            match record.get("record"):
                case "ready":
                    observer.on_ready(LoadReady.model_validate(record))
                case "hello":
                    observer.on_start(LoadStarted.model_validate(record))
                case "interval":
                    observer.on_interval(Interval.model_validate(record))
                case "event":
                    observer.on_event(LoadEvent.model_validate(record))
                case "end":
                    self._end = LoadEnd.model_validate(record)
                    observer.on_end(self._end)
        except ValidationError as error:
            found = f"found an unknown record, expected a record of this version: {error.errors(include_url=False)[0]}"
            hint = "weir doctor shows whether weir and weir-engine have the same version"
            raise TargetError(f"weir-engine load: {found}", hint=hint) from None


LOCAL = LoadSource(EngineLoad)
"""Loads on this machine."""
