"""The types of findings: numbers with intervals, a sentence, its trials, and the measurement that would change it.

Names of fields are JSON keys. `FINDINGS_SCHEMA` rises if a key changes its meaning or disappears.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from weir.model.records import Validity
from weir.model.run_types import StopReason, UpperBound
from weir.stats import Crossing, Demand, Scalability, VarianceComponents

FINDINGS_SCHEMA = 1

Outcome = Literal["more", "less", "same", "undecided", "no interval", "not measured"]
"""`more`, `less`: the ratio is above or below 1 at 95 %; `same`: within ±2 % at 95 %; `undecided`: none of these."""
Progress = Literal["complete", "interim", "interrupted"]
"""`interim`: the run continues, or ended with its first answer; `interrupted`: trials are missing."""
BottleneckKind = Literal["resource", "software limit", "blocked event loop", "load", "upstream", "generator", "unknown"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The used trials behind a finding, and the omitted trials."""

    used: tuple[int, ...]
    """Numbers of the used trials in the run file."""
    left_out: tuple[int, ...] = ()
    """Numbers of the omitted trials in the run file."""


@dataclass(frozen=True, slots=True)
class StackFinding:
    """The fields that all findings about a single stack share."""

    where: str
    """The workload and the coordinates that all points of the finding share."""
    label: str
    name: str
    indicative: bool
    evidence: Evidence
    sentence: str


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
    """The comparison of one stack with another stack on one metric, paired by block."""

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
    """Number of blocks in which both stacks have a used trial."""
    p_value: float | None
    """p-value of "no difference", before Holm's correction."""
    p_adjusted: float | None
    """p-value after Holm's correction for all comparisons on this metric in the run."""
    outcome: Outcome
    """`same`: within 2 %; `no interval`: fewer than two pairs, or no spread between pairs."""
    indicative: bool
    """Whether the run has fewer blocks than a claim needs."""
    validity: Validity
    """The worst verdict of the comparison's trials."""
    reasons: tuple[str, ...]
    """Reasons against a better `validity`: each kind of reason once, with its number of trials."""
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
    """One service's work per completed request, over all used trials."""

    service: str
    statements: float
    """Data statements per request."""
    control_statements: float
    """Other statements per request: they begin or end a transaction, or set up a connection."""
    rows: float | None
    """Rows per request; None if the service does not count rows."""
    key_rows: float
    """Further rows per request: inserted rows that the service returned only for their keys."""
    rows_differ: str
    """Reason why equal work may need different numbers of rows; empty if the numbers must be equal."""
    bytes: dict[str, float]
    """A dict from the name of a counter of bytes to bytes per request."""
    edge: float
    """Relative uncertainty from requests at the start and the end of the loads."""
    most: tuple[StatementPerRequest, ...]
    trials: tuple[int, ...]
    """Numbers of the trials in the run file."""
    note: str = ""
    """Reason why the counts may be too low; empty if the counts are complete."""


@dataclass(frozen=True, slots=True)
class WorkComparison:
    """The comparison of the work per request of a point's stacks."""

    outcome: Literal["same", "different", "not compared"]
    """`not compared`: fewer than two stacks have figures."""
    differences: tuple[str, ...]
    """One sentence for each difference."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure beside our measurement, in the metric's unit. The published figure is data, never a target."""

    stack: str
    name: str
    metric: str
    unit: str
    value: float
    ours: float | None
    """Our measured value; None without a measurement."""
    source: str
    note: str


@dataclass(frozen=True, slots=True)
class Held:
    """An objective of the study, and its result on the used trials of a cell."""

    objective: str
    met: bool
    """Whether all used trials met the objective."""
    trials_met: int
    """Number of used trials that met the objective."""
    trials: int
    found: float | None
    """The median over trials, in the objective's unit; None if a trial lacks the figure."""
    unit: str


@dataclass(frozen=True, slots=True)
class Wave:
    """Responses to a burst that arrive together, between pauses without responses."""

    answers: float
    """Number of responses: the mean over trials."""
    begins_s: float
    """Seconds from the request to the wave's first response: the mean over trials."""
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
    """A dict from the stack's limits to their values at this point."""
    baseline: bool
    """Whether this stack is the baseline of the comparisons."""
    peak_threads: int | None
    """Maximum number of threads in any used trial."""
    peak_processes: int | None
    """Maximum number of processes in any used trial."""
    failed_share: float
    """Failed requests ÷ intended requests over the used trials; above 0 only if the study allows failures."""
    measures: tuple[Measure, ...]
    objectives: tuple[Held, ...]
    evidence: Evidence
    work: tuple[WorkPerRequest, ...] = ()
    """Work of each service; empty if the stack has no service or no trial counted the work."""
    upper_bounds: tuple[UpperBound, ...] = ()
    """Computed upper bounds of the stack's throughput, the lowest first."""
    waves: tuple[Wave, ...] = ()
    """The waves of responses to a burst; empty under other loads, and if trials differ in the number of waves."""

    def measure(self, metric: str) -> Measure:
        return next(measure for measure in self.measures if measure.metric == metric)


