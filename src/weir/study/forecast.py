"""How long a study takes, before it runs: trials, and everything around them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weir.model.run import WEIR
from weir.study.cells import ASSUMED_OVERHEAD_S, PlannedCell
from weir.study.study import INTERVAL_BLOCKS, Study, order_of_block

CEILING_S = 1.5
"""Measuring what the generator reaches on a null server, once for each way of asking."""
OTHER_CEILING_S = 3.0
"""The start and the end of another generator than weir's, whose ceiling takes as long as a load of it,"""
MOST_CEILING_S = 10.0
"""but no longer than that."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a trial takes beyond its load, priming and pause."""

    by_stack_s: Mapping[str, float] = field(default_factory=dict)
    """Measured by a pilot, by the stack's label."""
    otherwise_s: float = ASSUMED_OVERHEAD_S

    def of(self, label: str) -> float:
        """That of a stack."""
        return self.by_stack_s.get(label, self.otherwise_s)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What will run, and for how long. Builds and trials that have to be repeated come on top."""

    trials: int
    order: tuple[tuple[int, ...], ...]
    """Ids of the cells of each block, in their order."""
    load_s: float
    """Of all trials; the longest where something else may end them."""
    priming_s: float
    pauses_s: float
    starts_and_stops_s: float
    extensions_s: float
    """What would come on top if no trial showed a steady state in time."""
    checks_s: float
    """Before the first trial: every stack checked on every workload, and the generator's ceilings."""
    first_answer_s: float | None
    """Trials before the first interim answer, starts and stops included; None if the run has no interim answer."""
    first_answer_of: tuple[str, ...]
    """Labels of the stacks that the first interim answer is about."""
    is_most: bool
    """Whether something else than time may end a load, so that all of this is the most that it takes."""

    @property
    def total_s(self) -> float:
        """Everything together."""
        return self.load_s + self.priming_s + self.pauses_s + self.starts_and_stops_s + self.checks_s


def forecast(study: Study, cells: Sequence[PlannedCell], overhead: Overhead = Overhead()) -> Forecast:
    """What the cells of a study come to in its blocks."""
    method = study.file.method
    head_start = study.head_start(cells)
    order = [order_of_block(cells, method.seed, block, head_start) for block in range(1, method.blocks + 1)]
    first = cells if head_start is None else [one for one in cells if one.cell.id in head_start.cell_ids]
    first_blocks = head_start.blocks if head_start is not None else INTERVAL_BLOCKS if study.ends_with_first_answer else 1
    has_interim = study.has_interim_answers and (head_start is not None or first_blocks < method.blocks)
    checked = {(one.stack.label, one.workload.id) for one in cells}
    ways = {one.asked: one for one in cells}
    return Forecast(
        trials=method.blocks * len(cells),
        order=tuple(tuple(one.cell.id for one in block) for block in order),
        load_s=method.blocks * sum(one.load.duration_s for one in cells),
        priming_s=method.blocks * sum(one.method.prime_s for one in cells),
        pauses_s=method.blocks * sum(one.method.pause_s for one in cells),
        starts_and_stops_s=method.blocks * sum(overhead.of(one.stack.label) for one in cells),
        extensions_s=method.blocks * sum(_extension_s(one) for one in cells),
        checks_s=sum(overhead.of(label) for label, _ in checked) + sum(map(_ceiling_s, ways.values())),
        first_answer_s=first_blocks * sum(one.trial_s - ASSUMED_OVERHEAD_S + overhead.of(one.stack.label) for one in first)
        if has_interim
        else None,
        first_answer_of=tuple(dict.fromkeys(one.stack.label for one in first)) if has_interim else (),
        is_most=any(one.load.ends_by_itself for one in cells),
    )


def plan_lines(study: Study, coming: Forecast, cells: int) -> list[str]:
    """How many trials, how long, and when the run ends."""
    method = study.file.method
    trials = f"{coming.trials} trial{'s' if coming.trials > 1 else ''}"
    about = "at most" if coming.is_most else "about"
    lines = [
        f"{trials} ({method.blocks} block{'s' if method.blocks > 1 else ''} of {cells}): {about} {span_text(coming.total_s)}, "
        f"{span_text(coming.load_s)} of it load"
    ]
    if method.width is not None:
        most = (
            ""
            if method.most_blocks is None
            else (f", in at most {method.most_blocks} blocks, about {span_text(coming.total_s * method.most_blocks / method.blocks)}")
        )
        lines.append(f"goes on until every ratio of {method.width_of} is known to ±{method.width:.1%}{most}")
    if method.budget_s is not None:
        lines.append(f"ends before a block that would take its trials beyond {span_text(method.budget_s)}")
    if coming.first_answer_s is not None:
        ends = "; the run ends there" if study.ends_with_first_answer else ""
        lines.append(f"first answer after about {span_text(coming.first_answer_s)}: {', '.join(coming.first_answer_of)}{ends}")
    if study.indicative:
        lines.append("so few blocks give an indication; a claim needs at least 10")
    return lines


def _ceiling_s(planned: PlannedCell) -> float:
    return CEILING_S if planned.cell.generator == WEIR else OTHER_CEILING_S + min(planned.load.duration_s, MOST_CEILING_S)


def _extension_s(planned: PlannedCell) -> float:
    # Without intervals nobody sees whether a load is steady.
    if planned.load.ends_by_itself or planned.cell.generator != WEIR:
        return 0.0
    return planned.load.duration_s if planned.method.extension_s is None else planned.method.extension_s


def span_text(seconds: float) -> str:
    """'45 s', '12 min', '3.5 h'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
