"""Fits the universal scalability law to a stack's throughput over concurrency, if the run has enough of the curve."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from weir import stats
from weir.findings.compare import CLAIM_BLOCKS
from weir.findings.formatting import amount, counted, listed, significant
from weir.findings.metrics import BY_KEY, THROUGHPUT
from weir.findings.points import PointCells
from weir.findings.types import Evidence, Scaling
from weir.model.load import ClosedLoad

_STRONG = 0.02
"""A coefficient of contention that limits work noticeably: 50 users gain half of what they could."""


def fit_scalings(groups: Sequence[PointCells], names: Mapping[int, str]) -> tuple[Scaling, ...]:
    """Fits each stack with closed loops at `stats.LEAST_PLACES` concurrencies or more, all else equal."""
    curves: dict[tuple[str, str, str], dict[int, dict[float, float]]] = {}
    evidence_of: dict[tuple[str, str, str], tuple[str, list[int]]] = {}
    for group in groups:
        if not isinstance(group.load, ClosedLoad) or isinstance(group.load.users, tuple):
            continue
        where = group.where
        for member in group.members:
            if member.cell.arm != "main":
                continue
            key = (group.workload, where, member.cell.stack_label)
            blocks = curves.setdefault(key, {})
            _, trials = evidence_of.setdefault(key, (names[member.cell.id], []))
            for trial in member.used:
                value = BY_KEY[THROUGHPUT].of(trial)
                if value is not None and value > 0:
                    blocks.setdefault(trial.block, {})[float(group.load.connections)] = value
                    trials.append(trial.id)
    found = []
    for key, blocks in curves.items():
        fitted = stats.fit_scalability(list(blocks.values())) if blocks else None
        if fitted is not None:
            _, where, label = key
            name, trials = evidence_of[key]
            evidence = Evidence(tuple(sorted(trials)))
            indicative, curve = fitted.blocks < CLAIM_BLOCKS, None if fitted.is_poor else fitted
            scaling = Scaling(where, label, name, indicative, evidence, "", curve, fitted.misfit, _would_change(fitted))
            found.append(replace(scaling, sentence=_sentence(scaling, fitted)))
    return tuple(found)


def _sentence(scaling: Scaling, fitted: stats.Scalability) -> str:
    basis = counted(fitted.blocks, "block") + (": indicative" if scaling.indicative else "")
    if scaling.fitted is None:
        return (
            f"{scaling.name} on {scaling.where} does not follow the universal scalability law: it misses the measured throughput by "
            f"{fitted.misfit:.0%} on average ({basis}), so no peak is predicted from it."
        )
    parts = [
        _peak(fitted),
        f"contention α {_interval(fitted.alpha)}{_contention(fitted.alpha.value)}",
        f"coherency β {_interval(fitted.beta)}",
    ]
    fit = f"universal scalability law, {fitted.misfit:.1%} off on average"
    return f"{scaling.name} on {scaling.where}: {'; '.join(parts)} ({fit}, {basis})."


def _peak(fitted: stats.Scalability) -> str:
    peak = fitted.peak_at
    level = "" if fitted.peak_throughput is None else f"{significant(fitted.peak_throughput)} req/s"
    if peak is None or fitted.peak_throughput is None:
        return (
            f"throughput levels off at {level}" if level else "throughput grows with concurrency as far as was measured"
        )
    interval = (
        ""
        if peak.low is None or peak.high is None
        else f" (95 % interval {significant(peak.low)}–{significant(peak.high)})"
    )
    beyond = (
        f", beyond the {amount(fitted.highest)} that were measured: the law's word alone" if fitted.is_beyond else ""
    )
    return f"throughput peaks at {significant(peak.value)} connections{interval} with {level}{beyond}"


def _interval(estimate: stats.Estimate) -> str:
    value = significant(estimate.value, 2)
    return (
        value
        if estimate.low is None or estimate.high is None
        else f"{value} ({listed_range(estimate.low, estimate.high)})"
    )


def listed_range(low: float, high: float) -> str:
    """'0.01–0.03'."""
    return f"{significant(low, 2)}–{significant(high, 2)}"


def _contention(alpha: float) -> str:
    if alpha < 1e-6:
        return ": nothing is done one after another"
    most = 1 / alpha
    strong = ", much of the work is done one after another" if alpha > _STRONG else ""
    return f": at most {significant(most)} times what one user gets{strong}"


def _would_change(fitted: stats.Scalability) -> str:
    parts = []
    if fitted.is_beyond:
        parts.append("Points beyond the predicted peak would show whether it is there.")
    if fitted.blocks < CLAIM_BLOCKS:
        parts.append(f"{CLAIM_BLOCKS} blocks would give intervals.")
    parts.append(listed(["Another number of CPUs or workers", "another version may scale otherwise."]))
    return " ".join(parts)