@dataclass(frozen=True, slots=True)
class WhatRan:
    """The build and the runtime of a stack, the same at all points."""

    label: str
    name: str
    artifact_bytes: int | None
    """Size of the build result, such as a jar; None if the stack is not built or its manifest names no such file."""
    size_ratio: float | None
    """`artifact_bytes` ÷ the baseline's size, an exact number; None for the baseline, or if a size is unknown."""
    runtimes: tuple[str, ...]
    """The runtime's version texts: none for a native program, several if the version changed between trials."""


@dataclass(frozen=True, slots=True)
class Point:
    """One workload under one load, at one value of every other coordinate, with all stacks that ran there."""

    workload: str
    load: str
    connections: int
    """Users of a closed loop, or the maximum number of connections of an open loop."""
    axis: Literal["connections", "rate_rps"]
    """The unit of `amount`: users of a closed loop (each with a connection), or arrivals per second of an open loop."""
    amount: float | None
    """Amount of load; None if it changes over time."""
    coordinates: dict[str, str]
    label: str
    """The point's name on screen: everything that varies between the run's points."""
    where: str
    """The name as the beginning of a sentence; empty if there is only one point."""
    stacks: tuple[StackFindings, ...]
    comparisons: tuple[Comparison, ...]
    published: tuple[Published, ...]
    sentence: str
    work: WorkComparison | None = None
    """The comparison of the stacks' work; None if no service counted its work."""
    upper_bounds: str = ""
    """A sentence on upper bounds and waves; empty without bounds and waves."""

    def comparison(self, label: str, metric: str) -> Comparison | None:
        return next((found for found in self.comparisons if found.label == label and found.metric == metric), None)


@dataclass(frozen=True, slots=True)
class BreakEven(StackFinding):
    """The place on an axis at which another stack becomes better on one metric."""

    axis: str
    """`connections`, `rate_rps`, or the coordinate that varies."""
    metric: str
    against_label: str
    against_name: str
    places: tuple[float, ...]
    """Places on the axis where both stacks were measured."""
    crossings: tuple[Crossing, ...]
    probability: float | None
    """Probability of any crossing, from a bootstrap over blocks; None with too few blocks."""
    blocks: int
    validity: Validity
    would_change: str


@dataclass(frozen=True, slots=True)
class Scaling(StackFinding):
    """Growth of one stack's throughput with concurrency."""

    fitted: Scalability | None
    """The fitted law; None if the law does not fit."""
    misfit: float
    """Mean relative error of the law."""
    would_change: str


@dataclass(frozen=True, slots=True)
class TierDemand:
    """The work of one tier per request, and the throughput that this work allows."""

    tier: str
    demand: Demand
    """Seconds of CPU time that the tier needs per request."""
    resource: str
    """The narrowest resource that the tier uses."""
    width_rps: float
    """The tier's highest throughput if the tier used the resource alone."""
    relative_width: float
    """The tier's width ÷ the width of the narrowest tier."""


ResourceKind = Literal["cpus", "service cpus", "quota", "service quota", "generator"]
"""`cpus` and `quota` belong to the stack; services may share these resources. `service …` belongs only to services."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """CPUs or a quota, used by one or several tiers."""

    name: str
    kind: ResourceKind
    """The owner of the CPUs or quota."""
    servers: float
    """Number of CPUs of the resource; a quota may be a fraction."""
    demand_s: float
    """CPU seconds per request of all tiers that share the resource."""
    tiers: tuple[str, ...]
    """The tiers that share the resource."""
    utilisation: float
    """Utilisation from 0 to 1, at the load with the highest throughput."""
    width_rps: float | None
    """Highest throughput with `demand_s`; None without a demand."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A test of a bottleneck: it increases one quantity and predicts the throughput."""

    of: Literal["replicas", "cpus", "limit", "users"]
    """The kind of change."""
    name: str
    """The key of the study file that changes: `connections`, `users` or the name of a limit."""
    before: int
    """The value before the change."""
    after: int
    """The value after the change."""
    predicted_ratio: float | None
    """Predicted throughput after ÷ before; None without a prediction."""


