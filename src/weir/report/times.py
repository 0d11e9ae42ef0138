"""What the trials of a run took beside their loads, as a table for a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from weir.findings.times import PHASES, StackTimes
from weir.model.text import printable


def render_times(found: Sequence[StackTimes]) -> RenderableType:
    """A column a stack, a line a part of its trials, in seconds."""
    if not found:
        return Text("No trial put a load on.")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("median seconds")
    for stack in found:
        table.add_column(Text(printable(stack.label)), justify="right")
    for phase in PHASES:
        table.add_row(phase, *(_seconds(stack.phases_s[phase]) for stack in found))
    table.add_row("between", *(_seconds(stack.between_s) for stack in found))
    table.add_row("beyond the load", *(_seconds(stack.beyond_load_s) for stack in found))
    table.add_row("less prime and pause", *(_seconds(stack.beyond_asked_s) for stack in found))
    table.add_row("trials", *(str(stack.trials) for stack in found))
    return Group(table)


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
