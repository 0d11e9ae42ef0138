"""What the parts of the benchmark found: kept as JSON, a file for a part and a CPU, and put together as a page of
Markdown.

A part can be measured again without the others, so each file says for itself how, on what machine and by which weir it
was measured. What was found on another CPU is kept beside it: a ratio is that of a machine.
Nothing in it says when: the commit does.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.spread import confidence

SCHEMA = 1
# What a neighbour takes is missing from one side of a ratio or the other.
QUIET_FRACTION = 0.03


@dataclass(frozen=True, slots=True)
class Bar:
    """What is asked, what was found, and whether that is enough; None if it could not be measured."""

    text: str
    found: str
    reached: bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows as they are printed. The first `labels` columns are text, the others numbers."""

    columns: list[str]
    rows: list[list[str]]
    labels: int = 1

    def lines(self) -> list[str]:
        """The table in Markdown."""
        kinds = ["---" if index < self.labels else "---:" for index in range(len(self.columns))]
        return ["| " + " | ".join(cells) + " |" for cells in [self.columns, kinds, *self.rows]]


@dataclass(frozen=True, slots=True)
class Found:
    """What one part found.

    `notes` say what was left out and what else a reader must know; `measured` holds every round's figures, by contest
    and generator.
    """

    title: str
    table: Table
    bars: list[Bar] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provenance:
    """How it was measured, on what, by whom."""

    rounds: int
    seconds: float
    machine: list[str]
    placement: str
    others_fraction: float | None
    """Of the machine's CPUs, taken by other processes meanwhile; None where that does not matter."""
    versions: list[str]

    @property
    def cpu(self) -> str:
        """The model of its CPU, which the machine's first fact begins with."""
        return self.machine[0].removeprefix("CPU: ").split(",")[0]

    @property
    def quiet(self) -> bool:
        """Whether the machine was left alone."""
        return self.others_fraction is None or self.others_fraction <= QUIET_FRACTION

    def line(self) -> str:
        """For below the part's table."""
        quietness = (
            ""
            if self.others_fraction is None
            else f"; other processes took {self.others_fraction:.1%} of the CPUs meanwhile"
        )
        return f"{_rounds(self.rounds, self.seconds)}{quietness}{'' if self.quiet else ': NOT QUIET'}. {'; '.join(self.versions)}."


@dataclass(frozen=True, slots=True)
class PartResult:
    """One part: what it found and how."""

    part: str
    found: Found
    provenance: Provenance

    def write(self, folder: Path) -> None:
        """Into a file named after the part and the CPU, at once."""
        folder.mkdir(exist_ok=True)
        cpu = re.sub(r"[^a-z0-9]+", "-", self.provenance.cpu.lower()).strip("-")
        path = folder / f"{self.part}.{cpu}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n")
        new.replace(path)


def read_results(folder: Path, parts: Sequence[str]) -> list[PartResult]:
    """The results that are there, in the order of `parts`, of one part by CPU."""
    return [_read(path) for part in parts for path in sorted(folder.glob(f"{part}.*.json"))]


def _read(path: Path) -> PartResult:
    value = json.loads(path.read_text())
    if value["schema"] != SCHEMA:
        raise ValueError(f"{path.name}: found schema {value['schema']}, expected {SCHEMA}; measure this part again")
    found = value["found"]
    return PartResult(
        value["part"],
        Found(
            found["title"],
            Table(**found["table"]),
            [Bar(**bar) for bar in found["bars"]],
            found["notes"],
            found["measured"],
        ),
        Provenance(**value["provenance"]),
    )


def page(results: Sequence[PartResult]) -> str:
    """All of it as one page: the bars, a section for each part, the machine."""
    bars = [
        [bar.text, result.provenance.cpu, bar.found, _reached(bar)] for result in results for bar in result.found.bars
    ]
    parts = [result.part for result in results]
    machines = list(dict.fromkeys(_machine(result) for result in results))
    lines = [
        "# Results",
        "",
        "Written by `make bench`; the figures of every round are in [results](results). A figure is the median of the rounds, with the",
        f"lowest and the highest: of 5 rounds that range holds the true median with {confidence(5):.1%} confidence, of 9 with",
        f"{confidence(9):.1%}. Ratios are taken round by round. CPU, which the kernel counts in ticks, is of all rounds together.",
        "",
        *Table(["bar", "on", "found", "reached"], bars, 4).lines(),
        "",
    ]
    for result in results:
        place = f", on {result.provenance.cpu}" if parts.count(result.part) > 1 else ""
        lines += [f"## {result.found.title}{place}", "", *result.found.table.lines(), ""]
        lines += [*(f"- {line}" for line in result.found.notes), ""] if result.found.notes else []
        lines += [result.provenance.line(), ""]
    for machine in machines:
        measured = [result.part for result in results if _machine(result) == machine]
        lines += [
            "## Machine" if len(machines) == 1 else f"## Machine of {', '.join(measured)}",
            "",
            *(f"- {fact}" for fact in machine),
            "",
        ]
    return "\n".join(lines)


def _machine(result: PartResult) -> tuple[str, ...]:
    return (*result.provenance.machine, result.provenance.placement)


def _reached(bar: Bar) -> str:
    return {True: "yes", False: "NO", None: "not measured"}[bar.reached]


def _rounds(rounds: int, seconds: float) -> str:
    return f"{rounds} {'round' if rounds == 1 else 'rounds'} of {seconds:g} s"
