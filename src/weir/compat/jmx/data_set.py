"""CSV Data Set Config: the rows of its file, read before the load."""

import csv
import io
import re
from collections.abc import Collection
from functools import partial
from pathlib import Path

from weir.compat.jmx.plan import DataSet
from weir.compat.jmx.scope import Complain
from weir.compat.jmx.tree import Element
from weir.compat.jmx.values import Values
from weir.model.errors import UsageError

EACH_THREAD = "shareMode.thread"


def read_data_set(element: Element, values: Values, folder: Path, taken: Collection[str], tell: Complain) -> DataSet:
    """The rows of a data set.

    Args:
        element: the CSVDataSet.
        values: what references stand for.
        folder: what its file is relative to.
        taken: names of other data sets.
        tell: told what is not supported.

    Raises:
        UsageError: the file cannot be read, or has no rows.
    """
    complain = partial(tell, element)

    def fixed(name: str, default: str = "") -> str:
        return values.fixed(element.node.value(name, default), complain)

    path = folder / fixed("filename").strip()
    where = f"{path} (line {element.node.line}: CSVDataSet {element.name!r})"
    delimiter = {"\\t": "\t", "": ","}.get(fixed("delimiter", ","), fixed("delimiter", ","))
    if len(delimiter) != 1:
        complain(f"the delimiter {delimiter!r}, expected one character")
        delimiter = delimiter[0]
    try:
        text = path.read_text(encoding=fixed("fileEncoding").strip() or "utf-8").removeprefix("\ufeff")
    except OSError as error:
        raise UsageError(f"{where}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, LookupError) as error:
        raise UsageError(f"{where}: cannot be decoded: {error}") from None
    rows = _rows(text, delimiter, quoted=element.node.flag("quotedData"), where=where)
    named = fixed("variableNames").strip()
    if named:
        names = [name.strip() for name in named.split(",")]
        rows = rows[1:] if element.node.flag("ignoreFirstLine") else rows
    else:
        names, rows = [name.strip() for name in rows[0]] if rows else [], rows[1:]
    if not rows or not names:
        raise UsageError(f"{where}: found no rows, expected at least one")
    recycles, stops = element.node.flag("recycle", default=True), element.node.flag("stopThread")
    if not recycles and not stops:
        complain("<EOF> for all columns after the last row, expected to begin again or to stop the thread")
    return DataSet(
        name=_name(path.stem, taken),
        columns=tuple(names),
        rows=tuple(tuple((row + [""] * len(names))[: len(names)]) for row in rows),
        stops=not recycles and stops,
    )


def _rows(text: str, delimiter: str, *, quoted: bool, where: str) -> list[list[str]]:
    if not quoted:
        return [line.split(delimiter) for line in text.splitlines()]
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise UsageError(f"{where}: not valid CSV: {error}") from None


def _name(stem: str, taken: Collection[str]) -> str:
    """A feeder's name, from that of the file."""
    base = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_") or "rows"
    names = (base, *(f"{base}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)
