"""What a load and its observer say, into the run file while it goes on."""

import threading

from weir.model.records import Interval, LoadEvent, LoadStarted, Sample
from weir.model.run import TrialEvent
from weir.store.writer import RunWriter


class Recorder:
    """Writes what load and host say to the run file, on one time axis: seconds since the load's start.

    Both streams have readers of their own, so it locks; samples that come before the load has said when it started wait for that.
    """

    def __init__(self, writer: RunWriter, trial_id: int) -> None:
        self._writer = writer
        self._trial_id = trial_id
        self._lock = threading.Lock()
        self._start_ns: int | None = None
        self.samples: list[Sample] = []
        self.samples_elsewhere: list[Sample] = []
        """Of services on another machine, by this machine's clock."""

    @property
    def start_ns(self) -> int:
        """When the load started, CLOCK_MONOTONIC. Known once the load has ended well."""
        assert self._start_ns is not None
        return self._start_ns

    def take_sample(self, sample: Sample) -> None:
        """Keeps a sample and writes it as soon as the load's start is known."""
        with self._lock:
            self._keep(sample, self.samples)

    def take_sample_elsewhere(self, sample: Sample) -> None:
        """The same, of services on another machine."""
        with self._lock:
            self._keep(sample, self.samples_elsewhere)

    def take_start(self, started: LoadStarted) -> None:
        """The load's clock has started: what came before is written now."""
        with self._lock:
            self._start_ns = started.start_monotonic_ns
            for sample in (*self.samples, *self.samples_elsewhere):
                self._write_sample(sample)

    def _keep(self, sample: Sample, among: list[Sample]) -> None:
        among.append(sample)
        if self._start_ns is not None:
            self._write_sample(sample)

    def _write_sample(self, sample: Sample) -> None:
        self._writer.add_sample(self._trial_id, (sample.t_ns - self.start_ns) / 1e9, sample)

    def take_interval(self, interval: Interval) -> None:
        """Writes what the generator saw."""
        with self._lock:
            self._writer.add_interval(self._trial_id, interval)

    def take_event(self, event: LoadEvent) -> None:
        """Writes what happened."""
        with self._lock:
            self._writer.add_event(self._trial_id, TrialEvent(event.t_s, event.kind, event.detail))
