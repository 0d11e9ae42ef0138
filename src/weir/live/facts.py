"""What is told of a run: facts, a few for each trial. Records of a load are those of `weir.model.records`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weir.model.records import LoadStarted, Validity


@dataclass(frozen=True, slots=True)
class About:
    """What the page is about, from the beginning."""

    title: str
    question: str = ""
    has_trials: bool = True
    """Whether there are several, so that what each came to is worth a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialBegun:
    """A trial of a run, or a load, begins."""

    number: int
    """From 1."""
    total: int | None = None
    """None where something else than a number of blocks ends the run."""
    block: int | None = None
    blocks: int | None = None
    name: str
    """Of the stack, or the URL."""
    point: str
    """Its workload, load and coordinates."""
    duration_s: float | None = None
    """How long its load is asked to last; None where something else ends it."""
    requests: int | None = None
    """After how many requests it ends; None where nobody counts them."""
    planned_s: float | None = None
    """What the whole trial takes by the plan."""


@dataclass(frozen=True, slots=True)
class Step:
    """What goes on between trials, and events of a load."""

    text: str


@dataclass(frozen=True, slots=True)
class Logs:
    """The log files of the trial."""

    files: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class LoadBegun:
    """The clock of the trial's load has started."""

    started: LoadStarted


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnded:
    """What a trial came to."""

    validity: Validity
    reasons: tuple[str, ...] = ()
    throughput_rps: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    failed: int | None = None
    run: str | None = None
    """Its run, by the name in the folder of runs, where its report can be looked at."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over."""

    text: str


Fact = TrialBegun | Step | Logs | LoadBegun | TrialEnded | Ended


@dataclass(slots=True)
class Totals:
    """Requests of a load since its start. They are counted as they come: nobody has to look."""

    answered: int = 0
    failed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
