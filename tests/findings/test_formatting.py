"""Tests numbers and names as sentences print them."""

from collections.abc import Sequence

import pytest

from weir.findings.formatting import counted, listed, ratio_text, signed_percent, significant, trial_numbers


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        ((4.07, 3.62, 4.71), ("4.1", "3.6–4.7")),
        ((4.07, 3.1, 5.5), ("4.1", "3.1–5.5")),
        ((1.012, 0.93, 1.10), ("1.01", "0.93–1.10")),
        ((4.007, 3.95, 4.06), ("4.01", "3.95–4.06")),
        ((12.4, 8.0, 19.0), ("12", "8–19")),
        ((4.07, None, None), ("4.1", "")),
    ],
)
def test_a_ratio_has_the_digits_that_its_interval_supports(
    ratio: tuple[float, float | None, float | None], text: tuple[str, str]
) -> None:
    assert ratio_text(*ratio) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234567, "1,230,000"), (12.345, "12.3"), (0.0012345, "0.00123"), (999.9, "1,000"), (-3.14159, "-3.14")],
)
def test_three_significant_digits_without_exponents(value: float, text: str) -> None:
    assert significant(value) == text


def test_percentages_carry_a_sign_unless_they_round_to_nothing() -> None:
    assert [signed_percent(share) for share in (0.39, -0.16, 0.001, -0.001)] == ["+39 %", "−16 %", "0 %", "0 %"]


def test_things_are_counted_and_listed_as_people_do() -> None:
    assert [counted(1, "trial"), counted(3, "trial")] == ["1 trial", "3 trials"]
    assert [listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([], ""),
        ([7], "7"),
        ([3, 1, 2, 2, 9, 12, 13], "1–3, 9, 12–13"),
        (range(1, 1000), "1–999"),
        ([*range(2, 22, 2), *range(100, 1280)], "2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and 1,180 more"),
    ],
)
def test_numbers_of_trials_are_at_most_ten_ranges(ids: Sequence[int], text: str) -> None:
    assert trial_numbers(ids) == text
