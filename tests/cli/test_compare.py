"""The choices of `weir compare` that the command line leaves open."""

import pytest

from weir.cli.compare import choose_duration
from weir.cli.fail_condition import read_condition
from weir.lab.answer_comparison import SideAnswer, SideCheck


@pytest.mark.parametrize(
    ("rates_rps", "conditions", "requests", "expected_s"),
    [
        ((9_000.0, 5_000.0), (), None, 1.5),
        ((9_000.0, 50.0), (), None, 8.0),
        ((9_000.0, 2.0), (), None, 15.0),
        ((0.0, 2.0), (), None, 15.0),
        ((9_000.0, 3_000.0), ("throughput<0.9",), None, 1.5),
        ((9_000.0, 3_000.0), ("throughput<0.9", "p99>1.1"), None, 5.0),
        ((9_000.0, 100.0), (), 2_000, 40.0),
    ],
)
def test_the_slowest_side_has_time_for_enough_requests(
    rates_rps: tuple[float, ...], conditions: tuple[str, ...], requests: int | None, expected_s: float
) -> None:
    answer = SideAnswer("a", 200, b"", is_constant=True)
    checks = {str(rate_rps): SideCheck(answer, None, 1.0, rate_rps, ()) for rate_rps in rates_rps}
    assert choose_duration(checks, [read_condition(text) for text in conditions], requests) == expected_s


@pytest.mark.parametrize(("warmups_s", "expected_s"), [((1.2, 1.2), 1.5), ((2.2, 1.5), 1.3), ((3.0, 3.0), 1.0)])
def test_long_warm_ups_make_the_loads_shorter_so_that_the_first_interval_is_not_late(
    warmups_s: tuple[float, ...], expected_s: float
) -> None:
    answer = SideAnswer("a", 200, b"", is_constant=True)
    checks = {str(number): SideCheck(answer, None, s, 5_000.0, ()) for number, s in enumerate(warmups_s)}
    assert choose_duration(checks, [], None) == expected_s
