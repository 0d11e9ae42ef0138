"""HdrHistograms as the engine writes them: uncompressed V2, in nanoseconds.

The `hdrhistogram` package reads the deflated form only, so the bytes are deflated on their way in.
"""

import math
import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping

from hdrh.histogram import HdrHistogram

_COOKIE = 0x1C849313
_COMPRESSED_COOKIE = 0x1C849304
_COMPRESSED_HEADER_BYTES = 8
HIGHEST_NS = 3_600_000_000_000
HEADER_BYTES = 40
SUB_BUCKETS = 2048
_HALF = SUB_BUCKETS // 2
RANGES = 32
"""Of values, each twice as far as the one before it: HdrHistogram calls them buckets, and what is inside of them sub-buckets."""
BUCKETS = (RANGES + 1) * _HALF
"""Buckets of a histogram up to `HIGHEST_NS`: sub-buckets of all ranges, of which every one but the first adds its upper half."""


def decode(data: bytes) -> HdrHistogram:
    """The histogram in `data` (uncompressed V2)."""
    return HdrHistogram.decode(deflated(data))


def deflated(data: bytes) -> bytes:
    """The histogram in `data` in the deflated form (V2), in base64: what histogram logs hold."""
    body = zlib.compress(data, 1)
    return b64encode(struct.pack(">II", _COMPRESSED_COOKIE, len(body)) + body)


def bytes_of_text(text: str) -> bytes:
    """The bytes of a histogram that a record carries as base64."""
    return b64decode(text)


def text_of_bytes(data: bytes) -> str:
    """The base64 in which a record carries a histogram: the inverse of `bytes_of_text`."""
    return b64encode(data).decode("ascii")


def raw_bytes(histogram: HdrHistogram) -> bytes:
    """`histogram` in the form that the engine writes and run files hold (uncompressed V2)."""
    return zlib.decompress(b64decode(histogram.encode())[_COMPRESSED_HEADER_BYTES:])


def merge(parts: Iterable[bytes]) -> HdrHistogram:
    """One histogram of all values in `parts`."""
    merged = HdrHistogram(1, HIGHEST_NS, 3)
    for part in parts:
        merged.add(decode(part))
    return merged


def recorded_in(data: bytes) -> dict[int, int]:
    """How many samples there are of each value in `data` (uncompressed V2), by the highest that its bucket stands for; in rising order."""
    return {highest_at(index): count for index, count in counts_in(data).items()}


def counts_in(data: bytes) -> dict[int, int]:
    """How many samples there are in each bucket of `data` (uncompressed V2), by the bucket's index, read from the bytes themselves.

    A live view reads ten histograms a second: the package's own iterator takes 10 ms for each, this less than one.
    """
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
    """The highest value that the bucket at `index` stands for: of three digits 2,048 have the width 1, then 1,024 each double width."""
    if index < 2 * _HALF:
        return index
    doublings = index // _HALF - 1
    return ((index % _HALF + _HALF + 1) << doublings) - 1


def lowest_at(index: int) -> int:
    """The lowest value that the bucket at `index` stands for."""
    return highest_at(index - 1) + 1 if index else 0


def index_of(value: int) -> int:
    """The bucket of a value from 0 to `HIGHEST_NS`: the inverse of `highest_at`.

    >>> highest_at(index_of(50_000_000))
    50003967
    """
    if value < 2 * _HALF:
        return value
    doublings = value.bit_length() - _HALF.bit_length()
    return doublings * _HALF + (value >> doublings)


def encoded(counts: Mapping[int, int]) -> bytes:
    """The histogram (uncompressed V2) with so many samples in each bucket, by the bucket's index: the inverse of `counts_in`."""
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


def at_ranks(recorded: Mapping[int, int], shares: Iterable[float]) -> list[int]:
    """The smallest values within which shares of the samples are. The package's own percentiles round the rank instead of taking the next
    whole one.

    Args:
        recorded: how many samples there are of each value, in rising order; at least one.
        shares: from 0 to 1, in rising order.
    """
    samples = sum(recorded.values())
    values = iter(recorded.items())
    value = reached = 0
    found = []
    for share in shares:
        rank = max(1, math.ceil(share * samples))
        while reached < rank:
            value, count = next(values)
            reached += count
        found.append(value)
    return found
