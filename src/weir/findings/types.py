"""The types of findings: numbers with their interval, a plain sentence, the trials behind it, and what would change it.

Frozen dataclasses, so `to_json` is `asdict`. `FINDINGS_SCHEMA` rises when a key changes its meaning or goes.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from weir.model.records import Validity
from weir.model.run_types import StopReason, UpperBound
from weir.stats import Crossing, Demand, Scalability, VarianceComponents

FINDINGS_SCHEMA = 1

Outcome = Literal["more", "less", "same", "undecided", "no interval", "not measured"]
"""`more`, `less`: the ratio is above or below 1 at 95 %; `same`: within ±2 % at 95 %; `undecided`: not shown."""
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
    """The fields of a finding on one stack."""

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
    """The value; None without a measurement or with too few samples, and `note` has the reason."""
    low: float | None
    high: float | None
    trials: tuple[TrialValue, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One stack against another on one metric, paired by block."""

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
    """Why `validity` is not better: each kind of reason once, with its number of trials."""
    evidence: Evidence
    sentence: str
    would_change: str

    @property
    def excludes_one(self) -> bool:
        """Whether the comparison's interval excludes 1."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


@dataclass(frozen=True, slots=True)
class StatementPerRequest:
    """One kind of statement of a service, counted by the service."""

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
    """Further rows per request: inserted rows that the service returned for the sake of their keys."""
    rows_differ: str
    """Why stacks with the same work may differ in rows; empty if the rows must be equal."""
    bytes: dict[str, float]
    """A dict from the service's name of a count to bytes per request."""
    edge: float
    """Relative uncertainty due to requests at the edges of the loads."""
    most: tuple[StatementPerRequest, ...]
    trials: tuple[int, ...]
    """Numbers of the trials in the run file."""
    note: str = ""
    """Why the count may be too low; empty if it is complete."""


@dataclass(frozen=True, slots=True)
class WorkComparison:
    """Whether the stacks of a point did the same work per request."""

    outcome: Literal["same", "different", "not compared"]
    """`not compared`: fewer than two stacks have figures."""
    differences: tuple[str, ...]
    """One sentence for each difference."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure and ours, in the unit of the metric. The published figure is data, never a target."""

    stack: str
    name: str
    metric: str
    unit: str
    value: float
    ours: float | None
    """Our measurement; None if there is none."""
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
    """Time from the request to the wave's first response: the mean over trials."""
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
    """How the stack serves requests, from its manifest."""
    arm: str
    """`main` for the first copy of the stack, or `aa` for the second copy."""
    settings: dict[str, str]
    """A dict from the stack's limits to their values at this point."""
    baseline: bool
    """Whether other stacks are compared with this one."""
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
    """None if no service counted its work."""
    upper_bounds: str = ""
    """A sentence on upper bounds and waves; empty without bounds and waves."""

    def comparison(self, label: str, metric: str) -> Comparison | None:
        return next((found for found in self.comparisons if found.label == label and found.metric == metric), None)


@dataclass(frozen=True, slots=True)
class BreakEven(StackFinding):
    """The place on an axis where another stack becomes the better one, on one metric."""

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
    """The tier's highest throughput if it had the resource alone."""
    relative_width: float
    """The tier's width ÷ the width of the narrowest tier."""


ResourceKind = Literal["cpus", "service cpus", "quota", "service quota", "generator"]
"""`cpus` and `quota` belong to the stack; services may share them. `service …` belongs to services only."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """CPUs or a quota, used by one or several tiers."""

    name: str
    kind: ResourceKind
    """The owner of the CPUs or quota."""
    servers: float
    """CPU seconds per second that the resource offers."""
    demand_s: float
    """CPU time per request of all tiers that share the resource."""
    tiers: tuple[str, ...]
    """The tiers that share the resource."""
    utilisation: float
    """Utilisation at the load with the highest throughput."""
    width_rps: float | None
    """Highest throughput with `demand_s`; None without a demand."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A test of a bottleneck: it increases one quantity and predicts the throughput."""

    of: Literal["replicas", "cpus", "limit", "users"]
    """The kind of change."""
    name: str
    """The changed key of the study file: a limit's name; `connections` or `users`."""
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
    """`resource`: CPUs or a quota are full; `software limit`: threads or a pool; `load`: the load asks for no more."""
    what: str
    """Name of the resource, the limit or the load."""
    throughput_rps: float
    """The highest measured throughput."""
    at: str
    """The load with that throughput."""
    most_rps: float | None
    """Highest throughput that the bottleneck allows; None if unknown."""
    tiers: tuple[TierDemand, ...]
    """The tiers in the order of a request's way through them if known, else sorted by name."""
    resources: tuple[ResourceUse, ...]
    """The resources, the one with the highest utilisation first."""
    would_prove: str
    """The experiment that would confirm the bottleneck, with its predicted outcome."""
    cell: int
    """Id of the cell with that load."""
    experiment: Experiment | None
    """The same experiment for `weir confirm`; None if a study file cannot express it."""


@dataclass(frozen=True, slots=True)
class IdenticalCopies:
    """The A/A test: how often and how far two copies of one stack differ. It bounds all other comparisons."""

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
    """Sources of the variation of throughput."""

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
    """Number of `planned` trials that have finished, with any verdict."""
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
    """The laws of arithmetic and queueing, checked on every trial of any generator."""

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
    """The limit from which the fact matters; empty if it always matters."""
    cause: str = ""
    """The probable cause; empty if unknown."""
    next_step: str = ""
    """A remedy; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the run's question."""

    sentence: str
    validity: Validity
    reasons: tuple[str, ...]
    """Reasons why the answer's validity is not better."""
    indicative: bool
    comparisons: tuple[Comparison, ...]
    """The comparisons in the sentence, in its direction, the best first."""
    would_change: str


@dataclass(frozen=True, slots=True)
class SaidAgainstKernel:
    """A response time that the generator reported ÷ the same time that the kernel measured, trial by trial."""

    quantile: Literal["p50", "p99"]
    """The quantile of the response time."""
    ratio: float
    """The ratio over trials."""
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
    """Whether the other generators are compared with this one."""
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
    """Reasons why the validity is not better, each kind once."""
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
    """Several generators drive one server with one load; any difference is the generators' own."""

    where: str
    """The stack and the other common parts. Example: 'Sanic on hello, 64 connections'."""
    label: str
    name: str
    workload: str
    load: str
    coordinates: dict[str, str]
    reference: str
    """The generator with which the others are compared: weir, or the first one."""
    generators: tuple[GeneratorFindings, ...]
    headline: str
    """A short sentence: which generator is the limit, and which generators agree."""
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
    """Why a complete run has this number of blocks."""
    answer: Answer
    points: tuple[Point, ...]
    generators: tuple[SameServer, ...] = ()
    """Each server and load with several generators, if the study varies the generator."""
    what_ran: tuple[WhatRan, ...] = ()
    """Build and runtime of each stack, once per stack."""
    break_evens: tuple[BreakEven, ...] = ()
    """Every stack against the baseline, along each axis on which the study varies a number."""
    scalings: tuple[Scaling, ...] = ()
    """The growth of every stack with measurements at enough concurrencies."""
    bottlenecks: tuple[Bottleneck, ...] = ()
    """The bottleneck of every stack with observed processes."""
    proofs: tuple[Proof, ...] = ()
    """Experiments on these bottlenecks within the run."""
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
