"""The percentile spectrum, held against HdrHistogram's own arithmetic on tables small enough to check by hand."""

from base64 import b64encode

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from weir.compat.percentile_spectrum import latency_block, spectrum, value_at
from weir.model.histogram import HIGHEST_NS, raw_bytes
from weir.model.records import Quantiles

TEN = dict.fromkeys(range(1, 11), 1)


def test_steps_halve_with_what_is_left_and_a_value_that_reaches_several_has_a_line_for_each() -> None:
    assert [(value, round(share, 6), seen) for value, share, seen in spectrum(TEN)] == [
        (1, 0.0, 1),
        (1, 0.1, 1),
        (2, 0.2, 2),
        (3, 0.3, 3),
        (4, 0.4, 4),
        (5, 0.5, 5),
        (6, 0.55, 6),
        (6, 0.6, 6),
        (7, 0.65, 7),
        (7, 0.7, 7),
        (8, 0.75, 8),
        (8, 0.775, 8),
        (8, 0.8, 8),
        (9, 0.825, 9),
        (9, 0.85, 9),
        (9, 0.875, 9),
        (9, 0.8875, 9),
        (9, 0.9, 9),
        (10, 0.9125, 10),
        (10, 1.0, 10),
    ]


def test_the_highest_value_has_one_line_besides_the_last() -> None:
    assert list(spectrum({7: 3})) == [(7, 0.0, 3), (7, 1.0, 3)]


def test_nothing_is_one_line() -> None:
    assert list(spectrum({})) == [(0, 1.0, 0)]


@given(st.dictionaries(st.integers(1, 10**9), st.integers(1, 1000), min_size=1, max_size=50))
def test_shares_and_counts_rise_to_the_whole(counts: dict[int, int]) -> None:
    ordered = dict(sorted(counts.items()))
    lines = list(spectrum(ordered))
    assert lines == sorted(lines)
    assert lines[-1] == (max(counts), 1.0, sum(counts.values()))
    assert all(seen >= share * sum(counts.values()) - 1e-6 for _, share, seen in lines)


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (10, 1), (50, 5), (75, 8), (99, 10), (100, 10)])
def test_a_percentile_is_the_value_that_so_many_do_not_exceed(percent: float, value: int) -> None:
    assert value_at(TEN, percent) == value


def test_a_percentile_of_nothing_is_0() -> None:
    assert value_at({}, 50) == 0


def test_the_block_is_laid_out_as_wrk2_lays_it_out() -> None:
    histogram = HdrHistogram(1, HIGHEST_NS, 3)
    for _ in range(4):
        histogram.record_value(1_000_000)
    encoded = b64encode(raw_bytes(histogram)).decode()
    assert latency_block("Recorded Latency", encoded, Quantiles(mean=1000.0, stdev=0.0, max=1000.0)) == (
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
