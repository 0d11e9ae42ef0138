"""A study: a study file at one of its scales, and the cells, blocks and order that it asks for. Starts nothing."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, Load, OpenLoad
from weir.model.run import Cell, PublishedFigure
from weir.places import data_folder
from weir.stacks.manifest import Stack, read_stack
from weir.stacks.workload import Workload, read_workload
from weir.study.file import StudyFile
from weir.toml_file import read_toml, validate

ONLY_SCALE = "default"
"""The scale of a study that names none."""
EVIDENCE_BLOCKS = 10
"""A claim needs at least so many blocks (Kalibera & Jones 2013); fewer give an indication."""


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell with what it needs to be run."""

    cell: Cell
    stack: Stack
    workload: Workload


@dataclass(frozen=True, slots=True)
class Study:
    """A valid study at one scale."""

    name: str
    path: Path
    text: str
    scale: str
    file: StudyFile

    @property
    def indicative(self) -> bool:
        """True where there are fewer blocks than a claim needs."""
        return self.file.method.blocks < EVIDENCE_BLOCKS

    @property
    def published(self) -> tuple[PublishedFigure, ...]:
        """The published figures."""
        return tuple(
            PublishedFigure(stack=one.stack, metric=one.metric, value=one.value, source=self.file.source, note=one.note)
            for one in self.file.published
        )

    def cells(self, stack_cpus: int) -> list[PlannedCell]:
        """Every cell of the matrix, the A/A arm's included.

        Args:
            stack_cpus: the number of CPUs that a stack gets, for limits that follow it.

        Raises:
            UsageError: a stack or workload does not exist, or a stack does not serve a workload.
        """
        arms: list[tuple[str, Literal["main", "aa"]]] = [(label, "main") for label in self.file.matrix.stacks]
        if self.file.method.aa is not None:
            arms.append((self.file.method.aa, "aa"))
        planned: list[PlannedCell] = []
        for label, arm in arms:
            stack = read_stack(label)
            for workload_id in self.file.matrix.workloads:
                workload = read_workload(workload_id)
                if workload_id not in stack.manifest.serves:
                    raise UsageError(
                        f"{self.path}: matrix.workloads: found {workload_id!r}, which {label} does not serve; "
                        f"it serves: {', '.join(stack.manifest.serves)}",
                        hint="weir stacks list",
                    )
                for load in self._loads():
                    cell = Cell(
                        id=len(planned) + 1,
                        stack=stack.manifest.id,
                        variant=stack.variant,
                        workload=workload_id,
                        load=load,
                        arm=arm,
                        title=stack.title,
                        model=stack.model,
                        settings=stack.settings(stack_cpus),
                    )
                    planned.append(PlannedCell(cell, stack, workload))
        return planned

    def measuring_s(self, cells: int) -> float:
        """How long the trials' loads take altogether, starts and stops of stacks not counted."""
        per_trial_s = self.file.load.duration_s + self.file.method.prime_s + self.file.method.pause_s
        return self.file.method.blocks * cells * per_trial_s

    def _loads(self) -> list[Load]:
        if self.file.matrix.rates_rps:
            return [OpenLoad(rate, n) for n in self.file.matrix.connections for rate in self.file.matrix.rates_rps]
        return [ClosedLoad(n) for n in self.file.matrix.connections]


def order_of_block(cells: list[PlannedCell], seed: int, block: int) -> list[PlannedCell]:
    """The cells in the order of a block: random, and the same for the same seed and block, so that a resumed run keeps its order."""
    shuffled = list(cells)
    random.Random(f"{seed}/{block}").shuffle(shuffled)
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
    """`base` with the keys of `override` in their place, table by table."""
    merged = dict(base)
    for key, value in override.items():
        below = merged.get(key)
        merged[key] = _overridden(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged
