"""Observers of a load, such as recorders, screens, logs and abort rules. `LoadObservers` calls several observers."""

from collections.abc import Callable

from weir.model.load_records import Interval, LoadEnd, LoadEvent, LoadReady, LoadStarted
from weir.model.observer_records import Sample


class LoadObserver:
    """Base class of observers. An observer receives the records of one load in order. A subclass overrides only the
    necessary methods. A slow method would delay the thread that reads the records, so each method must be fast."""

    def on_ready(self, ready: LoadReady) -> None:
        """Receives the record `ready`: a held load has opened its connections, and waits for the start time."""

    def on_start(self, started: LoadStarted) -> None:
        """Receives the record of the load's start."""

    def on_interval(self, interval: Interval) -> None:
        """Receives the generator's report about one interval of time."""

    def on_sample(self, sample: Sample) -> None:
        """Receives the host's reading of the server's processes."""

    def on_event(self, event: LoadEvent) -> None:
        """Receives an event, such as a stall or the first failed request of each kind."""

    def on_end(self, end: LoadEnd) -> None:
        """Receives the record of the load's end. weir does not call this method if the load fails."""


def fan_out(method: str) -> Callable[..., None]:
    """Returns a method for `LoadObservers`. This method calls `method` of each observer, in order."""

    def call(self: "LoadObservers", *values: object) -> None:
        for observer in self.observers:
            getattr(observer, method)(*values)

    return call


class LoadObservers(LoadObserver):
    """An observer that passes each record to several observers, in their given order."""

    def __init__(self, *observers: LoadObserver | None) -> None:
        self.observers = [observer for observer in observers if observer is not None]

    def add(self, observer: LoadObserver) -> None:
        """Adds an observer. Call this method before the load starts."""
        self.observers.append(observer)

    on_ready = fan_out("on_ready")
    on_start = fan_out("on_start")
    on_interval = fan_out("on_interval")
    on_sample = fan_out("on_sample")
    on_event = fan_out("on_event")
    on_end = fan_out("on_end")
