"""Tests the comparison of both sides' answers."""

import pytest

from tests.support.records import interval
from weir.lab.answer_comparison import SideAnswer, Throughput, find_difference


def answer(body: bytes, status: int = 200, *, title: str = "a", is_constant: bool = True) -> SideAnswer:
    return SideAnswer(title, status, body, is_constant)


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"ok", b"ok"), (b'{"a": 1, "b": [2]}', b'{"b":[2],"a":1}')],
    ids=["the same body", "the same JSON"],
)
def test_the_same_answers_do_not_differ(first: bytes, second: bytes) -> None:
    assert find_difference([answer(first), answer(second)]) is None


@pytest.mark.parametrize(
    ("second", "part"),
    [
        (answer(b"no", title="b"), "a responds with 'ok', b with 'no'"),
        (answer(b"ok", 500, title="b"), "b responds with 500 'ok'"),
    ],
    ids=["body", "status"],
)
def test_a_difference_is_told_with_both_answers(second: SideAnswer, part: str) -> None:
    assert part in (find_difference([answer(b"ok"), second]) or "")


def test_a_side_whose_own_answers_differ_is_compared_by_its_status_alone() -> None:
    assert find_difference([answer(b"10:00:01", is_constant=False), answer(b"10:00:02")]) is None
    assert find_difference([answer(b"a", is_constant=False), answer(b"b", 404)]) is not None


def test_a_long_body_is_cut_in_the_message() -> None:
    found = find_difference([answer(b"x" * 500), answer(b"y" * 500)])
    assert found is not None
    assert "(500 bytes)" in found
    assert len(found) < 300


@pytest.mark.parametrize(
    ("completed", "expected"),
    [([100] * 9, 8), ([10, 20, 30, 40, 50, 60, 70, 80, *[90] * 9], 15), ([100] * 4 + [60] * 5, 8)],
    ids=["steady at once", "after a rise", "slower by noise"],
)
def test_a_server_is_warm_when_its_throughput_rises_no_more(completed: list[int], expected: int) -> None:
    steady_after: list[int] = []
    throughput = Throughput(lambda: steady_after.append(len(throughput.completed)))
    for number, count in enumerate(completed):
        throughput.on_interval(interval(number, [1.0] * count))
    assert steady_after[0] == expected
