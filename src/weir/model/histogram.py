"""HdrHistograms as the engine writes them: uncompressed V2, in nanoseconds.

The `hdrhistogram` package reads the deflated form only, so the bytes are deflated on their way in.
"""

import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable

from hdrh.histogram import HdrHistogram

_COMPRESSED_COOKIE = 0x1C849304
HIGHEST_NS = 3_600_000_000_000


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


def merge(parts: Iterable[bytes]) -> HdrHistogram:
    """One histogram of all values in `parts`."""
    merged = HdrHistogram(1, HIGHEST_NS, 3)
    for part in parts:
        merged.add(decode(part))
    return merged


def recorded(of: HdrHistogram) -> dict[int, int]:
    """How many samples there are of each value, each as the highest that its bucket stands for; in rising order.

    The package's own iterator takes 40 ms where this takes 3.
    """
    return {of.get_highest_equivalent_value(of.get_value_from_index(index)): count for index, count in enumerate(of.counts) if count}
