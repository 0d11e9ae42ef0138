"""Histograms read from their bytes say what the package's own reader says."""

import base64
import zlib

from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as some

from weir.model.histogram import HIGHEST_NS, counts_in, decode, highest_at, raw_bytes, recorded_in
from weir.model.histograms import samples_of


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
