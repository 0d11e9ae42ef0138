"""Parses ab's output as scripts do: figures by label, the table of times by row, percentages by number."""

import re
from dataclasses import dataclass


@dataclass
class AbFigures:
    """The figures that a usual script reads from a report."""

    version: str
    values: dict[str, str]
    """First word by label. The two times per request differ in their remark: the mean of all requests has the
    remark."""
    times_ms: dict[str, list[float]]
    """Rows of the table: shortest, mean, deviation, median, longest."""
    percentages_ms: dict[int, int]
    failures: dict[str, int]


def parse(output: str) -> AbFigures:
    version = re.search(r"^This is ApacheBench, Version (\S+)", output, re.MULTILINE)
    assert version is not None
    values: dict[str, str] = {}
    for label, value in re.findall(r"^([A-Z][\w /-]+):[ \t]+(\S.*)$", output, re.MULTILINE):
        # ab prints a warning about its figures for some times only.
        if label not in ("WARNING", "ERROR"):
            values[f"{label} (all)" if "across all" in value else label] = value.split()[0]
    failed = re.search(r"\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)", output)
    return AbFigures(
        version=version[1],
        values=values,
        times_ms={
            row: [float(number) for number in numbers.split()]
            for row, numbers in re.findall(
                r"^(Connect|Processing|Waiting|Total):((?:\s+[\d.]+)+)$", output, re.MULTILINE
            )
        },
        percentages_ms={
            int(percent): int(value) for percent, value in re.findall(r"^\s+(\d+)%\s+(\d+)", output, re.MULTILINE)
        },
        failures=dict(zip(("Connect", "Receive", "Length", "Exceptions"), map(int, failed.groups()), strict=True))
        if failed
        else {},
    )
