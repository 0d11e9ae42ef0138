"""Reads the rows of a CSV Data Set Config before the load."""

import csv
import io
import re
from collections.abc import Collection
from pathlib import Path

from weir.compat.jmx.scope import Scope
from weir.compat.jmx.test_plan import DataSet
from weir.compat.jmx.tree import Element


def read_data_set(element: Element, scope: Scope, folder: Path, taken: Collection[str]) -> DataSet:
    """Returns the data set of a CSVDataSet, with the rows of the file. `folder`: the base of a relative path. `taken`:
    the names of earlier data sets. Reports an unreadable file, and rows that JMeter reads differently."""
    filename = scope.setting(element, "filename")
    delimiter = {"\\t": "\t", "": ","}.get(text := scope.resolve_fixed(element, element.value("delimiter", ",")), text)
    names = [name.strip() for name in scope.setting(element, "variableNames").split(",")]
    rows: list[list[str]] = []
    problem = "" if len(delimiter) == 1 else f"found the delimiter {delimiter!r}, expected one character"
    if not problem and "${" not in filename:
        try:
            rows = _read_rows(element, folder / filename, scope.setting(element, "fileEncoding"), delimiter)
        except OSError as error:
            problem = f"{filename}: cannot be read: {error.strerror}; expected a CSV file"
        except (UnicodeDecodeError, LookupError) as error:
            problem = f"{filename}: cannot be decoded: {error}; expected UTF-8, or the value of fileEncoding"
        except csv.Error as error:
            problem = f"{filename}: not valid CSV: {error}; expected a CSV file"
        else:
            if names == [""]:
                names, rows = [name.strip() for name in rows[0]] if rows else [], rows[1:]
            elif element.flag("ignoreFirstLine"):
                rows = rows[1:]
            if not rows:
                problem = f"{filename}: found no rows, expected at least one row"
            elif any(len(row) < len(names) or row == [""] for row in rows):
                # For a short row, JMeter reuses values of the previous row, or uses <EOF>.
                problem = f"{filename}: found a row with fewer than {len(names)} values, or an empty line"
    if problem:
        scope.report(element, problem)
    if not element.flag("recycle", default=True):
        scope.report(element, "found Recycle on EOF off, expected on: the engine begins again with the first row")
    return DataSet(
        name=_choose_name(Path(filename).stem, taken),
        columns=tuple(names),
        rows=tuple(tuple((row + [""] * len(names))[: len(names)]) for row in rows),
    )


def _read_rows(element: Element, path: Path, encoding: str, delimiter: str) -> list[list[str]]:
    """Returns all rows of a file. Raises OSError, UnicodeDecodeError, LookupError or csv.Error."""
    text = path.read_text(encoding=encoding or "utf-8").removeprefix("\ufeff")
    if element.flag("quotedData"):
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    return [line.split(delimiter) for line in text.splitlines()]


def _choose_name(stem: str, taken: Collection[str]) -> str:
    """Makes the name of a feeder from the file name `stem`. Appends a number if `taken` already contains the name."""
    base = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_") or "rows"
    names = (base, *(f"{base}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)
