"""Tests lines over time of processes' resources, from samples whose truth is known."""

import numpy as np
import pytest

from weir.report.process_series import memory_lines, thread_lines, traffic_lines
from weir.store import NetworkSampleRow, ThreadStateRow, UseRow

EDGES = np.array([0.0, 1.0, 2.0, 3.0])


def sample(t_s: float, name: str, tier: str, rss_mb: float, written_mb: float | None) -> UseRow:
    written = None if written_mb is None else round(written_mb * 1e6)
    return UseRow(t_s, name, tier, 0.0, 0.0, round(rss_mb * 1e6), None if written is None else 0, written)


def pool(t_s: float, name: str, threads: int, on_cpu_s: float, lock_s: float) -> ThreadStateRow:
    return ThreadStateRow(t_s, "app", "app", name, threads, on_cpu_s, 0, 0, 0, lock_s, 0, 0, 0, 0)


def test_the_processes_of_a_tier_are_added_up_and_trials_averaged() -> None:
    one = [sample(t, name, "app", rss, None) for t in (0.0, 1.5, 3.0) for name, rss in (("app-1", 10), ("app-2", 20))]
    other = [sample(t, "app-1", "app", 50, None) for t in (0.0, 1.5, 3.0)]
    (line,) = memory_lines([one, other], EDGES)
    assert (line.label, line.values) == ("app", [40, 40, 40])


def test_what_was_not_sampled_is_a_gap() -> None:
    (line,) = memory_lines([[sample(t, "app", "app", 10, None) for t in (0.0, 1.0, 1.9)]], EDGES)
    assert line.values == [10, 10, None]


def test_disks_and_loopback_are_told_by_the_second_and_what_never_moved_is_left_out() -> None:
    samples = [sample(t, "app", "app", 10, 2 * t) for t in (0.0, 1.0, 2.0, 3.0)]
    network = [
        NetworkSampleRow(t, name, 0, 0, 0, 0, 0, round(5e6 * t), 0, 0, 0, 0)
        for t in (0.0, 1.5, 3.0)
        for name in ("", "app")
    ]
    lines = traffic_lines([samples], [network], EDGES)
    assert [(line.label, line.values) for line in lines] == [
        ("app, written to disk", [2, 2, 2]),
        ("loopback", [5, 5, 5]),
    ]


def test_a_process_whose_disk_counts_may_not_be_read_has_no_such_line() -> None:
    assert traffic_lines([[sample(t, "app", "app", 10, None) for t in (0.0, 3.0)]], [[]], EDGES) == []


def test_threads_are_those_of_all_pools_also_of_one_that_comes_later() -> None:
    rows = [pool(t, "worker", 4, 3 * t, t) for t in (0.0, 1.0, 2.0, 3.0)]
    rows += [pool(t, "late", 2, 0.0, 2 * (t - 1)) for t in (1.0, 2.0, 3.0)]
    lines = {line.label: line.values for line in thread_lines([rows], EDGES)}
    assert lines["on_cpu"] == pytest.approx([3, 3, 3])
    assert lines["lock"] == pytest.approx([1, 3, 3])
    assert set(lines) == {"on_cpu", "lock"}


def test_time_that_is_booked_late_makes_no_threads() -> None:
    booked_s = (0.0, 0.5, 1.0, 3.0)
    rows = [pool(t, "worker", 2, on_cpu, on_cpu) for t, on_cpu in zip((0.0, 1.0, 2.0, 3.0), booked_s, strict=True)]
    lines = {line.label: line.values for line in thread_lines([rows], EDGES)}
    assert lines == {"on_cpu": [1, 1, 1], "lock": [1, 1, 1]}
