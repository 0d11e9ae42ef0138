"""Histograms read from their bytes say what the package's own reader says."""

import base64
import zlib

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as some

from weir.model.histogram import HIGHEST_NS, counts_in, decode, encoded, highest_at, index_of, raw_bytes, recorded_in
from weir.model.histograms import samples_of
from weir.model.merged import times_of


@given(some.dictionaries(some.integers(1, HIGHEST_NS), some.integers(1, 100_000), max_size=40))
def test_reading_the_bytes_gives_what_the_package_decodes(samples: dict[int, int]) -> None:
    histogram = HdrHistogram(1, HIGHEST_NS, 3)
    for value, count in samples.items():
        histogram.record_value(value, count)
    data = zlib.decompress(base64.b64decode(histogram.encode())[8:])
    counts = {index: count for index, count in enumerate(decode(data).counts) if count}
    assert counts_in(data) == counts
    assert {index: highest_at(index) for index in counts} == {
        index: histogram.get_highest_equivalent_value(histogram.get_value_from_index(index)) for index in counts
    }
    assert sum(recorded_in(data).values()) == sum(samples.values())


@given(some.lists(some.dictionaries(some.integers(1, HIGHEST_NS), some.integers(1, 100_000), max_size=20), max_size=6))
def test_many_histograms_decoded_together_are_those_decoded_one_by_one(tables: list[dict[int, int]]) -> None:
    parts = []
    for samples in tables:
        histogram = HdrHistogram(1, HIGHEST_NS, 3)
        for value, count in samples.items():
            histogram.record_value(value, count)
        parts.append(raw_bytes(histogram))
    found: list[dict[int, int]] = [{} for _ in parts]
    for part, bucket, count in zip(*(column.tolist() for column in samples_of(parts)), strict=True):
        found[part][bucket] = count
    assert found == [counts_in(part) for part in parts]


def test_more_histograms_than_are_decoded_at_a_time_each_keep_what_is_theirs() -> None:
    large = encoded({index: 1 + index % 200 for index in range(0, 20_000, 2)})
    small = [encoded({number: number + 1}) for number in range(400)]
    parts = [large, *small[:200], encoded({}), large, *small[200:], encoded({})]
    # A large one alone is more than a piece holds, and so are the small ones together.
    assert len(large) > 16 * 1024
    assert sum(map(len, small)) > 16 * 1024
    found: list[dict[int, int]] = [{} for _ in parts]
    for part, bucket, count in zip(*(column.tolist() for column in samples_of(parts)), strict=True):
        found[part][bucket] = count
    assert found == [counts_in(part) for part in parts]


@given(some.dictionaries(some.integers(0, HIGHEST_NS), some.integers(1, 100_000), max_size=40))
def test_counts_that_are_encoded_are_read_again_by_us_and_by_the_package(samples: dict[int, int]) -> None:
    counts: dict[int, int] = {}
    for value, count in samples.items():
        counts[index_of(value)] = counts.get(index_of(value), 0) + count
    data = encoded(counts)
    assert counts_in(data) == counts
    assert {index: count for index, count in enumerate(decode(data).counts) if count} == counts


@given(some.integers(0, HIGHEST_NS))
def test_a_value_lies_in_its_bucket(value: int) -> None:
    index = index_of(value)
    assert value <= highest_at(index)
    assert index == 0 or highest_at(index - 1) < value


# The package takes half a second for each.
@settings(max_examples=8)
@given(some.dictionaries(some.integers(1, HIGHEST_NS), some.integers(1, 1000), min_size=1, max_size=10))
def test_figures_of_counts_are_those_of_the_package(samples: dict[int, int]) -> None:
    histogram = HdrHistogram(1, HIGHEST_NS, 3)
    for value, count in samples.items():
        histogram.record_value(value, count)
    found = times_of(histogram, 1.0)
    assert found.mean == pytest.approx(histogram.get_mean_value() / 1e3)
    assert found.stdev == pytest.approx(histogram.get_stddev() / 1e3)
    assert found.min == histogram.get_min_value() / 1e3
