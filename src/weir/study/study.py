"""A study: a study file at one of its scales, and the cells, blocks and order that it asks for. Starts nothing."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

from weir.generators.tools import tool
from weir.model.errors import UsageError
from weir.model.run import WEIR, PublishedFigure
from weir.places import data_folder
from weir.stacks.manifest import Stack
from weir.study.cells import PlannedCell, planned_cells
from weir.study.file import StudyFile
from weir.toml_file import read_toml, validate

__all__ = ["HeadStart", "PlannedCell", "Study", "order_of_block", "read_study", "study_files", "study_from"]

ONLY_SCALE = "default"
"""The scale of a study that names none."""
EVIDENCE_BLOCKS = 10
"""A claim needs at least so many blocks (Kalibera & Jones 2013); fewer give an indication."""
QUICK = "quick"
"""The scale whose runs print an interim answer after each block."""
INTERVAL_BLOCKS = 2
"""An interval needs at least so many blocks."""
FIRST_ANSWER_BLOCKS = 3
"""Blocks of the short trials before the first answer: an interval from 2 blocks is three times as wide as one from 3."""
SHORT_TRIAL = 2.0
"""A trial is short if it takes at most this many times as long as the shortest of the study."""


@dataclass(frozen=True, slots=True)
class HeadStart:
    """Short trials that run before the long ones, so that a first answer comes soon."""

    cell_ids: frozenset[int]
    """Cells whose trials are short."""
    blocks: int
    """How many blocks of them run before the first long trial."""


@dataclass(frozen=True, slots=True)
class Study:
    """A valid study at one scale."""

    name: str
    path: Path
    text: str
    scale: str
    file: StudyFile
    left_out: frozenset[str] = frozenset()
    """Labels of stacks of the matrix that are not run: this machine lacks what they need."""
    left_out_generators: frozenset[str] = frozenset()
    """Generators of the matrix that are not run: this machine does not have them."""
    ends_with_first_answer: bool = False
    """Whether the run ends after its first interim answer."""

    @property
    def indicative(self) -> bool:
        """True where there are fewer blocks than a claim needs."""
        return self.file.method.blocks < EVIDENCE_BLOCKS

    @property
    def published(self) -> tuple[PublishedFigure, ...]:
        """The published figures."""
        return tuple(
            PublishedFigure(
                stack=one.stack,
                metric=one.metric,
                value=one.value,
                source=self.file.source,
                note=one.note,
                where={key: f"{value:g}" if isinstance(value, int | float) else value for key, value in one.where.items()},
            )
            for one in self.file.published
        )

    @property
    def objectives(self) -> tuple[str, ...]:
        """What every trial is held against."""
        return tuple(self.file.objective.hold) if self.file.objective else ()

    @property
    def has_interim_answers(self) -> bool:
        """Whether a run prints an answer after each block."""
        return self.scale == QUICK

    def head_start(self, cells: Sequence[PlannedCell]) -> HeadStart | None:
        """Returns the short trials that run first; None if all trials take about as long, or if the short ones compare nothing.

        Only studies with interim answers have one. A budget decides by itself how many blocks there are, so a study with one has none.
        """
        method = self.file.method
        if not self.has_interim_answers or method.budget_s is not None or method.blocks < INTERVAL_BLOCKS:
            return None
        longest_s = SHORT_TRIAL * min(planned.trial_s for planned in cells)
        short = [planned for planned in cells if planned.trial_s <= longest_s]
        sides = {(planned.stack.label, planned.cell.generator) for planned in short}
        has_baseline = any(planned.stack.label == method.baseline for planned in short)
        if len(short) == len(cells) or len(sides) < 2 or not has_baseline:
            return None
        return HeadStart(frozenset(planned.cell.id for planned in short), min(FIRST_ANSWER_BLOCKS, method.blocks))

    def cells(self, stack_cpus: int) -> list[PlannedCell]:
        """Every cell of the matrix, the A/A arm's included.

        Args:
            stack_cpus: the number of CPUs that a stack gets where the study does not say, for limits that follow it.

        Raises:
            UsageError: a stack, workload or limit does not exist, keys contradict each other, or an override matches nothing.
        """
        return planned_cells(self.file, self.path, stack_cpus, left_out=self.left_out, left_out_generators=self.left_out_generators)

    def missing_generators(self) -> dict[str, str]:
        """Generators that are to run and that this machine does not have, each with what to tell about it."""
        missing = {}
        for name in self.file.matrix.generators:
            if name != WEIR and name not in self.left_out_generators:
                try:
                    tool(name).found()
                except UsageError as why:
                    missing[name] = f"{why.message}; {why.hint}"
        return missing

    def without_unmet(self) -> tuple["Study", list[str]]:
        """The study without the stacks whose needs this machine does not meet and the generators that it does not have, and a line for
        each of them.

        Raises:
            UsageError: the baseline is among them, or nothing is left to compare: the study has no answer without.
        """
        stacks = {one.stack.label: one.stack for one in self.cells(1)}
        unmet = {label: found for label, stack in stacks.items() if isinstance(stack, Stack) and (found := stack.unmet())}
        said = [f"{label} is left out: it needs {'; '.join(map(str, found))}" for label, found in unmet.items()]
        for key, label in (("method.baseline", self.file.method.baseline), ("method.aa", self.file.method.aa)):
            if label in unmet:
                raise UsageError(f"{self.path}: {key}: {'; '.join(said)}", hint="weir doctor")
        missing = self.missing_generators()
        said += [f"generator {name} is left out: {why}" for name, why in missing.items()]
        left_stacks, left_generators = len(stacks) - len(unmet), len(self.file.matrix.generators) - len(missing)
        if (unmet or missing) and (left_generators == 0 or max(left_stacks, left_generators) < 2):
            key = "matrix.stacks" if unmet else "matrix.generators"
            raise UsageError(f"{self.path}: {key}: nothing is left to compare: {'; '.join(said)}", hint="weir doctor")
        return replace(self, left_out=frozenset(unmet), left_out_generators=frozenset(missing)), said


def order_of_block(cells: Sequence[PlannedCell], seed: int, block: int, head_start: HeadStart | None = None) -> list[PlannedCell]:
    """Returns the cells in the order of a block: random, and the same for the same seed and block, so that a resumed run keeps its order.

    In a block of a head start the short trials come first, in random order, then the long ones, in random order.
    """
    shuffled = list(cells)
    random.Random(f"{seed}/{block}").shuffle(shuffled)
    if head_start is not None and block <= head_start.blocks:
        # Stable: what is left of the random order on either side is a random order itself.
        shuffled.sort(key=lambda planned: planned.cell.id not in head_start.cell_ids)
    return shuffled


def study_files() -> dict[str, Path]:
    """The studies that travel with this weir, by name."""
    return {path.stem: path for path in sorted(data_folder("studies").glob("*.toml"))}


def read_study(name_or_path: str, *, scale: str | None = None) -> Study:
    """The study of that name, or in that file, at one of its scales.

    Raises:
        UsageError: there is no such study or scale, or the file is not valid.
    """
    known = study_files()
    if name_or_path in known:
        path = known[name_or_path]
    else:
        path = Path(name_or_path)
        if path.suffix != ".toml":
            raise UsageError(
                f"study: found {name_or_path!r}, expected a file NAME.toml or one of: {', '.join(known)}", hint="weir run sync-vs-async"
            )
    content = read_toml(path, what="a study", hint=f"known studies: {', '.join(known)}")
    return study_from(path, path.read_text(), content, scale)


def study_from(path: Path, text: str, content: dict[str, Any], scale: str | None) -> Study:
    """The study in `content`, at one of its scales."""
    scales = content.pop("scales", {})
    if not isinstance(scales, dict) or not all(isinstance(table, dict) for table in scales.values()):
        raise UsageError(f"{path}: scales: expected tables such as [scales.quick.method]")
    known = list(scales) or [ONLY_SCALE]
    chosen = scale or ("evidence" if "evidence" in known else known[0])
    if chosen not in known:
        raise UsageError(f"{path}: --scale: found {chosen!r}, expected one of: {', '.join(known)}")
    for name in scales:
        validate(StudyFile, _overridden(content, scales[name]), path=path)
    return Study(
        name=path.stem,
        path=path,
        text=text,
        scale=chosen,
        file=validate(StudyFile, _overridden(content, scales.get(chosen, {})), path=path),
    )


def _overridden(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the keys of `override` in their place, table by table; a list of tables is added to, any other list replaced."""
    merged = dict(base)
    for key, value in override.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = _overridden(below, value)
        elif _is_tables(below) and _is_tables(value):
            merged[key] = [*below, *value]
        else:
            merged[key] = value
    return merged


def _is_tables(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
