"""Compares generators that drive the same server with the same load.

The server restarts for every trial, so a difference beyond trial-to-trial noise comes from the generators. A generator
with fewer responses than another is itself the limit: it no longer measures the server.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from weir import stats
from weir.findings.compare import compare, describe_basis
from weir.findings.evidence import CellTrials, summarize_reasons
from weir.findings.formatting import listed, ratio_text, significant
from weir.findings.metrics import (
    GENERATOR_CPU,
    GENERATOR_METRICS,
    KERNEL_P50,
    KERNEL_P99,
    REPORTED_P50,
    REPORTED_P99,
    THROUGHPUT,
)
from weir.findings.points import format_where
from weir.findings.stack import measure_metric
from weir.findings.types import Comparison, GeneratorFindings, SaidAgainstKernel, SameServer
from weir.model.load import Load
from weir.model.run_types import GENERATOR, WEIR, Cell, Trial
from weir.model.verdict import worst

LIMITED = 0.95
"""A generator below this share of another one's throughput, beyond noise, is itself the limit."""
OFF = 1.25
"""Reported and captured times this far apart measure different things: the report includes the generator's own
queueing."""
_OF_THE_GENERATOR = (
    "generator failed",
    "physics",
    "counts",
    "generator ceiling",
    "generator busy",
    "schedule lag",
    "not tapped",
)
"""Kinds of verdict reasons that concern the generator and not the server."""
_MOST_OFF = 2
"""Most generators in the overall sentence on p99; each has its own sentence too."""
_METRICS = {metric.key: metric for metric in GENERATOR_METRICS}
_QUANTILES: tuple[tuple[Literal["p50", "p99"], float, str, str], ...] = (
    ("p50", 0.5, REPORTED_P50, KERNEL_P50),
    ("p99", 0.99, REPORTED_P99, KERNEL_P99),
)


def compare_generators(
    cells: Sequence[CellTrials], names: Mapping[int, str], *, indicative: bool
) -> tuple[SameServer, ...]:
    """Returns every server and load with several generators.

    Args:
        cells: the run's cells with their trials.
        names: the short name of each cell's stack, by the cell's id.
        indicative: whether the run has fewer blocks than a claim needs.
    """
    several = _groups(cells)
    pairs = [
        (member, _reference(members)) for members in several for member in members if member is not _reference(members)
    ]
    generators = {of.cell.id: of.cell.generator for of in cells}
    compared = {
        one.cell.id: [
            replace(found, label=one.cell.generator, against_label=other.cell.generator) for found in comparisons
        ]
        for (one, other), comparisons in zip(
            pairs, compare(pairs, generators, indicative=indicative, metrics=GENERATOR_METRICS), strict=True
        )
    }
    return tuple(_same_server(members, compared, names) for members in several)


def count_planned_generator_comparisons(cells: Sequence[Cell]) -> int:
    """Returns the number of planned comparisons of generators on one metric."""
    return sum(len(members) - 1 for members in _groups([CellTrials(cell, ()) for cell in cells]))


def _groups(cells: Sequence[CellTrials]) -> list[list[CellTrials]]:
    """Groups cells that differ only in their generator."""
    groups: dict[tuple[str, str, Load, tuple[tuple[str, str], ...]], list[CellTrials]] = {}
    for of in cells:
        cell = of.cell
        if cell.arm == "main":
            groups.setdefault((cell.stack_label, cell.workload, cell.load, tuple(_others(cell).items())), []).append(of)
    return [members for members in groups.values() if len(members) > 1]


def _others(cell: Cell) -> dict[str, str]:
    """Returns a cell's coordinates without the generator."""
    return {name: value for name, value in cell.coordinates.items() if name != GENERATOR}


def _reference(members: Sequence[CellTrials]) -> CellTrials:
    return next((member for member in members if member.cell.generator == WEIR), members[0])


def _same_server(
    members: Sequence[CellTrials], compared: Mapping[int, Sequence[Comparison]], names: Mapping[int, str]
) -> SameServer:
    reference = _reference(members)
    found = tuple(_generator(member, compared.get(member.cell.id, ()), member is reference) for member in members)
    cell = reference.cell
    where = f"{names[cell.id]} on {format_where(cell.workload, _others(cell))}, {cell.load.label}"
    sides = _sides(found, cell.generator)
    throughput = [
        known for one in found if (known := one.comparison(THROUGHPUT)) is not None and known.ratio is not None
    ]
    return SameServer(
        where=where,
        label=cell.stack_label,
        name=names[cell.id],
        workload=cell.workload,
        load=cell.load.label,
        coordinates=_others(cell),
        reference=cell.generator,
        generators=found,
        headline=f"{where}: {_headline(sides)}",
        sentence=f"{where}: {_stands_out(found, sides)}",
        would_change=throughput[0].would_change if throughput else "A block in which a trial of each is valid.",
    )


