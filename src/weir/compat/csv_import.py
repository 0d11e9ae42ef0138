"""Imports trials that weir did not measure: reads a CSV file with one trial per row, and writes a run file.

`field=column[:unit]` reads a field of the trials from a column. `field=a+b` adds the values of the columns `a` and `b`.
"""

import csv
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import Field

from weir import __version__
from weir.audit.laws import find_violations, judge_violations
from weir.audit.trial_results import build_reported_results
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad
from weir.model.load_records import GeneratorUse, LoadSummary, Quantiles, RequestCounts
from weir.model.resources import StackResources
from weir.model.run_types import IMPORTED, Cell, Placement, RunInfo, TrialResult
from weir.model.verdict import Reason, TrialVerdict
from weir.store import RunWriter
from weir.toml_file import Table, read_toml, validate

_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ticks": 0.01}
_SIZES = {"B": 1.0, "kB": 1e3, "KiB": 1024.0, "MB": 1e6, "MiB": 1048576.0}
_QUANTILES = tuple(Quantiles.names())

TEXTS = ("stack", "workload", "block")
NUMBERS: dict[str, Mapping[str, float]] = {
    **{name: {} for name in ("connections", "requests", "throughput_rps", "errors")},
    **dict.fromkeys(("duration_s", "cpu_s", "ready_s"), _TIMES),
    **dict.fromkeys(("pss_bytes", "private_bytes"), _SIZES),
    **dict.fromkeys(_QUANTILES, _TIMES),
}
"""A dict from each numeric field to the possible units of its column. A factor converts a unit to seconds or bytes."""
_REQUIRED = ("stack", "connections", "duration_s")
_CLAIM_BLOCKS = 10
ANOTHER_TOOL = "another tool"
"""Name of the generator if neither the user nor the mapping file names one."""
_HELP = "weir import --help"


class MappingFile(Table):
    """A TOML file that maps the columns of a CSV file to fields of a trial."""

    title: str = ""
    question: str = ""
    source: str = ""
    generator: str = ANOTHER_TOOL
    """Name of the tool that made the loads, such as `wrk`. weir checks the figures by the rules of that tool."""
    baseline: str | None = None
    """The baseline stack. Default: the first stack in the CSV file."""
    stack_cpus: int | None = Field(default=None, ge=1)
    """Number of CPUs on which each stack ran."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Entries of the form `field = "column[:unit]"`."""


Columns = Mapping[str, Sequence[tuple[str, float]]]
"""A dict from a field to the columns whose values weir adds. Each column has the factor of its unit."""


def read_mapping(path: Path | None, options: Sequence[str]) -> tuple[MappingFile, Columns]:
    """Returns the mapping file, and the columns from the file and from `options` (`field=column[:unit]`). Options
    override the file. Raises UsageError for an unknown field, a malformed option or a missing required field."""
    file = MappingFile()
    if path is not None:
        file = validate(MappingFile, read_toml(path, what="a mapping of columns"), path=path)
    place = f"{path}: columns" if path else "--map"
    texts = {name: (text, place) for name, text in file.columns.items()}
    for option in options:
        name, _, text = option.partition("=")
        if not text:
            raise UsageError(f"--map: found {option!r}, expected FIELD=COLUMN or FIELD=COLUMN:UNIT", hint=_HELP)
        texts[name.strip()] = (text, "--map")
    columns = {name: _parse_columns(name, text, where) for name, (text, where) in texts.items()}
    missing = [name for name in _REQUIRED if name not in columns]
    if missing or not {"throughput_rps", "requests"} & columns.keys():
        missing = missing or ["throughput_rps or requests"]
        hint = f"--map {missing[0].split()[0]}=COLUMN"
        raise UsageError(f"{place}: found no column for {', '.join(missing)}, expected a column for each", hint=hint)
    return file, columns


