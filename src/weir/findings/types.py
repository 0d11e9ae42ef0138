"""The types of findings about several points or the whole run: curves, bottlenecks, generators, audit and answer.

Names of fields are JSON keys. `FINDINGS_SCHEMA` increases if a key changes its meaning or disappears. `point_types` has
the findings about a point.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from weir.findings.point_types import Comparison, Evidence, Measure, ObjectiveResult, Point, StackFindings
from weir.model.load_records import Validity
from weir.model.run_types import StopReason
from weir.stats import Crossing, Demand, Scalability, VarianceComponents

FINDINGS_SCHEMA = 1

Progress = Literal["complete", "interim", "interrupted"]
"""`interim`: the run continues, or ended early with the first answer; `interrupted`: trials are missing."""
BottleneckKind = Literal["resource", "software limit", "blocked event loop", "load", "upstream", "generator", "unknown"]


@dataclass(frozen=True, slots=True)
class StackFinding:
    """The fields that all findings about a single stack share."""

    where: str
    """The workload and coordinates of all points of the finding."""
    label: str
    name: str
    indicative: bool
    evidence: Evidence
    sentence: str


@dataclass(frozen=True, slots=True)
class WhatRan:
    """The build and the runtime of a stack. Both are the same at all points."""

    label: str
    name: str
    artifact_bytes: int | None
    """Size of the build result, such as a jar; None without a build, or if the manifest names no such file."""
    size_ratio: float | None
    """`artifact_bytes` ÷ the baseline's `artifact_bytes`; None for the baseline, or if a size is unknown."""
    runtimes: tuple[str, ...]
    """Versions of the runtime. Empty for a native program; several if the version changed between trials."""


@dataclass(frozen=True, slots=True)
class BreakEven(StackFinding):
    """The values on an axis at which the better of two stacks changes, for one metric."""

    axis: str
    """`connections`, `rate_rps`, or the coordinate that varies."""
    metric: str
    against_label: str
    against_name: str
    places: tuple[float, ...]
    """Values on the axis at which weir measured both stacks."""
    crossings: tuple[Crossing, ...]
    probability: float | None
    """Share of bootstrap samples with a crossing; None with too few blocks. The bootstrap draws blocks."""
    blocks: int
    validity: Validity
    would_change: str


@dataclass(frozen=True, slots=True)
class Scaling(StackFinding):
    """Growth of one stack's throughput with concurrency."""

    fitted: Scalability | None
    """The fitted universal scalability law; None if the law does not fit."""
    misfit: float
    """Mean relative difference between the law and the measured throughput."""
    would_change: str


@dataclass(frozen=True, slots=True)
class TierDemand:
    """The work of one tier per request, and the throughput that this work allows."""

    tier: str
    demand: Demand
    """Seconds of CPU time that the tier needs per request."""
    resource: str
    """The tier's resource with the fewest CPUs."""
    width_rps: float
    """Highest throughput that `resource` allows if only this tier uses the resource."""
    relative_width: float
    """`width_rps` ÷ the lowest `width_rps` of all tiers."""


ResourceKind = Literal["cpus", "service cpus", "quota", "service quota", "generator"]
"""`cpus`, `quota`: resources of the stack, perhaps shared with services; `service …`: resources of services only."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """CPUs or a quota, used by one or several tiers."""

    name: str
    kind: ResourceKind
    """The kind and the owner of the resource: the stack, the services or the generator."""
    servers: float
    """Number of CPUs of the resource; a quota may be a fraction."""
    demand_s: float
    """CPU time per request in seconds: the sum over all tiers that share the resource."""
    tiers: tuple[str, ...]
    """The tiers that share the resource."""
    utilisation: float
    """Utilisation from 0 to 1, at the load with the highest throughput."""
    width_rps: float | None
    """Highest throughput that the resource allows with `demand_s`; None if `demand_s` is 0."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A test of a bottleneck: one value increases, and weir predicts the throughput."""

    of: Literal["replicas", "cpus", "limit", "users"]
    """The kind of value that increases."""
    name: str
    """The changed key in the study file: `replicas`, `cpus`, `connections`, `users` or the name of a limit."""
    before: int
    """The value before the change."""
    after: int
    """The value after the change."""
    predicted_ratio: float | None
    """Predicted throughput after the change ÷ throughput before the change; None without a prediction."""


