"""The actions behind the page's buttons: functions from the caller. Viewers cannot extend the load of a trial, because
the generator reads its plan once, before the load. A trial that a viewer extends because of its results would not be
comparable with other trials."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of the form that starts a load."""

    name: str
    label: str
    placeholder: str
    is_long: bool
    """Whether the field may have several lines. The page shows such a field only after a click."""


@dataclass(frozen=True, slots=True)
class Controls:
    """The functions for the buttons and the form, which the server's threads call. None: the page has no such
    button."""

    stop: Callable[[], bool] | None = None
    """Stops the run or load as Ctrl-C does. Returns False if nothing is running."""
    skip: Callable[[], bool] | None = None
    """Rejects the current trial and continues with the next trial. Returns False if no trial is running."""
    extend: Callable[[], bool] | None = None
    """Adds one block to the run. Returns False if the last block of the run has ended."""
    start: Callable[[Mapping[str, str]], None] | None = None
    """Starts a load from the form's values by field name. Raises `WeirError`: a value is invalid."""

    form: Sequence[FormField] = ()

    @property
    def names(self) -> list[str]:
        return [name for name in ("stop", "skip", "extend", "start") if getattr(self, name) is not None]
