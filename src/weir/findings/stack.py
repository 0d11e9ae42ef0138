"""Measures one stack at one point: each metric with an interval, from the counted trials."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from weir import stats
from weir.findings.bursts import find_waves
from weir.findings.db_work import sum_work_per_request
from weir.findings.evidence import CellTrials
from weir.findings.metrics import BY_KEY, METRICS, Metric
from weir.findings.point_types import Measure, ObjectiveResult, Published, StackFindings, TrialValue
from weir.findings.types import WhatRan
from weir.model.run_types import Cell, PublishedFigure, Trial
from weir.objective import Judged, judged_from_json

Histogram = Callable[[int], bytes | None]
"""A function from a trial's id to the trial's response-time histogram; None if the trial has none."""


def measure_stack(cell: CellTrials, name: str, histogram: Histogram, *, baseline: bool) -> StackFindings:
    """Returns the findings of one cell: metrics, objectives, work, upper bounds and waves."""
    quantiles = _merged(cell, histogram)
    summaries = [trial.result.summary for trial in cell.used if trial.result.summary is not None]
    intended = sum(summary.requests.intended for summary in summaries)
    resources = [trial.result.resources for trial in cell.used if trial.result.resources is not None]
    return StackFindings(
        cell=cell.cell.id,
        stack=cell.cell.stack,
        label=cell.cell.stack_label,
        name=name,
        title=cell.cell.title,
        model=cell.cell.model,
        arm=cell.cell.arm,
        settings=dict(cell.cell.settings),
        baseline=baseline,
        peak_threads=max((used.peak_threads for used in resources), default=None),
        peak_processes=max((used.peak_processes for used in resources), default=None),
        failed_share=sum(summary.requests.failed for summary in summaries) / intended if intended else 0.0,
        measures=tuple(measure_metric(cell, metric, quantiles.get(metric.key)) for metric in METRICS),
        objectives=_objectives(cell),
        evidence=cell.evidence,
        work=sum_work_per_request(cell),
        upper_bounds=cell.cell.upper_bounds,
        waves=find_waves(cell, histogram),
    )


def match_published(
    figures: Sequence[PublishedFigure], stacks: Sequence[StackFindings], point: Mapping[str, str]
) -> tuple[Published, ...]:
    """Returns the published figures of a point's stacks, each with weir's measurement. Leaves out A/A copies. A stack's
    published figure also applies to the stack's variants if the stack itself did not run."""
    labels = {stack.label for stack in stacks}
    return tuple(
        Published(
            stack=stack.label,
            name=stack.name,
            metric=figure.metric,
            unit=BY_KEY[figure.metric].unit if figure.metric in BY_KEY else "",
            value=figure.value,
            ours=stack.measure(figure.metric).value if figure.metric in BY_KEY else None,
            source=figure.source,
            note=figure.note,
        )
        for stack in stacks
        for figure in figures
        if stack.arm == "main" and figure.stack == (stack.label if figure.stack in labels else stack.stack)
        if figure.where.items() <= point.items()
    )


def list_what_ran(
    cells: Sequence[Cell], trials: Sequence[Trial], names: Mapping[int, str], baseline: str | None
) -> tuple[WhatRan, ...]:
    """Returns the build and the runtime of each stack, in the study's order. `trials`: all finished trials in order,
    including rejected ones. `names`: a dict from cell id to the stack's name."""
    found: list[WhatRan] = []
    for label, name in {cell.stack_label: names[cell.id] for cell in cells if cell.arm == "main"}.items():
        results = [trial.result for trial in trials if trial.cell.stack_label == label]
        sizes = [result.artifact_bytes for result in results if result.artifact_bytes is not None]
        runtimes = dict.fromkeys(result.runtime for result in results if result.runtime)
        found.append(WhatRan(label, name, sizes[-1] if sizes else None, None, tuple(runtimes)))
    against = next((one.artifact_bytes for one in found if one.label == baseline), None)
    return tuple(
        replace(one, size_ratio=one.artifact_bytes / against)
        if against and one.artifact_bytes and one.label != baseline
        else one
        for one in found
    )


def _merged(cell: CellTrials, histogram: Histogram) -> dict[str, stats.Quantile]:
    parts = [data for trial in cell.used if (data := histogram(trial.id)) is not None]
    wanted = {metric.key: metric.quantile for metric in METRICS if metric.quantile is not None}
    return dict(zip(wanted, stats.merge_quantiles(parts, list(wanted.values())), strict=True)) if parts else {}


def measure_metric(cell: CellTrials, metric: Metric, quantile: stats.Quantile | None = None) -> Measure:
    """Measures one metric over the counted trials of a cell. `quantile`: the quantile from the trials' merged
    histogram; None without histograms, or for other metrics."""
    values = [(trial, metric.of(trial)) for trial in cell.used]
    trials = tuple(TrialValue(trial.id, trial.block, value) for trial, value in values if value is not None)

    def measure(
        value: float | None = None, low: float | None = None, high: float | None = None, note: str = ""
    ) -> Measure:
        return Measure(metric.key, metric.unit, value, low, high, trials, note)

    if metric.quantile is None:
        if not trials:
            return measure(note="not measured")
        mean = stats.mean_interval([trial.value for trial in trials])
        return measure(mean.value, mean.low, mean.high)
    if quantile is None and trials:
        return measure(median(trial.value for trial in trials), note="median over trials")
    # The quantile comes from merged histograms instead of averages. The interval needs ten trials.
    if quantile is None or quantile.value is None:
        return measure(note="not measured")
    if not quantile.supported:
        return measure(note=f"not supported by {quantile.samples:,} samples")
    low, high = (None if edge is None else edge / 1e3 for edge in (quantile.low, quantile.high))
    return measure(quantile.value / 1e3, low, high)


def _objectives(cell: CellTrials) -> tuple[ObjectiveResult, ...]:
    """Returns each objective of the study with the result on the counted trials."""
    held: dict[str, list[Judged]] = {}
    for trial in cell.used:
        for value in (trial.result.summary and trial.result.summary.objectives) or ():
            judged = judged_from_json(value)
            held.setdefault(judged.condition.text, []).append(judged)
    findings = []
    for text, all_judged in held.items():
        found = [judged.found for judged in all_judged if judged.found is not None]
        met = sum(judged.met for judged in all_judged)
        middle = median(found) if len(found) == len(all_judged) else None
        findings.append(
            ObjectiveResult(text, met == len(all_judged), met, len(all_judged), middle, all_judged[0].condition.unit)
        )
    return tuple(findings)
