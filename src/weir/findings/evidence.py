"""Selects the trials for averages (valid and suspect trials), and pairs trials of two stacks by block."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from weir import stats
from weir.findings.metrics import Metric
from weir.findings.point_types import Evidence
from weir.model.load_records import Validity
from weir.model.run_types import Cell, Trial
from weir.model.verdict import Reason, worst


def is_used(trial: Trial) -> bool:
    """Returns whether a trial counts in averages: the trial is valid or suspect, and has a summary."""
    return trial.result.verdict.validity != "invalid" and trial.result.summary is not None


@dataclass(frozen=True)
class CellTrials:
    """A cell with its finished trials."""

    cell: Cell
    trials: tuple[Trial, ...]

    @cached_property
    def used(self) -> tuple[Trial, ...]:
        """The trials for averages."""
        return tuple(trial for trial in self.trials if is_used(trial))

    @property
    def evidence(self) -> Evidence:
        """The ids of the cell's trials: counted trials, and left-out trials."""
        omitted = tuple(trial.id for trial in self.trials if not is_used(trial))
        return Evidence(tuple(trial.id for trial in self.used), omitted)


def group_by_cell(cells: Iterable[Cell], trials: Sequence[Trial]) -> list[CellTrials]:
    """Returns each cell with its trials, in the order of `cells`."""
    by_cell: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_cell[trial.cell.id].append(trial)
    return [CellTrials(cell, tuple(by_cell[cell.id])) for cell in cells]


def summarize_reasons(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Returns one text per kind of reason for doubt, the most frequent first: the number of trials and an example."""
    texts = []
    for found in group_reasons(trials, lambda reason: reason.validity != "valid"):
        having = {trial for trial, _ in found}
        first, reason = found[0]
        example = (
            f"{len(having)} of {len(trials)} trials, for example trial {first}" if len(having) > 1 else f"trial {first}"
        )
        texts.append(f"{example}: {reason.text}")
    return tuple(texts)


def group_reasons(trials: Sequence[Trial], wanted: Callable[[Reason], bool]) -> list[list[tuple[int, Reason]]]:
    """Groups the wanted reasons by kind, the most frequent first. Each reason has its trial's id."""
    kinds: dict[str, list[tuple[int, Reason]]] = defaultdict(list)
    for trial in trials:
        for reason in filter(wanted, trial.result.verdict.reasons):
            kinds[reason.fact if reason.kind == "told" else reason.kind].append((trial.id, reason))
    return sorted(kinds.values(), key=len, reverse=True)


@dataclass(frozen=True)
class Pairs:
    """The values of one metric in two cells, by block. Leaves out blocks in which a cell lacks a value."""

    blocks: tuple[int, ...]
    values: tuple[float, ...]
    against: tuple[float, ...]
    evidence: Evidence
    validity: Validity
    reasons: tuple[str, ...]
    """Reasons why `validity` is not `valid`."""
    first_look: int | None = None
    """The first block after which a narrow interval may end the run: `RunInfo.first_look`."""
    block_s: float = 0.0
    """Mean duration of both cells' trials in a block; 0 if unknown, for example in an imported run."""
    rounding: float = 0.0
    """Standard deviation of a log ratio from rounding to whole requests; 0 for metrics without rounding."""

    @cached_property
    def ratio(self) -> stats.Ratio | None:
        """The ratio `values` ÷ `against`; None without blocks."""
        if not self.blocks:
            return None
        return stats.paired_ratio(self.values, self.against, first_look=self.first_look, rounding=self.rounding)

    @property
    def log_ratios(self) -> dict[int, float]:
        """A dict from block to ln(`values` ÷ `against`)."""
        sides = zip(self.blocks, self.values, self.against, strict=True)
        return {block: math.log(value / against) for block, value, against in sides}


def pair_by_block(one: CellTrials, other: CellTrials, metric: Metric, first_look: int | None = None) -> Pairs:
    """Pairs the values of two cells by block. Several counted trials of a cell in a block are averaged. A value of 0 or
    less counts as not measured, because it has no logarithm."""
    mine, theirs = _by_block(one, metric.of), _by_block(other, metric.of)
    blocks = tuple(sorted(mine.keys() & theirs.keys()))
    trials = sorted(
        (trial for side in (mine, theirs) for block in blocks for trial, _ in side[block]), key=lambda trial: trial.id
    )
    used = {trial.id for trial in trials}
    everything = sorted(trial.id for trial in (*one.trials, *other.trials))
    return Pairs(
        blocks=blocks,
        values=tuple(fmean(value for _, value in mine[block]) for block in blocks),
        against=tuple(fmean(value for _, value in theirs[block]) for block in blocks),
        evidence=Evidence(tuple(sorted(used)), tuple(trial for trial in everything if trial not in used)),
        validity=worst(trial.result.verdict.validity for trial in trials) if blocks else "invalid",
        reasons=summarize_reasons(trials) if blocks else ("no block has a usable trial of both cells",),
        first_look=first_look,
        block_s=sum(trial.result.phases_s.get("total", 0.0) for trial in trials) / max(1, len(blocks)),
        rounding=_rounding([side[block] for side in (mine, theirs) for block in blocks]) if metric.is_count else 0.0,
    )


def _rounding(counted: Sequence[Sequence[tuple[Trial, float]]]) -> float:
    """Returns the standard deviation that rounding to whole requests adds to the log ratio of two counts. The rounding
    error is uniform over one request, so the variance of the error is 1/12."""
    counts = [sum(one.result.summary.requests.ok for one, _ in trials if one.result.summary) for trials in counted]
    return math.sqrt(2 * fmean(1 / count**2 for count in counts) / 12) if counts and all(counts) else 0.0


def _by_block(cell: CellTrials, metric: Callable[[Trial], float | None]) -> dict[int, list[tuple[Trial, float]]]:
    blocks: dict[int, list[tuple[Trial, float]]] = {}
    for trial in cell.used:
        value = metric(trial)
        if value is not None and value > 0:
            blocks.setdefault(trial.block, []).append((trial, value))
    return blocks
