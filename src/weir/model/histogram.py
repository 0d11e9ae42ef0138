"""HdrHistograms as the engine writes them: uncompressed V2, in nanoseconds.

The `hdrhistogram` package reads the deflated form only, so the bytes are deflated on their way in.
"""

import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable

from hdrh.histogram import HdrHistogram

_COMPRESSED_COOKIE = 0x1C849304
_COMPRESSED_HEADER_BYTES = 8
HIGHEST_NS = 3_600_000_000_000
HEADER_BYTES = 40
_HALF = 1024
BUCKETS = 33 * _HALF
"""Buckets of a histogram up to `HIGHEST_NS`."""


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
