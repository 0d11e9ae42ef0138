"""Warnings that weaken the answer: a fact, its threshold, the probable cause and the next step."""

from collections.abc import Iterator, Sequence
from itertools import chain

from weir.findings.compare import CLAIM_BLOCKS
from weir.findings.evidence import group_reasons
from weir.findings.formatting import counted, signed_percent
from weir.findings.metrics import P50, P99
from weir.findings.types import Audit, BrokenLaw, Caution, IdenticalCopies, Point, Progress, TrialCounts
from weir.model.run_types import WEIR, RunInfo, Trial
from weir.stats import Estimate, exceeds_chance

DRIFT_LIMIT = 0.02


def collect_cautions(
    info: RunInfo,
    used: Sequence[Trial],
    counts: TrialCounts,
    points: Sequence[Point],
    copies: IdenticalCopies | None,
    audit: Audit,
    drifts: dict[int, Estimate],
    progress: Progress,
    added_blocks: int,
) -> tuple[Caution, ...]:
    """Returns all cautions, the most important first."""
    cautions = (
        _audit(audit),
        _unequal_work(points),
        _invariants(used),
        _interrupted(counts) if progress != "complete" else (),
        _omitted(counts),
        _few_blocks(info),
        _extended(added_blocks),
        _copies_differ(copies),
        _suspect(used),
        _failures_counted(used),
        _other_generator(used),
        _drift(drifts),
        _unsupported(points),
        _shared(info),
        _went_without(info),
        _loopback(info, used),
    )
    return tuple(chain.from_iterable(cautions))


def _extended(blocks: int) -> Iterator[Caution]:
    if blocks:
        yield Caution(
            f"{counted(blocks, 'block')} more than the study asks for, by request of somebody who looked on.",
            "A run that goes on until its answer pleases finds differences that are not there.",
            next_step="Decide on blocks beforehand, or on the width of intervals (width in [method]).",
        )


def _audit(audit: Audit) -> Iterator[Caution]:
    by_law: dict[str, list[BrokenLaw]] = {}
    for law in audit.broken:
        by_law.setdefault(law.law, []).append(law)
    for name, broken in by_law.items():
        first, is_single = broken[0], len(broken) == 1
        which = f"Trial {first.trial} breaks" if is_single else f"{len(broken)} trials break"
        yield Caution(
            f"{which} “{name}”: {'' if is_single else f'trial {first.trial} for one: '}{first.fact}",
            "Every trial must obey it.",
            "A defect of what measured, not of the server.",
            f"Do not use {'this trial' if is_single else 'these trials'}; where weir measured, please report it with the run file.",
        )


def _unequal_work(points: Sequence[Point]) -> Iterator[Caution]:
    for point in points:
        for difference in point.work.differences if point.work else ():
            yield Caution(
                f"{point.label}: {difference}",
                "What requests at the edges of a load explain is no difference.",
                "One stack asks its database for more than the other.",
                "Do not read the comparison as one of frameworks before both do the same.",
            )


def _invariants(used: Sequence[Trial]) -> Iterator[Caution]:
    """Yields a caution for each stack with broken invariants, if such trials count in this study."""
    broken: dict[str, list[Trial]] = {}
    for trial in used:
        if trial.result.discrepancies:
            broken.setdefault(trial.cell.stack_label, []).append(trial)
    for label, trials in broken.items():
        first = trials[0]
        yield Caution(
            f"{label} broke an invariant in {counted(len(trials), 'trial')}; in trial {first.id}: {first.result.discrepancies[0]}."
        )


def _interrupted(counts: TrialCounts) -> Iterator[Caution]:
    yield Caution(
        f"The run ended after {counts.tried:,} of {counts.planned:,} trials.",
        cause="It was to end with its first answer, it was interrupted, its process was killed, or it is still running.",
        next_step="weir run --resume FOLDER goes on with what is missing.",
    )


def _omitted(counts: TrialCounts) -> Iterator[Caution]:
    if counts.left_out:
        yield Caution(
            f"{counted(counts.left_out, 'trial')} of {counts.finished:,} left out, {counts.retried:,} tried again; "
            "each reason is listed with the trials.",
            "A trial with a failed request, a wrong answer or a dead server is in no average.",
            next_step="Read the logs named there.",
        )


def _few_blocks(info: RunInfo) -> Iterator[Caution]:
    if info.indicative:
        yield Caution(
            f"Indicative: {counted(info.blocks, 'block')}.",
            f"A claim needs at least {CLAIM_BLOCKS} blocks.",
            f"The scale “{info.scale}” is made to be quick.",
            f"weir run {info.study} --scale evidence",
        )


