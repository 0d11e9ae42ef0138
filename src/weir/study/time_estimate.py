"""Estimates the duration of a study before the study runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weir.model.run_types import WEIR
from weir.parsing import format_duration
from weir.study.block_order import order_block
from weir.study.cells import ASSUMED_OVERHEAD_S, PlannedCell
from weir.study.study import EVIDENCE_BLOCKS, INTERVAL_BLOCKS, Study

NULL_SERVER_S = 1.5
"""Assumed seconds to measure the limit of weir's generator on a null server, for each load."""
OTHER_NULL_SERVER_S = 3.0
"""Assumed seconds to start and end another generator on a null server, in addition to the load."""
MAX_NULL_SERVER_S = 10.0
"""Maximum seconds of another generator's load on a null server."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Time of a trial outside the load, the warm-up and the pause."""

    by_stack_s: Mapping[str, float] = field(default_factory=dict)
    """A dict from a stack's label to the overhead that a pilot measured."""
    otherwise_s: float = ASSUMED_OVERHEAD_S

    def for_stack(self, label: str) -> float:
        return self.by_stack_s.get(label, self.otherwise_s)


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Number of a run's trials and their duration, without builds and retries."""

    trials: int
    order: tuple[tuple[int, ...], ...]
    """Ids of each block's cells, in the order of their trials."""
    load_s: float
    """Total time of all measured loads. A load that may end early counts with its maximum."""
    warmup_s: float
    pauses_s: float
    starts_and_stops_s: float
    extensions_s: float
    """Additional time if every load is extended."""
    checks_s: float
    """Time for the checks of stacks and the measurements of generators' limits, before the first trial."""
    first_answer_s: float | None
    """Time of the trials before the first interim answer, with starts and stops. None without interim answers."""
    first_answer_of: tuple[str, ...]
    """Labels of the stacks in the first interim answer."""
    is_most: bool
    """Whether the times are maxima, because a load may end before its duration."""

    @property
    def total_s(self) -> float:
        return self.load_s + self.warmup_s + self.pauses_s + self.starts_and_stops_s + self.checks_s


def estimate_time(study: Study, cells: Sequence[PlannedCell], overhead: Overhead = Overhead()) -> TimeEstimate:
    """Estimates the duration of all parts of a run, with the overhead of each stack."""
    method = study.file.method
    head_start = study.head_start(cells)
    order = [order_block(cells, method.seed, block, head_start) for block in range(1, method.blocks + 1)]
    first = cells if head_start is None else [one for one in cells if one.cell.id in head_start.cell_ids]
    first_blocks = INTERVAL_BLOCKS if study.ends_with_first_answer else 1
    first_blocks = first_blocks if head_start is None else head_start.blocks
    first_s = first_blocks * sum(
        one.trial_s - ASSUMED_OVERHEAD_S + overhead.for_stack(one.stack.label) for one in first
    )
    has_interim = study.has_interim_answers and (head_start is not None or first_blocks < method.blocks)
    checked = {(one.stack.label, one.workload.id) for one in cells}
    ways = {one.load_key: one for one in cells}
    # Other generators do not report intervals, so weir cannot look for a steady state.
    extended = [one for one in cells if one.cell.generator == WEIR and not one.load.ends_by_itself]
    return TimeEstimate(
        trials=method.blocks * len(cells),
        order=tuple(tuple(one.cell.id for one in block) for block in order),
        load_s=method.blocks * sum(one.duration_s for one in cells),
        warmup_s=method.blocks * sum(one.method.warmup_s for one in cells),
        pauses_s=method.blocks * sum(one.method.pause_s for one in cells),
        starts_and_stops_s=method.blocks * sum(overhead.for_stack(one.stack.label) for one in cells),
        extensions_s=method.blocks * sum(one.extension_s for one in extended),
        checks_s=sum(overhead.for_stack(label) for label, _ in checked)
        + sum(map(_estimate_null_server_s, ways.values())),
        first_answer_s=first_s if has_interim else None,
        first_answer_of=tuple(dict.fromkeys(one.stack.label for one in first)) if has_interim else (),
        is_most=any(one.load.ends_by_itself for one in cells),
    )


def describe_plan(study: Study, coming: TimeEstimate, cells: int) -> list[str]:
    """Returns lines about the number of trials, their duration, and the rule that ends the run."""
    method = study.file.method
    trials = f"{coming.trials} trial{'s' if coming.trials > 1 else ''}"
    blocks = f"{method.blocks} block{'s' if method.blocks > 1 else ''} of {cells}"
    times = f"{format_duration(coming.total_s)}, including {format_duration(coming.load_s)} of load"
    lines = [f"{trials} ({blocks}): {'at most' if coming.is_most else 'about'} {times}"]
    if method.width is not None:
        most = ""
        if method.most_blocks is not None:
            longest = format_duration(coming.total_s * method.most_blocks / method.blocks)
            most = f", in at most {method.most_blocks} blocks, about {longest}"
        lines.append(f"runs until every ratio of {method.width_of} is known to ±{method.width:.1%}{most}")
    if method.budget_s is not None:
        lines.append(f"ends before a block that would exceed {format_duration(method.budget_s)} of trials")
    if coming.first_answer_s is not None:
        stacks = ", ".join(coming.first_answer_of) + ("; the run ends there" if study.ends_with_first_answer else "")
        lines.append(f"first answer after about {format_duration(coming.first_answer_s)}: {stacks}")
    if study.indicative:
        lines.append(f"blocks: {method.blocks}, only an indication; a claim needs at least {EVIDENCE_BLOCKS}")
    return lines


def _estimate_null_server_s(planned: PlannedCell) -> float:
    return (
        NULL_SERVER_S
        if planned.cell.generator == WEIR
        else OTHER_NULL_SERVER_S + min(planned.duration_s, MAX_NULL_SERVER_S)
    )
