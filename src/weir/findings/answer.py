"""The headline: answers the run's question in one sentence with its interval, or explains why it cannot."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from weir.findings.compare import describe_basis, invert
from weir.findings.formatting import counted, listed, ratio_text, significant
from weir.findings.metrics import THROUGHPUT
from weir.findings.types import Answer, Comparison, OmittedTrial, Point, SameServer, StackFindings, TrialCounts
from weir.model.records import Validity
from weir.model.verdict import worst

_MOST_SERVERS = 3
"""Most servers and loads in the answer on generators; the others have their own sentences."""


def build_answer(
    points: Sequence[Point],
    generators: Sequence[SameServer],
    trials: TrialCounts,
    omitted: Sequence[OmittedTrial],
    *,
    stopped_early: bool,
    is_interim: bool,
    indicative: bool,
) -> Answer:
    """Answers from the first point with the baseline and another stack; other points have their own sentences.

    A study that varies the generator asks about generators; its answer is the notable differences among them.
    """
    tail = ""
    if stopped_early:
        far = f"{trials.tried:,} of {trials.planned:,} trials"
        tail = (
            f" This is an interim answer, from {far}."
            if is_interim and trials.used
            else f" The run was interrupted after {far}."
        )
    if trials.used == 0:
        return Answer(
            _nothing(trials, omitted) + tail,
            "invalid",
            (),
            indicative,
            (),
            "A run with at least one valid trial of each stack.",
        )
    of_generators = _of_generators(generators, tail)
    if of_generators is not None:
        return of_generators
    for point in points:
        throughput = [found for found in point.comparisons if found.metric == THROUGHPUT]
        measured = [found for found in throughput if found.ratio is not None]
        if measured:
            told = tuple(_told(measured))
            sentence = point.where + point.sentence + _over_points(points, told) + tail
            reasons = tuple(dict.fromkeys(reason for found in told for reason in found.reasons))
            validity = worst(found.validity for found in told)
            return Answer(
                sentence, validity, reasons, any(found.indicative for found in told), told, told[0].would_change
            )
    for point in points:
        if any(stack.evidence.used for stack in point.stacks):
            unpaired: Validity = "valid" if len(_main(point.stacks)) == 1 else "invalid"
            return Answer(point.sentence + tail, unpaired, (), indicative, (), _missing(point))
    raise AssertionError("a used trial belongs to a point")


def _of_generators(generators: Sequence[SameServer], tail: str) -> Answer | None:
    """Returns the answer on generators; None if no two of them can be compared."""
    told = [
        (one, [found for found in one.comparisons(THROUGHPUT) if found.ratio is not None]) for one in generators
    ]  # fmt: skip
    told = [(one, measured) for one, measured in told if measured]
    if not told:
        return None
    told_first = [one.headline for one, _ in told[:_MOST_SERVERS]]
    more = f" So for {len(told) - _MOST_SERVERS} more, below." if len(told) > _MOST_SERVERS else ""
    least = min((found for _, measured in told for found in measured), key=lambda found: found.pairs)
    below = "95 % intervals below, " if any(found.low is not None for _, measured in told for found in measured) else ""
    sentence = f"{'. '.join(told_first)} ({below}{describe_basis(least)}).{more}"
    several = len(told) > 1
    comparisons = tuple(
        replace(found, name=f"{found.name}, {one.name}") if several else found
        for one, measured in told
        for found in measured
    )
    reasons = tuple(dict.fromkeys(reason for found in comparisons for reason in found.reasons))
    validity = worst(found.validity for found in comparisons)
    weak = any(found.indicative for found in comparisons)
    return Answer(sentence + tail, validity, reasons, weak, comparisons, told[0][0].would_change)


def _over_points(points: Sequence[Point], told: Sequence[Comparison]) -> str:
    """Returns how the headline's ratio varies over the other points; empty with several ratios or a single point."""
    if len(told) != 1:
        return ""
    ratios = []
    for point in points:
        for found in point.comparisons:
            if (
                found.metric == THROUGHPUT
                and found.ratio is not None
                and {found.label, found.against_label} == {told[0].label, told[0].against_label}
            ):
                ratios.append((found.ratio if found.label == told[0].label else 1 / found.ratio, point.label))
    if len(ratios) < 2:
        return ""
    (least, at_least), (most, at_most) = min(ratios), max(ratios)
    low, high = (ratio_text(ratio, None, None)[0] for ratio in (least, most))
    return f" Over {len(ratios)} points this ratio lies between {low} ({at_least}) and {high} ({at_most})."


