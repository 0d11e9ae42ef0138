"""What is found where several generators load the same server."""

from dataclasses import dataclass
from typing import Literal

from weir.findings.measured import Comparison, Evidence, Measure
from weir.model.records import Validity


@dataclass(frozen=True, slots=True)
class SaidAgainstKernel:
    """A response time as a generator says it ÷ the same as the kernel saw it, trial by trial."""

    quantile: Literal["p50", "p99"]
    """Which response time."""
    ratio: float
    """Over trials."""
    low: float | None
    high: float | None
    trials: int
    within_rounding: bool
    """Whether in every trial the two differ by no more than what the generator rounds its figure by."""


@dataclass(frozen=True, slots=True)
class GeneratorFindings:
    """What one generator got from a server at a point, what it says of it, and what it took for that."""

    cell: int
    generator: str
    """By its name in a study file."""
    version: str
    """Its name and version, in its own words; empty where no trial counted."""
    figures: str
    """What its response times are, in words; empty of weir's, which are those of docs/guides/load.md."""
    reference: bool
    """Whether the others are compared with it."""
    measures: tuple[Measure, ...]
    """Of `metrics.GENERATOR_METRICS`."""
    against_kernel: tuple[SaidAgainstKernel, ...]
    """Of the quantiles that both know."""
    ceiling_rps: float | None
    """What it reached on a server that does nothing; None where that was not measured."""
    comparisons: tuple[Comparison, ...]
    """With the reference, on every one of `metrics.GENERATOR_METRICS`; none of the reference itself."""
    validity: Validity
    """The worst verdict of its used trials; `invalid` where none is."""
    reasons: tuple[str, ...]
    """Why it is no better, each kind of reason once."""
    notes: tuple[str, ...]
    """Of these, in short, what is of the generator and not of the server: what it claims and cannot be, how near it is to its limits, and
    why a trial of it failed."""
    evidence: Evidence
    sentence: str

    def measure(self, metric: str) -> Measure:
        """The measure of `metric`."""
        return next(measure for measure in self.measures if measure.metric == metric)

    def comparison(self, metric: str) -> Comparison | None:
        """The comparison with the reference on `metric`."""
        return next((found for found in self.comparisons if found.metric == metric), None)


@dataclass(frozen=True, slots=True)
class SameServer:
    """Several generators that put the same load on the same server: where they differ it is by themselves."""

    where: str
    """The stack and everything else that they have in common: 'Sanic on hello, 64 connections'."""
    label: str
    name: str
    workload: str
    load: str
    coordinates: dict[str, str]
    reference: str
    """The generator that the others are compared with: weir, or the first."""
    generators: tuple[GeneratorFindings, ...]
    headline: str
    """Who is the limit and who agrees, in short."""
    sentence: str
    """What stands out, with intervals, costs and times."""
    would_change: str

    def comparisons(self, metric: str) -> list[Comparison]:
        """Each generator with the reference on `metric`."""
        return [found for one in self.generators if (found := one.comparison(metric)) is not None]
