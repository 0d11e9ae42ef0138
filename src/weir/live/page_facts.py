"""Facts about a run for the page. Records of a load are in `weir.model.records`."""

from dataclasses import dataclass, field

from weir.model.records import Validity


@dataclass(frozen=True, slots=True)
class PageInfo:
    """The page's subject."""

    title: str
    question: str = ""
    has_trials: bool = True
    """Whether there are several trials, so that a table of their results helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarted:
    """The start of a trial of a run, or of a load."""

    number: int
    """From 1."""
    total: int | None = None
    """None if something other than a number of blocks ends the run."""
    block: int | None = None
    blocks: int | None = None
    name: str
    """The stack's name, or the URL."""
    point: str
    """Its workload, load and coordinates."""
    duration_s: float | None = None
    requests: int | None = None
    planned_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnded:
    """The result of a trial."""

    validity: Validity
    reasons: tuple[str, ...] = ()
    throughput_rps: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    failed: int | None = None
    run: str | None = None
    """The name of its run in the folder of runs, which has its report."""


@dataclass(slots=True)
class Totals:
    """Requests of a load since its start, counted as they arrive."""

    answered: int = 0
    failed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
