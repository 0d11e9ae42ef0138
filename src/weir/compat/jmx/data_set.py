"""Reads the rows of a CSV Data Set Config before the load."""

import csv
import io
import re
from collections.abc import Collection
from pathlib import Path

from weir.compat.jmx.scope import Scope
from weir.compat.jmx.test_plan import DataSet
from weir.compat.jmx.tree import Element
from weir.model.errors import UsageError


def read_data_set(element: Element, scope: Scope, folder: Path, taken: Collection[str]) -> DataSet:
    """Returns the data set of a CSVDataSet with the rows of its file. The file's path is relative to `folder`. `taken`
    has the names of earlier data sets. Raises UsageError: the file cannot be read, or has no rows."""
    path = folder / scope.setting(element, "filename")
    where = f"{path} (line {element.line}: CSVDataSet {element.name!r})"
    written = scope.resolve_fixed(element, element.value("delimiter", ","))
    delimiter = {"\\t": "\t", "": ","}.get(written, written)
    if len(delimiter) != 1:
        scope.report(element, f"found the delimiter {delimiter!r}, expected one character")
    try:
        text = path.read_text(encoding=scope.setting(element, "fileEncoding") or "utf-8").removeprefix("\ufeff")
        if element.flag("quotedData"):
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter[0], strict=True))
        else:
            rows = [line.split(delimiter[0]) for line in text.splitlines()]
    except OSError as error:
        raise UsageError(f"{where}: cannot be read: {error.strerror}; expected a CSV file") from None
    except (UnicodeDecodeError, LookupError) as error:
        raise UsageError(f"{where}: cannot be decoded: {error}; expected UTF-8, or the value of fileEncoding") from None
    except csv.Error as error:
        raise UsageError(f"{where}: not valid CSV: {error}; expected a CSV file") from None
    names = scope.setting(element, "variableNames").split(",")
    if names == [""]:
        names, rows = rows[0] if rows else [], rows[1:]
    elif element.flag("ignoreFirstLine"):
        rows = rows[1:]
    if not rows or not names:
        raise UsageError(f"{where}: found no rows, expected at least one row")
    recycles, stops = element.flag("recycle", default=True), element.flag("stopThread")
    if not recycles and not stops:
        scope.report(element, "found <EOF> as values after the last row, expected Recycle or Stop thread on EOF")
    return DataSet(
        name=_choose_name(path.stem, taken),
        columns=tuple(name.strip() for name in names),
        rows=tuple(tuple((row + [""] * len(names))[: len(names)]) for row in rows),
        stops=not recycles and stops,
    )


def _choose_name(stem: str, taken: Collection[str]) -> str:
    """Makes the name of a feeder from the file name `stem`. Appends a number if `taken` already contains the name."""
    base = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_") or "rows"
    names = (base, *(f"{base}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)
