"""What scripts make of ab's output: a figure by its label, the table of times by row, percentages by their number."""

import re
from dataclasses import dataclass


@dataclass
class AbFigures:
    """All that the usual script takes out of a report."""

    version: str
    values: dict[str, str]
    """By label, the first word; of the two times per request the mean of all is under its remark."""
    times_ms: dict[str, list[float]]
    """The rows of the table: shortest, mean, deviation, median, longest."""
    percentages_ms: dict[int, int]
    failures: dict[str, int]


def parse(output: str) -> AbFigures:
    """The figures of a report."""
    version = re.search(r"^This is ApacheBench, Version (\S+)", output, re.MULTILINE)
    assert version is not None
    values: dict[str, str] = {}
    for label, value in re.findall(r"^([A-Z][\w /-]+):[ \t]+(\S.*)$", output, re.MULTILINE):
        # Whether ab warns of its own figures depends on how long things took.
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
