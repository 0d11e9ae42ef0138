"""Compares stacks with the baseline: paired ratios with intervals, Holm's correction, and one sentence per comparison."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from weir import stats
from weir.findings.evidence import CellTrials, Pairs, pair_by_block
from weir.findings.formatting import basis_text, counted, ratio_text
from weir.findings.metrics import BY_KEY, METRICS, Metric
from weir.findings.point_types import Comparison, Outcome
from weir.parsing import format_duration

CLAIM_BLOCKS = 10
"""Minimum number of blocks for a claim. With fewer blocks, a finding is indicative."""
ALPHA = 0.05
AIM = 0.05
"""Wanted half-width of an interval: ±5 %. `would_change` names the number and the time of blocks for this half-width."""


def compare(
    pairs_of_cells: Sequence[tuple[CellTrials, CellTrials]],
    names: Mapping[int, str],
    *,
    indicative: bool,
    metrics: Sequence[Metric] = METRICS,
    first_look: int | None = None,
) -> list[list[Comparison]]:
    """Compares each pair (stack, baseline) on every metric.

    Returns one list of comparisons per pair, in the order of `metrics`. Holm's correction covers all comparisons on one
    metric at all points. `first_look`: see `RunInfo.first_look`.
    """
    compared: list[list[Comparison]] = [[] for _ in pairs_of_cells]
    for metric in metrics:
        paired = [pair_by_block(one, other, metric, first_look) for one, other in pairs_of_cells]
        drafts = [
            _draft(one, other, metric, names, pairs, indicative=indicative)
            for (one, other), pairs in zip(pairs_of_cells, paired, strict=True)
        ]
        p_values = [draft.p_value for draft in drafts if draft.p_value is not None]
        adjusted = iter(stats.holm(p_values))
        for of_pair, draft, pairs in zip(compared, drafts, paired, strict=True):
            p_adjusted = None if draft.p_value is None else next(adjusted)
            of_pair.append(_conclude(draft, metric, pairs, p_adjusted, len(p_values)))
    return compared


def invert(comparison: Comparison) -> Comparison:
    """Returns the comparison in the other direction: B ÷ A instead of A ÷ B."""
    assert comparison.ratio is not None
    other: dict[Outcome, Outcome] = {"more": "less", "less": "more"}
    seen = replace(
        comparison,
        label=comparison.against_label,
        name=comparison.against_name,
        against_label=comparison.label,
        against_name=comparison.name,
        ratio=1 / comparison.ratio,
        low=None if comparison.high is None else 1 / comparison.high,
        high=None if comparison.low is None else 1 / comparison.low,
        outcome=other.get(comparison.outcome, comparison.outcome),
    )
    return replace(seen, sentence=describe_comparison(seen, BY_KEY[seen.metric]))


def _draft(
    one: CellTrials, other: CellTrials, metric: Metric, names: Mapping[int, str], pairs: Pairs, *, indicative: bool
) -> Comparison:
    """Returns a comparison without outcome and sentences, because both need Holm's correction over all comparisons."""
    ratio = pairs.ratio
    return Comparison(
        metric=metric.key,
        label=one.cell.stack_label,
        name=names[one.cell.id],
        against_label=other.cell.stack_label,
        against_name=names[other.cell.id],
        ratio=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        pairs=len(pairs.blocks),
        p_value=ratio.p_value if ratio else None,
        p_adjusted=None,
        outcome="not measured",
        indicative=indicative or len(pairs.blocks) < CLAIM_BLOCKS,
        validity=pairs.validity,
        reasons=pairs.reasons,
        evidence=pairs.evidence,
        sentence="",
        would_change="",
    )


def _conclude(draft: Comparison, metric: Metric, pairs: Pairs, p_adjusted: float | None, family: int) -> Comparison:
    comparison = replace(draft, p_adjusted=p_adjusted, outcome=_outcome(draft.ratio, pairs, p_adjusted))
    return replace(
        comparison,
        sentence=describe_comparison(comparison, metric),
        would_change=_would_change(comparison, pairs, family),
    )


def _outcome(ratio: float | None, pairs: Pairs, p_adjusted: float | None) -> Outcome:
    if ratio is None:
        return "not measured"
    if p_adjusted is None:
        return "no interval"
    if stats.tost_equivalent(pairs.values, pairs.against):
        return "same"
    if p_adjusted >= ALPHA:
        return "undecided"
    return "more" if ratio > 1 else "less"


def describe_basis(comparison: Comparison) -> str:
    """Returns the number of blocks behind the interval. Example: '3 blocks: indicative'."""
    return basis_text(comparison.pairs, comparison.indicative)


def describe_comparison(comparison: Comparison, metric: Metric) -> str:
    """Describes a comparison in one sentence."""
    ratio, both = comparison.ratio, f"{comparison.name} and {comparison.against_name}"
    if ratio is None:
        return f"{both} cannot be compared on {metric.title}: no block has usable trials of both with this metric."
    value, interval = ratio_text(ratio, comparison.low, comparison.high)
    phrase = f"{comparison.name} {metric.phrase.format(ratio=value)} {comparison.against_name}"
    tail = f"ratio {value}, 95 % interval {interval} ({describe_basis(comparison)})."
    match comparison.outcome:
        case "no interval" if comparison.pairs == 1:
            return f"{phrase} in the only block with both: no interval, so no claim."
        case "no interval":
            blocks = counted(comparison.pairs, "block")
            return f"{phrase} in each of {blocks}, without any spread: no interval, so no claim."
        case "same":
            return f"{both} are the same on {metric.title} within ±2 %: {tail}"
        case "undecided":
            return f"{both} show no clear difference on {metric.title}: {tail}"
    return f"{phrase} (95 % interval {interval}, {describe_basis(comparison)})."


def _would_change(comparison: Comparison, pairs: Pairs, family: int) -> str:
    if comparison.outcome == "not measured":
        return "A block with a valid trial of both would allow a comparison."
    if comparison.outcome == "no interval":
        return "A further block with another ratio would give an interval."
    parts = []
    if pairs.ratio is not None and pairs.ratio.spread is not None:
        # The interval is symmetric in the logarithm, so its upper half is wider.
        blocks = stats.blocks_for_precision(pairs.ratio.spread, math.log1p(AIM))
        if blocks > comparison.pairs:
            blocks = max(blocks, CLAIM_BLOCKS)
            time = f" ({format_duration(blocks * pairs.block_s)} of trials of both)" if pairs.block_s else ""
            parts.append(f"About {blocks:,} blocks{time} would narrow the interval to ±5 %.")
        elif comparison.indicative:
            parts.append(f"The interval is narrow enough; {CLAIM_BLOCKS} blocks would support a claim.")
    if comparison.outcome == "undecided" and comparison.excludes_one:
        parts.append(f"The interval excludes 1, but not after correction for {family} comparisons on this metric.")
    parts.append("The result may differ on another machine or with another load, number of workers or version.")
    return " ".join(parts)
