"""Parses hey's output as scripts do: sections by title, figures by label."""

import re
from dataclasses import dataclass


@dataclass
class HeyFigures:
    """The figures that a usual script reads from a summary."""

    summary: dict[str, float]
    """Seconds, rates and bytes, by label."""
    histogram: list[tuple[float, int]]
    latencies_s: dict[int, float]
    details_s: dict[str, tuple[float, float, float]]
    statuses: dict[int, int]
    errors: dict[str, int]


def parse(output: str) -> HeyFigures:
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in output.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            lines = sections.setdefault(line.rstrip(":"), [])
        elif line.strip():
            lines.append(line)
    return HeyFigures(
        summary={
            label.strip(): float(rest.split()[0]) for label, rest in (line.split(":\t") for line in sections["Summary"])
        },
        histogram=[
            (float(mark), int(count))
            for mark, count in re.findall(r"([\d.]+) \[(\d+)\]", "\n".join(sections["Response time histogram"]))
        ],
        latencies_s={
            int(percent): float(value)
            for percent, value in re.findall(r"(\d+)% in ([\d.]+) secs", "\n".join(sections["Latency distribution"]))
        },
        details_s={
            label.strip(): (float(average), float(fastest), float(slowest))
            for label, average, fastest, slowest in re.findall(
                r"  (.+):\t\s*(\S+) secs, (\S+) secs, (\S+) secs",
                "\n".join(sections["Details (average, fastest, slowest)"]),
            )
        },
        statuses={int(status): int(count) for status, count in re.findall(r"\[(\d+)\]\t(\d+) responses", output)},
        errors={
            message: int(count)
            for count, message in (re.findall(r"\[(\d+)\]\t(.*)", "\n".join(sections.get("Error distribution", []))))
        },
    )
