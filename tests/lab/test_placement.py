import pytest

from weir.lab.placement import place
from weir.model.errors import UsageError


def test_with_two_cpus_the_stack_has_its_own_and_control_runs_beside_the_generator() -> None:
    placement = place("auto", "auto", "auto", available=[0, 1])
    assert (placement.load, placement.stack, placement.control) == ((0,), (1,), (0,))
    assert any("control shares the generator's CPU" in said for said in placement.shared)


@pytest.mark.parametrize("count", range(3, 20))
def test_with_more_cpus_all_roles_are_disjoint_and_the_stack_has_at_least_as_many_as_the_generator(count: int) -> None:
    placement = place("auto", "auto", "auto", available=range(count))
    assert len({*placement.load, *placement.stack, *placement.control}) == sum(
        map(len, (placement.load, placement.stack, placement.control))
    )
    assert len(placement.stack) >= len(placement.load) >= 1
    assert placement.control


def test_with_one_cpu_everything_is_shared_and_said() -> None:
    placement = place("auto", "auto", "auto", available=[0])
    assert placement.load == placement.stack == (0,)
    assert any("share a CPU" in said for said in placement.shared)


def test_lists_are_taken_as_they_are_and_counts_filled_from_the_rest() -> None:
    placement = place([3], 2, "auto", available=[0, 1, 2, 3])
    assert (placement.load, placement.stack, placement.control) == ((3,), (1, 2), (0,))


def test_more_cpus_than_there_are_is_an_error_that_counts_them() -> None:
    with pytest.raises(UsageError, match="found load 4, stack 4, 8 CPUs altogether; this machine offers 2"):
        place(4, 4, "auto", available=[0, 1])


def test_a_cpu_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"cpus\.stack: found \[9\], expected some of the CPUs weir may use: \[0, 1\]"):
        place("auto", [9], "auto", available=[0, 1])
