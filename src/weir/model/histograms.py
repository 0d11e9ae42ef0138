"""Many HdrHistograms (uncompressed V2, `weir.model.histogram`) decoded together: one by one a hundred thousand of them take minutes."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weir.model.histogram import BUCKETS, HEADER_BYTES, highest_at

Integers = NDArray[np.int64]


class Samples(NamedTuple):
    """Every bucket that has samples, of each: in which of the histograms, its index, and how many. Ordered by both."""

    part: Integers
    bucket: Integers
    often: Integers


_NONE = Samples(*(np.zeros(0, np.int64) for _ in range(3)))

_TOGETHER_BYTES = 16 * 1024
"""Of histograms decoded at a time. What is made of them stays in the cache, and below the size (128 KiB) from which the allocator asks for
new memory each time, whose pages cost more than the sums: with two megabytes at once it takes two and a half times as long."""


def samples_of(parts: Sequence[bytes]) -> Samples:
    """The samples of all histograms in `parts`."""
    found, first = [], 0
    ends = np.cumsum([len(part) for part in parts])
    while first < len(parts):
        # As many as fit, and always one.
        after = max(first + 1, int(np.searchsorted(ends, (ends[first - 1] if first else 0) + _TOGETHER_BYTES, side="right")))
        samples = _samples_of(parts[first:after])
        found.append(samples._replace(part=samples.part + first))
        first = after
    return Samples(*(np.concatenate(column) for column in zip(*found, strict=True))) if found else _NONE


def _samples_of(parts: Sequence[bytes]) -> Samples:
    payload = np.frombuffer(b"".join(part[HEADER_BYTES:] for part in parts), np.uint8)
    ends = np.flatnonzero(payload < 128)
    if not len(ends):
        return _NONE
    starts = np.concatenate(([0], ends[:-1] + 1))
    numbers = (payload[starts] & 127).astype(np.int64)
    # Almost all numbers have one byte: what further ones add is added for those that have them.
    longer, shift = np.flatnonzero(ends > starts), 7
    while len(longer):
        numbers[longer] |= (payload[starts[longer] + shift // 7] & 127).astype(np.int64) << shift
        shift += 7
        longer = longer[ends[longer] >= starts[longer] + shift // 7]
    # Zig-zag: odd numbers are negative and count buckets without samples.
    is_gap, halves = (numbers & 1).astype(bool), numbers >> 1
    reached = np.where(is_gap, halves + 1, 1).cumsum()
    # The numbers of each histogram lie together, and its buckets count from 0.
    sizes = np.array([len(part) - HEADER_BYTES for part in parts])
    first = np.searchsorted(starts, np.concatenate(([0], sizes.cumsum())))
    before = np.where(first > 0, reached[first - 1], 0)
    kept = np.flatnonzero(~is_gap & (halves > 0))
    of = np.repeat(np.arange(len(parts)), np.diff(first))[kept]
    return Samples(part=of, bucket=reached[kept] - 1 - before[of], often=halves[kept])


@cache
def highest() -> Integers:
    """The highest value that each bucket stands for, by its index."""
    return np.array([highest_at(index) for index in range(BUCKETS)])