@dataclass(frozen=True, slots=True)
class Proof(StackFinding):
    """A completed experiment: the prediction and the outcome."""

    experiment: Experiment
    ratio: float
    """Throughput after ÷ before, from pairs in the same block."""
    low: float | None
    high: float | None
    blocks: int
    agrees: bool | None
    """Whether the outcome is within 10 % of the prediction; None without a clear result or a prediction."""


@dataclass(frozen=True, slots=True)
class Bottleneck(StackFinding):
    """The limit of a stack's throughput, and an experiment that would confirm it."""

    kind: BottleneckKind
    """`resource`: CPUs or a quota are full; `software limit`: threads or a pool; `load`: the load is the limit."""
    what: str
    """Name of the resource, the limit or the load."""
    throughput_rps: float
    """The highest measured throughput."""
    at: str
    """The load with the highest throughput."""
    most_rps: float | None
    """Highest throughput that the bottleneck allows; None if unknown."""
    tiers: tuple[TierDemand, ...]
    """The tiers in the order in which a request passes them, if known; else sorted by name."""
    resources: tuple[ResourceUse, ...]
    """The resources, the one with the highest utilisation first."""
    would_prove: str
    """The experiment that would confirm the bottleneck, with its predicted outcome."""
    cell: int
    """Id of the cell with the highest throughput."""
    experiment: Experiment | None
    """The experiment as `weir confirm` runs it; None if a study file cannot express the experiment."""


