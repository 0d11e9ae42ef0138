"""Run file in, findings out."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from weir import stats
from weir.findings.aa_test import compare_copies
from weir.findings.answer import build_answer, point_sentence
from weir.findings.audit import audit_trials
from weir.findings.bottleneck import find_bottlenecks, service_node
from weir.findings.break_even import WantedPoint, find_break_evens, find_break_evens_between, find_wanted_points
from weir.findings.bursts import describe_waves
from weir.findings.compare import CLAIM_BLOCKS, compare
from weir.findings.db_work import compare_work, downgrade_comparisons
from weir.findings.evidence import CellTrials, is_used
from weir.findings.experiment import find_proofs
from weir.findings.formatting import sentence_names
from weir.findings.generator_comparison import compare_generators
from weir.findings.load_findings import SERVER, LoadFindings, describe_basis, describe_result, trials_to_show
from weir.findings.points import PointCells, PointNames, find_baseline, group_points
from weir.findings.run_warnings import collect_cautions
from weir.findings.scalability import fit_scalings
from weir.findings.stack import list_what_ran, match_published, measure_stack
from weir.findings.types import Answer, BreakEven, Comparison, LeftOut, Point, RunFindings, StackFindings, TrialCounts
from weir.findings.upper_bounds import describe_upper_bounds
from weir.findings.variance_components import drop_partial_interval, split_variation
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, Load, constant_from_s
from weir.model.run_types import PublishedFigure, RunInfo, StopReason, Trial
from weir.parallel import start_parallel, without_gc
from weir.stats import distributions
from weir.store import RunReader


@without_gc
def of_run(reader: RunReader) -> RunFindings:
    """Returns the findings of a run, so far as it went; those of a single load are `LoadFindings`.

    The same file gives the same findings anywhere.

    Raises:
        WeirError: the run file is damaged, or holds a load that measured nothing.
    """
    if reader.info.is_load:
        return _load(reader)
    cells, trials = reader.cells(), reader.trials()
    info = _as_run(reader.info, reader.stopped)
    names = sentence_names(cells)
    labels = PointNames(cells)
    groups = group_points(cells, trials)
    baselines = [find_baseline(group.members, info.baseline) for group in groups]
    jobs = [
        _StackJob(member, names[member.cell.id], member is baseline)
        for group, baseline in zip(groups, baselines, strict=True)
        for member in group.members
    ]

    def part(own: RunReader, job: _StackJob | None) -> StackFindings | tuple[BreakEven, ...]:
        return (
            _stack(own, job)
            if job is not None
            else find_break_evens(groups, names, info.baseline, indicative=info.indicative)
        )

    # Not by each worker.
    distributions.load_scipy_special()
    # Begun first: most of what follows does without it. One of the workers looks for break-evens, which take longest,
    # at the beginning.
    parts = start_parallel(reader, [None, *jobs], part)
    compared = _compared(info, groups, baselines, names)
    copies = compare_copies(groups, names, indicative=info.indicative)
    # A run that goes on until its intervals are narrow may be beyond the blocks that it began with.
    planned = len(cells) * max([info.blocks, *(trial.block for trial in trials)])
    used = [trial for trial in trials if is_used(trial)]
    counts = TrialCounts(
        planned=planned,
        # A trial that was tried again does not bring the run further.
        tried=len({(trial.cell.id, trial.block) for trial in trials}),
        finished=len(trials),
        used=len(used),
        suspect=sum(trial.result.verdict.validity == "suspect" for trial in used),
        left_out=len(trials) - len(used),
        retried=sum(trial.attempt > 1 for trial in trials),
        no_steady_state=sum(trial.result.window is not None and trial.result.window.steady is False for trial in used),
        extended=sum(trial.result.window is not None and trial.result.window.extended for trial in used),
    )
    left_out = tuple(_left_out(trial, names[trial.cell.id], labels) for trial in trials if not is_used(trial))
    audit = audit_trials(used, info.placement)
    held_back = find_bottlenecks(groups, names, info.placement, service_node(reader))
    by_cell = {member.cell.id: member for group in groups for member in group.members}
    same = compare_generators(
        [by_cell[cell.id] for cell in cells if cell.id in by_cell], names, indicative=info.indicative
    )
    scaled = fit_scalings(groups, names)
    proven = find_proofs(held_back, list(by_cell.values()))
    variation = split_variation(reader, [trial for trial in used if _is_level(trial.cell.load)])
    drifts = _drifts(reader, used)
    ran = list_what_ran(
        cells, trials, names, next((baseline.cell.stack_label for baseline in baselines if baseline is not None), None)
    )
    found = parts()
    (break_even_points,) = (one for one in found if isinstance(one, tuple))
    of_stacks = iter([one for one in found if isinstance(one, StackFindings)])
    points = [
        _point(reader.info.published, group, tuple(islice(of_stacks, len(group.members))), comparisons, labels)
        for group, comparisons in zip(groups, compared, strict=True)
    ]
    is_interim = reader.ended is None or (reader.stopped is not None and reader.stopped.rule == "first_answer")
    stopped_early = (is_interim or reader.ended != "complete") and counts.tried < planned
    return RunFindings(
        study=info.study,
        title=info.title,
        question=info.question,
        scale=info.scale,
        blocks=info.blocks,
        indicative=info.indicative,
        ended=reader.ended,
        stopped=reader.stopped,
        answer=build_answer(
            points,
            same,
            counts,
            left_out,
            stopped_early=stopped_early,
            is_interim=is_interim,
            indicative=info.indicative,
        ),
        points=tuple(points),
        generators=same,
        what_ran=ran,
        break_evens=break_even_points,
        scalings=scaled,
        bottlenecks=held_back,
        proofs=proven,
        identical_copies=copies,
        variation=variation,
        trials=counts,
        left_out=left_out,
        audit=audit,
        cautions=collect_cautions(
            info,
            trials,
            counts,
            points,
            copies,
            audit,
            drifts,
            stopped_early=stopped_early,
            added_blocks=0 if reader.stopped is None else reader.stopped.added,
        ),
        claims=info.claims,
        source=info.source,
    )


def _load(reader: RunReader) -> LoadFindings:
    """Returns the findings of a single load: one trial of one cell, and nothing that needs a second one."""
    cells, trials, info = reader.cells(), trials_to_show(reader), reader.info
    if not trials:
        raise UsageError(f"{reader.path}: found no load in it, expected a file of weir load --out")
    (trial,), (group,) = trials, group_points(cells, trials)
    summary = trial.result.summary
    assert summary is not None
    stack = _stack(reader, _StackJob(group.members[0], SERVER, is_baseline=True))
    reasons = (*summary.verdict.reasons, *([summary.limit_sentence] if summary.limit_sentence else []))
    finished = bool(reader.trials())
    return LoadFindings(
        title=info.title,
        question=f"One load on {info.title}",
        blocks=1,
        indicative=False,
        ended=reader.ended,
        answer=Answer(
            describe_result(summary), summary.verdict.validity, reasons, False, comparisons=(), would_change=""
        ),
        points=(_point((), group, (stack,), (), PointNames(cells)),),
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
    """Where two stacks of a run, by their labels, change sides on each of `metrics`.

    Raises:
        WeirError: the run file is damaged.
    """
    cells = reader.cells()
    info = _as_run(reader.info, reader.stopped)
    return find_break_evens_between(
        group_points(cells, reader.trials()), sentence_names(cells), one, other, metrics, indicative=info.indicative
    )


def wanted_points_in(reader: RunReader) -> list[WantedPoint]:
    """Where the stacks of a run should be measured next to know where they change sides.

    Raises:
        WeirError: the run file is damaged.
    """
    return find_wanted_points(group_points(reader.cells(), reader.trials()), reader.info.baseline)


def _as_run(info: RunInfo, stop: StopReason | None) -> RunInfo:
    """With as many blocks as there were: a study that is stopped by a rule says beforehand how many at least or at
    most."""
    return (
        info
        if stop is None or stop.rule == "first_answer"
        else replace(info, blocks=stop.blocks, indicative=stop.blocks < CLAIM_BLOCKS)
    )


def _compared(
    info: RunInfo, groups: Sequence[PointCells], baselines: Sequence[CellTrials | None], names: dict[int, str]
) -> list[list[Comparison]]:
    """The comparisons of each point. All of a run are one family on each metric."""
    pairs: dict[tuple[int, int], tuple[CellTrials, CellTrials]] = {}
    mine: list[list[tuple[int, int]]] = []
    for group, baseline in zip(groups, baselines, strict=True):
        mine.append([])
        for member in group.members:
            if baseline is not None and member.cell.arm == "main" and member is not baseline:
                # Cells that lack a coordinate stand in several points; two of them are compared once.
                pairs[member.cell.id, baseline.cell.id] = (member, baseline)
                mine[-1].append((member.cell.id, baseline.cell.id))
    compared = dict(zip(pairs, compare(list(pairs.values()), names, indicative=info.indicative), strict=True))
    # By metric first.
    return [
        [found for of_metric in zip(*(compared[pair] for pair in of_point), strict=True) for found in of_metric]
        for of_point in mine
    ]


class _StackJob(NamedTuple):
    """One stack at one point, to be found out about."""

    member: CellTrials
    name: str
    is_baseline: bool


def _stack(reader: RunReader, job: _StackJob) -> StackFindings:
    return measure_stack(
        job.member, job.name, lambda trial_id: reader.histogram(trial_id, "response_time_ns"), baseline=job.is_baseline
    )


def _point(
    published: Sequence[PublishedFigure],
    group: PointCells,
    stacks: tuple[StackFindings, ...],
    comparisons: Sequence[Comparison],
    labels: PointNames,
) -> Point:
    work = compare_work(stacks)
    comparisons = downgrade_comparisons(comparisons, work)
    return Point(
        workload=group.workload,
        load=group.load.label,
        connections=group.load.connections,
        axis=group.axis,
        amount=group.amount,
        coordinates=group.coordinates,
        label=labels.of(group.workload, group.load, group.coordinates),
        where=labels.where(group.workload, group.load, group.coordinates),
        stacks=stacks,
        comparisons=tuple(comparisons),
        published=match_published(published, stacks, group.place),
        sentence=point_sentence(stacks, comparisons),
        work=work,
        ceilings=" ".join(filter(None, (describe_upper_bounds(stacks), describe_waves(stacks)))),
    )


def _left_out(trial: Trial, name: str, labels: PointNames) -> LeftOut:
    reasons = trial.result.verdict.texts or ("nothing was measured",)
    return LeftOut(
        trial.id, trial.cell.stack_label, name, labels.of_cell(trial.cell), trial.block, trial.attempt, reasons
    )


def _drifts(reader: RunReader, used: Sequence[Trial]) -> dict[int, stats.Estimate]:
    """How far the throughput of each trial moved within its window, where the trial itself was too short to look for a
    steady state."""
    drifts = {}
    for trial in used:
        if (trial.result.window is not None and trial.result.window.steady is not None) or not _is_level(
            trial.cell.load
        ):
            continue
        whole = drop_partial_interval(reader.answered(trial.id))
        moved = stats.drift(whole.start_s, whole.rate_rps)
        if moved is not None:
            drifts[trial.id] = moved
    return drifts


def _is_level(load: Load) -> bool:
    """Whether a load asks for the same all the time: it neither follows a profile nor has users who leave."""
    return constant_from_s(load) == 0.0 and not (isinstance(load, ClosedLoad) and load.requests_per_user is not None)