def _parse_columns(name: str, text: str, place: str) -> list[tuple[str, float]]:
    if name in TEXTS:
        return [(text.strip(), 1.0)]
    if name not in NUMBERS:
        fields = ", ".join([*TEXTS, *NUMBERS])
        raise UsageError(f"{place}: found the field {name!r}, expected one of {fields}", hint=_HELP)
    units = NUMBERS[name]
    # The default unit of response times is the microsecond. For every other field, the default is its first unit.
    usual = 1e-6 if name in _QUANTILES else 1.0
    columns = []
    for part in text.split("+"):
        column, _, unit = part.strip().rpartition(":")
        # A column may have a colon in its name.
        columns.append((column, units[unit]) if column and unit in units else (part.strip(), usual))
    return columns


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """A trial from one row of a CSV file."""

    cell: Cell
    block: int
    result: TrialResult


@dataclass
class Imported:
    """The trials in a CSV file, and counts of left-out rows."""

    trials: list[ImportedTrial] = field(default_factory=list)
    cells: dict[tuple[str, str, int], Cell] = field(default_factory=dict)
    """The cells in the order of the file. The key is stack, workload and number of connections."""
    headers: int = 0
    """Number of repeated header lines."""
    incomplete: list[tuple[int, str]] = field(default_factory=list)
    """Line number and missing field of each row without a required value."""
    failed: int = 0
    """Number of trials with failed requests. Averages leave these trials out."""

    @property
    def sentence(self) -> str:
        """A text with the number of imported trials and of left-out rows."""
        parts = [f"{len(self.trials):,} trials"]
        if self.headers:
            parts.append(f"{self.headers} repeated header lines left out")
        if self.incomplete:
            line, name = self.incomplete[0]
            parts.append(f"{len(self.incomplete)} rows left out, for example line {line} without {name}")
        if self.failed:
            parts.append(f"{self.failed} trials invalid, because they have failed requests")
        return "; ".join(parts)


def read_table(path: Path, columns: Columns, *, generator: str = ANOTHER_TOOL) -> Imported:
    """Returns the trials in a CSV file. Without a column for blocks, the n-th row of a cell belongs to block n.
    `generator`: the loads' tool. Raises UsageError if the file is unreadable, lacks a column or has no trial."""
    try:
        reader = csv.reader(path.read_text(encoding="utf-8-sig").splitlines())
    except FileNotFoundError:
        raise UsageError(f"{path}: not found; expected a CSV file with one trial per row") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; expected CSV in UTF-8") from None
    header = next(reader, [])
    for column in (column for parts in columns.values() for column, _ in parts):
        if column not in header:
            expected = ", ".join(header) or "none"
            raise UsageError(f"{path}: found no column {column!r}, expected one of {expected}", hint=_HELP)
    amount = "throughput_rps" if "throughput_rps" in columns else "requests"
    imported = Imported()
    rows_by_cell: Counter[int] = Counter()
    for line, row in enumerate(reader, start=2):
        if not any(cell.strip() for cell in row):
            continue
        if row == header:
            imported.headers += 1
            continue
        values = dict(zip(header, row, strict=False))
        texts = (values.get(columns[name][0][0], "") if name in columns else "" for name in TEXTS)
        stack, workload, block = (text.strip() for text in texts)
        numbers = _read_numbers(values, columns)
        missing = [name for name in ("connections", "duration_s", amount) if numbers.get(name, 0) <= 0]
        if missing or not stack:
            imported.incomplete.append((line, missing[0] if stack else "stack"))
            continue
        key = stack, workload or "requests", round(numbers["connections"])
        id_, load = len(imported.cells) + 1, ClosedLoad(key[2])
        new = Cell(id_, stack, None, key[1], load, title=stack, started=False, generator=generator)
        cell = imported.cells.setdefault(key, new)
        rows_by_cell[cell.id] += 1
        if block and not (block.isdigit() and int(block) > 0):
            raise UsageError(f"{path}: line {line}: block: found {block!r}, expected a whole number of at least 1")
        result = _build_result(numbers, cell)
        imported.failed += result.verdict.validity == "invalid"
        imported.trials.append(ImportedTrial(cell, int(block) if block else rows_by_cell[cell.id], result))
    if not imported.trials:
        raise UsageError(f"{path}: found no trial ({imported.sentence}), expected one trial per row")
    return imported


