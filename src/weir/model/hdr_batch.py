"""Decodes many HdrHistograms (`weir.model.hdr`) together, and finds the buckets of many values together. Decoding
100,000 histograms one by one takes minutes."""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weir.model.hdr import BUCKETS, HEADER_BYTES, SUB_BUCKETS, Hdr, highest_at

Integers = NDArray[np.int64]


class Samples(NamedTuple):
    """Three arrays: histogram number, bucket index and number of samples of each non-empty bucket, in this order."""

    part: Integers
    bucket: Integers
    often: Integers


_NONE = Samples(*(np.zeros(0, np.int64) for _ in range(3)))

_TOGETHER_BYTES = 64 * 1024
"""Maximum bytes of histograms that weir decodes at a time. The intermediate arrays then fit into the CPU's cache."""
_MOST_WAITING = 16_384
"""Maximum number of values that `HdrCollector` keeps in arrays."""


class HdrCollector:
    """Collects values for one histogram. Keeps the buckets of the latest values in arrays, and so takes much less time
    than a histogram that counts each value at once."""

    def __init__(self) -> None:
        self._hdr = Hdr()
        self._buckets: list[Integers] = []
        self._waiting = 0
        """Number of values in `_buckets`, which `_hdr` does not have yet."""

    def add(self, values: Integers) -> None:
        """Adds values from 0 to `HIGHEST_NS`."""
        self._buckets.append(buckets_of(values))
        self._waiting += len(values)
        if self._waiting > _MOST_WAITING:
            self.collect()

    def merge(self, other: "HdrCollector") -> None:
        self._hdr.merge(other._hdr)
        self._buckets += other._buckets
        self._waiting += other._waiting

    def collect(self) -> Hdr:
        """Returns the histogram of all values until now."""
        if self._buckets:
            buckets, counts = np.unique(np.concatenate(self._buckets), return_counts=True)
            self._hdr.merge(Hdr(dict(zip(buckets.tolist(), counts.tolist(), strict=True))))
            self._buckets, self._waiting = [], 0
        return self._hdr


def samples_of(parts: Sequence[bytes]) -> Samples:
    """Decodes histograms. Each item of `parts` has the bytes of one histogram (uncompressed V2)."""
    found, first = [], 0
    ends = np.cumsum([len(part) for part in parts])
    while first < len(parts):
        # Decodes at least one histogram, even one above the maximum.
        begin = ends[first - 1] if first else 0
        after = max(first + 1, int(np.searchsorted(ends, begin + _TOGETHER_BYTES, side="right")))
        samples = _samples_of(parts[first:after])
        found.append(samples._replace(part=samples.part + first))
        first = after
    return Samples(*(np.concatenate(column) for column in zip(*found, strict=True))) if found else _NONE


def merge(parts: Sequence[bytes]) -> Hdr:
    """Returns one histogram with the samples of all histograms in `parts`."""
    samples = samples_of(parts)
    counts = np.bincount(samples.bucket, weights=samples.often)
    taken = np.flatnonzero(counts)
    return Hdr(dict(zip(taken.tolist(), counts[taken].astype(np.int64).tolist(), strict=True)))


def buckets_of(values: Integers) -> Integers:
    """Returns the index of the bucket of each value (`hdr.index_of`)."""
    doublings: Integers = np.maximum(np.frexp(values)[1] - SUB_BUCKETS.bit_length() + 1, 0)
    return doublings * (SUB_BUCKETS // 2) + (values >> doublings)


def _samples_of(parts: Sequence[bytes]) -> Samples:
    payload = np.frombuffer(b"".join(part[HEADER_BYTES:] for part in parts), np.uint8)
    if not len(payload):
        return _NONE
    # Zig-zag: odd numbers are negative and count buckets without samples. Almost all numbers have one byte. A longer
    # number counts at its last byte; its other bytes are skipped.
    steps = ((payload >> 1) * (payload & 1) + 1).astype(np.int64)
    has_samples = ((payload & 129) == 0) & (payload != 0)
    before_last, last, numbers = _longer_numbers(payload)
    halves = numbers >> 1
    is_gap = numbers & 1 == 1
    steps[before_last] = 0
    steps[last] = np.where(is_gap, halves + 1, 1)
    has_samples[last] = (numbers > 0) & ~is_gap
    kept = np.flatnonzero(has_samples)
    often = (payload[kept] >> 1).astype(np.int64)
    of_longer = has_samples[last]
    often[kept.searchsorted(last[of_longer])] = halves[of_longer]
    # The numbers of a histogram lie together. The bucket indexes of each histogram start at 0.
    ends = np.array([0, *accumulate(len(part) - HEADER_BYTES for part in parts)])
    reached = steps.cumsum()
    before = np.where(ends > 0, reached[ends - 1], 0)
    of = np.repeat(np.arange(len(parts)), np.diff(kept.searchsorted(ends)))
    return Samples(part=of, bucket=reached.take(kept) - 1 - before.take(of), often=often)


def _longer_numbers(payload: NDArray[np.uint8]) -> tuple[Integers, Integers, Integers]:
    """Decodes all numbers with several bytes. Each byte has seven bits of the number, the lowest bits first. Returns
    the positions of the bytes before the last, the positions of the last bytes, and the numbers."""
    goes_on = np.flatnonzero(payload > 127)
    # A number begins after a byte that ends a number.
    last = goes_on[np.diff(goes_on, prepend=-2) > 1]
    numbers, unread, shift = np.zeros(len(last), np.int64), np.arange(len(last)), 0
    while len(unread):
        byte = payload[last[unread]]
        numbers[unread] |= (byte & 127).astype(np.int64) << shift
        unread = unread[byte > 127]
        last[unread] += 1
        shift += 7
    return goes_on, last, numbers


@cache
def highest() -> Integers:
    """Returns an array with the highest value of each bucket."""
    return np.array([highest_at(index) for index in range(BUCKETS)])
