"""What a load that goes on looks like, whoever makes it: weir's engine or another program."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from weir.generators.engine import EngineLoad, LoadListener
from weir.model.load import LoadPlan
from weir.model.records import LoadEnd


class RunningLoad(Protocol):
    """A load that has been started. Use `result` to wait for it; `close` in any case. A context manager."""

    def stop(self) -> None:
        """Ends the load early; `result` then gives what was measured so far."""
        ...

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the load; False when that took longer than `timeout_s`."""
        ...

    def result(self) -> LoadEnd:
        """Waits for the end of the load and gives what it came to.

        Raises:
            UsageError: the plan was not accepted.
            TargetError: the target could not be reached, or the generator failed (`GeneratorError`).
        """
        ...

    def close(self) -> None:
        """Ends the generator if it is still there."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


BeginLoad = Callable[[LoadPlan, LoadListener | None], RunningLoad]


@dataclass(frozen=True, slots=True)
class LoadFrom:
    """Where weir's own loads come from: this machine, unless told otherwise."""

    begin: BeginLoad = EngineLoad
    address: str | None = None
    """Of this machine, as whoever makes the load reaches it; None: loopback."""
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is known of the machines that make it, by name, for the run file."""
    threads: tuple[int, ...] | None = None
    """Load threads of each of them; None: as many as the plan says."""


HERE = LoadFrom()
