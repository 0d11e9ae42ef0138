"""Runs loads with weir's own generator, `weir-engine load`, from plan to summary."""

import signal
import threading
from collections.abc import Callable

from weir.engine_process import EngineProcess, Record, StartEngine
from weir.generators.handle import LoadHandle, LoadSource
from weir.model.errors import GeneratorError, TargetError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver
from weir.model.load_records import Interval, LoadEnd, LoadEvent, LoadReady, LoadStarted
from weir.model.template import fill_environment

_END_GRACE_S = 10.0


class EngineLoad(LoadHandle):
    """A running load of weir's engine. The caller must call `close`. `start` starts the engine, on this machine or on
    another machine. `on_record`, if given, receives the records as JSON without validation; the observer then receives
    only the last record. Raises UsageError if the engine is missing."""

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
        content = plan.to_json()
        if plan.scenario is not None:
            content["scenario"] = fill_environment(plan.scenario)
        self._process = start(["load"], on_record=self._take, on_end=self._finished.set)
        self.pid = self._process.pid
        self._process.write_line(content)

    def begin(self, start_monotonic_ns: int) -> None:
        """Starts a waiting load (`plan.held`) at a time in nanoseconds on CLOCK_MONOTONIC of the engine's machine."""
        self._process.write_line({"start_monotonic_ns": start_monotonic_ns})

    def stop(self) -> None:
        self._process.signal(signal.SIGTERM)

    def result(self) -> LoadEnd:
        """Waits for the end of the load and returns the load's result. Raises UsageError if the engine rejects the
        plan, TargetError if the engine cannot reach the target, and GeneratorError if the engine ends unexpectedly."""
        self._finished.wait()
        if self._process.failure is not None:
            self.close()
            raise self._process.failure
        if self._end is None:
            self._process.wait(_END_GRACE_S)
            error = self._process.error()
            # If the engine reports an error, the target or the plan is the cause.
            raise error if self._process.error_record else GeneratorError(error.message, hint=error.hint)
        return self._end

    def close(self) -> None:
        self._process.end()

    def _take(self, record: Record) -> None:
        if self._on_record is not None and record.get("record") != "end":
            self._on_record(record)
            return
        observer = self._observer
        try:
            match record.get("record"):
                case "ready":
                    observer.on_ready(LoadReady.from_json(record))
                case "hello":
                    observer.on_start(LoadStarted.from_json(record))
                case "interval":
                    observer.on_interval(Interval.from_json(record))
                case "event":
                    observer.on_event(LoadEvent.from_json(record))
                case "end":
                    self._end = LoadEnd.from_json(record)
                    observer.on_end(self._end)
        except ValueError as error:
            found = f"found an unknown record, expected a record of this version: {error}"
            hint = "weir doctor shows whether weir and weir-engine have the same version"
            raise TargetError(f"weir-engine load: {found}", hint=hint) from None


LOCAL = LoadSource(EngineLoad)
"""The source of loads on this machine."""