@dataclass(frozen=True, slots=True)
class IdenticalCopies:
    """The A/A test: how often and how much two copies of one stack differ. Smaller differences are noise."""

    compared: int
    """Number of comparisons of two copies."""
    called_different: int
    """Number of comparisons whose interval excludes 1."""
    spread: float | None
    """Typical relative difference in throughput between two copies in one block."""
    spread_low: float | None
    """Lower end of the interval of `spread`."""
    spread_high: float | None
    """Upper end of the interval of `spread`."""
    comparisons: tuple[Comparison, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Variation:
    """The shares of the sources in the variation of throughput."""

    split: VarianceComponents
    sentence: str


@dataclass(frozen=True, slots=True)
class OmittedTrial:
    """A trial that no average uses, with the reasons."""

    trial: int
    label: str
    name: str
    point: str
    block: int
    attempt: int
    """Number of the attempt, from 1. Each repeat of a rejected trial has the next number."""
    reasons: tuple[str, ...]
    """The reasons in the trial's verdict."""


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """Numbers of trials. Suspect trials count as used."""

    planned: int
    """Number of cells × blocks."""
    tried: int
    """Number of planned trials that finished, with any verdict; repeats do not count."""
    finished: int
    """Number of all finished trials, repeats included."""
    used: int
    suspect: int
    """Number of used trials with a reason for doubt."""
    left_out: int
    retried: int
    """Number of repeats of rejected trials."""
    no_steady_state: int
    """Number of used trials without a steady state."""
    extended: int
    """Number of used trials whose load was extended to find a steady state."""


@dataclass(frozen=True, slots=True)
class BrokenLaw:
    """A law that a trial's own numbers violate."""

    trial: int
    law: str
    """Name of the law."""
    fact: str
    """The trial's numbers that violate the law."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of checking every trial against the laws of arithmetic and queueing."""

    checks: int
    """Number of checks: each law counts once for each trial to which it applies."""
    trials: int
    broken: tuple[BrokenLaw, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Caution:
    """A fact that weakens the answer, with its threshold, its probable cause and the next step."""

    fact: str
    """The observation."""
    threshold: str = ""
    """The limit from which the fact matters; empty if the fact always matters."""
    cause: str = ""
    """The probable cause; empty if no cause is known."""
    next_step: str = ""
    """The next step to take; empty without a remedy."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the run's question."""

    sentence: str
    validity: Validity
    reasons: tuple[str, ...]
    """Reasons against a better validity of the answer."""
    indicative: bool
    comparisons: tuple[Comparison, ...]
    """The comparisons that the sentence mentions, in the same order and direction."""
    would_change: str


@dataclass(frozen=True, slots=True)
class SaidAgainstKernel:
    """The ratio of a response time that the generator reported to the kernel's measurement, trial by trial."""

    quantile: Literal["p50", "p99"]
    """The quantile of the response time."""
    ratio: float
    """The geometric mean of the trials' ratios."""
    low: float | None
    high: float | None
    trials: int
    within_rounding: bool
    """Whether both times differ by at most the generator's rounding in every trial."""


@dataclass(frozen=True, slots=True)
class GeneratorFindings:
    """One generator's throughput from a server at a point, the times that it reported, and its resources."""

    cell: int
    generator: str
    """The generator's name in a study file."""
    version: str
    """Name and version as the generator prints them; empty if no trial counted."""
    figures: str
    """The meaning of the generator's response times; empty for weir, whose times docs/guides/load.md explains."""
    reference: bool
    """Whether this generator is the reference for the other generators."""
    measures: tuple[Measure, ...]
    """One measure for each of `metrics.GENERATOR_METRICS`."""
    against_kernel: tuple[SaidAgainstKernel, ...]
    """The quantiles that both generator and kernel measured."""
    max_rate_rps: float | None
    """The generator's throughput on a server that does nothing; None if not measured."""
    comparisons: tuple[Comparison, ...]
    """Comparisons with the reference on each of `metrics.GENERATOR_METRICS`; empty for the reference."""
    validity: Validity
    """The worst verdict of the generator's used trials; `invalid` without used trials."""
    reasons: tuple[str, ...]
    """Reasons against a better validity, each kind of reason once."""
    notes: tuple[str, ...]
    """Reasons that concern the generator and not the server: impossible figures, nearness to its limits, failures."""
    evidence: Evidence
    sentence: str

    def measure(self, metric: str) -> Measure:
        return next(measure for measure in self.measures if measure.metric == metric)

    def comparison(self, metric: str) -> Comparison | None:
        return next((found for found in self.comparisons if found.metric == metric), None)


@dataclass(frozen=True, slots=True)
class SameServer:
    """Several generators that drive one server with one load. All differences come from the generators."""

    where: str
    """The stack, the workload and the load that the generators share. Example: 'Sanic on hello, 64 connections'."""
    label: str
    name: str
    workload: str
    load: str
    coordinates: dict[str, str]
    reference: str
    """The generator with which weir compares the others: weir itself, else the first generator."""
    generators: tuple[GeneratorFindings, ...]
    headline: str
    """A short sentence about the generators that are the limit and the generators that agree."""
    sentence: str
    """A sentence on the notable differences, with intervals, costs and times."""
    would_change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFindings:
    """All conclusions from a run file."""

    study: str = ""
    """Name of the study's file without the extension."""
    title: str
    question: str
    scale: str = ""
    """Name of the scale in the study file."""
    blocks: int
    indicative: bool
    ended: Literal["complete", "interrupted"] | None
    """How the run ended; None if the run continues or was killed."""
    stopped: StopReason | None = None
    """Reason why a complete run ended after its number of blocks."""
    answer: Answer
    points: tuple[Point, ...]
    generators: tuple[SameServer, ...] = ()
    """Each server and load with several generators, if the study varies the generator."""
    what_ran: tuple[WhatRan, ...] = ()
    """Build and runtime of each stack, once per stack."""
    break_evens: tuple[BreakEven, ...] = ()
    """The break-evens of every stack and the baseline, along each axis on which the study varies a number."""
    scalings: tuple[Scaling, ...] = ()
    """The scaling of every stack that has measurements at enough concurrencies."""
    bottlenecks: tuple[Bottleneck, ...] = ()
    """The bottleneck of every stack with observed processes."""
    proofs: tuple[Proof, ...] = ()
    """Outcomes of experiments on the bottlenecks, from the run's own cells."""
    identical_copies: IdenticalCopies | None = None
    variation: Variation | None = None
    """Sources of variation; None with fewer than two stacks in two blocks."""
    trials: TrialCounts
    left_out: tuple[OmittedTrial, ...] = ()
    audit: Audit
    cautions: tuple[Caution, ...] = ()
    claims: tuple[str, ...] = ()
    """Claims of the publication, from the study file."""
    source: str = ""

    def objectives(self) -> list[tuple[Point, StackFindings, Held]]:
        """Returns every objective at every point, without A/A copies."""
        return [
            (point, stack, held)
            for point in self.points
            for stack in point.stacks
            if stack.arm == "main"
            for held in stack.objectives
        ]

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values, `schema` first. A JSON encoder writes the tuples as lists."""
        return {"schema": FINDINGS_SCHEMA, **asdict(self)}
