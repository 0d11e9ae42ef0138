"""Observers of a load: recorders, screens, logs and abort rules implement one interface, and one fan-out calls all of
them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Records are pydantic models, whose import takes longer than all else that a short load needs.
    from weir.model.records import Interval, LoadEnd, LoadEvent, LoadReady, LoadStarted, Sample


class LoadObserver:
    """Receives the records of one load, in their order. A subclass overrides the methods that it needs. The threads
    that read the records call the methods. A method stores its record or writes a line, and returns at once."""

    def on_ready(self, ready: "LoadReady") -> None:
        """Called when the engine of a held plan has opened its connections and waits for the start time."""

    def on_start(self, started: "LoadStarted") -> None:
        """Called when the load's clock has started."""

    def on_interval(self, interval: "Interval") -> None:
        """Called when the generator has reported one slice of time."""

    def on_sample(self, sample: "Sample") -> None:
        """Called when the host has read the server's processes."""

    def on_event(self, event: "LoadEvent") -> None:
        """Called on an event, such as the first failure of a kind or a stall."""

    def on_end(self, end: "LoadEnd") -> None:
        """Called at the end of the load, but not if the load fails."""


def fan_out(method: str) -> Callable[..., None]:
    """Returns a method of `LoadObservers` that calls the same method of each of its observers, in order."""

    def call(self: "LoadObservers", *values: object) -> None:
        for observer in self.observers:
            getattr(observer, method)(*values)

    return call


class LoadObservers(LoadObserver):
    """Passes each record to several observers, in the order in which they were given."""

    def __init__(self, *observers: LoadObserver | None) -> None:
        self.observers = [observer for observer in observers if observer is not None]

    def add(self, observer: LoadObserver) -> None:
        """Adds an observer. Call it before the load starts."""
        self.observers.append(observer)

    on_ready = fan_out("on_ready")
    on_start = fan_out("on_start")
    on_interval = fan_out("on_interval")
    on_sample = fan_out("on_sample")
    on_event = fan_out("on_event")
    on_end = fan_out("on_end")
