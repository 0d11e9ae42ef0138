"""What a finding is: numbers with their interval, a sentence in plain words, the trials behind it, and what would change it.

Plain frozen dataclasses, so that `to_json` is the dataclasses themselves. `FINDINGS_SCHEMA` rises when a key changes its meaning or goes.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from weir.model.records import Validity
from weir.model.run import Ceiling
from weir.model.stop import Stop

FINDINGS_SCHEMA = 1

Outcome = Literal["more", "less", "same", "undecided", "no interval", "not measured"]
"""`more`, `less`: the ratio is above or below 1 at 95 %; `same`: within ±2 % at 95 %; `undecided`: none of these can be said;
`no interval`: fewer than two pairs, or pairs without any spread."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The trials that a finding rests on, and those that belong to it and were left out."""

    used: tuple[int, ...]
    left_out: tuple[int, ...] = ()


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
    """None where nothing was measured, or where the samples do not support it (`note` says which)."""
    low: float | None
    high: float | None
    trials: tuple[TrialValue, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure beside ours, in the unit of the metric. It is data, never a target."""

    stack: str
    name: str
    metric: str
    unit: str
    value: float
    ours: float | None
    source: str
    note: str


@dataclass(frozen=True, slots=True)
class Held:
    """An objective of the study, held against the used trials of a cell."""

    objective: str
    met: bool
    """In every one of them."""
    trials_met: int
    trials: int
    found: float | None
    """The median over trials, in the objective's unit; None where a trial has no such figure."""
    unit: str


@dataclass(frozen=True, slots=True)
class StatementPerRequest:
    """One kind of statement of a service, by its own counters."""

    text: str
    per_request: float
    data: bool
    """False of what begins, ends or sets up."""


@dataclass(frozen=True, slots=True)
class WorkPerRequest:
    """What one service did for a completed request, over all used trials."""

    service: str
    statements: float
    """Data statements."""
    control_statements: float
    rows: float | None
    """None where the service does not count them."""
    key_rows: float
    """Beside these: inserted rows that a driver had given back to learn their keys."""
    rows_differ: str
    """Why the rows of stacks that do the same may differ; empty where they must not."""
    bytes: dict[str, float]
    edge: float
    """How far requests at the edges of the loads can move these, as a share."""
    most: tuple[StatementPerRequest, ...]
    trials: tuple[int, ...]
    note: str = ""
    """Why it may be too low."""


@dataclass(frozen=True, slots=True)
class WorkComparison:
    """Whether the stacks of a point did the same work per request."""

    outcome: Literal["same", "different", "not compared"]
    differences: tuple[str, ...]
    """A sentence each."""
    sentence: str


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
    model: str
    arm: str
    settings: dict[str, str]
    baseline: bool
    peak_threads: int | None
    """The highest count in any used trial."""
    peak_processes: int | None
    failed_share: float
    """Failed requests of all that were intended, over the trials used: above 0 only in a study whose failures are a result."""
    measures: tuple[Measure, ...]
    objectives: tuple[Held, ...]
    evidence: Evidence
    work: tuple[WorkPerRequest, ...] = ()
    """By service; empty where the stack has none, or no trial counted."""
    ceilings: tuple[Ceiling, ...] = ()
    """What it cannot exceed by arithmetic, the lowest first."""

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
    runtimes: tuple[str, ...]
    """What ran it, in that program's own words: none of a program that runs by itself, several where it changed between trials."""


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
    p_value: float | None
    p_adjusted: float | None
    """After Holm's correction for all comparisons on this metric in the run."""
    outcome: Outcome
    indicative: bool
    """Fewer blocks than a claim needs."""
    validity: Validity
    """The worst verdict of the trials that it rests on."""
    reasons: tuple[str, ...]
    """Why it is no better, each kind of reason once, with how many of the trials have it."""
    evidence: Evidence
    sentence: str
    would_change: str


@dataclass(frozen=True, slots=True)
class Point:
    """One workload under one load, at one value of everything else that the study varies, with every stack that ran there."""

    workload: str
    load: str
    connections: int
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
    """How near the stacks came to what arithmetic allows them; empty where it says nothing."""

    def comparison(self, label: str, metric: str) -> Comparison | None:
        """The comparison of `label` with the baseline on `metric`."""
        return next((found for found in self.comparisons if found.label == label and found.metric == metric), None)


@dataclass(frozen=True, slots=True)
class IdenticalCopies:
    """The A/A arm: how often and how far two copies of one stack differ. It bounds what the other comparisons are worth."""

    compared: int
    called_different: int
    spread: float | None
    """Typical relative difference in throughput between two copies in one block, with its interval."""
    spread_low: float | None
    spread_high: float | None
    comparisons: tuple[Comparison, ...]
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
    reasons: tuple[str, ...]


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
    fact: str


@dataclass(frozen=True, slots=True)
class Audit:
    """The arithmetic and queueing laws that every trial's numbers must obey, whoever measured them."""

    checks: int
    trials: int
    broken: tuple[BrokenLaw, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Caution:
    """A fact that weakens the answer, where it starts to matter, what probably causes it, and what to do."""

    fact: str
    threshold: str = ""
    cause: str = ""
    next_step: str = ""


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
    title: str
    question: str
    scale: str
    blocks: int
    indicative: bool
    ended: Literal["complete", "interrupted"] | None
    stopped: Stop | None
    """Why a complete run has as many blocks as it has."""
    answer: Answer
    points: tuple[Point, ...]
    what_ran: tuple[WhatRan, ...]
    """Each stack once."""
    identical_copies: IdenticalCopies | None
    trials: TrialCounts
    left_out: tuple[LeftOut, ...]
    audit: Audit
    cautions: tuple[Caution, ...]
    claims: tuple[str, ...]
    source: str

    def objectives(self) -> list[tuple[Point, StackFindings, Held]]:
        """Every objective at every point, but those of A/A copies."""
        return [(point, stack, held) for point in self.points for stack in point.stacks if stack.arm == "main" for held in stack.objectives]

    def to_json(self) -> dict[str, Any]:
        """The findings as JSON values, `schema` first. Tuples become lists when dumped."""
        return {"schema": FINDINGS_SCHEMA, **asdict(self)}
