"""Tests numbers, times and the percentile spectrum of wrk and wrk2 at each limit of their rules."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.load_summary import load_end
from weir.compat.latencies import list_spectrum, sort_counts
from weir.compat.wrk_report import align, format_bytes, format_count, format_length, format_spectra, format_time

TEN = sort_counts(dict.fromkeys(range(1, 11), 1))


@pytest.mark.parametrize(
    ("form", "value", "printed"),
    [
        (format_time, 0, "0.00us"),
        (format_time, 849.999, "850.00us"),
        (format_time, 850, "0.85ms"),
        (format_time, 999_999.99, "1000.00ms"),
        (format_time, 1_000_000, "1.00s"),
        (format_time, 50_990_000, "50.99s"),
        (format_time, 51_000_000, "0.85m"),
        (format_time, 7_200_000_000, "120.00m"),
        (format_length, 50, "50s"),
        (format_length, 51, "1m"),
        (format_length, 90, "2m"),
        (format_length, 86_400, "1440m"),
        (format_count, 849.99, "849.99"),
        (format_count, 850, "0.85k"),
        (format_count, 850_000, "0.85M"),
        (format_count, 1e18, "1000000.00T"),
        (format_bytes, 870, "870.00B"),
        (format_bytes, 870.4, "0.85KB"),
        (format_bytes, 19_069_654_630, "17.76GB"),
        (format_bytes, 1024**5, "1024.00TB"),
    ],
)
def test_a_value_goes_up_a_unit_at_85_hundredths_of_the_next_and_never_to_the_last(
    form: Callable[[float], str], value: float, printed: str
) -> None:
    assert form(value) == printed


@pytest.mark.parametrize(
    ("text", "width", "cell"),
    [
        ("635.91us", 8, "635.91us"),
        ("3.00s", 8, "  3.00s "),
        ("1000.00ms", 8, "1000.00m"),
        ("849.00", 8, "849.00  "),
        ("0.85k", 8, "  0.85k "),
    ],
)
def test_digits_stand_below_digits_and_what_is_too_long_is_cut(text: str, width: int, cell: str) -> None:
    assert align(text, width) == cell


def test_steps_halve_with_what_is_left_and_a_value_that_reaches_several_has_a_line_for_each() -> None:
    lines = [(value, round(share, 6), seen) for value, share, seen in list_spectrum(TEN)]
    assert [share for _, share, _ in lines] == [
        0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.775, 0.8, 0.825, 0.85, 0.875, 0.8875, 0.9, 0.9125, 1.0,
    ]  # fmt: skip
    assert lines[:3] == [(1, 0.0, 1), (1, 0.1, 1), (2, 0.2, 2)]
    assert lines[-3:] == [(9, 0.9, 9), (10, 0.9125, 10), (10, 1.0, 10)]


@pytest.mark.parametrize(("counts", "lines"), [({7: 3}, [(7, 0.0, 3), (7, 1.0, 3)]), ({}, [(0, 1.0, 0)])])
def test_the_highest_value_has_one_line_besides_the_last(
    counts: dict[int, int], lines: list[tuple[int, float, int]]
) -> None:
    assert list(list_spectrum(sort_counts(counts))) == lines


@given(st.dictionaries(st.integers(1, 10**9), st.integers(1, 1000), min_size=1, max_size=50))
def test_shares_and_counts_rise_to_the_whole(counts: dict[int, int]) -> None:
    lines = list(list_spectrum(sort_counts(Counter(counts))))
    assert lines == sorted(lines)
    assert lines[-1] == (max(counts), 1.0, sum(counts.values()))
    assert all(seen >= share * sum(counts.values()) - 1e-6 for _, share, seen in lines)


def test_the_block_is_laid_out_as_wrk2_lays_it_out() -> None:
    assert format_spectra(load_end({"response_time": [1_000_000] * 4}), has_latency=True, has_uncorrected=False) == (
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n"
        " 50.000%    1.00ms\n"
        " 75.000%    1.00ms\n"
        " 90.000%    1.00ms\n"
        " 99.000%    1.00ms\n"
        " 99.900%    1.00ms\n"
        " 99.990%    1.00ms\n"
        " 99.999%    1.00ms\n"
        "100.000%    1.00ms\n"
        "\n"
        "  Detailed Percentile spectrum:\n"
        "       Value   Percentile   TotalCount 1/(1-Percentile)\n"
        "\n"
        "       1.000     0.000000            4         1.00\n"
        "       1.000     1.000000            4          inf\n"
        "#[Mean    =        1.000, StdDeviation   =        0.000]\n"
        "#[Max     =        1.000, Total count    =            4]\n"
        "#[Buckets =           32, SubBuckets     =         2048]\n"
        "----------------------------------------------------------\n"
    )
