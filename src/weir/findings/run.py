"""Run file in, findings out."""

from collections.abc import Sequence

from weir import stats
from weir.findings.answer import answer_of, point_sentence
from weir.findings.audit import audit_trials
from weir.findings.cautions import cautions_of
from weir.findings.compare import compare
from weir.findings.evidence import CellTrials, group_points, is_used
from weir.findings.identical import compare_copies
from weir.findings.stack import published_beside, stack_findings
from weir.findings.types import LeftOut, Point, RunFindings, TrialCounts
from weir.findings.words import sentence_names
from weir.model.load import Load
from weir.model.run import RunInfo, Trial
from weir.store import RunReader


def of_run(reader: RunReader) -> RunFindings:
    """All that the run says so far. The same file gives the same findings anywhere.

    Raises:
        WeirError: the run file is damaged.
    """
    info, cells, trials = reader.info, reader.cells(), reader.trials()
    names = sentence_names(cells)
    groups = group_points(cells, trials)
    points = [_point(reader, workload, load, members, names) for workload, load, members in groups]
    copies = compare_copies(groups, names, indicative=info.indicative)
    planned = len(cells) * info.blocks
    used = [trial for trial in trials if is_used(trial)]
    counts = TrialCounts(
        planned=planned,
        # A trial that was tried again does not bring the run further.
        tried=len({(trial.cell.id, trial.block) for trial in trials}),
        finished=len(trials),
        used=len(used),
        suspect=sum(trial.result.verdict.validity == "suspect" for trial in used),
        left_out=len(trials) - len(used),
    )
    left_out = tuple(_left_out(trial, names[trial.cell.id]) for trial in trials if not is_used(trial))
    audit = audit_trials(used, info.placement)
    stopped_early = reader.ended != "complete" and counts.tried < planned
    return RunFindings(
        study=info.study,
        title=info.title,
        question=info.question,
        scale=info.scale,
        blocks=info.blocks,
        indicative=info.indicative,
        ended=reader.ended,
        answer=answer_of(points, counts, left_out, stopped_early=stopped_early, indicative=info.indicative),
        points=tuple(points),
        identical_copies=copies,
        trials=counts,
        left_out=left_out,
        audit=audit,
        cautions=cautions_of(info, trials, counts, points, copies, audit, _drifts(reader, used), stopped_early=stopped_early),
        claims=info.claims,
        source=info.source,
    )


def _point(reader: RunReader, workload: str, load: Load, members: list[CellTrials], names: dict[int, str]) -> Point:
    info = reader.info
    baseline = _baseline(info, members)
    others = [member for member in members if member.cell.arm == "main" and member is not baseline]
    comparisons = compare([(other, baseline) for other in others] if baseline else [], names, indicative=info.indicative)
    stacks = tuple(
        stack_findings(
            member,
            names[member.cell.id],
            lambda trial_id: reader.histograms(trial_id).get("response_time_ns"),
            baseline=member is baseline,
        )
        for member in members
    )
    return Point(
        workload=workload,
        load=load.label,
        connections=load.connections,
        stacks=stacks,
        comparisons=tuple(comparisons),
        published=published_beside(info.published, stacks),
        sentence=point_sentence(stacks, comparisons),
    )


def _baseline(info: RunInfo, members: Sequence[CellTrials]) -> CellTrials | None:
    """The stack that the study names, by its label or its id; else the first."""
    main = [member for member in members if member.cell.arm == "main"]
    named = [member for member in main if info.baseline in (member.cell.stack_label, member.cell.stack)]
    return next(iter([*named, *main]), None)


def _left_out(trial: Trial, name: str) -> LeftOut:
    reasons = tuple(trial.result.verdict.reasons) or ("nothing was measured",)
    point = f"{trial.cell.workload}, {trial.cell.load.label}"
    return LeftOut(trial.id, trial.cell.stack_label, name, point, trial.block, trial.attempt, reasons)


def _drifts(reader: RunReader, used: Sequence[Trial]) -> dict[int, stats.Estimate]:
    """How far the throughput of each trial moved within its window."""
    drifts = {}
    for trial in used:
        # The last interval may be a sliver, whose rate means little.
        intervals = [row for row in reader.intervals(trial.id) if row.end_s - row.start_s > 0]
        longest = max((row.end_s - row.start_s for row in intervals), default=0.0)
        whole = [row for row in intervals if row.end_s - row.start_s > longest / 2]
        if not whole:
            continue
        rates = [row.completed / (row.end_s - row.start_s) for row in whole]
        moved = stats.drift([row.start_s for row in whole], rates)
        if moved is not None:
            drifts[trial.id] = moved
    return drifts