def _copies_differ(copies: IdenticalCopies | None) -> Iterator[Caution]:
    if copies and exceeds_chance(copies.called_different, copies.compared):
        yield Caution(
            f"{copies.called_different} of {counted(copies.compared, 'comparison')} of two copies of one stack leave out “equal”.",
            "More than chance explains: it gives about 1 in 20.",
            "The machine is not steady, or what runs before a trial affects it.",
            "Trust only differences far larger than the A/A spread; run on a quieter machine.",
        )


def _suspect(used: Sequence[Trial]) -> Iterator[Caution]:
    """Yields one caution for each kind of reason, the most frequent kind first."""
    for found in group_reasons(used, lambda reason: reason.validity == "suspect"):
        first, reason = found[0]
        which = "" if len(found) == 1 else f"; trial {first} for one"
        details = (_sentence(text) for text in (reason.threshold, reason.cause, reason.next_step))
        yield Caution(f"{counted(len(found), 'suspect trial')} used{which}: {reason.fact.rstrip('.')}.", *details)


def _failures_counted(used: Sequence[Trial]) -> Iterator[Caution]:
    """Yields a caution on failed requests, if the study allows failures."""
    summaries = [trial.result.summary for trial in used]
    with_failures = sum(summary is not None and summary.requests.failed > 0 for summary in summaries)
    if with_failures:
        yield Caution(
            f"{counted(with_failures, 'trial')} with failed requests used, as the study asks (failures = “measure”).",
            "Throughput counts right answers; response times are those of all answers, wrong ones too, and not of requests without one.",
        )


def _other_generator(used: Sequence[Trial]) -> Iterator[Caution]:
    """Yields a caution for a single generator other than weir; several generators are compared side by side."""
    generators = {trial.cell.generator: trial.result.summary for trial in used}
    if len(generators) == 1 and WEIR not in generators:
        for name, summary in generators.items():
            use = None if summary is None else summary.generator
            told = f"{use.version or name}, whose response times are {use.clock}" if use and use.clock else name
            yield Caution(
                f"All loads were made by {told}.",
                "Steady state, schedule lag and merged percentiles are known of weir's own loads alone.",
                next_step="matrix.generators with weir beside it shows how far the two agree.",
            )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}." if text else ""


def _drift(drifts: dict[int, Estimate]) -> Iterator[Caution]:
    moving = {
        trial: moved.value
        for trial, moved in drifts.items()
        if moved.low is not None and moved.high is not None and (moved.low > DRIFT_LIMIT or moved.high < -DRIFT_LIMIT)
    }
    if moving:
        trial, most = max(moving.items(), key=lambda item: abs(item[1]))
        yield Caution(
            f"Throughput drifted within {counted(len(moving), 'trial')}, most in trial {trial} ({signed_percent(most)}).",
            "More than 2 % from the start to the end of the window is no steady state.",
            "The server was still warming up, or something else used its CPU.",
            "A longer warm-up (warmup_s) or a longer window (duration_s).",
        )


def _unsupported(points: Sequence[Point]) -> Iterator[Caution]:
    for point in points:
        for stack in point.stacks:
            for measure in stack.measures:
                # Only quantiles of the tables: a p99.9 shows its own note.
                if measure.metric in (P50, P99) and measure.note.startswith("not supported"):
                    yield Caution(
                        f"{measure.metric.removeprefix('response_time_us.')} of {stack.name} at {point.label}: {measure.note}.",
                        "At least 100 samples must lie beyond a quantile.",
                        next_step="A longer window (duration_s) or more blocks.",
                    )


def _shared(info: RunInfo) -> Iterator[Caution]:
    if info.placement.shared:
        shared = " ".join(sentence.rstrip(".") + "." for sentence in info.placement.shared)
        yield Caution(
            shared, "Every role on CPUs of its own.", "The machine has too few CPUs.", "A machine with more CPUs."
        )


def _went_without(info: RunInfo) -> Iterator[Caution]:
    for sentence in info.placement.omitted_features:
        yield Caution(sentence, "What the study asks for.", next_step="weir doctor shows what is missing.")


def _loopback(info: RunInfo, used: Sequence[Trial]) -> Iterator[Caution]:
    observed = [trial.result.summary for trial in used if trial.result.resources]
    is_local = any(summary is not None and "//127." in summary.target for summary in observed)
    if is_local and not any("loopback" in sentence.lower() for sentence in info.placement.shared):
        yield Caution(
            "CPU per request was measured over loopback, where part of the receiver's TCP work is charged to the sender.",
            cause="Load and server are on one machine; this touches every stack alike, but not in equal measure.",
        )
