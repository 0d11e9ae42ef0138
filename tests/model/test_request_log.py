"""Tests the reader of the request log: the file's fields, and files that are wrong."""

import struct
from pathlib import Path

import numpy as np
import pytest

from weir.model.request_log import NO_STEP, OUTCOMES, REQUEST_DTYPE, read_requests

# docs/reference/engine.md describes this record.
RECORD = struct.Struct("<5q4I3H2B")
FIRST = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 200, 0, 0)
SECOND = (1 << 40, -1, -1, -1, 0, 4_294_967_295, 0, 0, 1_000_000, NO_STEP, 0, 0, 1, 0)


def test_a_record_is_read_field_by_field(tmp_path: Path) -> None:
    assert REQUEST_DTYPE.itemsize == RECORD.size == 64
    path = tmp_path / "log"
    path.write_bytes(RECORD.pack(*FIRST) + RECORD.pack(*SECOND))
    requests = read_requests(path)
    assert [tuple(record) for record in requests.tolist()] == [FIRST, SECOND]
    assert requests["status"].tolist() == [200, 0]
    assert OUTCOMES[requests["outcome"][1]] == "connect"


@pytest.mark.parametrize("left", [1, 63])
def test_a_record_that_was_cut_off_is_left_out(tmp_path: Path, left: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(RECORD.pack(*FIRST) + RECORD.pack(*SECOND)[:left])
    assert [tuple(record) for record in read_requests(path).tolist()] == [FIRST]
    path.write_bytes(RECORD.pack(*FIRST)[:left])
    assert len(read_requests(path)) == 0


def test_an_empty_log_is_no_requests_and_none_at_all_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    assert read_requests(path).dtype == REQUEST_DTYPE
    assert np.array_equal(read_requests(path)["status"], [])
    with pytest.raises(FileNotFoundError):
        read_requests(tmp_path / "nothing")
