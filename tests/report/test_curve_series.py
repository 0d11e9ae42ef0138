"""Tests the curves of a run that varies its load and another setting."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_run import FLASK, SANIC, SyntheticStudy, write_run
from weir.findings import of_run
from weir.model.load import ClosedLoad
from weir.model.run_types import TrialResult
from weir.model.verdict import Reason, TrialVerdict
from weir.report.curve_series import build_curves
from weir.store import RunReader


def test_each_value_of_what_else_varies_has_curves_with_their_own_crossings_and_laws(tmp_path: Path) -> None:
    level = replace(FLASK, throughput_rps=1_000, growth=lambda n: n / (1 + 0.1 * (n - 1)), variation=0.005)
    rising = replace(SANIC, throughput_rps=300, growth=lambda n: n**0.9, variation=0.005)
    loads = [ClosedLoad(n) for n in (1, 2, 4, 8, 16, 32, 64)]
    study = SyntheticStudy(
        stacks=(level, rising),
        loads=loads,
        aa=None,
        blocks=2,
        duration_s=0.5,
        coordinates=[{"replicas": "1"}, {"replicas": "2"}],
    )
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        curves = build_curves(of_run(reader), reader.trials())
    assert [curve.where for curve in curves] == ["echo, 1 replica", "echo, 2 replicas"]
    for curve in curves:
        assert curve.measured == [1, 2, 4, 8, 16, 32, 64]
        # 1,000 N ÷ (1 + 0.1 (N − 1)) = 300 N^0.9 at 39.
        (crossing,) = curve.crossings
        assert crossing.at == pytest.approx(39, rel=0.1)
        throughput = curve.charts[0]
        flask, _ = throughput.lines
        assert flask.name == "Flask"
        # The chart draws the law between the measured amounts too.
        assert len(flask.law) == len(curve.amounts) > len(curve.measured)
        assert sum(value is not None for value in flask.values) == len(curve.measured)
        # γ = 1,000 and a level of γ ÷ 0.1: linear growth reaches this level with 10 users. The other stack has no
        # level.
        (knee,) = curve.knees
        assert knee.name == "Flask"
        assert knee.at == pytest.approx(10, rel=0.1)
        assert [chart.title for chart in curve.charts] == [
            "throughput", "p99 response time", "mean response time", "CPUs in use", "CPU time per request", "memory",
        ]  # fmt: skip


def test_what_a_curve_shows_of_cpus_is_time_per_request_times_throughput_and_failures_have_a_chart_where_there_are_any(
    tmp_path: Path,
) -> None:
    def change(label: str, block: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        requests = result.summary.requests
        failed = replace(
            requests, ok=requests.completed * 9 // 10, failed=requests.completed - requests.completed * 9 // 10
        )
        return replace(result, summary=replace(result.summary, requests=failed))

    study = SyntheticStudy(
        stacks=(FLASK,), loads=[ClosedLoad(4), ClosedLoad(8)], aa=None, blocks=2, duration_s=1.0, change=change
    )
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        (curve,) = build_curves(of_run(reader), reader.trials())
    charts = {chart.title: chart for chart in curve.charts}
    at = curve.amounts.index(8)
    (cpus,), (rate,), (cost,) = (
        charts["CPUs in use"].lines,
        charts["throughput"].lines,
        charts["CPU time per request"].lines,
    )
    in_use, answered, each = cpus.values[at], rate.values[at], cost.values[at]
    assert answered
    assert each
    assert in_use == pytest.approx(answered * each / 1e6, rel=0.02)
    assert charts["requests that failed"].lines[0].values[at] == pytest.approx(10, rel=0.05)


def test_amounts_at_which_the_generator_may_have_been_the_limit_are_told(tmp_path: Path) -> None:
    def change(label: str, block: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        busy = Reason("generator busy", "suspect", "the generator was busy 97% of the time")
        is_high = result.summary.response_time_us.p50 is not None and result.summary.requests.unanswered == 64
        return replace(result, verdict=TrialVerdict((busy,))) if is_high else result

    study = SyntheticStudy(loads=[ClosedLoad(4), ClosedLoad(64)], aa=None, blocks=2, duration_s=0.5, change=change)
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        (curve,) = build_curves(of_run(reader), reader.trials())
    assert curve.limited == [64]


def test_a_curve_of_one_stack_says_how_it_went_and_one_of_two_who_has_less(tmp_path: Path) -> None:
    loads = [ClosedLoad(4), ClosedLoad(64)]
    growing = replace(SANIC, growth=lambda n: n / 4, variation=0.0, throughput_rps=1_000)
    study = SyntheticStudy(stacks=(growing,), loads=loads, aa=None, baseline=None, blocks=2, duration_s=0.5)
    with RunReader(write_run(tmp_path / "one.weir", study)) as reader:
        (curve,) = build_curves(of_run(reader), reader.trials())
    notes = {chart.title: curve.chart_sentence(chart) for chart in curve.charts[1:]}
    assert re.fullmatch(
        r"Sanic goes from 9\d\.\d µs at 4 connections to 6\d\.\d µs at 64\.", notes["CPU time per request"]
    )
    assert all(notes.values())
    with RunReader(write_run(tmp_path / "two.weir", replace(study, stacks=(FLASK, growing)))) as reader:
        (curve,) = build_curves(of_run(reader), reader.trials())
    cost = next(chart for chart in curve.charts if chart.title == "CPU time per request")
    assert curve.chart_sentence(cost).startswith("At 64 connections, Sanic has the lowest value (")


def test_stacks_that_no_amount_of_load_has_in_common_are_each_told(tmp_path: Path) -> None:
    study = SyntheticStudy(
        stacks=(FLASK, SANIC), loads=[ClosedLoad(4), ClosedLoad(8)], aa=None, blocks=2, duration_s=0.5
    )
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        (curve,) = build_curves(of_run(reader), reader.trials())
    chart = next(chart for chart in curve.charts if chart.title == "memory")
    small, large = curve.amounts.index(4), curve.amounts.index(8)
    for line, kept in zip(chart.lines, (small, large), strict=True):
        line.values[:] = [value if at == kept else None for at, value in enumerate(line.values)]
    text = curve.chart_sentence(chart)
    assert re.fullmatch(r"Flask has 6\d\.\d MB at 4 connections; Sanic has 8\d\.\d MB at 8 connections\.", text), text


THREADS = [{"threads": str(count)} for count in (50, 100, 200, 400)]
BY_THREADS = replace(SANIC, throughput_rps=10, scaled=lambda at: float(at["threads"]), variation=0.005)
LEVEL = replace(FLASK, throughput_rps=1_500, variation=0.005)


def test_a_setting_that_is_varied_alone_has_curves_as_a_load_has(tmp_path: Path) -> None:
    study = SyntheticStudy(
        stacks=(LEVEL, BY_THREADS), coordinates=THREADS, loads=[ClosedLoad(400)], aa=None, blocks=2, duration_s=0.5
    )
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        findings = of_run(reader)
        (curve,) = build_curves(findings, reader.trials())
    assert (curve.heading, curve.unit, curve.where) == ("threads", "threads", "echo, 400 connections")
    assert curve.amounts == curve.measured == [50, 100, 200, 400]
    # 10 per thread reach 1,500 with 150 threads.
    crossing = next(one for one in curve.crossings if one.metric == "throughput_rps")
    assert crossing.at == pytest.approx(150, rel=0.05)
    assert re.search(r"cross at 1[45]\d threads", curve.sentence)
    throughput = next(chart for chart in curve.charts if chart.metric == "throughput_rps")
    assert re.fullmatch(
        r"At 400 threads, Flask has the lowest value \(1,\d+ req/s\), and Sanic has the highest \(\d,\d+ req/s\)\. "
        r"Sanic and Flask cross at 1[45]\d threads \(no interval\)\.",
        curve.chart_sentence(throughput),
    )
    assert curve.knees == []


def test_a_setting_that_is_varied_with_the_load_has_curves_where_stacks_change_sides_along_it(tmp_path: Path) -> None:
    # 8 connections use fewer than 50 threads, and Flask is faster with any number of threads.
    slow = replace(BY_THREADS, growth=lambda connections: 1.0 if connections > 8 else 0.1)
    study = SyntheticStudy(
        stacks=(LEVEL, slow),
        coordinates=THREADS,
        loads=[ClosedLoad(8), ClosedLoad(400)],
        aa=None,
        blocks=2,
        duration_s=0.5,
    )
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        curves = build_curves(of_run(reader), reader.trials())
    assert [(curve.heading, curve.where) for curve in curves] == [
        *(("connections", f"echo, threads {count}") for count in (50, 100, 200, 400)),
        ("threads", "echo, 400 connections"),
    ]
