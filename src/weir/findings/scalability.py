"""Fits the universal scalability law to a stack's throughput, if the run has enough concurrencies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from weir import stats
from weir.findings.compare import CLAIM_BLOCKS
from weir.findings.formatting import amount, basis_text, estimate_text, significant
from weir.findings.metrics import BY_KEY, THROUGHPUT
from weir.findings.point_types import Evidence
from weir.findings.points import PointCells
from weir.findings.types import Scaling
from weir.model.load import ClosedLoad
from weir.model.run_types import Trial

_STRONG = 0.02
"""Minimum contention coefficient that clearly limits throughput: 50 users reach half of the maximum."""


def fit_scalings(groups: Sequence[PointCells], names: Mapping[int, str]) -> tuple[Scaling, ...]:
    """Fits the law to each stack with closed loads at `stats.scalability.MIN_POINTS` or more concurrencies."""
    curves: dict[tuple[str, str, str], list[tuple[float, Trial]]] = {}
    for group in groups:
        if not isinstance(group.load, ClosedLoad) or isinstance(group.load.users, tuple):
            continue
        for member in group.members:
            if member.cell.arm == "main":
                curve = curves.setdefault((group.where, member.cell.stack_label, names[member.cell.id]), [])
                curve += [(float(group.load.connections), trial) for trial in member.used if _throughput(trial)]
    found = []
    for (where, label, name), curve in curves.items():
        blocks: dict[int, dict[float, float]] = {}
        for users, trial in curve:
            blocks.setdefault(trial.block, {})[users] = _throughput(trial)
        fitted = stats.fit_scalability(list(blocks.values())) if blocks else None
        if fitted is not None:
            scaling = Scaling(
                where=where,
                label=label,
                name=name,
                indicative=fitted.blocks < CLAIM_BLOCKS,
                evidence=Evidence(tuple(sorted(trial.id for _, trial in curve))),
                sentence="",
                fitted=None if fitted.is_poor else fitted,
                misfit=fitted.misfit,
                would_change=_would_change(fitted),
            )
            found.append(replace(scaling, sentence=_sentence(scaling, fitted)))
    return tuple(found)


def _throughput(trial: Trial) -> float:
    return BY_KEY[THROUGHPUT].of(trial) or 0.0


def _sentence(scaling: Scaling, fitted: stats.Scalability) -> str:
    basis = basis_text(fitted.blocks, scaling.indicative)
    if scaling.fitted is None:
        return (
            f"{scaling.name} on {scaling.where} does not follow the universal scalability law: the law misses the "
            f"measured throughput by {fitted.misfit:.0%} on average ({basis}). So weir predicts no peak."
        )
    parts = [
        _peak(fitted),
        f"contention α {estimate_text(fitted.alpha, 2)}{_contention(fitted.alpha.value)}",
        f"coherency β {estimate_text(fitted.beta, 2)}",
    ]
    fit = f"universal scalability law, mean error {fitted.misfit:.1%}"
    return f"{scaling.name} on {scaling.where}: {'; '.join(parts)} ({fit}, {basis})."


def _peak(fitted: stats.Scalability) -> str:
    if fitted.peak_throughput is None:
        return "throughput grows over the whole measured range of concurrency"
    peak, level = fitted.peak_at, f"{significant(fitted.peak_throughput)} req/s"
    if peak is None:
        return f"throughput levels off at {level}"
    interval = ""
    if peak.low is not None and peak.high is not None:
        interval = f" (95 % interval {significant(peak.low)}–{significant(peak.high)})"
    text = f"throughput peaks at {significant(peak.value)} connections{interval} with {level}"
    if not fitted.is_beyond:
        return text
    return f"{text}, according to the law alone: the highest measured concurrency is {amount(fitted.highest)}"


def _contention(alpha: float) -> str:
    if alpha < 1e-6:
        return ": all work runs in parallel"
    strong = ", because much of the work is serial" if alpha > _STRONG else ""
    return f": at most {significant(1 / alpha)} times the throughput of one user{strong}"


def _would_change(fitted: stats.Scalability) -> str:
    parts = []
    if fitted.is_beyond:
        parts.append("Points beyond the predicted peak would show whether the peak exists.")
    if fitted.blocks < CLAIM_BLOCKS:
        parts.append(f"{CLAIM_BLOCKS} blocks would give intervals.")
    parts.append("The scaling may differ with another number of CPUs or workers, or in another version.")
    return " ".join(parts)
