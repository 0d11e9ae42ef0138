"""Tests generators that take turns."""

from collections.abc import Callable

import pytest

from bench.machine import BenchError, OtherLoad, Taken
from bench.rounds import alternate


class Watched(OtherLoad):
    """Other processes that take a given fraction of the CPUs."""

    def __init__(self, fraction: float) -> None:
        self._fraction = fraction

    def taken(self) -> Taken:
        return Taken(self._fraction, 1.0)


def quiet() -> Watched:
    return Watched(0.0)


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
    measured = alternate({name: recorder(turns, name) for name in names}, 6, [], [], "", [], quiet)
    rounds = [turns[index : index + 3] for index in range(0, 18, 3)]
    assert all(sorted(order) == names for order in rounds)
    assert {order[0] for order in rounds} == set(names)
    assert all(len(values) == 6 for values in measured.values())


def test_one_that_fails_twice_is_left_out_of_all_rounds_and_the_others_go_on() -> None:
    notes: list[str] = []
    measured = alternate(
        {"weir": lambda: 1, "peer": failing([False, True, True])}, 3, ["weir"], notes, "a job", [], quiet
    )
    assert measured == {"weir": [1, 1, 1]}
    assert notes == [
        "peer, a job: a second try in round 2, after: it broke",
        "peer, a job: left out, in round 2: it broke",
    ]


def test_one_that_fails_once_is_noted_and_stays() -> None:
    notes: list[str] = []
    assert alternate({"peer": failing([True, False, False])}, 2, [], notes, "a job", [], quiet) == {"peer": [1, 1]}
    assert len(notes) == 1


def test_one_that_is_required_ends_the_measurement() -> None:
    with pytest.raises(BenchError, match="weir, a job: it broke"):
        alternate({"weir": failing([True, True])}, 1, ["weir"], [], "a job", [], quiet)


@pytest.mark.parametrize("error", [ValueError("no JSON"), KeyError("rate"), OSError("gone")])
def test_output_that_makes_no_sense_is_a_failure_of_its_generator(error: Exception) -> None:
    def nonsense() -> int:
        raise error

    notes: list[str] = []
    assert alternate({"weir": lambda: 1, "peer": nonsense}, 1, ["weir"], notes, "a job", [], quiet) == {"weir": [1]}
    assert type(error).__name__ in notes[-1]


def test_an_interrupt_ends_the_measurement() -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alternate({"peer": interrupted}, 1, [], [], "a job", [], quiet)


def test_a_round_that_others_disturbed_is_set_aside_for_all_and_done_again() -> None:
    fractions = [0.0, 0.2, 0.01, 0.04, 0.0]
    notes: list[str] = []
    taken: list[Taken] = []
    turns: list[str] = []
    generators = {"a": recorder(turns, "a"), "b": recorder(turns, "b")}
    measured = alternate(generators, 3, [], notes, "a job", taken, lambda: Watched(fractions.pop(0)))
    assert [len(values) for values in measured.values()] == [3, 3]
    assert sorted([*measured["a"], *measured["b"]]) == [1, 2, 5, 6, 9, 10]
    assert sum(taken, Taken()) == Taken(0.01, 3.0)
    assert notes == ["a job: 2 of 5 rounds set aside and done again, in which others took 4.0% to 20.0% of the CPUs"]


def test_rounds_on_a_machine_that_is_never_quiet_count_in_the_end() -> None:
    taken: list[Taken] = []
    measured = alternate({"a": recorder([], "a")}, 2, [], [], "a job", taken, lambda: Watched(0.5))
    assert measured == {"a": [3, 4]}
    assert sum(taken, Taken()).fraction == 0.5
