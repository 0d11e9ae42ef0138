"""What viewers may ask for. The page knows none of those who do it: each is a function that it was given, or nothing.

Extending the load of a trial is not among them: the generator reads its plan once, before the load, and a trial that somebody lengthens
because of what they see is no longer like the others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Controls:
    """What the buttons and the form do; None: there is no such button. They are called on the server's threads."""

    stop: Callable[[], bool] | None = None
    """Ends what goes on as Ctrl-C at the prompt does; False where nothing does."""
    skip: Callable[[], bool] | None = None
    """Rejects the trial that goes on, and goes on with the next; False where none does."""
    extend: Callable[[], bool] | None = None
    """Has a run go on for one more block than was asked for; False where its last one is over."""
    start: Callable[[Mapping[str, str]], None] | None = None
    """Starts the load that a form asks for, by the names of `weir load`'s flags. A `WeirError` says what is wrong with it."""

    @property
    def names(self) -> list[str]:
        """Those that there are."""
        return [name for name in ("stop", "skip", "extend", "start") if getattr(self, name) is not None]
