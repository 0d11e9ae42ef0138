"""Numbers and times as wrk prints and reads them, at each boundary of its rules."""

import doctest

import pytest

from weir.compat import wrk_units
from weir.compat.wrk_units import aligned, binary, metric, microseconds, number, seconds, whole_seconds


@pytest.mark.parametrize(
    ("value_us", "printed"),
    [
        (0, "0.00us"),
        (0.004, "0.00us"),
        (635.91, "635.91us"),
        (849.99, "849.99us"),
        (849.999, "850.00us"),
        (850, "0.85ms"),
        (999.9, "1.00ms"),
        (1_000, "1.00ms"),
        (849_999, "850.00ms"),
        (850_000, "850.00ms"),
        (999_999.99, "1000.00ms"),
        (1_000_000, "1.00s"),
        (50_990_000, "50.99s"),
        (51_000_000, "0.85m"),
        (59_990_000, "1.00m"),
        (60_000_000, "1.00m"),
        (3_060_000_000, "51.00m"),
        (7_200_000_000, "120.00m"),
    ],
)
def test_a_time_goes_up_a_unit_at_85_hundredths_of_the_next_and_never_to_hours(value_us: float, printed: str) -> None:
    assert microseconds(value_us) == printed


@pytest.mark.parametrize(
    ("value_s", "printed"),
    [
        (1, "1s"),
        (30, "30s"),
        (50, "50s"),
        (51, "1m"),
        (60, "1m"),
        (89, "1m"),
        (90, "2m"),
        (150, "2m"),
        (210, "4m"),
        (3_600, "60m"),
        (86_400, "1440m"),
    ],
)
def test_the_length_of_a_run_has_no_decimals(value_s: int, printed: str) -> None:
    assert whole_seconds(value_s) == printed


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0, "0.00"),
        (849.99, "849.99"),
        (850, "0.85k"),
        (849_999, "850.00k"),
        (850_000, "0.85M"),
        (850_000_000, "0.85G"),
        (850_000_000_000, "0.85T"),
        (1e15, "1000.00T"),
        (1e18, "1000000.00T"),
    ],
)
def test_a_number_goes_up_by_thousands_and_never_to_the_last_unit(value: float, printed: str) -> None:
    assert metric(value) == printed


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0, "0.00"),
        (870, "870.00"),
        (870.4, "0.85K"),
        (871, "0.85K"),
        (1_024, "1.00K"),
        (891_289, "870.40K"),
        (891_290, "0.85M"),
        (19_069_654_630, "17.76G"),
        (1024**5, "1024.00T"),
    ],
)
def test_bytes_go_up_by_1024(value: float, printed: str) -> None:
    assert binary(value) == printed


@pytest.mark.parametrize(
    ("value", "width", "cell"),
    [
        (635.91, 8, "635.91us"),
        (3_000_000, 8, "  3.00s "),
        (0, 10, "    0.00us"),
        (123_456.7, 9, " 123.46ms"),
        (999_999.99, 8, "1000.00m"),
    ],
)
def test_digits_of_times_stand_below_digits_and_what_is_too_long_is_cut(value: float, width: int, cell: str) -> None:
    assert aligned(value, microseconds, width) == cell


def test_a_number_without_a_unit_leaves_room_for_one() -> None:
    assert (aligned(849, metric, 8), aligned(850, metric, 8)) == ("849.00  ", "  0.85k ")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("400", 400), ("1k", 1_000), ("1K", 1_000), ("1m", 1_000_000), ("2G", 2 * 10**9), ("1t", 10**12), ("1P", 10**15),
        (" 5", 5), ("+5", 5), ("5 ", 5),
        ("5 k", 5_000), ("5k later", 5_000), ("007", 7), ("0", 0), ("99999999999999999999", 2**64 - 1),
        ("", None), ("k", None), ("1.5k", None), ("abc", None), ("10kk", None), ("5s", None), ("5x", None), ("1e3", None), ("-5", None),
    ],
)  # fmt: skip
def test_a_number_is_whole_and_may_have_a_unit_in_either_case(text: str, value: int | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30", 30), ("30s", 30), ("30S", 30), ("2m", 120), ("2M", 120), ("1h", 3_600), ("1 h", 3_600), ("0s", 0),
        ("500ms", None), ("1.5s", None), ("1d", None), ("10sec", None), ("10us", None), ("s", None),
    ],
)  # fmt: skip
def test_a_time_is_whole_seconds_minutes_or_hours(text: str, value: int | None) -> None:
    assert seconds(text) == value


def test_the_examples_hold() -> None:
    assert doctest.testmod(wrk_units).failed == 0
