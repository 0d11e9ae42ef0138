"""The facts about a run on the live page. The records of a load are in `weir.model.load_records`."""

from dataclasses import dataclass, field

from weir.model.load_records import Validity


@dataclass(frozen=True, slots=True)
class PageInfo:
    """The title and question of the run or load on the page."""

    title: str
    question: str = ""
    has_trials: bool = True
    """Whether the page shows a table of trials: a run has several trials, a load has only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarted:
    """The start of a load, or of a trial in a run."""

    number: int
    """The number of the trial; the first trial has the number 1."""
    total: int | None = None
    """The number of trials in the run; None if the run has no fixed number of blocks."""
    block: int | None = None
    blocks: int | None = None
    name: str
    """The name of the trial's stack, or the URL of the load."""
    point: str
    """The workload, the load and the coordinates of the trial's cell."""
    duration_s: float | None = None
    requests: int | None = None
    planned_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnded:
    """The result of a trial or load."""

    validity: Validity
    reasons: tuple[str, ...] = ()
    throughput_rps: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    failed: int | None = None
    run: str | None = None
    """The name of the run in the folder of runs, for a link to the report."""


@dataclass(slots=True)
class Totals:
    """The counts of responses and failures since the start of a load."""

    answered: int = 0
    failed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
