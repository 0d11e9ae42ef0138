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
"""`more`, `less`: the ratio is above or below 1 at 95 %; `same`: within ±2 % at 95 %; `undecided`: none of these."""
Progress = Literal["complete", "interim", "interrupted"]
"""`interim`: the run goes on, or ended with its first answer; `interrupted`: trials are missing."""
BottleneckKind = Literal["resource", "software limit", "blocked event loop", "load", "upstream", "generator", "unknown"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The trials behind a finding, and its trials that were left out."""

    used: tuple[int, ...]
    """Numbers of these trials in the run file."""
    left_out: tuple[int, ...] = ()
    """Numbers of these trials in the run file."""


@dataclass(frozen=True, slots=True)
class StackFinding:
    """The fields of a finding on one stack."""

    where: str
    """The workload and the coordinates that all its points share."""
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
    """None if nothing was measured, or if there are too few samples; `note` has the reason."""
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
    """`label` ÷ `against_label`."""
    low: float | None
    high: float | None
    pairs: int
    """Blocks in which both have a used trial."""
    p_value: float | None
    """Of "no difference", before the correction."""
    p_adjusted: float | None
    """After Holm's correction for all comparisons on this metric in the run."""
    outcome: Outcome
    """`same`: within 2 %; `no interval`: fewer than two pairs, or pairs without any spread."""
    indicative: bool
    """Fewer blocks than a claim needs."""
    validity: Validity
    """The worst verdict of its trials."""
    reasons: tuple[str, ...]
    """Why it is not better: each kind of reason once, with its number of trials."""
    evidence: Evidence
    sentence: str
    would_change: str

    @property
    def excludes_one(self) -> bool:
        """Whether its interval excludes 1."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


@dataclass(frozen=True, slots=True)
class StatementPerRequest:
    """One kind of statement of a service, by the service's own counters."""

    text: str
    """The service's text of it, without values."""
    per_request: float
    """Executions."""
    data: bool
    """False for statements that begin, end or set up."""


@dataclass(frozen=True, slots=True)
class WorkPerRequest:
    """One service's work for a completed request, over all used trials."""

    service: str
    statements: float
    """Data statements."""
    control_statements: float
    """Statements that begin, end and set up."""
    rows: float | None
    """None if the service does not count them."""
    key_rows: float
    """In addition: inserted rows that the service returned to give a driver their keys."""
    rows_differ: str
    """Why stacks with the same work may differ in rows; empty if they may not."""
    bytes: dict[str, float]
    """By the service's names."""
    edge: float
    """Relative uncertainty from requests at the edges of the loads."""
    most: tuple[StatementPerRequest, ...]
    trials: tuple[int, ...]
    """Their numbers in the run file."""
    note: str = ""
    """Why the count may be too low."""


@dataclass(frozen=True, slots=True)
class WorkComparison:
    """Whether the stacks of a point did the same work per request."""

    outcome: Literal["same", "different", "not compared"]
    """`not compared`: fewer than two stacks have figures."""
    differences: tuple[str, ...]
    """A sentence each."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure beside ours, in the unit of the metric. It is data, never a target."""

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
    """An objective of the study, checked on the used trials of a cell."""

    objective: str
    met: bool
    """In all used trials."""
    trials_met: int
    """Used trials that met it."""
    trials: int
    found: float | None
    """The median over trials, in the objective's unit; None if a trial lacks the figure."""
    unit: str


@dataclass(frozen=True, slots=True)
class Wave:
    """Responses to a burst that arrive together, between pauses without responses."""

    answers: float
    """The mean over trials."""
    begins_s: float
    """Time from the request to the first of them: the mean over trials."""
    low_s: float | None
    """Lower end of its 95 % interval; None with too few trials."""
    high_s: float | None
    """Upper end of its 95 % interval; None with too few trials."""


@dataclass(frozen=True, slots=True)
class StackFindings:
    """Results of one stack at one point."""

    cell: int
    stack: str
    label: str
    """`stack` or `stack[variant]`, with ` (A/A)` for the second copy."""
    name: str
    """The short name that sentences use."""
    title: str
    """From its manifest."""
    model: str
    """How it serves requests, from its manifest."""
    arm: str
    """`main`, or `aa` for the second copy."""
    settings: dict[str, str]
    """Its limits and their values at this point."""
    baseline: bool
    """Whether the others are compared with it."""
    peak_threads: int | None
    """The highest count in any used trial."""
    peak_processes: int | None
    """The highest count in any used trial."""
    failed_share: float
    """Failed requests ÷ intended requests over the used trials; above 0 only if the study allows failures."""
    measures: tuple[Measure, ...]
    objectives: tuple[Held, ...]
    evidence: Evidence
    work: tuple[WorkPerRequest, ...] = ()
    """By service; empty if the stack has no service or no trial counted its work."""
    upper_bounds: tuple[UpperBound, ...] = ()
    """Upper bounds of its throughput by arithmetic, the lowest first."""
    waves: tuple[Wave, ...] = ()
    """The waves of its responses to a burst; empty under other loads, and if trials differ in the number of waves."""

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
    """That size ÷ the baseline's, which is exact; None if either is unknown, and for the baseline."""
    runtimes: tuple[str, ...]
    """The runtime's own version texts; empty for a native program, several if it changed between trials."""


@dataclass(frozen=True, slots=True)
class Point:
    """One workload under one load, at one value of everything else that varies, with every stack that ran there."""

    workload: str
    load: str
    connections: int
    """Users of a closed loop; the most connections of an open one."""
    axis: Literal["connections", "rate_rps"]
    """The unit of `amount`: users of a closed loop, each with a connection, or arrivals a second of an open one."""
    amount: float | None
    """Amount of load; None if it changes over time."""
    coordinates: dict[str, str]
    label: str
    """Its name on screen: everything that varies between the run's points."""
    where: str
    """The same as the beginning of a sentence; empty if there is only one point."""
    stacks: tuple[StackFindings, ...]
    comparisons: tuple[Comparison, ...]
    published: tuple[Published, ...]
    sentence: str
    work: WorkComparison | None = None
    """None if no service counted its work."""
    upper_bounds: str = ""
    """A sentence on upper bounds and waves; empty if there are none."""

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
    """Places on the axis with measurements of both."""
    crossings: tuple[Crossing, ...]
    probability: float | None
    """Of any crossing, by bootstrap over blocks; None with too few blocks."""
    blocks: int
    validity: Validity
    would_change: str


@dataclass(frozen=True, slots=True)
class Scaling(StackFinding):
    """Growth of one stack's throughput with concurrency."""

    fitted: Scalability | None
    """None if the law does not fit."""
    misfit: float
    """Mean relative error of the law."""
    would_change: str


@dataclass(frozen=True, slots=True)
class TierDemand:
    """The work of one tier for a request, and the throughput that this allows."""

    tier: str
    demand: Demand
    """Seconds of CPU time per request."""
    resource: str
    """The narrowest resource that it uses."""
    width_rps: float
    """Its highest throughput if it had that resource alone."""
    relative_width: float
    """Its width ÷ the width of the narrowest tier."""


ResourceKind = Literal["cpus", "service cpus", "quota", "service quota", "generator"]
"""`cpus` and `quota` are the stack's, shared or not; a service's CPUs and quota serve only services."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """CPUs or a quota that one or several tiers use."""

    name: str
    kind: ResourceKind
    """The owner of the CPUs or quota."""
    servers: float
    """CPU seconds a second."""
    demand_s: float
    """CPU time of all its tiers for a request."""
    tiers: tuple[str, ...]
    """The tiers that share it."""
    utilisation: float
    """At the load with the highest throughput."""
    width_rps: float | None
    """Highest throughput with this demand; None without a demand."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A test of a bottleneck: more of one thing, with the predicted throughput."""

    of: Literal["replicas", "cpus", "limit", "users"]
    """The kind of change."""
    name: str
    """The changed key of the study file: a limit's name; `connections` or `users`."""
    before: int
    """The old value."""
    after: int
    """The new value."""
    predicted_ratio: float | None
    """Throughput after ÷ before; None without a prediction."""


@dataclass(frozen=True, slots=True)
class Proof(StackFinding):
    """An experiment that ran: the prediction beside the outcome."""

    experiment: Experiment
    ratio: float
    """Throughput after ÷ before, paired by block."""
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
    """The resource, the limit or the load, in words."""
    throughput_rps: float
    """The highest measured throughput."""
    at: str
    """The load of that throughput."""
    most_rps: float | None
    """Highest throughput that the bottleneck allows; None if unknown."""
    tiers: tuple[TierDemand, ...]
    """In the order of the flow if known, else by name."""
    resources: tuple[ResourceUse, ...]
    """The fullest first."""
    would_prove: str
    """The experiment that would confirm the bottleneck, with its predicted outcome."""
    cell: int
    """The cell with that load."""
    experiment: Experiment | None
    """The same for `weir confirm`; None if a study file cannot express it."""


@dataclass(frozen=True, slots=True)
class IdenticalCopies:
    """The A/A test: how often and how far two copies of one stack differ, which bounds all other comparisons."""

    compared: int
    """Comparisons of two copies."""
    called_different: int
    """Comparisons whose interval excludes 1."""
    spread: float | None
    """Typical relative difference in throughput between two copies in one block."""
    spread_low: float | None
    """Lower end of its interval."""
    spread_high: float | None
    """Upper end of its interval."""
    comparisons: tuple[Comparison, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Variation:
    """Sources of the variation of throughput."""

    split: VarianceComponents
    sentence: str


@dataclass(frozen=True, slots=True)
class OmittedTrial:
    """A trial that no average uses, and the reasons."""

    trial: int
    label: str
    name: str
    point: str
    block: int
    attempt: int
    """From 1; the repeat of a rejected trial has the next."""
    reasons: tuple[str, ...]
    """From its verdict."""


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """Numbers of trials. Suspect trials count as used."""

    planned: int
    """Cells × blocks."""
    tried: int
    """Those of `planned` with a finished trial of any verdict."""
    finished: int
    """All finished trials, with repeats."""
    used: int
    suspect: int
    """Used trials with a reason for doubt."""
    left_out: int
    retried: int
    """Repeats of rejected trials."""
    no_steady_state: int
    """Used trials without a steady state."""
    extended: int
    """Used trials whose load was extended to find a steady state."""


@dataclass(frozen=True, slots=True)
class BrokenLaw:
    """A law that a trial's own numbers violate."""

    trial: int
    law: str
    """Name of the law."""
    fact: str
    """The numbers that violate it."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The laws of arithmetic and queueing, checked on every trial of any generator."""

    checks: int
    """Laws × trials to which they apply."""
    trials: int
    broken: tuple[BrokenLaw, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Caution:
    """A fact that weakens the answer, with its threshold, its probable cause and the next step."""

    fact: str
    """The observation."""
    threshold: str = ""
    """The limit from which it matters; empty if it always does."""
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
    """Why its validity is not better."""
    indicative: bool
    comparisons: tuple[Comparison, ...]
    """The comparisons of the sentence, best first, in the sentence's direction."""
    would_change: str


@dataclass(frozen=True, slots=True)
class SaidAgainstKernel:
    """A response time by the generator ÷ the same by the kernel, trial by trial."""

    quantile: Literal["p50", "p99"]
    """The response time."""
    ratio: float
    """Over trials."""
    low: float | None
    high: float | None
    trials: int
    within_rounding: bool
    """Whether the two differ by at most the generator's rounding in every trial."""


@dataclass(frozen=True, slots=True)
class GeneratorFindings:
    """One generator's throughput from a server at a point, its reported times and its own resources."""

    cell: int
    generator: str
    """Its name in a study file."""
    version: str
    """Its own name and version; empty if no trial counted."""
    figures: str
    """The meaning of its response times in words; empty for weir, whose times docs/guides/load.md explains."""
    reference: bool
    """Whether the others are compared with it."""
    measures: tuple[Measure, ...]
    """For each of `metrics.GENERATOR_METRICS`."""
    against_kernel: tuple[SaidAgainstKernel, ...]
    """For the quantiles that both measured."""
    max_rate_rps: float | None
    """Its throughput on a server that does nothing; None if not measured."""
    comparisons: tuple[Comparison, ...]
    """With the reference, on each of `metrics.GENERATOR_METRICS`; empty for the reference."""
    validity: Validity
    """The worst verdict of its used trials; `invalid` without any."""
    reasons: tuple[str, ...]
    """Why it is not better, each kind of reason once."""
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
    """The stack and the other common parts: 'Sanic on hello, 64 connections'."""
    label: str
    name: str
    workload: str
    load: str
    coordinates: dict[str, str]
    reference: str
    """The generator for comparisons: weir, or the first."""
    generators: tuple[GeneratorFindings, ...]
    headline: str
    """In short: which generator is the limit, and which agree."""
    sentence: str
    """The notable differences, with intervals, costs and times."""
    would_change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFindings:
    """All conclusions from a run file."""

    study: str = ""
    """The name of its file without the extension."""
    title: str
    question: str
    scale: str = ""
    """Its name in the study file."""
    blocks: int
    indicative: bool
    ended: Literal["complete", "interrupted"] | None
    """None if it still runs or was killed."""
    stopped: StopReason | None = None
    """Why a complete run has this number of blocks."""
    answer: Answer
    points: tuple[Point, ...]
    generators: tuple[SameServer, ...] = ()
    """If the study varies the generator: each server and load with several generators."""
    what_ran: tuple[WhatRan, ...] = ()
    """Each stack once."""
    break_evens: tuple[BreakEven, ...] = ()
    """Every stack against the baseline, along each axis that the study varies in at least two numbers."""
    scalings: tuple[Scaling, ...] = ()
    """For every stack with measurements at enough concurrencies."""
    bottlenecks: tuple[Bottleneck, ...] = ()
    """For every stack with observed processes."""
    proofs: tuple[Proof, ...] = ()
    """Experiments on these within the run."""
    identical_copies: IdenticalCopies | None = None
    variation: Variation | None = None
    """None with fewer than two stacks in two blocks."""
    trials: TrialCounts
    left_out: tuple[OmittedTrial, ...] = ()
    audit: Audit
    cautions: tuple[Caution, ...] = ()
    claims: tuple[str, ...] = ()
    """Claims of the published study, from the study file."""
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
        """Returns JSON values, `schema` first. Tuples become lists when dumped."""
        return {"schema": FINDINGS_SCHEMA, **asdict(self)}
