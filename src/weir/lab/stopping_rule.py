"""Decides when a run has enough blocks: by number, by time or by the width of intervals, never by p-values.

A run that stops as soon as p is below 0.05 will sooner or later find a difference between identical systems. The width
of a confidence interval does not depend on the measured difference. So a run may stop when intervals are narrow: this
rule does not make any difference more likely.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.model.run_types import StopReason
from weir.parsing import format_duration
from weir.study.file import Method

_FUTILE_BLOCKS = 3
"""A run without a fixed number of blocks ends after this number of blocks if a stack has no valid trial. It ends after
one block if no request was answered, for example because the script fails."""

if TYPE_CHECKING:
    # A slow import: see `blocks`.
    from weir.findings.precision import Precision


def find_stop_reason(
    block: int,
    method: Method,
    *,
    precisions: "Sequence[Precision]",
    spent_s: float,
    block_s: float,
    trials_in_block: bool,
    extra_blocks: int = 0,
    unmeasured: str = "",
    has_responses: bool = True,
) -> StopReason | None:
    """Returns the reason not to start a block; None if the block starts.

    Args:
        block: number of the block, from 1.
        spent_s: duration of the trials so far.
        block_s: estimated duration of a block, from these trials or from the plan.
        trials_in_block: whether the block started before an interruption; such a block runs in any case.
        extra_blocks: number of blocks that a viewer requested in addition to the study's blocks.
        unmeasured: label of a stack without a valid trial so far; empty without such a stack.
        has_responses: whether a request was answered so far.
    """
    if trials_in_block or block == 1:
        return None
    done = block - 1
    blocks = f"{done} block{'s' if done > 1 else ''}"
    if method.last_block is None and not has_responses:
        return StopReason("no_valid_trial", done, f"no request was answered in {blocks}")
    if unmeasured and method.last_block is None and done >= _FUTILE_BLOCKS:
        return StopReason("no_valid_trial", done, f"{blocks} have no valid trial of {unmeasured}")
    # The number includes blocks that viewers requested before an interruption of the run.
    added = max(0, done - method.last_block) if method.last_block is not None else 0
    if method.width is not None and done >= method.blocks and is_narrow(precisions, method.width):
        widest = max(precision.half_width or 0.0 for precision in precisions)
        why = f"after {blocks} every interval is within ±{method.width:.1%} (the widest is ±{widest:.1%})"
        return StopReason("width", done, why, added)
    wide = "" if method.width is None else f"; {describe_wide_intervals(precisions, method.width)}"
    if method.last_block is not None and block > method.last_block + extra_blocks:
        more = f", and {added} more that you asked for" if added else ""
        if method.width is None:
            asked = f"{blocks}: {method.last_block} as asked{more}" if added else f"{blocks}, as asked"
            return StopReason("blocks", done, asked, added)
        return StopReason("most_blocks", done, f"{blocks}, the most that the study allows{more}{wide}", added)
    if method.budget_s is not None and spent_s + block_s > method.budget_s:
        spent, budget, next_one = map(format_duration, (spent_s, method.budget_s, block_s))
        why = f"{blocks} took {spent} of the budget of {budget}, and another block takes about {next_one}{wide}"
        return StopReason("budget", done, why, added)
    return None


def is_narrow(precisions: "Sequence[Precision]", width: float) -> bool:
    """Returns whether the half width of every interval is at most `width`; False without intervals."""
    return bool(precisions) and all(one.half_width is not None and one.half_width <= width for one in precisions)


def describe_wide_intervals(precisions: "Sequence[Precision]", width: float) -> str:
    """Describes the widest interval, the blocks until it is narrow, and the number of other wide intervals."""
    missing = [one for one in precisions if one.half_width is None or one.half_width > width]
    if not missing:
        return "every interval is narrow enough" if precisions else "there is nothing to compare"
    worst = max(missing, key=lambda one: float("inf") if one.half_width is None else one.half_width)
    known = None if worst.half_width is None else f"is known to ±{worst.half_width:.1%}, expected ±{width:.1%}"
    text = f"{worst.name} {known or 'has no interval yet'}"
    if worst.blocks_needed is not None:
        text += f" (after about {worst.blocks_needed} blocks)"
    others = len(missing) - 1
    return text + (f"; {others} more interval{' is' if others == 1 else 's are'} too wide" if others else "")
