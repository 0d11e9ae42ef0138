"""The actions behind the page's buttons. Each is a function from outside, or None. Viewers cannot extend a trial's
load: the generator reads its plan once, before the load, and a trial that someone extends because of its results is no
longer comparable with the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of the form that starts a load."""

    name: str
    label: str
    placeholder: str
    is_long: bool
    """Whether the field may have several lines; the page folds it."""


@dataclass(frozen=True, slots=True)
class Controls:
    """The actions of the buttons and the form; None: the page has no such button. The server calls them on its
    threads."""

    stop: Callable[[], bool] | None = None
    """Stops the run or load like Ctrl-C; False if nothing runs."""
    skip: Callable[[], bool] | None = None
    """Rejects the current trial and continues with the next; False if there is no current trial."""
    extend: Callable[[], bool] | None = None
    """Adds one block to the run; False if its last block is over."""
    start: Callable[[Mapping[str, str]], None] | None = None
    """Starts the load of the form, given by field names. Raises `WeirError` if the form is invalid."""

    form: Sequence[FormField] = ()

    @property
    def names(self) -> list[str]:
        return [name for name in ("stop", "skip", "extend", "start") if getattr(self, name) is not None]
