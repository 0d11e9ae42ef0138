"""Trials that somebody else measured, one a row of a CSV file, as a run file: weir says of them what it says of its own runs.

Which column holds what is said by a mapping, `field=column[:unit]`; where a figure is the sum of several columns, with `+` between them.
"""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from weir.model.errors import UsageError
from weir.model.load import ClosedLoad
from weir.model.records import ByteCounts, ErrorCounts, GeneratorUse, LoadSummary, Quantiles, RequestCounts, Verdict
from weir.model.resources import StackResources
from weir.model.run import Cell, TrialResult
from weir.model.verdict import Reason, TrialVerdict
from weir.toml_file import Table, read_toml, validate

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ticks": 0.01, "B": 1.0, "kB": 1e3, "KiB": 1024.0, "MB": 1e6, "MiB": 1048576.0}
_TIMES, _SIZES = ("s", "ms", "us", "ns", "ticks"), ("B", "kB", "KiB", "MB", "MiB")
_QUANTILES = ("mean", "stdev", "min", "p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99", "max")

TEXTS = ("stack", "workload", "block")
NUMBERS: dict[str, Sequence[str]] = {
    "connections": (),
    "requests": (),
    "throughput_rps": (),
    "errors": (),
    "duration_s": _TIMES,
    "cpu_s": _TIMES,
    "ready_s": _TIMES,
    "pss_bytes": _SIZES,
    "private_bytes": _SIZES,
    **dict.fromkeys(_QUANTILES, _TIMES),
}
"""Fields that are numbers, with the units that a column may have."""
_NEEDED = ("stack", "connections", "duration_s")


class MappingFile(Table):
    """A mapping as a TOML file."""

    title: str = ""
    question: str = ""
    source: str = ""
    baseline: str | None = None
    """The stack that the others are compared with; the first, if none is named."""
    stack_cpus: int | None = Field(default=None, ge=1)
    """How many CPUs the stack had: its CPU time is held against them."""
    columns: dict[str, str]
    """`field = "column[:unit]"`."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """What a field is read from: columns that are added up, each with what one of its units is worth."""

    names: tuple[str, ...]
    worth: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """Which columns hold what."""

    columns: Mapping[str, _Columns]
    title: str = ""
    question: str = ""
    source: str = ""
    baseline: str | None = None
    stack_cpus: int | None = None


def mapping_of(path: Path | None, options: Sequence[str]) -> ColumnMapping:
    """A mapping from a TOML file, from `field=column[:unit]` options, or from both, the options before the file.

    Raises:
        UsageError: a field, a unit or the form is unknown, or a field that is needed is missing.
    """
    file = MappingFile(columns={}) if path is None else validate(MappingFile, read_toml(path, what="a mapping of columns"), path=path)
    where = f"{path}: columns" if path else "--map"
    texts = {name: (text, where) for name, text in file.columns.items()}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals or not text:
            raise UsageError(f"--map: found {option!r}, expected FIELD=COLUMN or FIELD=COLUMN:UNIT", hint="weir import --help")
        texts[name.strip()] = (text, "--map")
    columns = {name: _columns(name, text, where) for name, (text, where) in texts.items()}
    missing = [name for name in _NEEDED if name not in columns]
    if missing or not {"throughput_rps", "requests"} & columns.keys():
        wanted = missing or ["throughput_rps or requests"]
        raise UsageError(f"{where}: found no column for {', '.join(wanted)}; expected one", hint=f"--map {wanted[0].split()[0]}=COLUMN")
    return ColumnMapping(columns, file.title, file.question, file.source, file.baseline, file.stack_cpus)


def _columns(name: str, text: str, where: str) -> _Columns:
    if name not in TEXTS and name not in NUMBERS:
        raise UsageError(f"{where}: found the field {name!r}, expected one of {', '.join([*TEXTS, *NUMBERS])}", hint="weir import --help")
    units = NUMBERS.get(name, ())
    names, worth = [], []
    for part in text.split("+") if name in NUMBERS else [text]:
        column, colon, unit = part.strip().rpartition(":")
        if not colon:
            column, unit = unit, ""
        if unit and unit not in units:
            # A column may have a colon in its name.
            column, unit = part.strip(), ""
        names.append(column)
        # Times of a response are kept in microseconds, all others in seconds.
        worth.append(_UNITS[unit or ("us" if name in _QUANTILES else "s" if units is _TIMES else "B")])
    return _Columns(tuple(names), tuple(worth))


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """A row that counts as a trial."""

    line: int
    stack: str
    workload: str
    connections: int
    block: int
    result: TrialResult


@dataclass
class Imported:
    """What a file held."""

    trials: list[ImportedTrial] = field(default_factory=list)
    headers: int = 0
    """Repeated header lines."""
    incomplete: list[tuple[int, str]] = field(default_factory=list)
    """Rows without a number where one is needed: their lines, and what is missing."""
    failed: int = 0
    """Rows whose requests failed: trials that count for nothing."""

    @property
    def cells(self) -> list[Cell]:
        """One for each stack, workload and number of connections, in the order of the file."""
        found = dict.fromkeys((trial.stack, trial.workload, trial.connections) for trial in self.trials)
        return [
            Cell(id=number, stack=stack, variant=None, workload=workload, load=ClosedLoad(connections), title=stack, started=False)
            for number, (stack, workload, connections) in enumerate(found, start=1)
        ]

    @property
    def sentence(self) -> str:
        """What was taken, and what was not."""
        said = [f"{len(self.trials):,} trials"]
        if self.headers:
            said.append(f"{self.headers} repeated header lines left out")
        if self.incomplete:
            line, what = self.incomplete[0]
            said.append(f"{len(self.incomplete)} rows left out without {what} (line {line} for one)")
        if self.failed:
            said.append(f"{self.failed} trials with failed requests, which count for nothing")
        return "; ".join(said)


def read_table(path: Path, mapping: ColumnMapping) -> Imported:
    """The trials of a CSV file. Without a column for blocks the n-th row of a cell belongs to block n.

    Raises:
        UsageError: the file cannot be read, lacks a column, or holds no trial.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{path}: not found; expected a CSV file with a trial a row") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; expected CSV in UTF-8") from None
    reader = csv.reader(text.splitlines())
    header = next(reader, [])
    lacking = [name for columns in mapping.columns.values() for name in columns.names if name not in header]
    if lacking:
        raise UsageError(
            f"{path}: found no column {lacking[0]!r}, expected one of {', '.join(header) or 'none'}", hint="weir import --help"
        )
    imported = Imported()
    seen: dict[tuple[str, str, int], int] = {}
    for line, row in _rows(reader):
        if row == header:
            imported.headers += 1
            continue
        values = _Row(dict(zip(header, row, strict=False)), mapping)
        lacks = values.lacks
        if lacks:
            imported.incomplete.append((line, lacks))
            continue
        stack, workload, connections = values.text("stack"), values.text("workload") or "requests", round(values.needed("connections"))
        key = (stack, workload, connections)
        seen[key] = seen.get(key, 0) + 1
        block = values.text("block")
        if block and not (block.isdigit() and int(block) > 0):
            raise UsageError(f"{path}: line {line}: block: found {block!r}, expected a whole number from 1 on")
        result = _result(values)
        imported.failed += result.verdict.validity == "invalid"
        imported.trials.append(ImportedTrial(line, stack, workload, connections, int(block) if block else seen[key], result))
    if not imported.trials:
        raise UsageError(f"{path}: found no trial ({imported.sentence}), expected one a row")
    return imported