def _generator(member: CellTrials, comparisons: Sequence[Comparison], reference: bool) -> GeneratorFindings:
    used, cell = member.used, member.cell
    summaries = [trial.result.summary for trial in used if trial.result.summary is not None]
    ceilings = [ceiling for summary in summaries if (ceiling := summary.generator.ceiling_rps)]
    found = GeneratorFindings(
        cell=cell.id,
        generator=cell.generator,
        version=summaries[-1].generator.version if summaries else "",
        figures=summaries[-1].generator.clock or "" if summaries else "",
        reference=reference,
        measures=tuple(measure_metric(member, metric) for metric in GENERATOR_METRICS),
        against_kernel=_against_kernel(member),
        ceiling_rps=median(ceilings) if ceilings else None,
        comparisons=tuple(comparisons),
        validity=worst(trial.result.verdict.validity for trial in used) if used else "invalid",
        reasons=summarize_reasons(used or member.trials),
        notes=_notes(member.trials),
        evidence=member.evidence,
        sentence="",
    )
    return replace(found, sentence=_sentence(found))


def _notes(trials: Sequence[Trial]) -> tuple[str, ...]:
    notes = []
    for kind in _OF_THE_GENERATOR:
        facts = [reason.fact for trial in trials for reason in trial.result.verdict.reasons if reason.kind == kind]
        if facts:
            notes.append(facts[0] if len(trials) == 1 else f"{len(facts)} of {len(trials)} trials, for one: {facts[0]}")
    return tuple(notes)


def _rounding_s(trial: Trial, quantile: float) -> float:
    """Returns the rounding of a printed time."""
    reported = trial.result.reported_result
    figure = None if reported is None else reported.quantiles_s.get(quantile)
    return 0.0 if figure is None else figure.rounding


def _against_kernel(member: CellTrials) -> tuple[SaidAgainstKernel, ...]:
    found = []
    for name, quantile, said, kernel in _QUANTILES:
        known = [
            (mine, seen, abs(mine - seen) <= _rounding_s(trial, quantile) * 1e6)
            for trial in member.used
            if (mine := _METRICS[said].of(trial)) and (seen := _METRICS[kernel].of(trial))
        ]
        if known:
            ratio = stats.paired_ratio([mine for mine, _, _ in known], [seen for _, seen, _ in known])
            rounded = all(as_printed for _, _, as_printed in known)
            found.append(SaidAgainstKernel(name, ratio.value, ratio.low, ratio.high, len(known), rounded))
    return tuple(found)


def _sentence(one: GeneratorFindings) -> str:
    """Describes one generator."""
    found = one.comparison(THROUGHPUT)
    parts = []
    if not one.evidence.used:
        parts.append(f"{one.generator} has no trial that counts.")
    elif found is not None:
        parts.append(found.sentence)
        if _is_limited(found):
            parts.append("With it the generator would have been the limit.")
        elif _is_ahead(found):
            parts.append(f"Here {found.against_name} is the limit.")
    off = _off(one)
    return " ".join([*parts, *([f"Its p99 is {off}."] if off else [])])


@dataclass(frozen=True, slots=True)
class _Sides:
    """A server's generators by their outcome against the reference."""

    reference: str
    limited: tuple[GeneratorFindings, ...]
    alike: tuple[GeneratorFindings, ...]
    unclear: tuple[GeneratorFindings, ...]
    ahead: tuple[GeneratorFindings, ...]
    single: tuple[GeneratorFindings, ...]
    """With one block: no interval."""


def _sides(found: Sequence[GeneratorFindings], reference: str) -> _Sides:
    sides: dict[str, list[GeneratorFindings]] = {"limited": [], "alike": [], "unclear": [], "ahead": [], "single": []}
    for one in found:
        ratio = one.comparison(THROUGHPUT)
        if ratio is None or ratio.ratio is None:
            continue
        by_outcome = {"undecided": "unclear", "no interval": "single"}
        side = (
            "limited" if _is_limited(ratio) else "ahead" if _is_ahead(ratio) else by_outcome.get(ratio.outcome, "alike")
        )
        sides[side].append(one)
    return _Sides(reference, **{side: tuple(of_side) for side, of_side in sides.items()})


def _headline(sides: _Sides) -> str:
    """Names the limit and the generators that agree, with ratios only."""
    parts = []
    if sides.limited:
        told = listed([f"{one.generator} {_times(one, interval=False)}" for one in sides.limited])
        themselves = "it is the limit itself" if len(sides.limited) == 1 else "they are the limit themselves"
        parts.append(f"{told} of {sides.reference}'s throughput, so that {themselves}")
    if sides.ahead:
        told = listed([f"{one.generator} {_times(one, interval=False)}" for one in sides.ahead])
        parts.append(f"{told}, so that {sides.reference} is the limit")
    if sides.alike:
        parts.append(f"{listed([one.generator for one in sides.alike])} about as much as {sides.reference}")
    if sides.unclear:
        parts.append(f"{listed([one.generator for one in sides.unclear])}: no clear difference from {sides.reference}")
    if sides.single:
        told = listed([f"{one.generator} {_times(one)}" for one in sides.single])
        parts.append(f"{told} of {sides.reference}'s throughput, without an interval")
    return "; ".join(parts)


