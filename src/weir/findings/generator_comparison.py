"""Compares generators that drive the same server with the same load.

The server restarts for every trial, so a difference beyond trial-to-trial noise comes from the generators. The generator
with fewer responses is then the limit, and the figures of this generator do not describe the server.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Literal, get_args

from weir import stats
from weir.audit.laws import PHYSICS
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
from weir.findings.point_types import Comparison
from weir.findings.points import format_where
from weir.findings.stack import measure_metric
from weir.findings.types import GeneratorFindings, KernelRatio, SameServer
from weir.model.load import Load
from weir.model.run_types import GENERATOR, WEIR, Cell, Trial
from weir.model.verdict import worst

LIMITED = 0.95
"""A generator is the limit if its throughput ÷ another's is below this value, and significantly below 1."""
OFF = 1.25
"""A reported time is wrong if it differs from the kernel's time by at least this factor. The usual cause: queueing."""
_Side = Literal["limited", "ahead", "alike", "unclear", "single"]
"""The result of comparing a generator's throughput with the reference. `single`: no interval, as with one block."""
_OF_THE_GENERATOR = (
    "generator failed",
    PHYSICS,
    "counts",
    "generator limit",
    "generator busy",
    "schedule lag",
    "not tapped",
)
"""Kinds of verdict reasons that concern the generator and not the server."""
_MOST_OFF = 2
"""Maximum number of generators in the sentence about wrong p99. The sentence only counts the others."""
_METRICS = {metric.key: metric for metric in GENERATOR_METRICS}
_QUANTILES: tuple[tuple[Literal["p50", "p99"], float, str, str], ...] = (
    ("p50", 0.5, REPORTED_P50, KERNEL_P50),
    ("p99", 0.99, REPORTED_P99, KERNEL_P99),
)


def compare_generators(
    cells: Sequence[CellTrials], names: Mapping[int, str], *, indicative: bool
) -> tuple[SameServer, ...]:
    """Compares the generators of each server and load. `names` is a dict from cell id to the stack's short name."""
    servers = _groups(cells)
    pairs = [
        (member, reference)
        for members in servers
        for reference in [_find_reference(members)]
        for member in members
        if member is not reference
    ]
    generators = {of.cell.id: of.cell.generator for of in cells}
    compared = compare(pairs, generators, indicative=indicative, metrics=GENERATOR_METRICS)
    by_cell = {
        one.cell.id: [replace(found, label=one.cell.generator, against_label=other.cell.generator) for found in of_pair]
        for (one, other), of_pair in zip(pairs, compared, strict=True)
    }
    return tuple(_compare_on_server(members, by_cell, names) for members in servers)


def count_planned_generator_comparisons(cells: Sequence[Cell]) -> int:
    """Returns the planned number of comparisons between generators on one metric."""
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


def _find_reference(members: Sequence[CellTrials]) -> CellTrials:
    return next((member for member in members if member.cell.generator == WEIR), members[0])


def _compare_on_server(
    members: Sequence[CellTrials], compared: Mapping[int, Sequence[Comparison]], names: Mapping[int, str]
) -> SameServer:
    reference = _find_reference(members)
    found = tuple(_measure(member, compared.get(member.cell.id, ()), member is reference) for member in members)
    cell = reference.cell
    where = f"{names[cell.id]} on {format_where(cell.workload, _others(cell))}, {cell.load.label}"
    sides = _sort_by_outcome(found)
    known = [ratio for one in found if (ratio := _ratio(one)) is not None]
    return SameServer(
        where=where,
        label=cell.stack_label,
        name=names[cell.id],
        workload=cell.workload,
        load=cell.load.label,
        coordinates=_others(cell),
        reference=cell.generator,
        generators=found,
        headline=f"{where}: {_headline(sides, cell.generator)}",
        sentence=f"{where}: {_describe_differences(found, sides, cell.generator)}",
        would_change=known[0].would_change if known else "A block with a valid trial of each generator would help.",
    )