def _rows(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    for line, row in enumerate(reader, start=2):
        if any(cell.strip() for cell in row):
            yield line, row


@dataclass(frozen=True, slots=True)
class _Row:
    """A row, read by field."""

    cells: Mapping[str, str]
    mapping: ColumnMapping

    @property
    def lacks(self) -> str:
        """The first thing that is needed and is not there; empty where there is all of it."""
        if not self.text("stack"):
            return "stack"
        needed = ["connections", "duration_s", "throughput_rps" if "throughput_rps" in self.mapping.columns else "requests"]
        for name in needed:
            value = self.number(name)
            if value is None or value <= 0:
                return name
        return ""

    def text(self, name: str) -> str:
        """Empty where there is none."""
        columns = self.mapping.columns.get(name)
        return "" if columns is None else self.cells.get(columns.names[0], "").strip()

    def number(self, name: str) -> float | None:
        """The sum of a field's columns, in the field's unit; None where one of them is no number."""
        columns = self.mapping.columns.get(name)
        if columns is None:
            return None
        total = 0.0
        for column, worth in zip(columns.names, columns.worth, strict=True):
            try:
                value = float(self.cells.get(column, ""))
            except ValueError:
                return None
            if not math.isfinite(value):
                return None
            total += value * worth
        return total

    def needed(self, name: str) -> float:
        """A number that is there."""
        value = self.number(name)
        assert value is not None
        return value


def _result(row: _Row) -> TrialResult:
    duration_s = row.needed("duration_s")
    requests, throughput = row.number("requests"), row.number("throughput_rps")
    if requests is None:
        requests = (throughput or 0.0) * duration_s
    failed = round(row.number("errors") or 0)
    completed = round(requests)
    times = {name: None if (value := row.number(name)) is None else value * 1e6 for name in _QUANTILES}
    cpu_s = row.number("cpu_s")
    sizes = [row.number(name) for name in ("pss_bytes", "private_bytes")]
    resources = None
    if cpu_s is not None or any(size is not None for size in sizes):
        pss, private = (None if size is None else round(size) for size in sizes)
        resources = StackResources(
            cpu_user_s=cpu_s or 0.0, cpu_system_s=0.0, peak_threads=0, peak_processes=0, pss_bytes=pss, private_bytes=private,
            steal_fraction=None,
        )  # fmt: skip
    summary = LoadSummary(
        schema_number=1,
        target="",
        duration_s=duration_s,
        requests=RequestCounts(
            intended=completed + failed, sent=completed + failed, completed=completed, ok=completed, failed=failed, unanswered=0, unsent=0
        ),
        throughput_rps=completed / duration_s if throughput is None else throughput,
        # Not kept by whoever measured, and no answer may be without one.
        status={"unknown": completed},
        errors=ErrorCounts(),
        response_time_us=Quantiles(**times),
        service_time_us=Quantiles(),
        schedule_lag_us=Quantiles(),
        connect_time_us=Quantiles(),
        time_to_first_byte_us=Quantiles(),
        bytes=ByteCounts(),
        generator=GeneratorUse(version="", cpu_fraction=0.0, peak_rss_bytes=0, threads=0, cpus=[]),
        verdict=Verdict(validity="valid"),
    )
    verdict = TrialVerdict()
    if failed:
        verdict = TrialVerdict((Reason("failed requests", "invalid", f"{failed:,} requests failed"),))
    return TrialResult(verdict, summary, resources=resources, ready_s=row.number("ready_s"))
