"""Computes the findings of a run from its run file."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from weir import stats
from weir.findings.aa_test import compare_copies
from weir.findings.answer import build_answer, choose_answer_metric, point_sentence
from weir.findings.audit import audit_trials, limit_validity
from weir.findings.bottleneck import find_bottlenecks, service_node
from weir.findings.break_even import WantedPoint, find_break_evens, find_wanted_points
from weir.findings.bursts import describe_waves
from weir.findings.compare import CLAIM_BLOCKS, compare
from weir.findings.db_work import compare_work, downgrade_comparisons
from weir.findings.evidence import CellTrials, group_by_cell, is_used, summarize_reasons
from weir.findings.experiment import find_proofs
from weir.findings.formatting import sentence_names
from weir.findings.generator_comparison import compare_generators
from weir.findings.load_findings import SERVER, LoadFindings, describe_basis, describe_result, trials_to_show
from weir.findings.point_types import Comparison, Point, StackFindings
from weir.findings.points import PointCells, PointNames, find_baseline, group_points, pair_with_baseline
from weir.findings.run_warnings import collect_cautions
from weir.findings.scalability import fit_scalings
from weir.findings.stack import list_what_ran, match_published, measure_stack
from weir.findings.types import Answer, BreakEven, OmittedTrial, Progress, RunFindings, TrialCounts
from weir.findings.upper_bounds import describe_upper_bounds
from weir.findings.variance_components import drop_partial_interval, split_variation
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, Load, constant_from_s
from weir.model.run_types import Cell, PublishedFigure, RunInfo, Trial
from weir.parallel import start_parallel, without_gc
from weir.stats import distributions
from weir.store import RunReader


@without_gc
def of_run(reader: RunReader) -> RunFindings:
    """Computes the findings of a finished or unfinished run; `LoadFindings` for a single load. Raises WeirError if the
    run file is damaged, or contains a load without measurements. The result does not depend on the machine."""
    if reader.info.is_load:
        return _compute_load_findings(reader)
    cells, trials = reader.cells(), reader.trials()
    info = _with_actual_blocks(reader)
    names, labels, groups = sentence_names(cells), PointNames(cells), group_points(cells, trials)
    used = [trial for trial in trials if is_used(trial)]
    # The slowest computations start first. Workers compute while this process continues.
    results = _start_measuring(reader, groups, names, info)
    compared = _compare_with_baselines(groups, names, info)
    copies = compare_copies(groups, names, indicative=info.indicative)
    counts = _count_trials(cells, trials, info)
    omitted = tuple(_describe_omitted(trial, names, labels) for trial in trials if not is_used(trial))
    audit = audit_trials(used, info.placement)
    by_cell = group_by_cell(cells, trials)
    bottlenecks = find_bottlenecks(groups, names, info.placement, service_node(reader))
    generators = compare_generators(by_cell, names, indicative=info.indicative)
    scalings, proofs = fit_scalings(groups, names), find_proofs(bottlenecks, by_cell)
    variation = split_variation(reader, [trial for trial in used if _is_level(trial.cell.load)])
    drifts = _estimate_drifts(reader, used)
    baselines = filter(None, (find_baseline(group.members, info.baseline) for group in groups))
    what_ran = list_what_ran(cells, trials, names, next((one.cell.stack_label for one in baselines), None))
    found = list(chain.from_iterable(results()))
    break_evens = tuple(one for one in found if isinstance(one, BreakEven))
    stacks = (one for one in found if isinstance(one, StackFindings))
    points = [
        _describe_point(info.published, group, tuple(islice(stacks, len(group.members))), comparisons, labels)
        for group, comparisons in zip(groups, compared, strict=True)
    ]
    progress = _progress(reader, counts)
    answer = build_answer(points, generators, counts, omitted, progress, indicative=info.indicative)
    in_answer = {trial for comparison in answer.comparisons for trial in comparison.evidence.used}
    if in_answer:
        # Each kind of reason appears once, even if several comparisons share trials.
        answer = replace(answer, reasons=summarize_reasons([trial for trial in used if trial.id in in_answer]))
    # Not the planned number: a run may end before its last block.
    blocks = len({trial.block for trial in used})
    added_blocks = 0 if reader.stopped is None else reader.stopped.added
    return RunFindings(
        study=info.study,
        title=info.title,
        question=info.question,
        scale=info.scale,
        blocks=blocks,
        indicative=info.indicative,
        ended=reader.ended,
        stopped=reader.stopped,
        answer=limit_validity(answer, audit),
        points=tuple(points),
        generators=generators,
        what_ran=what_ran,
        break_evens=break_evens,
        scalings=scalings,
        bottlenecks=bottlenecks,
        proofs=proofs,
        identical_copies=copies,
        variation=variation,
        trials=counts,
        left_out=omitted,
        audit=audit,
        cautions=collect_cautions(info, used, counts, points, copies, audit, drifts, progress, blocks, added_blocks),
        claims=info.claims,
        source=info.source,
    )


def _start_measuring(
    reader: RunReader, groups: Sequence[PointCells], names: Mapping[int, str], info: RunInfo
) -> Callable[[], list[tuple[BreakEven | StackFindings, ...]]]:
    """Starts the slowest computations in worker processes: break-evens, and each stack's findings at each point."""
    jobs = [
        (member, member is find_baseline(group.members, info.baseline)) for group in groups for member in group.members
    ]

    def measure(own: RunReader, job: tuple[CellTrials, bool] | None) -> tuple[BreakEven | StackFindings, ...]:
        if job is None:
            return find_break_evens(groups, names, info.baseline, indicative=info.indicative)
        member, is_baseline = job
        return (_measure(own, member, names[member.cell.id], is_baseline=is_baseline),)

    # This process loads the library once, before it forks the workers.
    distributions.load_scipy_special()
    return start_parallel(reader, [None, *jobs], measure)


