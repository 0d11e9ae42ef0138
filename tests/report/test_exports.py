"""Tests runs and loads in the formats of other tools."""

import csv
import io
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from typer.testing import CliRunner

from tests.support.synthetic_run import SyntheticStudy, write_run
from weir.cli.commands import app
from weir.findings import of_run
from weir.model.hdr import Hdr, deflated
from weir.model.load import ClosedLoad
from weir.report import exports
from weir.report.exports import Sampled
from weir.store import RunReader

RANDOM = np.random.default_rng(1)
TIMES_MS = np.sort(RANDOM.lognormal(2, 0.5, 5_000))


def recorded() -> Hdr:
    found = Hdr()
    for time in TIMES_MS:
        found.add(int(time * 1e6))
    return found


def sampled(name: str = "hello") -> Sampled:
    return Sampled(name, "GET", (1,), 5_010, 10, 10.0, 1_024_000, 512_000, (recorded().encode(),))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_jmeters_report_has_its_columns_whole_milliseconds_and_a_total() -> None:
    first, total = rows(exports.render_jmeter([sampled()]))
    assert list(first) == [
        "Label", "# Samples", "Average", "Median", "90% Line", "95% Line", "99% Line", "Min", "Max", "Error %", "Throughput",
        "Received KB/sec", "Sent KB/sec",
    ]  # fmt: skip
    assert (first["Label"], total["Label"]) == ("hello", "TOTAL")
    assert float(first["Median"]) == pytest.approx(np.quantile(TIMES_MS, 0.5), abs=0.6)
    assert (first["Error %"], first["Throughput"], first["Received KB/sec"]) == ("0.200%", "501.00000", "100.00")


def test_locusts_statistics_have_its_columns_and_an_aggregate() -> None:
    one, other, total = rows(exports.render_locust([sampled("a"), sampled("b")]))
    assert (one["Type"], one["Name"], other["Name"], total["Name"]) == ("GET", "a", "b", "Aggregated")
    assert int(total["Request Count"]) == 10_020
    assert int(total["Failure Count"]) == 20
    assert float(one["Average Response Time"]) == pytest.approx(TIMES_MS.mean(), rel=1e-3)
    assert one["99%"] == total["99%"]
    assert float(one["99%"]) == pytest.approx(np.quantile(TIMES_MS, 0.99), abs=0.6)
    assert float(one["Max Response Time"]) == pytest.approx(TIMES_MS.max(), rel=1e-3)


def test_percentiles_are_printed_in_hdrhistograms_own_form() -> None:
    package = HdrHistogram.decode(deflated(recorded().encode()))
    printed = io.BytesIO()
    package.output_percentile_distribution(printed, 1e6)
    ours, theirs = exports.render_hgrm([sampled()]).splitlines(), printed.getvalue().decode().splitlines()
    assert ours[0] == "# hello"
    # The heading, the shortest time and the longest time are equal.
    assert ours[1:4] == theirs[:3]
    assert ours[-5] == theirs[-4]
    # The package makes its steps ever shorter. HdrHistogram's first implementation, in Java, halves them only when the
    # rest is halved.
    lines = [line.split() for line in ours[3:-5]]
    values = recorded().by_value()
    up_to = dict(zip((f"{value / 1e6:.3f}" for value in values), accumulate(values.values()), strict=True))
    assert [float(share) for _, share, *_ in lines[:10]] == pytest.approx(
        [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7]
    )
    for value_ms, share, count, inverse in lines:
        assert int(count) == up_to[value_ms]
        assert int(count) >= float(share) * len(TIMES_MS) - 1e-6
        assert float(inverse) == pytest.approx(1 / (1 - float(share)), rel=0.01)
    assert (
        ours[-4]
        == f"#[Mean    = {package.get_mean_value() / 1e6:12.3f}, StdDeviation   = {package.get_stddev() / 1e6:12.3f}]"
    )
    assert ours[-3] == f"#[Max     = {package.get_max_value() / 1e6:12.3f}, Total count    = {5_000:12d}]"
    assert ours[-1] == "#[Seconds =       10.000]"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    loads = [ClosedLoad(10), ClosedLoad(20)]
    return write_run(tmp_path_factory.mktemp("run") / "run.weir", SyntheticStudy(blocks=2, duration_s=1.0, loads=loads))


def test_a_run_is_told_by_stack_and_point_with_its_trials_merged(run: Path) -> None:
    with RunReader(run) as reader:
        found = exports.collect_samples(reader, of_run(reader))
        trials = {trial.id: trial for trial in reader.trials()}
    assert [one.name for one in found] == [
        "Flask (10 connections)", "Sanic (10 connections)", "Flask (20 connections)", "Sanic (20 connections)",
    ]  # fmt: skip
    # The A/A copy is not a separate stack.
    assert sum(one.requests for one in found) == sum(
        trial.result.summary.requests.completed
        for trial in trials.values()
        if trial.cell.arm == "main" and trial.result.summary is not None
    )
    assert all(one.answered == one.requests for one in found)


@pytest.mark.parametrize("form", ["json", "md", "csv", "jmeter", "locust", "hgrm"])
def test_the_prompt_prints_each_form_and_nothing_else(run: Path, form: str) -> None:
    done = CliRunner().invoke(app, ["report", str(run), "--format", form])
    assert done.exit_code == 0
    begins = {
        "json": "{",
        "md": "## Sync against async",
        "csv": "workload,load,",
        "jmeter": "Label,",
        "locust": "Type,Name",
        "hgrm": "# Flask",
    }
    assert done.stdout.startswith(begins[form])
    assert not (run.parent / "report.html").exists()


def test_markdown_holds_the_answer_and_a_table(run: Path) -> None:
    text = CliRunner().invoke(app, ["report", str(run), "--format", "md"]).stdout
    assert "[valid, indicative]" in text
    assert "| stack | throughput, req/s |" in text
    assert "### 10 connections" in text


def test_the_table_has_a_row_for_every_figure(run: Path) -> None:
    found = rows(CliRunner().invoke(app, ["report", str(run), "--format", "csv"]).stdout)
    with RunReader(run) as reader:
        findings = of_run(reader)
    assert len(found) == sum(len(stack.measures) for point in findings.points for stack in point.stacks)
    first = findings.points[0].stacks[0].measures[0]
    assert float(found[0]["value"]) == first.value


def test_an_unknown_form_names_those_there_are(run: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(run), "--format", "pdf"])
    assert "expected one of html, json, md, csv, jmeter, locust, hgrm" in str(getattr(done.exception, "message", ""))


def test_a_name_with_a_comma_and_a_line_break_stays_one_cell() -> None:
    name = 'a,"b"\n=1+1'
    assert rows(exports.render_jmeter([sampled(name)]))[0]["Label"] == name


def test_a_stack_whose_requests_all_failed_has_no_times() -> None:
    nothing = replace(sampled(), failed=5_010, parts=())
    assert rows(exports.render_jmeter([nothing]))[0]["Error %"] == "100.000%"
    assert "Total count    =            0" in exports.render_hgrm([nothing])
