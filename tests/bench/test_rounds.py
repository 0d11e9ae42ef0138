"""Generators that take turns."""

from collections.abc import Callable

import pytest

from bench.machine import BenchError
from bench.rounds import alternate


def recorder(turns: list[str], name: str) -> Callable[[], int]:
    def turn() -> int:
        turns.append(name)
        return len(turns)

    return turn


def failing(times: list[bool]) -> Callable[[], int]:
    def turn() -> int:
        if times.pop(0):
            raise BenchError("it broke")
        return 1

    return turn


def test_everybody_has_a_turn_in_every_round_and_comes_first_in_one() -> None:
    turns: list[str] = []
    names = ["a", "b", "c"]
    measured = alternate({name: recorder(turns, name) for name in names}, 6, [], [], "")
    rounds = [turns[index : index + 3] for index in range(0, 18, 3)]
    assert all(sorted(order) == names for order in rounds)
    assert {order[0] for order in rounds} == set(names)
    assert all(len(values) == 6 for values in measured.values())


def test_one_that_fails_twice_is_left_out_of_all_rounds_and_the_others_go_on() -> None:
    notes: list[str] = []
    measured = alternate({"weir": lambda: 1, "peer": failing([False, True, True])}, 3, ["weir"], notes, "a job")
    assert measured == {"weir": [1, 1, 1]}
    assert notes == [
        "peer, a job: a second try in round 2, after: it broke",
        "peer, a job: left out, in round 2: it broke",
    ]


def test_one_that_fails_once_is_noted_and_stays() -> None:
    notes: list[str] = []
    assert alternate({"peer": failing([True, False, False])}, 2, [], notes, "a job") == {"peer": [1, 1]}
    assert len(notes) == 1


def test_one_that_is_required_ends_the_measurement() -> None:
    with pytest.raises(BenchError, match="weir, a job: it broke"):
        alternate({"weir": failing([True, True])}, 1, ["weir"], [], "a job")


@pytest.mark.parametrize("error", [ValueError("no JSON"), KeyError("rate"), OSError("gone")])
def test_output_that_makes_no_sense_is_a_failure_of_its_generator(error: Exception) -> None:
    def nonsense() -> int:
        raise error

    notes: list[str] = []
    assert alternate({"weir": lambda: 1, "peer": nonsense}, 1, ["weir"], notes, "a job") == {"weir": [1]}
    assert type(error).__name__ in notes[-1]


def test_an_interrupt_ends_the_measurement() -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alternate({"peer": interrupted}, 1, [], [], "a job")