def _progress(reader: RunReader, counts: TrialCounts) -> Progress:
    is_interim = reader.ended is None or (reader.stopped is not None and reader.stopped.rule == "first_answer")
    if counts.tried >= counts.planned or (reader.ended == "complete" and not is_interim):
        return "complete"
    return "interim" if is_interim else "interrupted"


def _count_trials(cells: Sequence[Cell], trials: Sequence[Trial], info: RunInfo) -> TrialCounts:
    used = [trial for trial in trials if is_used(trial)]
    windows = [trial.result.window for trial in used if trial.result.window is not None]
    return TrialCounts(
        # A run with a stopping rule may have more blocks than planned.
        planned=len(cells) * max([info.blocks, *(trial.block for trial in trials)]),
        # A trial and its repeats count as one.
        tried=len({(trial.cell.id, trial.block) for trial in trials}),
        finished=len(trials),
        used=len(used),
        suspect=sum(trial.result.verdict.validity == "suspect" for trial in used),
        left_out=len(trials) - len(used),
        retried=sum(trial.attempt > 1 for trial in trials),
        no_steady_state=sum(window.steady is False for window in windows),
        extended=sum(window.extended for window in windows),
    )


def _compute_load_findings(reader: RunReader) -> LoadFindings:
    """Returns the findings of a single load. A load has one cell and one trial, so there are no comparisons."""
    cells, trials, info = reader.cells(), trials_to_show(reader), reader.info
    if not trials:
        raise UsageError(f"{reader.path}: found no load, expected a file that weir load --out wrote")
    (trial,), (group,) = trials, group_points(cells, trials)
    summary = trial.result.summary
    assert summary is not None
    stack = _measure(reader, group.members[0], SERVER, is_baseline=True)
    reasons = (*summary.verdict.reasons, *([summary.limit_sentence] if summary.limit_sentence else []))
    finished = bool(reader.trials())
    return LoadFindings(
        title=info.title,
        question=f"One load on {info.title}",
        blocks=1,
        indicative=False,
        ended=reader.ended,
        answer=Answer(describe_result(summary), summary.verdict.validity, reasons, False, (), would_change=""),
        points=(_describe_point((), group, (stack,), (), PointNames(cells)),),
        trials=TrialCounts(1, 1, int(finished), 1, 0, 0, 0, 0, 0),
        audit=audit_trials([], info.placement),
        info=info,
        trial=trial,
        summary=summary,
        basis=describe_basis(trial, summary),
        plan=json.loads(info.study_text),
        finished=finished,
        events=tuple(reader.events(trial.id)),
    )


