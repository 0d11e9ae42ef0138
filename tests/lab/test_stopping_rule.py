"""Tests when a run has enough blocks."""

from typing import Any

from weir.findings.precision import Precision
from weir.lab.stopping_rule import describe_wide_intervals, find_stop_reason
from weir.model.run_types import StopReason
from weir.study.file import Method


def method(**keys: Any) -> Method:
    return Method.model_validate({"blocks": 4, "baseline": "one", **keys})


def asked(
    block: int, of: Method, *widths: float | None, spent_s: float = 0.0, begun: bool = False, more: int = 0
) -> StopReason | None:
    precisions = [Precision(f"{index} ÷ one", width, 9 if width else None) for index, width in enumerate(widths)]
    return find_stop_reason(
        block, of, precisions=precisions, spent_s=spent_s, block_s=60.0, trials_in_block=begun, extra_blocks=more
    )


def test_without_a_rule_a_run_has_the_blocks_that_were_asked_for() -> None:
    assert asked(4, method()) is None
    stop = asked(5, method())
    assert stop is not None
    assert (stop.rule, stop.blocks) == ("blocks", 4)


def test_a_run_ends_on_width_after_the_least_number_of_blocks_when_every_interval_is_narrow_enough() -> None:
    narrow = method(width=0.05, most_blocks=20)
    assert asked(4, narrow, 0.01, 0.01) is None
    assert asked(5, narrow, 0.01, 0.051) is None
    assert asked(5, narrow, 0.01, None) is None
    assert asked(5, narrow) is None, "no comparison is no narrow one"
    stop = asked(5, narrow, 0.01, 0.05)
    assert stop is not None
    assert (stop.rule, stop.blocks) == ("width", 4)
    assert "the widest is ±5.0%" in stop.text


def test_a_run_that_stays_wide_ends_at_its_most_blocks_and_says_what_is_missing() -> None:
    stop = asked(7, method(width=0.05, most_blocks=6), 0.01, 0.2)
    assert stop is not None
    assert (stop.rule, stop.blocks) == ("most_blocks", 6)
    assert "1 ÷ one is known to ±20.0%, expected ±5.0% (after about 9 blocks)" in stop.text


def test_a_run_ends_before_the_block_that_its_budget_does_not_allow_whatever_else_is_asked() -> None:
    budget = method(width=0.05, budget_s=300)
    assert asked(2, budget, 0.2, spent_s=240) is None
    stop = asked(2, budget, 0.2, spent_s=241)
    assert stop is not None
    assert (stop.rule, stop.blocks) == ("budget", 1)
    assert asked(2, budget, 0.2, spent_s=1000, begun=True) is None, "a block that was begun is finished"


def test_blocks_that_somebody_asks_for_come_on_top_and_are_told_from_those_of_the_study() -> None:
    assert asked(5, method(), more=2) is None
    assert asked(6, method(), more=2) is None
    stop = asked(7, method(), more=2)
    assert stop == StopReason("blocks", 6, "6 blocks: 4 as asked, and 2 more that you asked for", added=2)
    # A resumed run already has the extra blocks.
    assert asked(6, method(), begun=True) is None
    assert asked(7, method()) == stop
    most = asked(8, method(width=0.05, most_blocks=6), 0.2, more=1)
    assert most is not None
    assert (most.rule, most.added) == ("most_blocks", 1)
    assert "the most that the study allows, and 1 more that you asked for;" in most.text
    narrow = asked(8, method(width=0.05, most_blocks=6), 0.01, more=2)
    assert narrow is not None
    assert (narrow.rule, narrow.added) == ("width", 1)
    assert asked(6, method(budget_s=300), more=2, spent_s=250) == StopReason(
        "budget", 5, "5 blocks took 4 min of the budget of 5 min, and another block takes about 60 s", added=1
    )
    assert StopReason(rule="blocks", blocks=4, text="4 blocks, as asked").added == 0


def test_the_first_block_always_begins() -> None:
    assert asked(1, method(budget_s=1), spent_s=0) is None


def test_what_is_missing_names_the_widest_and_counts_the_others() -> None:
    text = describe_wide_intervals([Precision("a", 0.1, 12), Precision("b", None, None), Precision("c", 0.01, 2)], 0.05)
    assert text == "b has no interval yet; 1 more interval is too wide"


def test_a_run_without_a_fixed_number_of_blocks_ends_when_a_stack_never_has_a_valid_trial() -> None:
    open_ended = method(width=0.05, budget_s=300)
    for block, of, expected in ((3, open_ended, None), (4, open_ended, "no_valid_trial"), (4, method(), None)):
        stop = find_stop_reason(
            block, of, precisions=[], spent_s=0.0, block_s=1.0, trials_in_block=False, unmeasured="one"
        )
        assert (stop.rule if stop else None) == expected


def test_a_run_without_a_fixed_number_of_blocks_ends_after_the_first_block_if_no_request_was_answered() -> None:
    for of, has_responses, expected in (
        (method(width=0.05, budget_s=300), False, "no_valid_trial"),
        (method(width=0.05, budget_s=300), True, None),
        (method(), False, None),
    ):
        stop = find_stop_reason(
            2,
            of,
            precisions=[],
            spent_s=0.0,
            block_s=1.0,
            trials_in_block=False,
            unmeasured="one",
            has_responses=has_responses,
        )
        assert (stop.rule if stop else None) == expected
