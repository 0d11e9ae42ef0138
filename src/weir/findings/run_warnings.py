"""Collects the cautions of a run: facts that weaken the answer, each with a threshold, a cause and a next step."""

from collections.abc import Iterator, Sequence
from itertools import chain

from weir.findings.compare import CLAIM_BLOCKS
from weir.findings.evidence import group_reasons
from weir.findings.formatting import counted, signed_percent
from weir.findings.metrics import P50, P99
from weir.findings.point_types import Point
from weir.findings.types import Audit, BrokenLaw, Caution, IdenticalCopies, Progress, TrialCounts
from weir.model.run_types import IMPORTED, WEIR, RunInfo, Trial
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
    blocks: int,
    added_blocks: int,
) -> tuple[Caution, ...]:
    """Returns all cautions, the most important first."""
    cautions = (
        _audit(audit),
        _unequal_work(points),
        _invariants(used),
        _interrupted(counts) if progress != "complete" else (),
        _omitted(counts),
        _few_blocks(info, blocks),
        _extended(added_blocks),
        _copies_differ(copies),
        _suspect(used),
        _failures_counted(used),
        _other_generator(used, info.scale == IMPORTED),
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
            f"A user of the live page added {counted(blocks, 'block')} to the blocks of the study.",
            "If viewers add blocks until they like the answer, a run finds differences that do not exist.",
            next_step="Set the blocks, or the width of intervals (width in [method]), before the run.",
        )


def _audit(audit: Audit) -> Iterator[Caution]:
    by_law: dict[str, list[BrokenLaw]] = {}
    for law in (law for law in audit.broken if not law.in_verdict):
        by_law.setdefault(law.law, []).append(law)
    for name, broken in by_law.items():
        first, is_single = broken[0], len(broken) == 1
        which = f"Trial {first.trial} breaks" if is_single else f"{len(broken)} trials break"
        yield Caution(
            f"{which} “{name}”: {'' if is_single else f'for example trial {first.trial}: '}{first.fact}",
            "Every trial must obey this law.",
            "The measurement is defective, not the server.",
            f"Do not use {'this trial' if is_single else 'these trials'}. Report this as a bug of weir, and attach the run file.",
        )


def _unequal_work(points: Sequence[Point]) -> Iterator[Caution]:
    for point in points:
        for difference in point.work.differences if point.work else ():
            yield Caution(
                f"{point.label}: {difference}",
                "A difference counts only if failed and unanswered requests cannot explain the difference.",
                "One stack does more work in its database than the other.",
                "Make both stacks do the same work before you compare the frameworks.",
            )


def _invariants(used: Sequence[Trial]) -> Iterator[Caution]:
    """Yields a caution for each stack that broke an invariant in a counted trial."""
    broken: dict[str, list[Trial]] = {}
    for trial in used:
        if trial.result.discrepancies:
            broken.setdefault(trial.cell.stack_label, []).append(trial)
    for label, trials in broken.items():
        first = trials[0]
        yield Caution(
            f"{label} broke an invariant in {counted(len(trials), 'trial')}, "
            f"for example in trial {first.id}: {first.result.discrepancies[0]}."
        )


def _interrupted(counts: TrialCounts) -> Iterator[Caution]:
    yield Caution(
        f"The run ended after {counts.tried:,} of {counts.planned:,} trials.",
        cause="The run was to end with its first answer, was interrupted or killed, or is still running.",
        next_step="weir run --resume FOLDER runs the missing trials.",
    )


def _omitted(counts: TrialCounts) -> Iterator[Caution]:
    if counts.left_out:
        yield Caution(
            f"{counted(counts.left_out, 'trial')} of {counts.finished:,} left out, {counts.retried:,} tried again; "
            "each reason is listed with the trials.",
            "No average uses a trial with a failed request, a wrong response or a dead server.",
            next_step="Read the logs that the list of trials names.",
        )


def _few_blocks(info: RunInfo, blocks: int) -> Iterator[Caution]:
    # Without a used trial there is no figure to call indicative.
    if info.indicative and blocks:
        yield Caution(
            f"Indicative: {counted(blocks, 'block')}.",
            f"A claim needs at least {CLAIM_BLOCKS} blocks.",
            f"The scale “{info.scale}” has few blocks.",
            "" if info.scale == IMPORTED else f"weir run {info.study} --scale evidence",
        )