def break_evens_in(reader: RunReader, one: str, other: str, metrics: Sequence[str]) -> tuple[BreakEven, ...]:
    """Returns the break-evens of the stacks with the labels `one` and `other`, on each of `metrics`. Raises WeirError
    if the run file is damaged."""
    cells, info = reader.cells(), _with_actual_blocks(reader)
    groups, names = group_points(cells, reader.trials()), sentence_names(cells)
    return find_break_evens(
        groups, names, info.baseline, indicative=info.indicative, between=(one, other), metrics=metrics
    )


def wanted_points_in(reader: RunReader) -> list[WantedPoint]:
    """Returns the points to measure next for more precise break-evens. Raises WeirError if the run file is damaged."""
    return find_wanted_points(group_points(reader.cells(), reader.trials()), reader.info.baseline)


def _with_actual_blocks(reader: RunReader) -> RunInfo:
    """Returns the run's info with the actual number of blocks. A stopping rule may change the planned number."""
    info, stop = reader.info, reader.stopped
    if stop is None or stop.rule == "first_answer":
        return info
    return replace(info, blocks=stop.blocks, indicative=stop.blocks < CLAIM_BLOCKS)


def _compare_with_baselines(
    groups: Sequence[PointCells], names: Mapping[int, str], info: RunInfo
) -> list[list[Comparison]]:
    """Returns each point's comparisons, sorted by metric. Holm's correction covers one metric at all points."""
    of_points = [pair_with_baseline(group.members, info.baseline) for group in groups]
    # A cell without a coordinate belongs to several points. weir compares each pair of cells once.
    pairs = {(one.cell.id, other.cell.id): (one, other) for pairs in of_points for one, other in pairs}
    found = compare(list(pairs.values()), names, indicative=info.indicative, first_look=info.first_look)
    compared = dict(zip(pairs, found, strict=True))
    of_pairs = [[compared[one.cell.id, other.cell.id] for one, other in pairs] for pairs in of_points]
    return [[found for of_metric in zip(*of_point, strict=True) for found in of_metric] for of_point in of_pairs]


def _measure(reader: RunReader, member: CellTrials, name: str, *, is_baseline: bool) -> StackFindings:
    return measure_stack(
        member, name, lambda trial_id: reader.histogram(trial_id, "response_time_ns"), baseline=is_baseline
    )


def _describe_point(
    published: Sequence[PublishedFigure],
    group: PointCells,
    stacks: tuple[StackFindings, ...],
    comparisons: Sequence[Comparison],
    labels: PointNames,
) -> Point:
    work = compare_work(stacks)
    comparisons = downgrade_comparisons(comparisons, work)
    metric = choose_answer_metric(group.load, stacks, comparisons)
    return Point(
        workload=group.workload,
        load=group.load.label,
        connections=group.load.connections,
        axis=group.axis,
        amount=group.amount,
        coordinates=group.coordinates,
        label=labels.of(group),
        where=labels.where(group),
        stacks=stacks,
        comparisons=tuple(comparisons),
        answer_metric=metric,
        published=match_published(published, stacks, group.place),
        sentence=point_sentence(stacks, comparisons, metric),
        work=work,
        upper_bounds=" ".join(filter(None, (describe_upper_bounds(stacks), describe_waves(stacks)))),
    )


def _describe_omitted(trial: Trial, names: Mapping[int, str], labels: PointNames) -> OmittedTrial:
    cell, found = trial.cell, trial.result.verdict.reasons
    reasons = tuple(reason.text for reason in found if reason.validity == "invalid") or ("nothing was measured",)
    name, point = names[cell.id], labels.of(cell)
    return OmittedTrial(trial.id, cell.stack_label, name, point, trial.block, trial.attempt, reasons)


def _estimate_drifts(reader: RunReader, used: Sequence[Trial]) -> dict[int, stats.Estimate]:
    """Returns a dict from trial id to drift of throughput. Skips trials long enough for a steady-state test."""
    drifts = {}
    for trial in used:
        window = trial.result.window
        if (window is None or window.steady is None) and _is_level(trial.cell.load):
            whole = drop_partial_interval(reader.answered(trial.id))
            if (moved := stats.drift(whole.start_s, whole.rate_rps)) is not None:
                drifts[trial.id] = moved
    return drifts


def _is_level(load: Load) -> bool:
    """Returns whether a load is constant over time: no profile, and no user leaves."""
    return constant_from_s(load) == 0.0 and not (isinstance(load, ClosedLoad) and load.requests_per_user is not None)
