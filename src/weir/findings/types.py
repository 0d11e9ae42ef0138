"""What a finding is: numbers with their interval, a sentence in plain words, the trials behind it, and what would change it.

Plain frozen dataclasses, so that `to_json` is the dataclasses themselves. `FINDINGS_SCHEMA` rises when a key changes its meaning or goes.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from weir.findings.generator_types import SameServer
from weir.findings.measured import Comparison, Evidence, Measure
from weir.findings.work_types import WorkComparison, WorkPerRequest
from weir.model.records import Validity
from weir.model.run import Ceiling
from weir.model.stop import Stop
from weir.stats import Crossing, Demand, Scalability, Variance

FINDINGS_SCHEMA = 1

BottleneckKind = Literal["resource", "software limit", "blocked event loop", "load", "upstream", "generator", "unknown"]
"""`resource`: CPUs or a quota are full; `software limit`: threads, a pool; `blocked event loop`: what answers waits in calls that block;
`load`: it asks for no more."""


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure beside ours, in the unit of the metric. It is data, never a target."""

    stack: str
    name: str
    metric: str
    unit: str
    value: float
    ours: float | None
    """What was measured here; None where nothing was."""
    source: str
    note: str


@dataclass(frozen=True, slots=True)
class Held:
    """An objective of the study, held against the used trials of a cell."""

    objective: str
    met: bool
    """In every one of them."""
    trials_met: int
    """Used trials that met it."""
    trials: int
    found: float | None
    """The median over trials, in the objective's unit; None where a trial has no such figure."""
    unit: str


@dataclass(frozen=True, slots=True)
class Wave:
    """Answers to a burst that came one after the other, after and before a while without any."""

    answers: float
    """The mean over trials."""
    begins_s: float
    """When the first of them came, from when it was asked for: the mean over trials."""
    low_s: float | None
    """The lower end of its 95 % interval; None where trials leave none."""
    high_s: float | None
    """The upper end of its 95 % interval; None where trials leave none."""


@dataclass(frozen=True, slots=True)
class StackFindings:
    """What one stack did at one point."""

    cell: int
    stack: str
    label: str
    """`stack` or `stack[variant]`, with ` (A/A)` for the second copy."""
    name: str
    """The short name that sentences use."""
    title: str
    """As its manifest has it."""
    model: str
    """How it serves, as its manifest has it."""
    arm: str
    """`main`, or `aa` for the second copy."""
    settings: dict[str, str]
    """Its limits, and their values here."""
    baseline: bool
    """Whether the others are compared with it."""
    peak_threads: int | None
    """The highest count in any used trial."""
    peak_processes: int | None
    """The same of processes."""
    failed_share: float
    """Failed requests of all that were intended, over the trials used: above 0 only in a study whose failures are a result."""
    measures: tuple[Measure, ...]
    objectives: tuple[Held, ...]
    evidence: Evidence
    work: tuple[WorkPerRequest, ...] = ()
    """By service; empty where the stack has none, or no trial counted."""
    ceilings: tuple[Ceiling, ...] = ()
    """What it cannot exceed by arithmetic, the lowest first."""
    waves: tuple[Wave, ...] = ()
    """In which it answers where everybody asks once, at once; empty under other loads, and where its trials differ in how many."""

    def measure(self, metric: str) -> Measure:
        """The measure of `metric`."""
        return next(measure for measure in self.measures if measure.metric == metric)


@dataclass(frozen=True, slots=True)
class WhatRan:
    """What a stack was made into and what ran it, alike at all points."""

    label: str
    name: str
    artifact_bytes: int | None
    """The size of what it was built into: a jar, a Python environment; None where it is not built or its manifest names nothing."""
    size_ratio: float | None
    """That size ÷ the baseline's: exact, since a build has one size; None where either is unknown, and of the baseline itself."""
    runtimes: tuple[str, ...]
    """What ran it, in that program's own words: none of a program that runs by itself, several where it changed between trials."""


