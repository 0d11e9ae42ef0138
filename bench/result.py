"""Results of the benchmark: a JSON file for each part and CPU, and a Markdown page made from all files.

A part can be measured alone, so each file records its method, its machine and weir's version. Results of other CPUs
stay, because a ratio depends on the machine. The commit has the date.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.spread import confidence

SCHEMA = 1
# A neighbour's CPU time is missing on one side of a ratio.
QUIET_FRACTION = 0.03


@dataclass(frozen=True, slots=True)
class Bar:
    """A requirement, the measured value, and whether the value meets it; `reached` is None if it was not measured."""

    text: str
    found: str
    reached: bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows in printed form. The first `labels` columns are text, the others numbers."""

    columns: list[str]
    rows: list[list[str]]
    labels: int = 1

    def lines(self) -> list[str]:
        """Returns the table in Markdown."""
        kinds = ["---" if index < self.labels else "---:" for index in range(len(self.columns))]
        return ["| " + " | ".join(cells) + " |" for cells in [self.columns, kinds, *self.rows]]


@dataclass(frozen=True, slots=True)
class Found:
    """The results of one part.

    `notes` lists left-out generators and other remarks for the reader; `measured` holds every round's figures, by
    contest and generator.
    """

    title: str
    table: Table
    bars: list[Bar] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Rounds, machine and versions of a measurement."""

    rounds: int
    seconds: float
    machine: list[str]
    placement: str
    others_fraction: float | None
    """Fraction of the CPUs that other processes took meanwhile; None if it does not affect the result."""
    versions: list[str]

    @property
    def cpu(self) -> str:
        """The model of the CPU, from the machine's first fact."""
        return self.machine[0].removeprefix("CPU: ").split(",")[0]

    @property
    def quiet(self) -> bool:
        """Whether other processes took at most `QUIET_FRACTION` of the CPUs."""
        return self.others_fraction is None or self.others_fraction <= QUIET_FRACTION

    def line(self) -> str:
        """Returns the line below the part's table."""
        quietness = (
            ""
            if self.others_fraction is None
            else f"; other processes took {self.others_fraction:.1%} of the CPUs meanwhile"
        )
        return f"{_rounds(self.rounds, self.seconds)}{quietness}{'' if self.quiet else ': NOT QUIET'}. {'; '.join(self.versions)}."


@dataclass(frozen=True, slots=True)
class PartResult:
    """One part's results, with their provenance."""

    part: str
    found: Found
    provenance: Provenance

    def write(self, folder: Path) -> None:
        """Writes the result atomically into a file named after the part and the CPU."""
        folder.mkdir(exist_ok=True)
        cpu = re.sub(r"[^a-z0-9]+", "-", self.provenance.cpu.lower()).strip("-")
        path = folder / f"{self.part}.{cpu}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n")
        new.replace(path)


def read_results(folder: Path, parts: Sequence[str]) -> list[PartResult]:
    """Returns the results in `folder` in the order of `parts`; results of one part are in the order of the CPU's
    name."""
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
    """Returns the results as one page: the bars, a section for each part, and the machines."""
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
