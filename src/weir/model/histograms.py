"""Many HdrHistograms (uncompressed V2, `weir.model.histogram`) decoded together: one by one a hundred thousand of them take minutes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weir.model.histogram import HEADER_BYTES

Integers = NDArray[np.int64]


class Samples(NamedTuple):
    """Every bucket that has samples, of each: in which of the histograms, its index, and how many. Ordered by both."""

    part: Integers
    bucket: Integers
    often: Integers


def samples_of(parts: Sequence[bytes]) -> Samples:
    """The samples of all histograms in `parts`."""
    payload = np.frombuffer(b"".join(part[HEADER_BYTES:] for part in parts), np.uint8)
    ends = np.flatnonzero(payload < 128)
    if not len(ends):
        return Samples(*(np.zeros(0, np.int64) for _ in range(3)))
    starts = np.concatenate(([0], ends[:-1] + 1))
    shifts = 7 * (np.arange(len(payload)) - np.repeat(starts, ends - starts + 1))
    numbers = np.add.reduceat((payload & 127).astype(np.int64) << shifts, starts)
    # Zig-zag: odd numbers are negative and count buckets without samples.
    is_gap = (numbers & 1).astype(bool)
    steps = np.where(is_gap, (numbers + 1) >> 1, 1)
    reached = np.concatenate(([0], np.cumsum(steps)))
    # The numbers of each histogram lie together, and its buckets count from 0.
    sizes = np.array([len(part) - HEADER_BYTES for part in parts])
    first = np.searchsorted(starts, np.concatenate(([0], np.cumsum(sizes))))
    held = np.diff(first)
    counts = numbers >> 1
    kept = ~is_gap & (counts > 0)
    return Samples(
        part=np.repeat(np.arange(len(parts)), held)[kept],
        bucket=(reached[:-1] - np.repeat(reached[first[:-1]], held))[kept],
        often=counts[kept],
    )
