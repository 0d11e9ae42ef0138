"""Observes processes that weir did not start (`weir load --watch PID`)."""

import threading
from collections.abc import Callable, Sequence

from weir.engine_process import Closing, EngineProcess, Record
from weir.model.errors import TargetError
from weir.model.observer_records import Sample

_FIRST_SAMPLE_S = 5.0


class Watch(Closing):
    """A sampler of running processes, until `close`. Keeps all samples. Raises UsageError for an unknown process."""

    def __init__(self, pids: Sequence[int], on_sample: Callable[[Sample], None] = lambda _: None) -> None:
        self.samples: list[Sample] = []
        self._on_sample = on_sample
        self._started = threading.Event()
        arguments = ["observe", *(f"--pid={pid}" for pid in pids), "--period=0.1"]
        self._process = EngineProcess(arguments, on_record=self._take, on_end=self._started.set)
        self._started.wait(_FIRST_SAMPLE_S)
        if not self.samples:
            self._process.end()
            raise self._process.error()

    def close(self) -> None:
        self._process.end()
        if self._process.failure is not None:
            raise TargetError(f"weir-engine observe: {self._process.failure}")

    def _take(self, record: Record) -> None:
        if record.get("record") == "sample":
            sample = Sample.from_json(record)
            self.samples.append(sample)
            self._on_sample(sample)
            self._started.set()