def _read_numbers(values: Mapping[str, str], columns: Columns) -> dict[str, float]:
    """Returns the numbers of a row by field. Omits fields without a finite number."""
    numbers = {}
    for name in columns.keys() & NUMBERS.keys():
        try:
            total = sum(float(values.get(column, "")) * factor for column, factor in columns[name])
        except ValueError:
            continue
        if math.isfinite(total):
            numbers[name] = total
    return numbers


def _build_result(numbers: Mapping[str, float], cell: Cell) -> TrialResult:
    duration_s, failed = numbers["duration_s"], round(numbers.get("errors", 0))
    completed = round(numbers.get("requests", numbers.get("throughput_rps", 0.0) * duration_s))
    pss, private = (round(numbers[name]) if name in numbers else None for name in ("pss_bytes", "private_bytes"))
    resources = StackResources(
        cpu_user_s=numbers.get("cpu_s", 0.0),
        cpu_system_s=0.0,
        peak_threads=0,
        peak_processes=0,
        pss_bytes=pss,
        private_bytes=private,
        steal_fraction=None,
    )
    summary = LoadSummary.from_figures(
        RequestCounts.from_outcomes(ok=completed, failed=failed),
        duration_s,
        throughput_rps=numbers.get("throughput_rps"),
        # The CSV file has no statuses, but a summary needs a status for each response.
        status={"unknown": completed},
        response_time_us=Quantiles(**{name: numbers[name] * 1e6 for name in _QUANTILES if name in numbers}),
        generator=GeneratorUse(version="", cpu_fraction=0.0, peak_rss_bytes=0, threads=0, cpus=[]),
    )
    used = resources if numbers.keys() & {"cpu_s", "pss_bytes", "private_bytes"} else None
    next_step = "name the tool with --generator" if cell.generator == ANOTHER_TOOL else ""
    violations = find_violations(*build_reported_results(summary, cell.load, used, tool=cell.generator))
    reasons = (
        *([Reason("failed requests", "invalid", f"{failed:,} requests failed")] if failed else []),
        *(replace(one, next_step=next_step) for one in judge_violations(violations, other_generator=cell.generator)),
    )
    return TrialResult(TrialVerdict(reasons), summary, resources=used, ready_s=numbers.get("ready_s"))


def write_imported(imported: Imported, settings: MappingFile, source: Path, out: Path, *, command: str) -> None:
    """Writes the trials of the file `source` into the new run file `out`. Raises UsageError if the baseline is not a
    stack in the file, or if `out` exists."""
    cells = list(imported.cells.values())
    stacks = list(dict.fromkeys(cell.stack for cell in cells))
    baseline = settings.baseline or stacks[0]
    if baseline not in stacks:
        raise UsageError(f"{source}: baseline: found {baseline!r}, expected one of {', '.join(stacks)}", hint=_HELP)
    blocks = max(trial.block for trial in imported.trials)
    now = time.time_ns()
    info = RunInfo(
        study=source.stem,
        title=settings.title or source.name,
        question=settings.question,
        scale=IMPORTED,
        seed=0,
        blocks=blocks,
        indicative=blocks < _CLAIM_BLOCKS,
        baseline=baseline,
        study_text="",
        command=command,
        weir_version=__version__,
        started_unix_ns=now,
        environment={},
        placement=Placement(load=(), stack=tuple(range(settings.stack_cpus or 0)), services=(), control=()),
        source=settings.source or source.name,
    )
    writer = RunWriter.create(out, info, cells)
    positions: Counter[int] = Counter()
    for trial in sorted(imported.trials, key=lambda trial: trial.block):
        number = writer.begin_trial(
            trial.cell, block=trial.block, position=positions[trial.block], attempt=1, started_unix_ns=now
        )
        positions[trial.block] += 1
        writer.finish_trial(number, trial.result)
    writer.close("complete")
