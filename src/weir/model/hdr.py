"""HdrHistograms in the engine's format: uncompressed V2, three digits, in nanoseconds up to an hour. `Hdr` is a
histogram. Functions decode and encode histograms, and compute buckets. `hdr_batch` decodes many histograms at once."""

import math
import struct
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Self

_COOKIE = 0x1C849313
_COMPRESSED_COOKIE = 0x1C849304
HIGHEST_NS = 3_600_000_000_000
HEADER_BYTES = 40
SUB_BUCKETS = 2048
_HALF = SUB_BUCKETS // 2
RANGES = 32
"""Number of ranges of values, each twice as wide as the range before. HdrHistogram's term for a range is a bucket."""
BUCKETS = (RANGES + 1) * _HALF
"""Number of buckets up to `HIGHEST_NS`: 2,048 in the first range, and 1,024 in each later range."""


class Hdr:
    """Number of samples in each bucket. A quantile is a bucket's highest value. A mean uses the buckets' middles.

    >>> times = Hdr()
    >>> for milliseconds in range(1, 101):
    ...     times.add(milliseconds * 1_000_000)
    >>> times.total, times.quantile(0.5), times.quantile(0.99)
    (100, 50003967, 99024895)
    """

    __slots__ = ("counts",)

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts = Counter(counts)
        """A dict from bucket index to number of samples, in any order and without empty buckets."""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(counts_in(data))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Decodes a histogram from the base64 text in a record."""
        return cls.decode(bytes_of_text(text))

    def encode(self) -> bytes:
        """Returns the bytes that the engine would write (uncompressed V2)."""
        return encoded(self.counts)

    def to_text(self) -> str:
        return b64encode(self.encode()).decode("ascii")

    def add(self, value: int, count: int = 1) -> None:
        """Adds samples of one value, from 0 to `HIGHEST_NS`."""
        self.counts[index_of(value)] += count

    def merge(self, other: "Hdr") -> None:
        self.counts.update(other.counts)

    def remove(self, other: "Hdr") -> None:
        """Removes the samples of `other`, which `merge` must have added before."""
        self.counts -= other.counts

    def coarsen(self) -> "Hdr":
        """Returns a histogram with fewer buckets and values exact to 1 %, for live views."""
        coarse = Counter[int]()
        for index, count in self.counts.items():
            # The last of eight neighbouring buckets gets the samples of all eight.
            coarse[index | 7] += count
        return Hdr(coarse)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def min(self) -> int:
        """Lowest value of the first non-empty bucket, or 0 without samples."""
        return lowest_at(min(self.counts, default=0))

    @property
    def max(self) -> int:
        """Highest value of the last non-empty bucket, or 0 without samples."""
        return highest_at(max(self.counts)) if self.counts else 0

    @property
    def mean(self) -> float:
        return sum(middle_at(index) * count for index, count in self.counts.items()) / (self.total or 1)

    @property
    def stdev(self) -> float:
        mean = self.mean
        squares = sum((middle_at(index) - mean) ** 2 * count for index, count in self.counts.items())
        return math.sqrt(squares / (self.total or 1))

    def by_value(self) -> dict[int, int]:
        """Returns the number of samples of each value, in ascending order of values."""
        return {highest_at(index): count for index, count in sorted(self.counts.items())}

    def quantiles(self, shares: Iterable[float]) -> list[int]:
        """Returns the quantile for each share. Example: for 0.99, at least 99 % of the samples are smaller or equal.
        `shares` ascend from 0 to 1. The histogram must have a sample. As in the engine, ranks are rounded up."""
        samples, buckets, found = self.total, iter(sorted(self.counts.items())), []
        index = reached = 0
        for share in shares:
            rank = max(1, math.ceil(share * samples))
            while reached < rank:
                index, count = next(buckets)
                reached += count
            found.append(highest_at(index))
        return found

    def quantile(self, share: float) -> int:
        """Returns the quantile for a share from 0 to 1, or 0 without samples."""
        return self.quantiles((share,))[0] if self.counts else 0


def deflated(data: bytes) -> bytes:
    """Compresses a histogram (`data`) with zlib, and returns the base64 text for histogram logs (compressed V2)."""
    body = zlib.compress(data, 1)
    return b64encode(struct.pack(">II", _COMPRESSED_COOKIE, len(body)) + body)


def bytes_of_text(text: str) -> bytes:
    """Returns the bytes of a histogram from the base64 in a record."""
    return b64decode(text)


def counts_in(data: bytes) -> dict[int, int]:
    """Decodes `data` (uncompressed V2). Returns a dict from bucket index to number of samples. Must be fast: a live
    view decodes ten histograms a second."""
    found: dict[int, int] = {}
    index = begun = shift = 0
    for byte in data[HEADER_BYTES:]:
        if byte & 128:
            begun |= (byte & 127) << shift
            shift += 7
            continue
        number = byte
        if shift:
            number = begun | byte << shift
            begun = shift = 0
        # Zig-zag: odd numbers are negative and count buckets without samples.
        if number & 1:
            index += (number + 1) >> 1
        else:
            if number:
                found[index] = number >> 1
            index += 1
    return found


def highest_at(index: int) -> int:
    """Returns the highest value of a bucket. The first 2,048 buckets have width 1. The next 1,024 buckets have width 2,
    the next 1,024 have width 4, and so on."""
    if index < 2 * _HALF:
        return index
    doublings = index // _HALF - 1
    return ((index % _HALF + _HALF + 1) << doublings) - 1


def lowest_at(index: int) -> int:
    """Returns the lowest value of a bucket."""
    return highest_at(index - 1) + 1 if index else 0


def middle_at(index: int) -> int:
    """Returns the middle of a bucket. Every implementation of HdrHistogram computes means from these middles."""
    if index < 2 * _HALF:
        return index
    return (2 * (index % _HALF + _HALF) + 1) << index // _HALF - 2


def index_of(value: int) -> int:
    """Returns the index of the bucket of a value from 0 to `HIGHEST_NS`. Inverse of `highest_at`.

    >>> highest_at(index_of(50_000_000))
    50003967
    """
    if value < 2 * _HALF:
        return value
    doublings = value.bit_length() - _HALF.bit_length()
    return doublings * _HALF + (value >> doublings)


def encoded(counts: Mapping[int, int]) -> bytes:
    """Returns a histogram's bytes (uncompressed V2) from a dict from bucket index to count. Inverse of `counts_in`."""
    payload = bytearray()
    reached = 0
    for index, count in sorted(counts.items()):
        if index > reached:
            _append(payload, 2 * (index - reached) - 1)
        _append(payload, 2 * count)
        reached = index + 1
    return struct.pack(">IIIIQQd", _COOKIE, len(payload), 0, 3, 1, HIGHEST_NS, 1.0) + payload


def _append(payload: bytearray, number: int) -> None:
    while number >= 128:
        payload.append(number & 127 | 128)
        number >>= 7
    payload.append(number)