def _measure(member: CellTrials, comparisons: Sequence[Comparison], reference: bool) -> GeneratorFindings:
    used, cell = member.used, member.cell
    summaries = [trial.result.summary for trial in used if trial.result.summary is not None]
    max_rates = [rate for summary in summaries if (rate := summary.generator.max_rate_rps)]
    found = GeneratorFindings(
        cell=cell.id,
        generator=cell.generator,
        version=summaries[-1].generator.version if summaries else "",
        figures=summaries[-1].generator.clock or "" if summaries else "",
        reference=reference,
        measures=tuple(measure_metric(member, metric) for metric in GENERATOR_METRICS),
        against_kernel=_compare_with_kernel(member),
        max_rate_rps=median(max_rates) if max_rates else None,
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
            notes.append(
                facts[0] if len(trials) == 1 else f"{len(facts)} of {len(trials)} trials, for example: {facts[0]}"
            )
    return tuple(notes)


def _compare_with_kernel(member: CellTrials) -> tuple[KernelRatio, ...]:
    found = []
    for name, quantile, reported, kernel in _QUANTILES:
        said_us, seen_us, is_rounding = [], [], []
        for trial in member.used:
            if (said := _METRICS[reported].of(trial)) and (seen := _METRICS[kernel].of(trial)):
                result = trial.result.reported_result
                figure = None if result is None else result.quantiles_s.get(quantile)
                said_us.append(said)
                seen_us.append(seen)
                is_rounding.append(abs(said - seen) <= (0.0 if figure is None else figure.rounding * 1e6))
        if said_us:
            ratio = stats.paired_ratio(said_us, seen_us)
            found.append(KernelRatio(name, ratio.value, ratio.low, ratio.high, len(said_us), all(is_rounding)))
    return tuple(found)


def _sentence(one: GeneratorFindings) -> str:
    found = one.comparison(THROUGHPUT)
    parts = []
    if not one.evidence.used:
        parts.append(f"{one.generator} has no usable trial.")
    elif found is not None:
        parts.append(found.sentence)
        if _is_limited(found):
            parts.append("So the generator is the limit, not the server.")
        elif _is_ahead(found):
            parts.append(f"So {found.against_name} is the limit, not the server.")
    if (p99 := _describe_wrong_p99(one)) is not None:
        parts.append(f"The reported p99 is {p99[1]}.")
    return " ".join(parts)


def _ratio(one: GeneratorFindings) -> Comparison | None:
    """Returns the comparison of the generator's throughput with the reference. None without a ratio."""
    found = one.comparison(THROUGHPUT)
    return None if found is None or found.ratio is None else found


def _sort_by_outcome(found: Sequence[GeneratorFindings]) -> dict[_Side, list[GeneratorFindings]]:
    sides: dict[_Side, list[GeneratorFindings]] = {side: [] for side in get_args(_Side)}
    by_outcome: dict[str, _Side] = {"undecided": "unclear", "no interval": "single"}
    for one in found:
        if (ratio := _ratio(one)) is not None:
            side = by_outcome.get(ratio.outcome, "alike")
            sides["limited" if _is_limited(ratio) else "ahead" if _is_ahead(ratio) else side].append(one)
    return sides


def _headline(sides: Mapping[_Side, Sequence[GeneratorFindings]], reference: str) -> str:
    """Returns a short sentence: which generators are the limit, and which generators agree."""
    names = {side: listed([one.generator for one in some]) for side, some in sides.items()}
    ratios = {
        side: listed([f"{one.generator} {_times(one, interval=side == 'single')}" for one in some])
        for side, some in sides.items()
    }
    themselves = "this generator is the limit" if len(sides["limited"]) == 1 else "these generators are the limit"
    texts: dict[_Side, str] = {
        "limited": f"{ratios['limited']} of {reference}'s throughput, so that {themselves}",
        "ahead": f"{ratios['ahead']} of {reference}'s throughput, so that {reference} is the limit",
        "alike": f"{names['alike']}: about the same throughput as {reference}",
        "unclear": f"{names['unclear']}: no clear difference from {reference}",
        "single": f"{ratios['single']} of {reference}'s throughput, without an interval",
    }
    return "; ".join(text for side, text in texts.items() if sides[side])


def _describe_differences(
    found: Sequence[GeneratorFindings], sides: Mapping[_Side, Sequence[GeneratorFindings]], reference: str
) -> str:
    """Returns sentences: which generators are the limit, which agree, and which report a wrong p99."""
    ratios = {side: listed([f"{one.generator} with {_times(one)}" for one in some]) for side, some in sides.items()}
    gets = {side: "gets" if len(some) == 1 else "get" for side, some in sides.items()}
    reach = [f"{one.generator} {_times(one)}{_at_cost(one)}" for one in sides["limited"]]
    for first in sides["limited"][:1]:
        reach[0] = f"{first.generator} reaches {_times(first)} of {reference}'s throughput{_at_cost(first)}"
    which = "this generator is" if len(reach) == 1 else "these generators are"
    texts: dict[_Side, str] = {
        "limited": f"{listed(reach)}: {which} the limit, not the server",
        "alike": f"{ratios['alike']} {gets['alike']} about the same throughput as {reference}",
        "unclear": f"{ratios['unclear']}: no clear difference from {reference}",
        "ahead": f"{ratios['ahead']} {gets['ahead']} more than {reference}, so {reference} is the limit",
        "single": f"{ratios['single']} of {reference}'s throughput, without an interval and so without a claim",
    }
    parts = [text for side, text in texts.items() if sides[side]]
    sentences = ["; ".join(parts) or "no block has usable trials of two generators"]
    known = [ratio for one in found if (ratio := _ratio(one)) is not None]
    if known:
        least = min(known, key=lambda ratio: ratio.pairs)
        sentences[0] += f" ({'' if len(sides['single']) == len(known) else '95 % intervals, '}{describe_basis(least)})"
    if missing := [one.generator for one in found if not one.evidence.used]:
        sentences.append(f"{listed(missing)}: not measured, because no trial is usable")
    wrong = [(*p99, one.generator) for one in found if (p99 := _describe_wrong_p99(one)) is not None]
    if wrong:
        wrong.sort(key=lambda item: -item[0])
        told = [f"{generator}'s is {text}" for _, text, generator in wrong[:_MOST_OFF]]
        more = [f"{len(wrong) - _MOST_OFF} more differ"] if len(wrong) > _MOST_OFF else []
        sentences.append(f"Reported p99: {listed([*told, *more])}")
    return f"{'. '.join(sentences)}."


def _is_limited(found: Comparison) -> bool:
    return found.outcome == "less" and found.ratio is not None and found.ratio < LIMITED


def _is_ahead(found: Comparison) -> bool:
    return found.outcome == "more" and found.ratio is not None and found.ratio > 1 / LIMITED


def _times(one: GeneratorFindings, *, interval: bool = True) -> str:
    """Formats a ratio with its interval. Example: '0.30× (0.28–0.32)'."""
    found = one.comparison(THROUGHPUT)
    assert found is not None
    assert found.ratio is not None
    value, within = ratio_text(found.ratio, found.low, found.high)
    return f"{value}×" + (f" ({within})" if within and interval else "")


def _at_cost(one: GeneratorFindings) -> str:
    found = one.comparison(GENERATOR_CPU)
    return "" if found is None or found.ratio is None else f" at {significant(found.ratio, 2)}× the CPU per request"


def _describe_wrong_p99(one: GeneratorFindings) -> tuple[float, str] | None:
    """Returns |ln(reported p99 ÷ kernel's p99)| and a text about this error; None if both agree or one is unknown."""
    ratio = next((ratio for ratio in one.against_kernel if ratio.quantile == "p99"), None)
    said_us, seen_us = one.measure(REPORTED_P99).value, one.measure(KERNEL_P99).value
    if ratio is None or not said_us or not seen_us or ratio.within_rounding or 1 / OFF < ratio.ratio < OFF:
        return None
    times = f"{significant(said_us / 1e3)} ms, {significant(seen_us / 1e3)} ms"
    return abs(math.log(ratio.ratio)), f"{significant(ratio.ratio, 2)}× the kernel's p99 ({times})"
