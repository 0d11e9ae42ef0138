"""Which trials count. Valid and suspect trials are used, invalid ones left out; stacks meet in the blocks where both have one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from weir.findings.measured import Evidence
from weir.model.records import Validity
from weir.model.run import Cell, Trial
from weir.model.verdict import Reason, worst


def is_used(trial: Trial) -> bool:
    """Whether averages use this trial."""
    return trial.result.verdict.validity != "invalid" and trial.result.summary is not None


@dataclass(frozen=True)
class CellTrials:
    """A cell with its finished trials."""

    cell: Cell
    trials: tuple[Trial, ...]

    @cached_property
    def used(self) -> tuple[Trial, ...]:
        """Those that averages use."""
        return tuple(trial for trial in self.trials if is_used(trial))

    @property
    def evidence(self) -> Evidence:
        """Used and left out, by id."""
        return Evidence(
            tuple(trial.id for trial in self.trials if is_used(trial)), tuple(trial.id for trial in self.trials if not is_used(trial))
        )


def by_cell(cells: Iterable[Cell], trials: Sequence[Trial]) -> list[CellTrials]:
    """Each cell with those of the trials that are its own."""
    return [CellTrials(cell, tuple(trial for trial in trials if trial.cell.id == cell.id)) for cell in cells]


def told_together(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Why trials are not valid: each kind of reason once, the most frequent first: one of them, and how many trials have it."""
    kinds: dict[str, list[tuple[int, Reason]]] = {}
    for trial in trials:
        for reason in trial.result.verdict.reasons:
            if reason.validity != "valid":
                key = reason.text if reason.kind == "told" else reason.kind
                kinds.setdefault(key, []).append((trial.id, reason))
    texts = []
    for found in sorted(kinds.values(), key=len, reverse=True):
        having = sorted({trial for trial, _ in found})
        (first, reason), of = found[0], f"{len(having)} of {len(trials)} trials"
        texts.append(f"{of}, trial {first} for one: {reason.text}" if len(having) > 1 else f"trial {first}: {reason.text}")
    return tuple(texts)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Values of two cells in the blocks where both have a used trial that gives the metric."""

    blocks: tuple[int, ...]
    values: tuple[float, ...]
    against: tuple[float, ...]
    evidence: Evidence
    validity: Validity
    reasons: tuple[str, ...]
    """Why the validity is no better."""


def pair_by_block(one: CellTrials, other: CellTrials, metric: Callable[[Trial], float | None]) -> Pairs:
    """Pair two cells by block. A block where a cell has several used trials (a retry beside its own) counts once, with their mean.

    Values that are not positive cannot enter a ratio and count as not measured.
    """
    mine, theirs = _by_block(one, metric), _by_block(other, metric)
    blocks = tuple(sorted(mine.keys() & theirs.keys()))
    trials = sorted((trial for side in (mine, theirs) for block in blocks for trial, _ in side[block]), key=lambda trial: trial.id)
    used = {trial.id for trial in trials}
    everything = sorted(trial.id for trial in (*one.trials, *other.trials))
    return Pairs(
        blocks=blocks,
        values=tuple(fmean(value for _, value in mine[block]) for block in blocks),
        against=tuple(fmean(value for _, value in theirs[block]) for block in blocks),
        evidence=Evidence(tuple(sorted(used)), tuple(trial for trial in everything if trial not in used)),
        validity=worst(trial.result.verdict.validity for trial in trials) if blocks else "invalid",
        reasons=told_together(trials) if blocks else ("no block has a usable trial of both",),
    )


def _by_block(cell: CellTrials, metric: Callable[[Trial], float | None]) -> dict[int, list[tuple[Trial, float]]]:
    blocks: dict[int, list[tuple[Trial, float]]] = {}
    for trial in cell.used:
        value = metric(trial)
        if value is not None and value > 0:
            blocks.setdefault(trial.block, []).append((trial, value))
    return blocks