@dataclass(frozen=True, slots=True)
class Point:
    """One workload under one load, at one value of everything else that the study varies, with every stack that ran there."""

    workload: str
    load: str
    connections: int
    """Users of a closed loop; the most connections of an open one."""
    axis: Literal["connections", "rate_rps"]
    """What `amount` is of: users, a connection each, in a closed loop; arrivals a second in an open one."""
    amount: float | None
    """How much load there is; None where it changes over time."""
    coordinates: dict[str, str]
    label: str
    """How the point is named on screen: by what varies between the run's points."""
    where: str
    """The same at the beginning of a sentence; empty where there is only one point."""
    stacks: tuple[StackFindings, ...]
    comparisons: tuple[Comparison, ...]
    published: tuple[Published, ...]
    sentence: str
    work: WorkComparison | None = None
    """None where no service counted anything."""
    ceilings: str = ""
    """How near the stacks came to what arithmetic allows them, and in which waves they answered; empty where it says nothing."""

    @property
    def load_label(self) -> str:
        """How its load is named on screen."""
        return self.load

    def comparison(self, label: str, metric: str) -> Comparison | None:
        """The comparison of `label` with the baseline on `metric`."""
        return next((found for found in self.comparisons if found.label == label and found.metric == metric), None)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where one stack stops being the better one, on one metric along one axis."""

    axis: str
    """`connections`, `rate_rps`, or the coordinate that varies."""
    where: str
    """What all points on the axis have in common."""
    metric: str
    label: str
    name: str
    against_label: str
    against_name: str
    places: tuple[float, ...]
    """Where on the axis both were measured."""
    crossings: tuple[Crossing, ...]
    probability: float | None
    """Of any crossing, by drawing blocks anew; None with fewer blocks than that needs."""
    blocks: int
    indicative: bool
    validity: Validity
    evidence: Evidence
    sentence: str
    would_change: str

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Scaling:
    """How the throughput of one stack grows with concurrency."""

    where: str
    """The workload, and what else all points of the curve have in common."""
    label: str
    name: str
    fitted: Scalability | None
    """None where the law does not describe what was measured."""
    misfit: float
    """How far the law is off on average, as a share."""
    indicative: bool
    evidence: Evidence
    sentence: str
    would_change: str


@dataclass(frozen=True, slots=True)
class TierDemand:
    """What one tier does for a request, and how wide that leaves it."""

    tier: str
    demand: Demand
    """Seconds of CPU time a request."""
    resource: str
    """What it works with: the narrowest of those that it has a share in."""
    width_rps: float
    """The most that it could pass if it had that for itself."""
    relative_width: float
    """The same as a multiple of the narrowest tier's."""


ResourceKind = Literal["cpus", "service cpus", "quota", "service quota", "generator"]
"""`cpus` and `quota` are the stack's, whoever shares them; those of a service have more only where the service has."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """CPUs, or a quota, that one tier or several work with."""

    name: str
    kind: ResourceKind
    """Whose CPUs or quota they are."""
    servers: float
    """CPUs' worth of time a second."""
    demand_s: float
    """What all its tiers together need of it for a request."""
    tiers: tuple[str, ...]
    """Those that share it."""
    utilisation: float
    """At the load with the highest throughput."""
    width_rps: float | None
    """The most that it can pass with what these tiers do for a request; None where that is nothing that was seen."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """What would show whether something is the bottleneck: more of it, and the throughput that this should bring."""

    of: Literal["replicas", "cpus", "limit", "users"]
    """What there would be more of."""
    name: str
    """What is changed, as the study file calls it: a limit's name; `connections` or `users`."""
    before: int
    """What it was."""
    after: int
    """What it would be."""
    predicted_ratio: float | None
    """Throughput after ÷ before; None where nothing says how much there should be."""


