"""Compares the numbers behind the charts with the truth of the synthetic run."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.synthetic_run import FLASK, NETTY, SANIC, SyntheticStudy, write_run
from weir.findings import RunFindings, of_run
from weir.findings.formatting import sentence_names
from weir.findings.metrics import MEMORY, P99, THROUGHPUT
from weir.findings.points import group_points
from weir.model.run_types import Placement
from weir.report import begin_charts, sentences
from weir.report.interval_plot import linear_ticks, measure_strip, ratio_strip, ratio_ticks, tile_rows
from weir.report.process_series import machine_lines
from weir.report.series import PointSeries, build_point_series, list_shown, pick_evenly
from weir.report.timeseries import MOST_POINTS, coarsen, cut_slices, slope
from weir.store import CpuUseRow, IntervalRow, RunReader


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunFindings, PointSeries]]:
    path = write_run(
        tmp_path_factory.mktemp("run") / "run.weir", SyntheticStudy(stacks=(FLASK, SANIC, NETTY), duration_s=6.0)
    )
    with RunReader(path) as reader:
        (charts,) = begin_charts(reader)()
        yield of_run(reader), charts.series


def interval(index: int, length_s: float, end_s: float | None = None) -> IntervalRow:
    end = end_s if end_s is not None else (index + 1) * length_s
    return IntervalRow(index, index * length_s, end, 0, 0, 0, 0, 0, {}, 0, 0, 0.0, 0, 0, None, None, None, None, None)


def mean(values: list[float | None]) -> float:
    return float(np.mean([value for value in values if value is not None]))


def test_throughput_over_time_has_the_true_level_and_its_band_holds_the_mean(
    run: tuple[RunFindings, PointSeries],
) -> None:
    sanic = run[1].stacks[1]
    assert mean(sanic.rate_rps) == pytest.approx(SANIC.throughput_rps, rel=0.05)
    for low, value, high in zip(sanic.rate_low_rps, sanic.rate_rps, sanic.rate_high_rps, strict=True):
        assert low is not None
        assert value is not None
        assert high is not None
        assert low <= value <= high


def test_cpu_of_a_tier_is_in_cpus_user_and_system_apart(run: tuple[RunFindings, PointSeries]) -> None:
    user, system = sorted(run[1].stacks[0].tiers, key=lambda line: line.label, reverse=True)
    assert (user.label, system.label) == ("app user", "app system")
    used = FLASK.throughput_rps * FLASK.cpu_us_per_request / 1e6
    assert mean(user.values) == pytest.approx(0.7 * used, rel=0.05)
    assert mean(system.values) == pytest.approx(0.3 * used, rel=0.05)


def test_the_machines_cpus_are_named_by_role_and_in_percent(run: tuple[RunFindings, PointSeries]) -> None:
    lines = {line.label: mean(line.values) for line in run[1].stacks[0].machine_percent}
    assert lines == pytest.approx({"CPU 0 (load, control)": 65.0, "CPU 1 (stack)": 92.0, "steal": 1.0}, rel=0.01)


def test_on_a_large_machine_cpus_are_drawn_by_role() -> None:
    samples = [
        CpuUseRow(t_s, cpu, worked_s=t_s if cpu < 4 else 0.0, total_s=t_s, steal_s=0.0)
        for t_s in (0.0, 1.0)
        for cpu in range(16)
    ]
    placement = Placement(load=(4, 5), stack=(0, 1, 2, 3), services=(), control=())
    lines = machine_lines([samples], np.array([0.0, 1.0]), placement)
    assert {line.label: line.values for line in lines} == {
        "load CPUs": [0.0],
        "stack CPUs": [100.0],
        "other CPUs": [0.0],
        "steal": [0.0],
    }


def test_percentiles_over_time_are_those_of_the_truth(run: tuple[RunFindings, PointSeries]) -> None:
    sanic = run[1].stacks[1]
    median_ms = 0.97 * 20 / SANIC.throughput_rps * 1e3 / math.exp(SANIC.latency_sigma**2 / 2)
    assert mean(sanic.p50_ms) == pytest.approx(median_ms, rel=0.05)
    assert mean(sanic.p99_ms) == pytest.approx(median_ms * math.exp(2.326 * SANIC.latency_sigma), rel=0.08)


def test_a_distribution_rises_and_ends_where_100_samples_lie_beyond(run: tuple[RunFindings, PointSeries]) -> None:
    findings, series = run
    for stack in series.stacks:
        drawn = [value for value in stack.distribution_ms if value is not None]
        assert drawn == sorted(drawn)
        used = next(one for one in findings.points[0].stacks if one.label == stack.label)
        samples = sum(trial.value for trial in used.measure(THROUGHPUT).trials) * 6.0
        deepest = max(
            nines for nines, value in zip(series.nines, stack.distribution_ms, strict=True) if value is not None
        )
        assert deepest == pytest.approx(math.log10(samples / 100), abs=series.nines[1] * 1.01)


def test_time_is_cut_into_whole_intervals_and_a_sliver_at_the_end_is_left_out() -> None:
    edges = cut_slices([*[interval(index, 0.1) for index in range(30)], interval(30, 0.1, end_s=3.003)])
    assert edges == pytest.approx(np.arange(31) / 10)


@pytest.mark.parametrize("intervals", [1, 2, 239, 240, 241, 3_000])
def test_long_runs_are_cut_into_a_bounded_number_of_slices(intervals: int) -> None:
    edges = cut_slices([interval(index, 1.0) for index in range(intervals)])
    assert 2 <= len(edges) <= MOST_POINTS + 1
    assert edges[-1] <= intervals + 1e-9


def test_coarse_slices_are_at_least_as_long_as_asked() -> None:
    assert coarsen(np.arange(31) / 10, 0.5) == pytest.approx(np.arange(7) / 2)
    assert coarsen(np.array([0.0, 0.1, 0.2]), 0.5) == pytest.approx([0.0, 0.2])
    assert coarsen(np.array([0.0, 1.0, 2.0]), 0.5) == pytest.approx([0.0, 1.0, 2.0])


@given(
    st.floats(min_value=0.0, max_value=64.0),
    st.lists(st.floats(min_value=0.05, max_value=0.2), min_size=40, max_size=60),
)
def test_the_slope_of_a_counter_does_not_depend_on_when_it_was_read(cpus: float, steps: list[float]) -> None:
    times = [float(moment) for moment in np.cumsum(steps)]
    found = slope(times, [10.0 + cpus * moment for moment in times], np.arange(0.5, 2.0, 0.5))
    assert found == pytest.approx([cpus] * len(found), abs=1e-9)


def test_a_counter_that_was_not_read_has_no_slope() -> None:
    assert np.isnan(slope([0.0], [1.0], np.array([0.0, 1.0]))).all()
    assert np.isnan(slope([0.0, 1.0], [0.0, 1.0], np.array([0.0, 1.0, 2.0]))[1])


def test_dots_lie_in_the_order_of_their_values_and_within_the_axis(run: tuple[RunFindings, PointSeries]) -> None:
    point = run[0].points[0]
    strip = measure_strip(point, THROUGHPUT)
    assert strip is not None
    for row, stack in zip(strip.rows, point.stacks, strict=True):
        measure = stack.measure(THROUGHPUT)
        assert row.low is not None
        assert row.at is not None
        assert row.high is not None
        assert 0 < row.low < row.at < row.high < 100
        assert sorted(row.dots) == [
            dot for _, dot in sorted(zip([trial.value for trial in measure.trials], row.dots, strict=True))
        ]
    # Zero is at the left margin, so lengths are comparable.
    first, second = strip.rows[0].at, strip.rows[2].at
    assert first is not None
    assert second is not None
    assert (second - 2) / (first - 2) == pytest.approx(SANIC.throughput_rps / FLASK.throughput_rps, rel=0.05)


def test_the_axis_of_ratios_is_logarithmic_and_holds_equal(run: tuple[RunFindings, PointSeries]) -> None:
    comparisons = [found for found in run[0].points[0].comparisons if found.metric in (THROUGHPUT, P99)]
    strip = ratio_strip(comparisons, {})
    assert strip is not None
    ticks = {tick.text: tick.at for tick in strip.ticks}
    assert ticks["1×"] == strip.reference
    assert ticks["2×"] - ticks["1×"] == pytest.approx(ticks["1×"] - ticks["0.5×"], abs=0.01)
    for row, found in zip(strip.rows, comparisons, strict=True):
        assert row.at is not None
        assert found.ratio is not None
        assert (row.at > ticks["1×"]) == (found.ratio > 1)


def test_an_interval_beyond_a_hundredfold_stays_on_the_axis(run: tuple[RunFindings, PointSeries]) -> None:
    comparison = replace(run[0].points[0].comparisons[0], ratio=4.0, low=1e-9, high=1e9)
    strip = ratio_strip([comparison], {})
    assert strip is not None
    (row,) = strip.rows
    assert row.low is not None
    assert row.high is not None
    assert 0 <= row.low < row.high <= 100
    assert len(strip.ticks) <= 13


def test_bars_of_a_tile_reach_as_far_as_their_share_of_the_largest(run: tuple[RunFindings, PointSeries]) -> None:
    rows = {row.name: row.at for row in tile_rows(run[0].points[0], MEMORY)}
    assert rows["Spring WebFlux"] == 100
    assert rows["Flask"] == pytest.approx(100 * FLASK.memory_bytes / NETTY.memory_bytes, rel=0.02)
    assert "Flask (A/A)" not in rows


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_linear_ticks_start_at_zero_are_evenly_spaced_and_few(largest: float) -> None:
    ticks = linear_ticks(largest)
    assert ticks[0] == 0
    assert 2 <= len(ticks) <= 7
    assert ticks[-1] <= largest * 1.05
    assert ticks[-1] >= largest * 0.6
    assert np.allclose(np.diff(ticks), ticks[1])


@given(st.floats(min_value=0.01, max_value=1.0), st.floats(min_value=1.0, max_value=100.0))
def test_ratio_ticks_hold_one(low: float, high: float) -> None:
    assert 1.0 in ratio_ticks(low, high)


def test_sentences_under_the_charts_say_what_they_show(run: tuple[RunFindings, PointSeries]) -> None:
    findings, series = run
    point = findings.points[0]
    assert "Spring WebFlux by +" in sentences.rate_sentence(series)
    assert sentences.percentiles_sentence(series).startswith("Typical p99 of a slice: Flask ")
    assert sentences.cpu_sentence(series).startswith("On average Flask's app tier used 0.9")
    assert "under Sanic: CPU 0 (load, control) 65 %, CPU 1 (stack) 92 %, steal 1.0 %" in sentences.machine_sentence(
        series
    )
    assert "Sanic 2.3×" in sentences.distribution_sentence(point)
    assert "Least memory: Flask, 6" in sentences.resources_sentence(point)
    assert "differ most, by " in sentences.throughput_sentence(point)


def test_without_samples_the_sentences_say_so(tmp_path: Path) -> None:
    empty = PointSeries([], [], [], [])
    assert sentences.cpu_sentence(empty) == "No samples of the processes."
    assert sentences.machine_sentence(empty) == "No samples of the machine's CPUs."
    assert sentences.percentiles_sentence(empty) == "Too few requests in each slice of time for percentiles."


@pytest.mark.parametrize(
    ("trials", "most", "chosen"),
    [((1, 2, 3), 3, [1, 2, 3]), ((1, 2, 3, 4, 5), 3, [1, 3, 5]), (tuple(range(10)), 4, [0, 3, 6, 9])],
)
def test_of_many_trials_some_are_drawn_from_the_first_to_the_last(
    trials: tuple[int, ...], most: int, chosen: list[int]
) -> None:
    assert pick_evenly(trials, most) == chosen


def test_a_page_with_many_stacks_says_of_how_many_trials_it_draws_some(tmp_path: Path) -> None:
    with RunReader(write_run(tmp_path / "run.weir", SyntheticStudy(blocks=5, duration_s=1.0))) as reader:
        cells = reader.cells()
        (point,) = group_points(cells, reader.trials())
        shown = list_shown(point, sentence_names(cells))
        all_of_them, some = (
            build_point_series(reader, point.load, shown),
            build_point_series(reader, point.load, shown, together=150),
        )
    assert [(stack.trials, stack.of_trials) for stack in all_of_them.stacks] == [(5, 5), (5, 5)]
    assert [(stack.trials, stack.of_trials) for stack in some.stacks] == [(3, 5), (3, 5)]
    assert "Mean over 3 of 5 trials" in sentences.rate_sentence(some)
    assert "Mean over trials;" in sentences.rate_sentence(all_of_them)
    # Figures that are in no chart over time use all trials.
    assert [stack.distribution_ms for stack in some.stacks] == [stack.distribution_ms for stack in all_of_them.stacks]