def point_sentence(stacks: Sequence[StackFindings], comparisons: Sequence[Comparison]) -> str:
    """Returns the sentence on a point's throughput, which the headline may reuse."""
    measured = [found for found in comparisons if found.metric == THROUGHPUT and found.ratio is not None]
    missing = [found.name for found in comparisons if found.metric == THROUGHPUT and found.ratio is None]
    main = _main(stacks)
    if measured:
        told = _told(measured)
        sentence = told[0].sentence if len(told) == 1 else _several(told)
        if missing:
            sentence += f" {listed(missing)}: not measured yet (no block has a usable trial of {_both(missing)})."
        return sentence
    seen = [stack for stack in main if stack.evidence.used]
    if not seen:
        return "Not measured yet: no stack has a usable trial here."
    rates = listed([_rate(stack) for stack in seen])
    if len(main) == 1:
        return f"{rates}. There is no other stack to compare it with."
    unseen = [stack.name for stack in main if not stack.evidence.used]
    why = f"no usable trial of {listed(unseen)}" if unseen else "no block has a usable trial of both"
    return f"The stacks cannot be compared: {why}. {rates}."


def _told(measured: Sequence[Comparison]) -> list[Comparison]:
    """Returns the comparisons in the order of the sentence: one with the faster stack first, or several against the
    baseline, best first."""
    if len(measured) == 1:
        only = measured[0]
        return [invert(only) if only.ratio is not None and only.ratio < 1 else only]
    return sorted(measured, key=lambda found: -(found.ratio or 0.0))


def _several(told: Sequence[Comparison]) -> str:
    """'Compared with Flask, Sanic answers 4.1× (3.6–4.7) and … as many requests per second (95 % intervals, 3 blocks:
    indicative).'"""
    baseline = told[0].against_name
    different = [found for found in told if found.outcome in ("more", "less", "no interval")]
    same = [_ratio(found) for found in told if found.outcome == "same"]
    undecided = [_ratio(found) for found in told if found.outcome == "undecided"]
    parts = []
    if different:
        first, *others = different
        ratios = [_ratio(first).replace(first.name, f"{first.name} answers", 1), *map(_ratio, others)]
        # A sentence begins with a capital, but a stack's label stays as it is.
        parts.append(f"Compared with {baseline}, {listed(ratios)} as many requests per second")
    if same:
        parts.append(
            f"{listed(same)} {'is' if len(same) == 1 else 'are'} the same as {baseline} on throughput within ±2 %"
        )
    if undecided:
        parts.append(
            f"{listed(undecided)} {'shows' if len(undecided) == 1 else 'show'} no clear difference from {baseline} on throughput"
        )
    return f"{'; '.join(parts)} (95 % intervals, {describe_basis(min(told, key=lambda found: found.pairs))})."


def _ratio(found: Comparison) -> str:
    assert found.ratio is not None
    value, interval = ratio_text(found.ratio, found.low, found.high)
    return f"{found.name} {value}× ({interval or 'no interval'})"


def _rate(stack: StackFindings) -> str:
    measure = stack.measure(THROUGHPUT)
    if measure.value is None:
        return f"{stack.name}: throughput not measured"
    rate = f"{stack.name} answers {significant(measure.value, 4)} requests per second"
    if measure.low is None or measure.high is None:
        return f"{rate} ({counted(len(measure.trials), 'trial')}: no interval)"
    interval = f"95 % interval {significant(max(0.0, measure.low), 4)}–{significant(measure.high, 4)}"
    return f"{rate} ({interval}, {counted(len(measure.trials), 'trial')})"


def _nothing(trials: TrialCounts, omitted: Sequence[OmittedTrial]) -> str:
    if trials.finished == 0:
        return "No answer: no trial was finished."
    reasons = Counter(reason for trial in omitted for reason in trial.reasons).most_common(1)
    text = f"No answer: none of {counted(trials.finished, 'trial')} is usable."
    return (
        f"{text} Most frequent reason: {reasons[0][0].rstrip('.')} ({counted(reasons[0][1], 'trial')})."
        if reasons
        else text
    )


def _missing(point: Point) -> str:
    if len(_main(point.stacks)) == 1:
        return "A second stack in the study."
    return "A block in which a trial of the baseline and one of another stack are valid."


def _main(stacks: Sequence[StackFindings]) -> list[StackFindings]:
    return [stack for stack in stacks if stack.arm == "main"]


def _both(missing: Sequence[str]) -> str:
    return "it and the baseline" if len(missing) == 1 else "one of them and the baseline"
