"""Reads a file of claims: figures copied from a publication.

A figure is a text with all printed digits, because the digits show the rounding: `"0.0060 s"`, `"7191.2708"`.
A `[[table]]` names a CSV file in the same folder, with one claim in each row. The columns have the names of a claim's
keys. The name of a column of times ends with the unit of the times (`mean_ms`).
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from weir.model.errors import UsageError
from weir.model.reported_result import Figure, ReportedResult
from weir.toml_file import Table, read_toml, validate

_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?) (us|µs|ms|s|min)")
_QUANTILE = re.compile(r"p(\d+(?:[._]\d+)?)")
_COLUMNS = {"name", "users", "loops", "throughput_rps", "requests", "failed"}
_TIME_COLUMNS = ("duration", "ramp", "think", "mean", "stdev", "min", "max")


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise ValueError('expected a time with its unit, such as "0.0060 s" or "14377 ms"')
    return text


def _number(text: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise ValueError('expected a number in quotes, with all printed digits, such as "7191.2708"')
    return text


def _quantiles(values: dict[str, str]) -> dict[str, str]:
    for name, value in values.items():
        if not _QUANTILE.fullmatch(name):
            raise ValueError(f"found {name!r}, expected percentiles such as p50 or p99_9")
        _time(value)
    return values


Time = Annotated[str, AfterValidator(_time)]
Number = Annotated[str, AfterValidator(_number)]


class Entry(Table):
    """The figures of one load. A missing figure has the value in the file's `defaults`."""

    tool: str | None = None
    users: int | None = Field(None, ge=1)
    loops: int | None = Field(None, ge=1)
    ramp: Time | None = None
    think: Time | None = None
    duration: Time | None = None
    throughput_rps: Number | None = None
    requests: int | None = Field(None, ge=0)
    failed: int | None = Field(None, ge=0)
    mean: Time | None = None
    stdev: Time | None = None
    min: Time | None = None
    max: Time | None = None
    quantiles: Annotated[dict[str, str], AfterValidator(_quantiles)] = Field(default_factory=dict)


class NamedEntry(Entry):
    """The figures of one load, with the load's name."""

    name: str = Field(min_length=1)


class CsvTable(Table):
    """A CSV file of claims, with one claim in each row."""

    file: str


class ClaimsFile(Table):
    """The content of a file of claims. The fields have the names of the TOML keys."""

    schema_: int = Field(alias="schema")
    title: str
    defaults: Entry = Field(default_factory=Entry)
    claim: list[NamedEntry] = Field(default_factory=list)
    table: list[CsvTable] = Field(default_factory=list)


def read_claims(path: Path) -> tuple[str, list[ReportedResult]]:
    """Returns the title of a file of claims, and its claims as reported results. Raises UsageError if the file, or one
    of its CSV files, cannot be read or is invalid."""
    file = validate(ClaimsFile, read_toml(path, what="a file of claims"), path=path)
    entries = [*file.claim, *(entry for table in file.table for entry in _read_csv(path.parent / table.file))]
    if not entries:
        raise UsageError(f"{path}: found neither [[claim]] nor [[table]], expected at least one of the two")
    return file.title, [_result(entry, file.defaults) for entry in entries]


def _result(entry: NamedEntry, defaults: Entry) -> ReportedResult:
    values = defaults.model_dump(exclude_defaults=True) | entry.model_dump(exclude_defaults=True)
    quantiles = values.pop("quantiles", {}).items()
    figures: dict[str, Any] = {f"{key}_s": _figure(values.pop(key)) for key in _TIME_COLUMNS if key in values}
    if "throughput_rps" in values:
        figures["throughput_rps"] = Figure.printed(values.pop("throughput_rps"))
    # Ramp and pause are settings of the load, so they have no rounding.
    ramp_s, think_s = (figures.pop(key, Figure(0.0)).value for key in ("ramp_s", "think_s"))
    quantiles_s = {float(key[1:].replace("_", ".")) / 100: _figure(value) for key, value in quantiles}
    return ReportedResult(**values, **figures, ramp_s=ramp_s, think_s=Figure(think_s), quantiles_s=quantiles_s)


def _figure(text: str) -> Figure:
    number, unit = text.split(" ")
    return Figure.printed(number, _UNITS[unit])


def _read_csv(path: Path) -> Iterator[NamedEntry]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; expected a table of claims in CSV") from None
    reader = csv.DictReader(text.splitlines())
    known = _COLUMNS | {f"{key}_{unit}" for key in _TIME_COLUMNS for unit in _UNITS}
    for column in reader.fieldnames or ():
        if column not in known:
            expected = f"{', '.join(sorted(_COLUMNS))}, mean_ms, max_s, …"
            raise UsageError(f"{path}: found the unknown column {column!r}, expected one of {expected}")
    for number, row in enumerate(reader, start=2):
        value: dict[str, object] = {}
        for column, cell in row.items():
            key, _, unit = column.rpartition("_")
            is_time = key in _TIME_COLUMNS
            whole = column in ("users", "loops", "requests", "failed") and cell.isdigit()
            value[key if is_time else column] = f"{cell} {unit}" if is_time else int(cell) if whole else cell
        yield validate(NamedEntry, value, path=Path(f"{path}, line {number}"))
