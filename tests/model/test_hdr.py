"""weir's histograms agree with the package `hdrhistogram`, which is only used here."""

import base64
import math
import zlib
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as some

from weir.model.hdr import HIGHEST_NS, Hdr, counts_in, deflated, encoded, highest_at, index_of
from weir.model.hdr_batch import buckets_of, merge, samples_of
from weir.model.load_records import Quantiles


def reference(samples: Mapping[int, int]) -> HdrHistogram:
    histogram = HdrHistogram(1, HIGHEST_NS, 3)
    for value, count in samples.items():
        histogram.record_value(value, count)
    return histogram


def reference_bytes(samples: Mapping[int, int]) -> bytes:
    return zlib.decompress(base64.b64decode(reference(samples).encode())[8:])


def reference_counts(data: bytes) -> dict[int, int]:
    return {index: count for index, count in enumerate(HdrHistogram.decode(deflated(data)).counts) if count}


def hdr(samples: Mapping[int, int]) -> Hdr:
    made = Hdr()
    for value, count in samples.items():
        made.add(value, count)
    return made


@given(some.dictionaries(some.integers(1, HIGHEST_NS), some.integers(1, 100_000), max_size=40))
def test_reading_the_bytes_gives_what_the_package_decodes(samples: dict[int, int]) -> None:
    histogram, data = reference(samples), reference_bytes(samples)
    counts = reference_counts(data)
    assert counts_in(data) == counts
    assert {index: highest_at(index) for index in counts} == {
        index: histogram.get_highest_equivalent_value(histogram.get_value_from_index(index)) for index in counts
    }
    assert Hdr.decode(data).counts == hdr(samples).counts == counts
    assert hdr(samples).encode() == data
    assert Hdr.decode(data).total == sum(samples.values())


@given(some.lists(some.dictionaries(some.integers(1, HIGHEST_NS), some.integers(1, 100_000), max_size=20), max_size=6))
def test_many_histograms_decoded_together_are_those_decoded_one_by_one(tables: list[dict[int, int]]) -> None:
    parts = [reference_bytes(samples) for samples in tables]
    found: list[dict[int, int]] = [{} for _ in parts]
    for part, bucket, count in zip(*(column.tolist() for column in samples_of(parts)), strict=True):
        found[part][bucket] = count
    assert found == [counts_in(part) for part in parts]


def test_more_histograms_than_are_decoded_at_a_time_each_keep_what_is_theirs() -> None:
    large = encoded({index: 1 + index % 200 for index in range(0, 20_000, 2)})
    small = [encoded({number: number + 1}) for number in range(400)]
    parts = [large, *small[:200], encoded({}), large, *small[200:], encoded({})]
    # The large histogram alone exceeds a piece, and so do the small ones together.
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
    assert reference_counts(data) == counts


@given(some.integers(0, HIGHEST_NS))
def test_a_value_lies_in_its_bucket(value: int) -> None:
    index = index_of(value)
    assert value <= highest_at(index)
    assert index == 0 or highest_at(index - 1) < value
    assert buckets_of(np.array([value])).tolist() == [index]


# The package takes half a second per example.
@settings(max_examples=8)
@given(some.dictionaries(some.integers(1, HIGHEST_NS), some.integers(1, 1000), min_size=1, max_size=10))
def test_figures_of_counts_are_those_of_the_package(samples: dict[int, int]) -> None:
    histogram, times = reference(samples), hdr(samples)
    assert times.mean == pytest.approx(histogram.get_mean_value())
    assert times.stdev == pytest.approx(histogram.get_stddev())
    assert (times.min, times.max, times.total) == (
        histogram.get_min_value(),
        histogram.get_max_value(),
        histogram.get_total_count(),
    )
    found = Quantiles.from_counts(times.counts, 1.0)
    assert (found.mean, found.min, found.max) == (times.mean / 1e3, times.min / 1e3, 1.0)


@given(some.lists(some.dictionaries(some.integers(1, HIGHEST_NS), some.integers(1, 100_000), max_size=20), max_size=6))
def test_merged_histograms_have_all_samples_and_lose_what_is_removed(tables: list[dict[int, int]]) -> None:
    merged = Hdr()
    for samples in tables:
        merged.merge(hdr(samples))
    assert merge([hdr(samples).encode() for samples in tables]).counts == merged.counts
    for samples in tables:
        merged.remove(hdr(samples))
    assert merged.counts == {}


@given(some.lists(some.integers(0, 2000), min_size=1, max_size=60), some.floats(0, 1))
def test_a_quantile_is_the_smallest_value_within_which_the_share_lies(values: list[int], share: float) -> None:
    # Each bucket up to this value holds one value.
    found = hdr(Counter(values)).quantile(share)
    assert sum(value <= found for value in values) >= share * len(values)
    assert found in values
    assert sum(value < found for value in values) < max(1, math.ceil(share * len(values)))


@given(some.dictionaries(some.integers(1, HIGHEST_NS), some.integers(1, 1000), min_size=1, max_size=20))
def test_a_coarse_histogram_has_the_same_samples_a_percent_higher_at_most(samples: dict[int, int]) -> None:
    fine = hdr(samples)
    coarse = fine.coarsen()
    assert coarse.total == fine.total
    assert all(
        0 <= one - other <= max(7, 0.01 * other)
        for one, other in zip(coarse.quantiles((0.5, 1)), fine.quantiles((0.5, 1)), strict=True)
    )


def test_a_histogram_without_samples_has_only_zeros() -> None:
    nothing = Hdr.decode(Hdr().encode())
    assert (nothing.total, nothing.min, nothing.max, nothing.mean, nothing.stdev, nothing.quantile(0.5)) == (
        0,
        0,
        0,
        0,
        0,
        0,
    )