@dataclass(frozen=True, slots=True)
class Proof:
    """An experiment that was made, the prediction beside the outcome."""

    where: str
    label: str
    name: str
    experiment: Experiment
    ratio: float
    """Throughput after ÷ before, paired by block."""
    low: float | None
    high: float | None
    blocks: int
    agrees: bool | None
    """Whether it came as predicted within `experiment.TOLERANCE`; None where the measurement leaves that open, or nothing was predicted."""
    indicative: bool
    evidence: Evidence
    sentence: str


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What holds a stack back, and what would show that it does."""

    where: str
    label: str
    name: str
    kind: BottleneckKind
    """What sort of thing it is; `load`: it asks for no more."""
    what: str
    """The resource, the limit or the load, in words."""
    throughput_rps: float
    """The highest that was measured."""
    at: str
    """The load at which it was."""
    most_rps: float | None
    """What that bottleneck lets pass at most; None where nobody knows."""
    tiers: tuple[TierDemand, ...]
    """In the order of the flow where it is known, else by name."""
    resources: tuple[ResourceUse, ...]
    """The fullest first."""
    indicative: bool
    evidence: Evidence
    sentence: str
    would_prove: str
    """The experiment that would show whether this is the bottleneck, with what it should come to."""
    cell: int
    """The cell at that load."""
    experiment: Experiment | None
    """The same for `weir prove`; None where a study file cannot ask for it."""


@dataclass(frozen=True, slots=True)
class IdenticalCopies:
    """The A/A arm: how often and how far two copies of one stack differ. It bounds what the other comparisons are worth."""

    compared: int
    """Comparisons of two copies."""
    called_different: int
    """Those whose interval leaves 1 out."""
    spread: float | None
    """Typical relative difference in throughput between two copies in one block, with its interval."""
    spread_low: float | None
    """The lower end of its interval."""
    spread_high: float | None
    """The upper end of its interval."""
    comparisons: tuple[Comparison, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Variation:
    """Where the spread of throughput comes from."""

    split: Variance
    sentence: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A trial that no average uses, and why."""

    trial: int
    label: str
    name: str
    point: str
    block: int
    attempt: int
    """From 1; repeats of a rejected trial have the next."""
    reasons: tuple[str, ...]
    """Of its verdict."""


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """How many trials there are. Suspect trials are used, and counted here."""

    planned: int
    """Cells × blocks."""
    tried: int
    """Those of `planned` with a finished trial, whatever its verdict."""
    finished: int
    """All finished trials, repeated ones too."""
    used: int
    suspect: int
    """Used trials with a reason to doubt them."""
    left_out: int
    retried: int
    """Those that repeat a rejected one."""
    no_steady_state: int
    """Used trials in which none was found."""
    extended: int
    """Used trials whose load went on for longer in search of one."""


@dataclass(frozen=True, slots=True)
class BrokenLaw:
    """A law that a trial's own numbers do not obey."""

    trial: int
    law: str
    """Which one."""
    fact: str
    """The numbers that break it."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The arithmetic and queueing laws that every trial's numbers must obey, whoever measured them."""

    checks: int
    """Laws × trials to which they apply."""
    trials: int
    broken: tuple[BrokenLaw, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Caution:
    """A fact that weakens the answer, where it starts to matter, what probably causes it, and what to do."""

    fact: str
    """What was seen."""
    threshold: str = ""
    """From where on it matters; empty where it always does."""
    cause: str = ""
    """What it probably comes from; empty where nobody knows."""
    next_step: str = ""
    """What to do; empty where nothing helps."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The run's question and what it comes to."""

    sentence: str
    validity: Validity
    reasons: tuple[str, ...]
    """Why its validity is no better."""
    indicative: bool
    comparisons: tuple[Comparison, ...]
    """What the sentence says, best first, oriented as the sentence says it."""
    would_change: str


@dataclass(frozen=True, slots=True)
class RunFindings:
    """Everything that a run file says, as conclusions."""

    study: str
    """Its file's name, without what it ends with."""
    title: str
    question: str
    scale: str
    """By its name in the study file."""
    blocks: int
    indicative: bool
    ended: Literal["complete", "interrupted"] | None
    """None where it still goes on, or was killed."""
    stopped: Stop | None
    """Why a complete run has as many blocks as it has."""
    answer: Answer
    points: tuple[Point, ...]
    generators: tuple[SameServer, ...]
    """Where the study varies the generator, each server that several of them loaded alike."""
    what_ran: tuple[WhatRan, ...]
    """Each stack once."""
    break_evens: tuple[BreakEven, ...]
    """Of every stack and the baseline, along everything that the study varies in at least two numbers."""
    scalings: tuple[Scaling, ...]
    """Of every stack that was measured at enough concurrencies."""
    bottlenecks: tuple[Bottleneck, ...]
    """Of every stack whose processes were watched."""
    proofs: tuple[Proof, ...]
    """Experiments on these that the run itself holds."""
    identical_copies: IdenticalCopies | None
    variation: Variation | None
    """None with fewer than two stacks in two blocks."""
    trials: TrialCounts
    left_out: tuple[LeftOut, ...]
    audit: Audit
    cautions: tuple[Caution, ...]
    claims: tuple[str, ...]
    """Of the published study, as the study file has them."""
    source: str

    def objectives(self) -> list[tuple[Point, StackFindings, Held]]:
        """Every objective at every point, but those of A/A copies."""
        return [(point, stack, held) for point in self.points for stack in point.stacks if stack.arm == "main" for held in stack.objectives]

    def to_json(self) -> dict[str, Any]:
        """The findings as JSON values, `schema` first. Tuples become lists when dumped."""
        return {"schema": FINDINGS_SCHEMA, **asdict(self)}
