"""Writes the records of a load and of the host to the run file during the load."""

import threading

from weir.model.load_observer import LoadObserver
from weir.model.load_records import Interval, LoadEvent, LoadStarted
from weir.model.observer_records import Sample
from weir.model.run_types import TrialEvent
from weir.store.writer import RunWriter


class Recorder(LoadObserver):
    """An observer that writes intervals, samples and events, with times in seconds since the load's start. Samples wait
    in memory until the load starts. A lock is necessary: load and host call the recorder from separate threads."""

    def __init__(self, writer: RunWriter, trial_id: int) -> None:
        self._writer = writer
        self._trial_id = trial_id
        self._lock = threading.Lock()
        self._start_ns: int | None = None
        self.samples: list[Sample] = []
        self.samples_elsewhere: list[Sample] = []
        """Samples of services on another machine. weir converts their times to this machine's clock."""

    @property
    def has_started(self) -> bool:
        return self._start_ns is not None

    @property
    def start_ns(self) -> int:
        """Time of the load's start, in nanoseconds on CLOCK_MONOTONIC. Only available after the start."""
        assert self._start_ns is not None
        return self._start_ns

    def on_sample(self, sample: Sample) -> None:
        self._keep(sample, self.samples)

    def on_remote_sample(self, sample: Sample) -> None:
        self._keep(sample, self.samples_elsewhere)

    def on_start(self, started: LoadStarted) -> None:
        """Stores the time of the load's start, and writes the samples from before the start."""
        with self._lock:
            self._start_ns = started.start_monotonic_ns
            for sample in (*self.samples, *self.samples_elsewhere):
                self._write_sample(sample)

    def _keep(self, sample: Sample, among: list[Sample]) -> None:
        with self._lock:
            among.append(sample)
            if self._start_ns is not None:
                self._write_sample(sample)

    def _write_sample(self, sample: Sample) -> None:
        self._writer.add_sample(self._trial_id, (sample.t_ns - self.start_ns) / 1e9, sample)

    def on_interval(self, interval: Interval) -> None:
        with self._lock:
            self._writer.add_interval(self._trial_id, interval)

    def on_event(self, event: LoadEvent) -> None:
        with self._lock:
            self._writer.add_event(self._trial_id, TrialEvent(event.t_s, event.kind, event.detail))
