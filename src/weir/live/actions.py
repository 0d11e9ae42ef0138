"""The actions of the page's buttons. The caller provides their functions. A viewer can add a block to a run, but cannot
extend a trial's load: a trial that is extended because of its results is not comparable with other trials."""

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
    """The functions of the buttons and of the form, for the server's threads. None: the page has no such button."""

    stop: Callable[[], bool] | None = None
    """Stops the run or load as Ctrl-C does. Returns False if nothing is running."""
    skip: Callable[[], bool] | None = None
    """Rejects the current trial and continues with the next trial. Returns False if no trial is running."""
    extend: Callable[[], bool] | None = None
    """Adds one block to the run. Returns False if the last block has already ended."""
    start: Callable[[Mapping[str, str]], None] | None = None
    """Starts a load with the form's values by field name. Raises `WeirError` if a value is invalid."""

    form: Sequence[FormField] = ()

    @property
    def names(self) -> list[str]:
        return [name for name in ("stop", "skip", "extend", "start") if getattr(self, name) is not None]