@dataclass(frozen=True, slots=True)
class Proof(StackFinding):
    """A completed experiment: the prediction and the outcome."""

    experiment: Experiment
    ratio: float
    """Throughput after the change ÷ throughput before the change, paired by block."""
    low: float | None
    high: float | None
    blocks: int
    agrees: bool | None
    """Whether the outcome is within 10 % of the prediction; None without a clear result or a prediction."""


@dataclass(frozen=True, slots=True)
class Bottleneck(StackFinding):
    """The limit of a stack's throughput, and an experiment that would confirm it."""

    kind: BottleneckKind
    """`resource`: CPUs or a quota are full; `software limit`: threads or a pool are full; `load`: the load is low."""
    what: str
    """Name of the resource, the limit or the load."""
    throughput_rps: float
    """The highest measured throughput."""
    at: str
    """The load with the highest throughput."""
    most_rps: float | None
    """Highest throughput that the bottleneck allows; None if unknown."""
    tiers: tuple[TierDemand, ...]
    """The tiers, sorted by name. Tiers on the services' own machine come last."""
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
    """The A/A test: number and size of differences between copies of a stack. Smaller ones between stacks are noise."""

    compared: int
    """Number of comparisons between two copies of the stack."""
    called_different: int
    """Number of comparisons with an interval that excludes 1."""
    spread: float | None
    """Typical relative difference between two copies in one block. The metric is throughput, or the median response
    time if the load limits the throughput."""
    spread_low: float | None
    """Lower end of the interval of `spread`."""
    spread_high: float | None
    """Upper end of the interval of `spread`."""
    comparisons: tuple[Comparison, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Variation:
    """The sources of the variation of throughput, each with its share."""

    split: VarianceComponents
    sentence: str


@dataclass(frozen=True, slots=True)
class OmittedTrial:
    """A trial that averages leave out, with the reasons."""

    trial: int
    label: str
    name: str
    point: str
    block: int
    attempt: int
    """Number of the attempt, from 1. Each repeat of a rejected trial has the next number."""
    reasons: tuple[str, ...]
    """The reasons why the trial is invalid."""


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """Numbers of trials. Suspect trials count as used."""

    planned: int
    """Number of cells × number of blocks."""
    tried: int
    """Number of planned trials that finished, with any verdict; repeats do not count."""
    finished: int
    """Number of all finished trials, repeats included."""
    used: int
    suspect: int
    """Number of counted trials with the verdict `suspect`."""
    left_out: int
    retried: int
    """Number of repeats of rejected trials."""
    no_steady_state: int
    """Number of counted trials without a steady state."""
    extended: int
    """Number of counted trials whose load was extended to find a steady state."""


@dataclass(frozen=True, slots=True)
class BrokenLaw:
    """A law that a trial's own numbers violate."""

    trial: int
    law: str
    """Name of the law."""
    fact: str
    """The trial's numbers that violate the law."""
    in_verdict: bool
    """True: the trial's verdict already has this reason. False: the number shows a defect of the measurement itself."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of checking every trial against the laws of arithmetic and queueing."""

    checks: int
    """Number of checks: each law counts once for each trial to which it applies."""
    trials: int
    broken: tuple[BrokenLaw, ...]
    sentence: str

    @property
    def validity(self) -> Validity:
        """Upper limit of the run's validity: `suspect` with a broken law, `invalid` if most trials are defective."""
        defective = {law.trial for law in self.broken if not law.in_verdict}
        return "invalid" if 2 * len(defective) > self.trials else "suspect" if self.broken else "valid"


@dataclass(frozen=True, slots=True)
class Caution:
    """A fact that weakens the answer, with its threshold, its probable cause and the next step."""

    fact: str
    """The observation."""
    threshold: str = ""
    """The limit above which the fact matters; empty if the fact always matters."""
    cause: str = ""
    """The probable cause; empty if unknown."""
    next_step: str = ""
    """The next step; empty if there is no remedy."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the run's question."""

    sentence: str
    validity: Validity
    reasons: tuple[str, ...]
    """Reasons to doubt the answer."""
    indicative: bool
    comparisons: tuple[Comparison, ...]
    """The comparisons in the sentence, in the same order and direction."""
    would_change: str


@dataclass(frozen=True, slots=True)
class KernelRatio:
    """The ratio of the generator's reported response time to the kernel's measured response time."""

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
    """One generator at one point: the throughput, the response times in the generator's report, and its resources."""

    cell: int
    generator: str
    """The generator's name in a study file."""
    version: str
    """The generator's name and version, in the generator's own form; empty if no trial counts."""
    figures: str
    """The meaning of the generator's response times; empty for weir (see docs/guides/load.md)."""
    reference: bool
    """Whether this generator is the reference for the other generators."""
    measures: tuple[Measure, ...]
    """One measure for each of `metrics.GENERATOR_METRICS`."""
    against_kernel: tuple[KernelRatio, ...]
    """The generator's quantiles compared with the kernel's quantiles; empty if the kernel measured none."""
    max_rate_rps: float | None
    """The generator's throughput on a server that does nothing; None if not measured."""
    comparisons: tuple[Comparison, ...]
    """Comparisons with the reference on each of `metrics.GENERATOR_METRICS`; empty for the reference."""
    validity: Validity
    """The worst verdict of the counted trials; `invalid` if no trial counts."""
    reasons: tuple[str, ...]
    """Reasons why trials are not valid: one text for each kind of reason."""
    notes: tuple[str, ...]
    """Problems of the generator, not of the server: impossible figures, nearly reached limits, failures."""
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
    """The common stack, workload and load of the generators. Example: 'Sanic on hello, 64 connections'."""
    label: str
    name: str
    workload: str
    load: str
    coordinates: dict[str, str]
    reference: str
    """The generator that weir compares the others with: weir itself, else the first generator."""
    generators: tuple[GeneratorFindings, ...]
    headline: str
    """A short sentence: which generators are the limit, and which generators agree."""
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
    """Number of blocks with a used trial."""
    indicative: bool
    ended: Literal["complete", "interrupted"] | None
    """How the run ended; None if the run continues or was killed."""
    stopped: StopReason | None = None
    """The rule that ended the run early, and the number of blocks; None without such a rule."""
    answer: Answer
    points: tuple[Point, ...]
    generators: tuple[SameServer, ...] = ()
    """The comparison of the generators on each server and load, if the study varies the generator. Otherwise empty."""
    what_ran: tuple[WhatRan, ...] = ()
    """Build and runtime of each stack, once per stack."""
    break_evens: tuple[BreakEven, ...] = ()
    """The break-evens of every stack with the baseline, along each axis with numbers."""
    scalings: tuple[Scaling, ...] = ()
    """The scaling of every stack with measurements at enough concurrencies."""
    bottlenecks: tuple[Bottleneck, ...] = ()
    """The bottleneck of every stack with observed processes."""
    proofs: tuple[Proof, ...] = ()
    """Outcomes of experiments on bottlenecks, if the run already has cells with the changed value."""
    identical_copies: IdenticalCopies | None = None
    variation: Variation | None = None
    """Sources of the variation of throughput; None with fewer than two cells or two complete blocks."""
    trials: TrialCounts
    left_out: tuple[OmittedTrial, ...] = ()
    audit: Audit
    cautions: tuple[Caution, ...] = ()
    claims: tuple[str, ...] = ()
    """Claims of the publication, from the study file."""
    source: str = ""

    def objectives(self) -> list[tuple[Point, StackFindings, ObjectiveResult]]:
        """Returns (point, stack, objective) for every objective of every stack at every point, except A/A copies."""
        return [
            (point, stack, held)
            for point in self.points
            for stack in point.stacks
            if stack.arm == "main"
            for held in stack.objectives
        ]

    def to_json(self) -> dict[str, Any]:
        """Returns the findings as JSON values, with `schema` first. A JSON encoder writes the tuples as lists."""
        return {"schema": FINDINGS_SCHEMA, **asdict(self)}
