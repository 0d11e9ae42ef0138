"""Builds the headline: a sentence that answers the run's question, or explains why there is no answer."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from weir.findings.compare import describe_basis, invert
from weir.findings.formatting import counted, listed, ratio_text, significant
from weir.findings.metrics import BY_KEY, MEAN, P50, THROUGHPUT
from weir.findings.point_types import Comparison, Point, StackFindings
from weir.findings.types import Answer, OmittedTrial, Progress, SameServer, TrialCounts
from weir.model.load import ClosedLoad, Load
from weir.model.verdict import worst

_MOST_SERVERS = 3
"""Maximum number of servers in the answer about generators. Each other server has only its own finding."""

_WHY_RESPONSE_TIME = {
    "rate_rps": "The rate limits the throughput; a load without a rate would compare the highest throughputs.",
    "connections": "The users' pauses limit the throughput; users without pauses would compare the highest throughputs.",
}


def build_answer(
    points: Sequence[Point],
    generators: Sequence[SameServer],
    trials: TrialCounts,
    omitted: Sequence[OmittedTrial],
    progress: Progress,
    *,
    indicative: bool,
) -> Answer:
    """Builds the answer for the first point where weir can compare a stack with the baseline. If weir can compare
    generators, the answer is about the generators."""
    tail = ""
    if progress != "complete":
        start = "The run was interrupted after"
        if progress == "interim":
            start = "This is an interim answer, from" if trials.used else "So far, weir has tried"
        tail = f" {start} {trials.tried:,} of {trials.planned:,} trials."
    if trials.used == 0:
        would_change = "A run with a valid trial of each server would give an answer."
        return Answer(_nothing(trials, omitted) + tail, "invalid", (), indicative, (), would_change)
    of_generators = _answer_about_generators(generators, tail)
    if of_generators is not None:
        return of_generators
    for point in points:
        if measured := _measured(point.comparisons, point.answer_metric):
            told = _sort_for_sentence(measured)
            sentence = point.where + point.sentence + _describe_other_points(points, told) + tail
            why = "" if point.answer_metric == THROUGHPUT else f"{_WHY_RESPONSE_TIME[point.axis]} "
            return _answer_from(sentence, told, why + told[0].would_change)
    for point in points:
        if any(stack.evidence.used for stack in point.stacks):
            sentence = point.sentence + tail
            if len(_main(point.stacks)) == 1:
                return Answer(
                    sentence, "valid", (), indicative, (), "A second stack in the study would allow a comparison."
                )
            would_change = "A block with valid trials of the first server and another server would allow a comparison."
            return Answer(sentence, "invalid", (), indicative, (), would_change)
    raise AssertionError("found a used trial without a point, expected a point for each used trial")


def _answer_from(sentence: str, comparisons: Sequence[Comparison], would_change: str) -> Answer:
    return Answer(
        sentence=sentence,
        validity=worst(found.validity for found in comparisons),
        reasons=tuple(dict.fromkeys(reason for found in comparisons for reason in found.reasons)),
        indicative=any(found.indicative for found in comparisons),
        comparisons=tuple(comparisons),
        would_change=would_change,
    )


def _answer_about_generators(generators: Sequence[SameServer], tail: str) -> Answer | None:
    """Returns the answer about generators, or None if no two generators can be compared."""
    pairs = [
        (server, found) for server in generators for one in server.generators for found in _measured(one.comparisons)
    ]
    if not pairs:
        return None
    servers = [server for server in generators if any(_measured(one.comparisons) for one in server.generators)]
    unnamed = len(servers) - _MOST_SERVERS
    more = f" See below for {counted(unnamed, 'more server')}." if unnamed > 0 else ""
    least = min((found for _, found in pairs), key=lambda found: found.pairs)
    below = "95 % intervals below, " if any(found.low is not None for _, found in pairs) else ""
    headlines = ". ".join(one.headline for one in servers[:_MOST_SERVERS])
    comparisons = [
        replace(found, name=f"{found.name}, {one.name}") if len(servers) > 1 else found for one, found in pairs
    ]
    sentence = f"{headlines} ({below}{describe_basis(least)}).{more}{tail}"
    return _answer_from(sentence, comparisons, servers[0].would_change)


def _describe_other_points(points: Sequence[Point], told: Sequence[Comparison]) -> str:
    """Describes the range of the headline's ratio over several points. Returns '' if the headline has several ratios,
    or if only one point has the ratio."""
    if len(told) != 1:
        return ""
    label, labels = told[0].label, {told[0].label, told[0].against_label}
    ratios = [
        (found.ratio if found.label == label else 1 / found.ratio, point.label)
        for point in points
        for found in _measured(point.comparisons, told[0].metric)
        if found.ratio is not None and {found.label, found.against_label} == labels
    ]
    if len(ratios) < 2:
        return ""
    (least, at_least), (most, at_most) = min(ratios), max(ratios)
    low, high = (ratio_text(ratio, None, None)[0] for ratio in (least, most))
    return f" Over {len(ratios)} points this ratio lies between {low} ({at_least}) and {high} ({at_most})."


def choose_answer_metric(load: Load, stacks: Sequence[StackFindings], comparisons: Sequence[Comparison]) -> str:
    """Returns the metric of the answer at a point: see `Point.answer_metric`."""
    if not load.limits_throughput or not _measured(comparisons, P50):
        return THROUGHPUT
    differ = any(found.outcome in ("more", "less") for found in _measured(comparisons))
    return THROUGHPUT if differ and not _users_mostly_pause(load, stacks) else P50


def _users_mostly_pause(load: Load, stacks: Sequence[StackFindings]) -> bool:
    """Returns whether, with each stack, the users of a closed loop wait for responses less than half of the time. A
    faster server then hardly changes the throughput. Little's law: waiting users = throughput × mean response time."""
    if not isinstance(load, ClosedLoad) or isinstance(load.users, tuple):
        return False
    measured = [(stack.measure(THROUGHPUT).value, stack.measure(MEAN).value) for stack in stacks]
    waiting = [
        rate_rps * mean_us / 1e6 for rate_rps, mean_us in measured if rate_rps is not None and mean_us is not None
    ]
    return bool(waiting) and max(waiting) < load.users / 2