def _copies_differ(copies: IdenticalCopies | None) -> Iterator[Caution]:
    if copies and exceeds_chance(copies.called_different, copies.compared):
        yield Caution(
            f"Two copies of a stack differed in {copies.called_different} of {counted(copies.compared, 'comparison')}.",
            "Chance explains only about 1 in 20.",
            "The machine is not steady, or a trial affects the next trial.",
            "Trust only differences far larger than the A/A spread; run on a quieter machine.",
        )


def _suspect(used: Sequence[Trial]) -> Iterator[Caution]:
    """Yields a caution for each kind of reason that makes trials suspect: the most frequent first."""
    for found in group_reasons(used, lambda reason: reason.validity == "suspect"):
        first, reason = found[0]
        trials = {trial for trial, _ in found}
        which = "" if len(trials) == 1 else f", for example trial {first}"
        details = (_sentence(text) for text in (reason.threshold, reason.cause, reason.next_step))
        suspect = counted(len(trials), "suspect trial")
        yield Caution(f"Averages use {suspect}{which}: {reason.fact.rstrip('.')}.", *details)


def _failures_counted(used: Sequence[Trial]) -> Iterator[Caution]:
    """Yields a caution if averages include trials with failed requests. Only the study can allow such trials."""
    summaries = [trial.result.summary for trial in used]
    with_failures = sum(summary is not None and summary.requests.failed > 0 for summary in summaries)
    if with_failures:
        yield Caution(
            f"Averages use {counted(with_failures, 'trial')} with failed requests: the study has failures = “measure”.",
            "Throughput counts only correct responses. Response times include wrong responses.",
        )


def _other_generator(used: Sequence[Trial], is_imported: bool) -> Iterator[Caution]:
    """Yields a caution if one generator other than weir made all loads."""
    generators = {trial.cell.generator: trial.result.summary for trial in used}
    if len(generators) == 1 and WEIR not in generators:
        for name, summary in generators.items():
            use = None if summary is None else summary.generator
            told = f"{use.version or name}, whose response times are {use.clock}" if use and use.clock else name
            yield Caution(
                f"The generator of all loads was {told}.",
                "Only weir's own loads have a steady state, a schedule lag and merged percentiles.",
                next_step="" if is_imported else "Add weir to matrix.generators, and compare both generators.",
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
            f"Throughput drifted in {counted(len(moving), 'trial')}, most in trial {trial} ({signed_percent(most)}).",
            "A drift of more than 2 % from the start to the end of the window is no steady state.",
            "The server was still warming up, or another process used its CPU.",
            "Set a longer warm-up (warmup_s) or a longer window (duration_s).",
        )


def _unsupported(points: Sequence[Point]) -> Iterator[Caution]:
    for point in points:
        for stack in point.stacks:
            for measure in stack.measures:
                # Only quantiles in the tables count, because the report has its own note about p99.9.
                if measure.metric in (P50, P99) and measure.note.startswith("not supported"):
                    name = measure.metric.removeprefix("response_time_us.")
                    yield Caution(
                        f"{name} of {stack.name} at {point.label}: {measure.note}.",
                        "At least 100 samples must lie beyond a quantile.",
                        next_step="Set a longer window (duration_s) or more blocks.",
                    )


def _shared(info: RunInfo) -> Iterator[Caution]:
    if info.placement.shared:
        shared = " ".join(sentence.rstrip(".") + "." for sentence in info.placement.shared)
        yield Caution(
            shared, "Each role needs its own CPUs.", "The machine has too few CPUs.", "Use a machine with more CPUs."
        )


def _went_without(info: RunInfo) -> Iterator[Caution]:
    for sentence in info.placement.omitted_features:
        yield Caution(sentence, "The study asks for this feature.", next_step="weir doctor shows what is missing.")


def _loopback(info: RunInfo, used: Sequence[Trial]) -> Iterator[Caution]:
    observed = [trial.result.summary for trial in used if trial.result.resources]
    is_local = any(summary is not None and "//127." in summary.target for summary in observed)
    if is_local and not any("loopback" in sentence.lower() for sentence in info.placement.shared):
        yield Caution(
            "CPU per request was measured over loopback, where the sender does part of the receiver's TCP work.",
            cause="Load and server are on one machine. This affects every stack, but not equally.",
        )
