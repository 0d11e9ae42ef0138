"""Reads histogram logs with HdrHistogram's own reader."""

from dataclasses import replace
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from tests.support.records import interval, started
from weir.model.errors import UsageError
from weir.model.hdr import HIGHEST_NS
from weir.store.histogram_log import HistogramLog


def test_hdrhistograms_own_reader_reads_the_intervals_and_their_times(tmp_path: Path) -> None:
    path = tmp_path / "load.hlog"
    intervals = [[1_000, 2_000_000], [], [50_000] * 10]
    with HistogramLog(str(path)) as log:
        log.on_start(replace(started(), start_unix_ns=1_800_000_000_250_000_000))
        for index, times_ns in enumerate(intervals):
            log.on_interval(interval(index, [time_ns / 1e6 for time_ns in times_ns], length_s=0.5))
    reader = HistogramLogReader(str(path), HdrHistogram(1, HIGHEST_NS, 3))
    for index, times_ns in enumerate(intervals):
        read = reader.get_next_interval_histogram()
        assert read.get_total_count() == len(times_ns)
        assert read.get_start_time_stamp() == pytest.approx((1_800_000_000.25 + index * 0.5) * 1000)
        assert read.get_end_time_stamp() - read.get_start_time_stamp() == pytest.approx(500)
        if times_ns:
            assert read.get_max_value() == pytest.approx(max(times_ns), rel=1e-3)
    assert reader.get_next_interval_histogram() is None
    assert reader.get_start_time_sec() == pytest.approx(1_800_000_000.25)
    reader.close()


def test_a_log_that_cannot_be_written_is_told_by_its_flag(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--hdr"):
        HistogramLog(str(tmp_path / "nowhere" / "load.hlog"))