def point_sentence(stacks: Sequence[StackFindings], comparisons: Sequence[Comparison], metric: str) -> str:
    """Describes a point's stacks on the metric of the answer. The run's headline may repeat this text."""
    missing = [found.name for found in comparisons if found.metric == metric and found.ratio is None]
    if measured := _measured(comparisons, metric):
        told = _sort_for_sentence(measured)
        sentence = told[0].sentence if len(told) == 1 else _describe_comparisons(told)
        if missing:
            both = f"{'this server' if len(missing) == 1 else 'one of these servers'} and the baseline"
            sentence += f" {listed(missing)}: not measured yet (no block has a usable trial of {both})."
        return sentence
    main = _main(stacks)
    seen = [stack for stack in main if stack.evidence.used]
    if not seen:
        return "Not measured yet: no server has a usable trial at this point."
    rates = listed([_rate(stack) for stack in seen])
    if len(main) == 1:
        return f"{rates}. There is no other stack for a comparison."
    unseen = [stack.name for stack in main if not stack.evidence.used]
    why = f"no usable trial of {listed(unseen)}" if unseen else "no block has a usable trial of both"
    return f"The servers cannot be compared: {why}. {rates}."


def _measured(comparisons: Sequence[Comparison], metric: str = THROUGHPUT) -> list[Comparison]:
    return [found for found in comparisons if found.metric == metric and found.ratio is not None]


def _sort_for_sentence(measured: Sequence[Comparison]) -> list[Comparison]:
    """Sorts comparisons by ratio, the best first. Inverts a single comparison if the baseline is better."""
    sign = 1 if BY_KEY[measured[0].metric].higher_is_better else -1
    if len(measured) == 1:
        only = measured[0]
        return [invert(only) if only.ratio is not None and (only.ratio - 1) * sign < 0 else only]
    return sorted(measured, key=lambda found: -sign * (found.ratio or 0.0))


def _describe_comparisons(told: Sequence[Comparison]) -> str:
    """Describes comparisons with the baseline. Example: 'Compared with Flask, Sanic answers 4.1× as many …'"""
    baseline, metric = told[0].against_name, BY_KEY[told[0].metric]
    verb, amount = metric.phrase.removesuffix(" as").split(" {ratio}× ")
    different = [found for found in told if found.outcome in ("more", "less", "no interval")]
    same = [_ratio(found) for found in told if found.outcome == "same"]
    undecided = [_ratio(found) for found in told if found.outcome == "undecided"]
    parts = []
    if different:
        first, *others = different
        ratios = [_ratio(first).replace(first.name, f"{first.name} {verb}", 1), *map(_ratio, others)]
        # A sentence begins with a capital, but a stack's label stays as it is.
        parts.append(f"Compared with {baseline}, {listed(ratios)} {amount}")
    if same:
        verb = "is" if len(same) == 1 else "are"
        parts.append(f"{listed(same)} {verb} the same as {baseline} on {metric.title} within ±2 %")
    if undecided:
        verb = "shows" if len(undecided) == 1 else "show"
        parts.append(f"{listed(undecided)} {verb} no clear difference from {baseline} on {metric.title}")
    return f"{'; '.join(parts)} (95 % intervals, {describe_basis(min(told, key=lambda found: found.pairs))})."


def _ratio(found: Comparison) -> str:
    assert found.ratio is not None
    value, interval = ratio_text(found.ratio, found.low, found.high)
    return f"{found.name} {value}× ({interval or 'no interval'})"


def _rate(stack: StackFindings) -> str:
    measure = stack.measure(THROUGHPUT)
    if measure.value is None:
        return f"{stack.name}: throughput not measured"
    rate, basis = f"{significant(measure.value, 4)} requests per second", counted(len(measure.trials), "trial")
    if measure.low is None or measure.high is None:
        return f"{stack.name} answers {rate} ({basis}: no interval)"
    interval = f"{significant(max(0.0, measure.low), 4)}–{significant(measure.high, 4)}"
    return f"{stack.name} answers {rate} (95 % interval {interval}, {basis})"


def _nothing(trials: TrialCounts, omitted: Sequence[OmittedTrial]) -> str:
    if trials.finished == 0:
        return "No answer: no trial was finished."
    text = f"No answer: none of {counted(trials.finished, 'trial')} is usable."
    for reason, count in Counter(reason for trial in omitted for reason in trial.reasons).most_common(1):
        text += f" Most frequent reason: {reason.rstrip('.')} ({counted(count, 'trial')})."
    return text


def _main(stacks: Sequence[StackFindings]) -> list[StackFindings]:
    return [stack for stack in stacks if stack.arm == "main"]
