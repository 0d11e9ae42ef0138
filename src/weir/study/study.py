"""Reads studies. A study is the content of a study file at one of the file's scales."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

from weir.generators.registry import get_tool
from weir.model.errors import UsageError
from weir.model.run_types import WEIR, PublishedFigure
from weir.stacks.manifest import Stack
from weir.study.block_order import HeadStart
from weir.study.cells import PlannedCell, plan_cells
from weir.study.file import StudyFile
from weir.toml_file import list_data_files, name_place, read_toml, validate

__all__ = ["PlannedCell", "Study", "parse_study", "read_study"]

ONLY_SCALE = "default"
"""Name of the only scale if a study file does not define scales."""
EVIDENCE_BLOCKS = 10
"""Minimum number of blocks for a claim (Kalibera & Jones 2013). With fewer blocks, a result is only an indication."""
QUICK = "quick"
"""The scale with an interim answer after each block."""
INTERVAL_BLOCKS = 2
"""Minimum number of blocks for a confidence interval."""
FIRST_ANSWER_BLOCKS = 3
"""Number of blocks of short trials before the first interim answer. Two blocks would give a much wider interval."""
SHORT_TRIAL = 2.0
"""Maximum duration of a short trial, as a multiple of the study's shortest duration."""


@dataclass(frozen=True, slots=True)
class Study:
    """A valid study at one scale."""

    name: str
    path: Path
    text: str
    scale: str
    file: StudyFile
    shown_path: Path | None
    """Path of the study in messages. None if the user did not write the study: messages name no file."""
    omitted_stacks: frozenset[str] = frozenset()
    """Labels of stacks that the run omits, because this machine lacks something that they need."""
    omitted_generators: frozenset[str] = frozenset()
    """Generators that the run omits, because they are not installed."""
    ends_with_first_answer: bool = False
    """Whether the run ends after its first interim answer."""

    @property
    def place(self) -> str:
        """Returns the beginning of messages about the study."""
        return name_place(self.shown_path)

    @property
    def indicative(self) -> bool:
        return self.file.method.blocks < EVIDENCE_BLOCKS

    @property
    def published(self) -> tuple[PublishedFigure, ...]:
        found = []
        for one in self.file.published:
            where = {name: value if isinstance(value, str) else f"{value:g}" for name, value in one.where.items()}
            found.append(PublishedFigure(one.stack, one.metric, one.value, self.file.source, one.note, where))
        return tuple(found)

    @property
    def objectives(self) -> tuple[str, ...]:
        return tuple(self.file.objective.hold) if self.file.objective else ()

    @property
    def has_interim_answers(self) -> bool:
        """Whether a run prints an interim answer after each block."""
        return self.scale == QUICK

    def head_start(self, cells: Sequence[PlannedCell]) -> HeadStart | None:
        """Returns the short trials that run first. None if all trials are short, or if the short trials cannot compare
        the baseline. Also None without interim answers, and with a budget: a budget determines the number of blocks."""
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
        omitted = {"omitted_stacks": self.omitted_stacks, "omitted_generators": self.omitted_generators}
        return plan_cells(self.file, self.path, self.shown_path, stack_cpus, **omitted)

    def missing_generators(self) -> dict[str, str]:
        """Returns a dict from the name of each missing generator to an explanation."""
        missing = {}
        for name in self.file.matrix.generators:
            if name != WEIR and name not in self.omitted_generators:
                try:
                    get_tool(name).require()
                except UsageError as why:
                    missing[name] = f"{why.message}; {why.hint}"
        return missing

    def without_unmet(self) -> tuple["Study", list[str]]:
        """Returns the study without the stacks and generators that this machine cannot run, and a line for each of
        them. Raises UsageError if the baseline is omitted, or if nothing remains to compare."""
        stacks = {one.stack.label: one.stack for one in self.cells(1)}
        needs = {label: stack.unmet() for label, stack in stacks.items() if isinstance(stack, Stack)}
        unmet = {label: found for label, found in needs.items() if found}
        lines = [f"{label} is left out: it needs {'; '.join(map(str, found))}" for label, found in unmet.items()]
        for key, label in (("method.baseline", self.file.method.baseline), ("method.aa", self.file.method.aa)):
            if label in unmet:
                raise UsageError(f"{self.place}{key}: {'; '.join(lines)}", hint="weir doctor")
        missing = self.missing_generators()
        lines += [f"generator {name} is left out: {why}" for name, why in missing.items()]
        left_stacks, left_generators = len(stacks) - len(unmet), len(self.file.matrix.generators) - len(missing)
        if (unmet or missing) and (left_generators == 0 or max(left_stacks, left_generators) < 2):
            key = "matrix.stacks" if unmet else "matrix.generators"
            raise UsageError(f"{self.place}{key}: nothing remains to compare: {'; '.join(lines)}", hint="weir doctor")
        return replace(self, omitted_stacks=frozenset(unmet), omitted_generators=frozenset(missing)), lines


def read_study(name_or_path: str, *, scale: str | None = None) -> Study:
    """Reads a built-in study or a study file at one of its scales. Raises UsageError if the study or the scale is
    not valid."""
    known = list_data_files("studies")
    if name_or_path in known:
        path = known[name_or_path]
    else:
        path = Path(name_or_path)
        if path.suffix != ".toml":
            expected = f"expected a file NAME.toml or one of: {', '.join(known)}"
            raise UsageError(f"study: found {name_or_path!r}, {expected}", hint="weir run sync-vs-async")
    content = read_toml(path, what="a study", hint=f"known studies: {', '.join(known)}")
    return parse_study(path, path.read_text(), content, scale)


def parse_study(
    path: Path, text: str, content: dict[str, Any], scale: str | None, *, is_written_by_weir: bool = False
) -> Study:
    """Parses the content of a study file, at one of its scales. If weir has written the study, messages do not name
    `path`. Raises UsageError if the content is not valid."""
    shown_path = None if is_written_by_weir else path
    place = name_place(shown_path)
    scales = content.pop("scales", {})
    if not isinstance(scales, dict) or not all(isinstance(table, dict) for table in scales.values()):
        raise UsageError(f"{place}scales: found a value, expected tables such as [scales.quick.method]")
    known = list(scales) or [ONLY_SCALE]
    chosen = scale or ("evidence" if "evidence" in known else known[0])
    if chosen not in known:
        raise UsageError(f"{place}--scale: found {chosen!r}, expected one of: {', '.join(known)}")
    for name in scales:
        validate(StudyFile, _merge_tables(content, scales[name]), path=shown_path)
    file = validate(StudyFile, _merge_tables(content, scales.get(chosen, {})), path=shown_path)
    return Study(path.stem, path, text, chosen, file, shown_path)


def _merge_tables(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `base` with `override`: merges nested tables, joins lists of tables, and replaces other values."""
    merged = dict(base)
    for key, value in override.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge_tables(below, value)
        elif _is_tables(below) and _is_tables(value):
            merged[key] = [*below, *value]
        else:
            merged[key] = value
    return merged


def _is_tables(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
