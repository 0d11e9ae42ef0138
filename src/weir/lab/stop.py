"""When a run has enough blocks: on the width of its intervals or on the time they take, never on a p-value. Pure.

Stopping as soon as p falls below 0.05 finds a difference between identical systems sooner or later; how wide an interval is says nothing
about where it lies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from weir.model.stop import Stop
from weir.study.forecast import span_text
from weir.study.method import Method


@dataclass(frozen=True, slots=True)
class Precision:
    """How well the ratio of one main comparison is known so far."""

    name: str
    """'Sanic ÷ Flask', with the point where there are several."""
    half_width: float | None
    """To either side, as a share; None where there is no interval yet."""
    blocks_needed: int | None
    """How many blocks altogether bring it to the width asked for, by its spread so far."""


def stop_before(
    block: int,
    method: Method,
    *,
    precisions: Sequence[Precision],
    spent_s: float,
    block_s: float,
    trials_in_block: bool,
    asked_for: int = 0,
) -> Stop | None:
    """Why a block does not begin; None where it does.

    Args:
        block: which one, from 1.
        method: what the study asks for.
        precisions: of all main comparisons, from the blocks before it.
        spent_s: what the trials so far took.
        block_s: what a block takes, by those trials or by the plan.
        trials_in_block: it was begun before an interruption, and is finished in any case.
        asked_for: how many blocks somebody who looks on wants on top of the study's.
    """
    if trials_in_block or block == 1:
        return None
    done = block - 1
    blocks = f"{done} block{'s' if done > 1 else ''}"
    # Also of a run that is resumed, which was asked for them before.
    added = max(0, done - method.last_block) if method.last_block is not None else 0
    if method.width is not None and done >= method.blocks and is_narrow(precisions, method.width):
        widest = max(precision.half_width or 0.0 for precision in precisions)
        return Stop("width", done, f"after {blocks} every interval is within ±{method.width:.1%} (the widest is ±{widest:.1%})", added)
    if method.last_block is not None and block > method.last_block + asked_for:
        more = f", and {added} more by request" if added else ""
        if method.width is None:
            asked = f"{blocks}: {method.last_block} as asked{more}" if added else f"{blocks}, as asked"
            return Stop("blocks", done, asked, added)
        return Stop("most_blocks", done, f"{blocks}, the most that the study allows{more}; {wide(precisions, method.width)}", added)
    if method.budget_s is not None and spent_s + block_s > method.budget_s:
        budget = span_text(method.budget_s)
        left = f"{blocks} took {span_text(spent_s)} of the budget of {budget}, and another takes about {span_text(block_s)}"
        return Stop("budget", done, left if method.width is None else f"{left}; {wide(precisions, method.width)}", added)
    return None


def is_narrow(precisions: Sequence[Precision], width: float) -> bool:
    """Whether every interval is narrow enough; there must be one."""
    return bool(precisions) and all(one.half_width is not None and one.half_width <= width for one in precisions)


def wide(precisions: Sequence[Precision], width: float) -> str:
    """Which intervals are not narrow enough, the widest first, and how many blocks they need."""
    missing = [one for one in precisions if one.half_width is None or one.half_width > width]
    if not missing:
        return "every interval is narrow enough" if precisions else "there is nothing to compare"
    worst = max(missing, key=lambda one: float("inf") if one.half_width is None else one.half_width)
    known = "has no interval yet" if worst.half_width is None else f"is known to ±{worst.half_width:.1%} of ±{width:.1%}"
    needed = "" if worst.blocks_needed is None else f", which takes about {worst.blocks_needed} blocks"
    others = len(missing) - 1
    return f"{worst.name} {known}{needed}" + (f", and {others} more {'is' if others == 1 else 'are'} too wide" if others else "")
