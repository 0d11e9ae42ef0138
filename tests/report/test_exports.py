"""Runs and loads in the forms of other tools."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from typer.testing import CliRunner

from tests.support.synthetic_run import SyntheticStudy, write_run
from weir.cli.commands import app
from weir.findings import of_run
from weir.model import histogram
from weir.model.load import ClosedLoad
from weir.report import exports
from weir.report.exports import Sampled
from weir.store import RunReader

RANDOM = np.random.default_rng(1)
TIMES_MS = np.sort(RANDOM.lognormal(2, 0.5, 5_000))


def recorded() -> HdrHistogram:
    found = HdrHistogram(1, histogram.HIGHEST_NS, 3)
    for time in TIMES_MS:
        found.record_value(int(time * 1e6))
    return found


def sampled(name: str = "hello") -> Sampled:
    part = histogram.raw_bytes(recorded())
    return Sampled(name, (1,), "GET", 5_010, 10, 10.0, (part,), *exports.times_of([part]), 1_024_000, 512_000)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_jmeters_report_has_its_columns_whole_milliseconds_and_a_total() -> None:
    first, total = rows(exports.jmeter([sampled()]))
    assert list(first) == [
        "Label", "# Samples", "Average", "Median", "90% Line", "95% Line", "99% Line", "Min", "Max", "Error %", "Throughput",
        "Received KB/sec", "Sent KB/sec",
    ]  # fmt: skip
    assert (first["Label"], total["Label"]) == ("hello", "TOTAL")
    assert float(first["Median"]) == pytest.approx(np.quantile(TIMES_MS, 0.5), abs=0.6)
    assert (first["Error %"], first["Throughput"], first["Received KB/sec"]) == ("0.200%", "501.00000", "100.00")


def test_locusts_statistics_have_its_columns_and_an_aggregate() -> None:
    one, other, total = rows(exports.locust([sampled("a"), sampled("b")]))
    assert (one["Type"], one["Name"], other["Name"], total["Name"]) == ("GET", "a", "b", "Aggregated")
    assert int(total["Request Count"]) == 10_020
    assert int(total["Failure Count"]) == 20
    assert float(one["Average Response Time"]) == pytest.approx(TIMES_MS.mean(), rel=1e-3)
    assert one["99%"] == total["99%"]
    assert float(one["99%"]) == pytest.approx(np.quantile(TIMES_MS, 0.99), abs=0.6)
    assert float(one["Max Response Time"]) == pytest.approx(TIMES_MS.max(), rel=1e-3)


def test_percentiles_are_printed_as_hdrhistograms_own_printer_does() -> None:
    printed = io.BytesIO()
    recorded().output_percentile_distribution(printed, 1e6)
    found = exports.hgrm([sampled()])
    assert printed.getvalue().decode().rstrip() in found
    assert found.startswith("# hello\n")
    assert f"#[Mean    = {TIMES_MS.mean():12.3f}" in found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    loads = [ClosedLoad(10), ClosedLoad(20)]
    return write_run(tmp_path_factory.mktemp("run") / "run.weir", SyntheticStudy(blocks=2, duration_s=1.0, loads=loads))


def test_a_run_is_told_by_stack_and_point_with_its_trials_merged(run: Path) -> None:
    with RunReader(run) as reader:
        found = exports.of_run(reader, of_run(reader))
        trials = {trial.id: trial for trial in reader.trials()}
    assert [one.name for one in found] == [
        "Flask (10 connections)", "Sanic (10 connections)", "Flask (20 connections)", "Sanic (20 connections)",
    ]  # fmt: skip
    # The A/A copy is no stack of its own.
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
    assert rows(exports.jmeter([sampled(name)]))[0]["Label"] == name


def test_a_stack_whose_requests_all_failed_has_no_times() -> None:
    nothing = replace(sampled(), failed=5_010, times_ns=np.zeros(0), often=np.zeros(0), parts=())
    assert rows(exports.jmeter([nothing]))[0]["Error %"] == "100.000%"
    assert "Total count    =            0" in exports.hgrm([nothing])
