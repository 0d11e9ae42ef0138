"""What every finding is made of: the trials behind it, a measure with its interval, and a comparison."""

from dataclasses import dataclass
from typing import Literal

from weir.model.records import Validity

Outcome = Literal["more", "less", "same", "undecided", "no interval", "not measured"]
"""`more`, `less`: the ratio is above or below 1 at 95 %; `same`: within ±2 % at 95 %; `undecided`: none of these can be said;
`no interval`: fewer than two pairs, or pairs without any spread."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The trials that a finding rests on, and those that belong to it and were left out."""

    used: tuple[int, ...]
    """By their numbers in the run file."""
    left_out: tuple[int, ...] = ()
    """The same."""


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
    """That there is no difference, before the correction."""
    p_adjusted: float | None
    """After Holm's correction for all comparisons on this metric in the run."""
    outcome: Outcome
    """`same`: within 2 %; `no interval`: fewer than two pairs, or pairs without any spread."""
    indicative: bool
    """Fewer blocks than a claim needs."""
    validity: Validity
    """The worst verdict of the trials that it rests on."""
    reasons: tuple[str, ...]
    """Why it is no better, each kind of reason once, with how many of the trials have it."""
    evidence: Evidence
    sentence: str
    would_change: str