def _stands_out(found: Sequence[GeneratorFindings], sides: _Sides) -> str:
    """Names the limit and its cost, the generators that agree, and those with times that are not the server's."""
    parts = []
    if sides.limited:
        told = [f"{one.generator} {_times(one)}{_at_cost(one)}" for one in sides.limited]
        # The first names the reference.
        first = sides.limited[0]
        told[0] = f"{first.generator} reaches {_times(first)} of {sides.reference}'s throughput{_at_cost(first)}"
        parts.append(
            f"{listed(told)}: with {'it' if len(told) == 1 else 'them'} the generator would have been the limit"
        )
    if sides.alike:
        parts.append(
            f"{_listed(sides.alike)} {'gets' if len(sides.alike) == 1 else 'get'} about as much as {sides.reference}"
        )
    if sides.unclear:
        parts.append(f"{_listed(sides.unclear)}: no clear difference from {sides.reference}")
    if sides.ahead:
        verb = "gets" if len(sides.ahead) == 1 else "get"
        parts.append(f"{_listed(sides.ahead)} {verb} more than {sides.reference}, which is the limit itself here")
    if sides.single:
        parts.append(
            f"of {sides.reference}'s throughput, without an interval and so without a claim: {_listed(sides.single)}"
        )
    sentences = ["; ".join(parts)] if parts else ["no two generators have trials that count in one block"]
    known = [ratio for one in found if (ratio := one.comparison(THROUGHPUT)) is not None and ratio.ratio is not None]
    if known:
        least = min(known, key=lambda ratio: ratio.pairs)
        sentences[0] += f" ({'' if len(sides.single) == len(known) else '95 % intervals, '}{describe_basis(least)})"
    missing = [one.generator for one in found if not one.evidence.used]
    if missing:
        sentences.append(f"{listed(missing)}: not measured, because no trial counts")
    off = sorted((one for one in found if _off(one)), key=_p99_off, reverse=True)
    if off:
        told = [f"{one.generator}'s is {_off(one)}" for one in off[:_MOST_OFF]]
        more = [f"{len(off) - _MOST_OFF} more differ"] if len(off) > _MOST_OFF else []
        sentences.append(f"Reported p99: {listed([*told, *more])}")
    return f"{'. '.join(sentences)}."


def _is_limited(found: Comparison) -> bool:
    return found.outcome == "less" and found.ratio is not None and found.ratio < LIMITED


def _is_ahead(found: Comparison) -> bool:
    return found.outcome == "more" and found.ratio is not None and found.ratio > 1 / LIMITED


def _times(one: GeneratorFindings, *, interval: bool = True) -> str:
    """'0.30× (0.28–0.32)'."""
    found = one.comparison(THROUGHPUT)
    assert found is not None
    assert found.ratio is not None
    value, within = ratio_text(found.ratio, found.low, found.high)
    return f"{value}×" + (f" ({within})" if within and interval else "")


def _listed(some: Sequence[GeneratorFindings]) -> str:
    """'wrk with 0.99× (0.98–1.01) and ab with 1.01× (1.00–1.02)'."""
    return listed([f"{one.generator} with {_times(one)}" for one in some])


def _at_cost(one: GeneratorFindings) -> str:
    found = one.comparison(GENERATOR_CPU)
    return "" if found is None or found.ratio is None else f" at {significant(found.ratio, 2)}× the CPU per request"


def _p99(one: GeneratorFindings) -> SaidAgainstKernel | None:
    return next((ratio for ratio in one.against_kernel if ratio.quantile == "p99"), None)


def _p99_off(one: GeneratorFindings) -> float:
    """Distance from the kernel's p99, in either direction."""
    ratio = _p99(one)
    return 0.0 if ratio is None else abs(math.log(ratio.ratio))


def _off(one: GeneratorFindings) -> str:
    """Describes the distance of a generator's p99 from the kernel's; empty if they agree or are unknown."""
    ratio = _p99(one)
    said_us, seen_us = one.measure(REPORTED_P99).value, one.measure(KERNEL_P99).value
    if ratio is None or not said_us or not seen_us or ratio.within_rounding or 1 / OFF < ratio.ratio < OFF:
        return ""
    return f"{significant(ratio.ratio, 2)}× what the kernel saw ({significant(said_us / 1e3)} ms, {significant(seen_us / 1e3)} ms)"
