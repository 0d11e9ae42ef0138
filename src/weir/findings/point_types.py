"""The types of findings about one point of a run. Names of fields are JSON keys. `types` has the findings about several
points."""

from dataclasses import dataclass
from typing import Literal

from weir.model.load_records import Validity
from weir.model.run_types import UpperBound

Outcome = Literal["more", "less", "same", "undecided", "no interval", "not measured"]
"""`more`, `less`: the ratio is above or below 1 at 95 %; `same`: within ±2 % at 95 %; `undecided`: none of these."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The trials of a finding, and the trials that weir left out."""

    used: tuple[int, ...]
    """Ids, in the run file, of counted trials."""
    left_out: tuple[int, ...] = ()
    """Ids, in the run file, of left-out trials."""


@dataclass(frozen=True, slots=True)
class TrialValue:
    """One trial's value of a metric."""

    trial: int
    block: int
    value: float


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of one stack at one point, over its trials."""

    metric: str
    unit: str
    value: float | None
    """The measured value. None without a measurement or with too few samples; `note` then has the reason."""
    low: float | None
    high: float | None
    trials: tuple[TrialValue, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two stacks on one metric, paired by block."""

    metric: str
    label: str
    name: str
    against_label: str
    against_name: str
    ratio: float | None
    """The ratio `label` ÷ `against_label`."""
    low: float | None
    high: float | None
    pairs: int
    """Number of blocks with counted trials of both stacks."""
    p_value: float | None
    """p-value of "no difference", without Holm's correction."""
    p_adjusted: float | None
    """p-value after Holm's correction for all comparisons on this metric in the run."""
    outcome: Outcome
    """`same`: the ratio differs from 1 by at most 2 %; `no interval`: fewer than two pairs, or no spread between pairs."""
    indicative: bool
    """Whether the run has fewer blocks than a claim needs."""
    validity: Validity
    """The worst verdict of the comparison's trials."""
    reasons: tuple[str, ...]
    """Reasons why trials are not valid: one text per kind of reason, with the number of trials."""
    evidence: Evidence
    sentence: str
    would_change: str

    @property
    def excludes_one(self) -> bool:
        """Whether the comparison's interval excludes 1."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


@dataclass(frozen=True, slots=True)
class StatementPerRequest:
    """One kind of statement that a service executed and counted."""

    text: str
    """The statement's text in the service's form, without values."""
    per_request: float
    """Executions per request."""
    data: bool
    """False for statements that begin or end a transaction, or set up a connection."""


@dataclass(frozen=True, slots=True)
class WorkPerRequest:
    """The work of one service per completed request, over all counted trials."""

    service: str
    statements: float
    """Data statements per request."""
    control_statements: float
    """Statements per request that begin or end a transaction, or set up a connection."""
    rows: float | None
    """Rows per request; None if the service does not count rows."""
    key_rows: float
    """Rows per request with only the keys of inserted rows. `rows` leaves these rows out."""
    rows_differ: str
    """Reason why equal work may need different numbers of rows; empty if the numbers must be equal."""
    bytes: dict[str, float]
    """Bytes per request, by the counter's name."""
    edge: float
    """Relative uncertainty of the counts, from failed requests and from requests in flight at the end of loads."""
    most: tuple[StatementPerRequest, ...]
    trials: tuple[int, ...]
    """Ids of the trials in the run file."""
    note: str = ""
    """Reason why the counts may be too low; empty if the counts are complete."""


@dataclass(frozen=True, slots=True)
class WorkComparison:
    """A comparison of the stacks at a point by their work per request."""

    outcome: Literal["same", "different", "not compared"]
    """`not compared`: a stack lacks counts, or only one stack has counts."""
    differences: tuple[str, ...]
    """One sentence for each difference."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure and weir's measurement, both in the metric's unit."""

    stack: str
    name: str
    metric: str
    unit: str
    value: float
    ours: float | None
    """The value that weir measured; None without a measurement."""
    source: str
    note: str


@dataclass(frozen=True, slots=True)
class ObjectiveResult:
    """The result of one of the study's objectives on the counted trials of a cell."""

    objective: str
    met: bool
    """Whether all counted trials met the objective."""
    trials_met: int
    """Number of counted trials that met the objective."""
    trials: int
    found: float | None
    """Median of the objective's metric over the trials, in the objective's unit; None if a trial lacks the metric."""
    unit: str


@dataclass(frozen=True, slots=True)
class Wave:
    """A group of responses that arrive together after a burst of requests. A pause separates two waves."""

    answers: float
    """Mean number of responses over the trials."""
    begins_s: float
    """Mean time from the burst to the wave's first response, in seconds."""
    low_s: float | None
    """Lower end of the 95 % interval of `begins_s`; None with too few trials."""
    high_s: float | None
    """Upper end of the 95 % interval of `begins_s`; None with too few trials."""


@dataclass(frozen=True, slots=True)
class StackFindings:
    """Results of one stack at one point."""

    cell: int
    stack: str
    label: str
    """The label `stack` or `stack[variant]`, with ` (A/A)` for the second copy."""
    name: str
    """The short name that sentences use."""
    title: str
    """The title from the stack's manifest."""
    model: str
    """The stack's concurrency model, from its manifest."""
    arm: str
    """`main` for the first copy of the stack, or `aa` for the second copy."""
    settings: dict[str, str]
    """Values of the stack's limits at this point, by the limit's name."""
    baseline: bool
    """Whether this stack is the baseline of the comparisons."""
    peak_threads: int | None
    """Maximum number of threads in any counted trial."""
    peak_processes: int | None
    """Maximum number of processes in any counted trial."""
    failed_share: float
    """Failed requests ÷ intended requests, over the counted trials. Above 0 only if the study allows failures."""
    measures: tuple[Measure, ...]
    objectives: tuple[ObjectiveResult, ...]
    evidence: Evidence
    work: tuple[WorkPerRequest, ...] = ()
    """Work of each service; empty without services, or if no trial counted the services' work."""
    upper_bounds: tuple[UpperBound, ...] = ()
    """Computed upper bounds of the stack's throughput, the lowest first."""
    waves: tuple[Wave, ...] = ()
    """The waves of responses to a burst. Empty for other loads, or if trials differ in the number of waves."""

    def measure(self, metric: str) -> Measure:
        return next(measure for measure in self.measures if measure.metric == metric)


@dataclass(frozen=True, slots=True)
class Point:
    """One workload, one load and one value of every other coordinate, with all stacks of these conditions."""

    workload: str
    load: str
    connections: int
    """Users of a closed load, or the maximum number of connections of an open load."""
    axis: Literal["connections", "rate_rps"]
    """The unit of `amount`: users of a closed load (each with a connection), or arrivals per second of an open load."""
    amount: float | None
    """Amount of load; None if the amount changes over time."""
    coordinates: dict[str, str]
    label: str
    """The point's name in reports: the values of all coordinates that vary between the run's points."""
    where: str
    """The beginning of a sentence about the point; empty if the run has only one point."""
    stacks: tuple[StackFindings, ...]
    comparisons: tuple[Comparison, ...]
    answer_metric: str
    """The metric of the answer. If the load limits the throughput of every stack: the median response time. Otherwise,
    for example if one stack is saturated: the throughput."""
    published: tuple[Published, ...]
    sentence: str
    work: WorkComparison | None = None
    """The comparison of the stacks' work; None if no service counted its work."""
    upper_bounds: str = ""
    """A sentence about upper bounds and waves; empty without both."""

    def comparison(self, label: str, metric: str) -> Comparison | None:
        return next((found for found in self.comparisons if found.label == label and found.metric == metric), None)
