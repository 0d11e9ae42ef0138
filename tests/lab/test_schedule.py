"""Tests the order of trials. Cells are represented by their ids, which is all that the schedule reads."""

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast

from weir.lab.schedule import CompletedTrials, schedule
from weir.study.block_order import HeadStart
from weir.study.study import PlannedCell

CELLS = cast(list[PlannedCell], [SimpleNamespace(cell=SimpleNamespace(id=number)) for number in (1, 2, 3)])


def played(
    blocks: int,
    *,
    rejected: Collection[tuple[int, int]] = (),
    retries: int = 2,
    done: CompletedTrials | None = None,
    **more: Any,
) -> list[tuple[int, int]]:
    """Returns block and cell of every trial in their order. Trials of `rejected` (block, cell) are always rejected."""
    done = done or CompletedTrials()
    order = []
    for block, _, planned in schedule(CELLS, lambda block: block <= blocks, 1, retries, done, **more):
        order.append((block, planned.cell.id))
        done.note(planned.cell.id, block, "invalid" if (block, planned.cell.id) in rejected else "valid")
    return order


def test_a_block_has_every_cell_once_and_blocks_have_orders_of_their_own() -> None:
    order = played(6)
    by_block = [[cell for of, cell in order if of == block] for block in range(1, 7)]
    assert all(sorted(cells) == [1, 2, 3] for cells in by_block)
    assert len({tuple(cells) for cells in by_block}) > 1


def test_the_order_of_a_block_does_not_depend_on_how_many_there_are() -> None:
    assert played(6)[:9] == played(3)


def test_what_was_rejected_comes_again_at_the_end_of_a_later_block() -> None:
    order = played(3, rejected={(1, 2)}, retries=1)
    assert order.count((1, 2)) == 2
    assert order[6] == (1, 2), "after block 2"


def test_what_is_rejected_in_the_last_block_is_tried_again_behind_it_and_not_forever() -> None:
    order = played(1, rejected={(1, 2)}, retries=2)
    assert order[3:] == [(1, 2), (1, 2)]


def test_behind_the_last_block_nothing_is_tried_again_without_time() -> None:
    assert len(played(1, rejected={(1, 2)}, should_retry=lambda: False)) == 3


def test_a_run_that_goes_on_does_what_is_missing() -> None:
    whole = played(2)
    done = CompletedTrials()
    for block, cell in whole[:4]:
        done.note(cell, block, "valid")
    assert played(2, done=done) == whole[4:]
    assert done.has_block(2)
    assert not done.has_block(3)


HEAD_START = HeadStart(frozenset({1, 2}), blocks=2)


def test_short_trials_of_the_first_blocks_run_before_all_long_ones_and_later_blocks_are_drawn_whole() -> None:
    order = played(40, head_start=HEAD_START)
    assert [block for block, _ in order[:6]] == [1, 1, 2, 2, 1, 2]
    assert [sorted(cell for of, cell in order[:4] if of == block) for block in (1, 2)] == [[1, 2], [1, 2]]
    assert [cell for _, cell in order[4:6]] == [3, 3]
    by_block = [[cell for of, cell in order if of == block] for block in range(3, 41)]
    assert {cells.index(3) for cells in by_block} == {0, 1, 2}


def test_the_order_of_short_trials_is_drawn() -> None:
    firsts = {
        next(schedule(CELLS, lambda block: block <= 2, seed, 0, CompletedTrials(), head_start=HEAD_START))[2].cell.id
        for seed in range(20)
    }
    assert firsts == {1, 2}


def test_a_run_that_ends_after_the_head_start_has_no_long_trial_and_goes_on_with_them_later() -> None:
    asked = []

    def should_continue(blocks: int, measured: Sequence[PlannedCell]) -> bool:
        asked.append((blocks, [planned.cell.id for planned in measured]))
        return False

    done = CompletedTrials()
    first = played(3, head_start=HEAD_START, done=done, should_continue=should_continue)
    assert (asked, len(first), {cell for _, cell in first}) == ([(2, [1, 2])], 4, {1, 2})
    rest = played(3, head_start=HEAD_START, done=done)
    assert first + rest == played(3, head_start=HEAD_START)


def test_a_short_trial_that_was_rejected_is_tried_again_before_the_first_answer() -> None:
    before: list[tuple[int, int]] = []
    done = CompletedTrials()
    for block, _, planned in schedule(
        CELLS, lambda block: block <= 2, 1, 2, done, head_start=HEAD_START, should_continue=lambda *_: False
    ):  # fmt: skip
        is_first_try = (block, planned.cell.id) not in before
        before.append((block, planned.cell.id))
        done.note(planned.cell.id, block, "invalid" if is_first_try and (block, planned.cell.id) == (2, 1) else "valid")
    assert before.count((2, 1)) == 2
    assert (2, 1) in done.accepted
