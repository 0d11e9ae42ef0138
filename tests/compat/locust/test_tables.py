"""Locust's tables and files, which `weir audit` reads again."""

import csv
import re
from pathlib import Path

import pytest

from weir.compat.locust.figures import Failure, Figures
from weir.compat.locust.gathered import Gathered
from weir.compat.locust.recorder import Recorder
from weir.compat.locust.tables import CsvFiles, error_table, exception_table, name_width, percentile_table, stats_table
from weir.compat.locust.tally import Measured, Tally
from weir.compat.reports import read_report
from weir.model.errors import UsageError


def figures() -> Figures:
    index, order = Tally(), Tally()
    for took_ms in range(1, 101):
        index.record(Measured(took_ms * 1_000_000, status=200, received_bytes=10))
    order.record(Measured(1_234_000_000, error="check", status=500))
    failure = Failure("POST", "/order", "CatchResponseError('no')", 1, 0.0, 61.0)
    return Figures({("POST", "/order"): order, ("GET", "/"): index}, 10.0, (failure,), {("boom", "Traceback: boom"): 2})


def test_the_table_looks_as_locusts() -> None:
    width = name_width(None)
    lines = stats_table(figures(), figures(), width)
    assert lines[0].split() == ["Type", "Name", "#", "reqs", "#", "fails", "|", "Avg", "Min", "Max", "Med", "|", "req/s", "failures/s"]
    assert lines[1] == "|".join("-" * count for count in (8, 76, 7, 13, 7, 7, 7, 7, 8, 11))
    assert lines[2].split() == ["GET", "/", "100", "0(0.00%)", "|", "50", "1", "100", "50", "|", "10.00", "0.00"]
    assert lines[3].split() == ["POST", "/order", "1", "1(100.00%)", "|", "1234", "1234", "1234", "1234", "|", "0.10", "0.10"]
    assert lines[5].split()[:3] == ["Aggregated", "101", "1(0.99%)"]


def test_percentiles_are_those_of_what_was_measured() -> None:
    lines = percentile_table(figures(), 20)
    assert lines[1].split()[2:] == ["50%", "66%", "75%", "80%", "90%", "95%", "98%", "99%", "99.9%", "99.99%", "100%", "#", "reqs"]
    assert lines[3].split() == ["GET", "/", "50", "66", "75", "80", "90", "95", "98", "99", "100", "100", "100", "100"]


def test_failures_and_exceptions_have_tables_where_there_are_some() -> None:
    found = figures()
    assert error_table(found, 80)[3].split() == ["1", "POST", "/order:", "'no'"]
    assert exception_table(found, 80)[3].split() == ["2", "Traceback:", "boom"]
    nothing = Figures({}, 1.0)
    assert error_table(nothing, 80) == exception_table(nothing, 80) == []


def gathered() -> Gathered:
    found = Gathered(1, 1.0)
    recorder = Recorder(lambda: 5_000_000_000)
    recorder.start(0, 1_000_000_000)
    for took_ms in range(1, 101):
        recorder.record("GET", "/", Measured(took_ms * 1_000_000, status=200, received_bytes=10), at_ns=0)
    recorder.record("POST", "/order", Measured(1_234_000_000, error="check", status=500), "CatchResponseError('no')", at_ns=0)
    recorder.record_exception("boom", "Traceback: boom")
    list(found.take(0, recorder.flushed() | {"users": 7, "cpu_s": 0.0}))
    return found


def test_the_files_have_locusts_columns_and_are_read_by_the_audit(tmp_path: Path) -> None:
    with CsvFiles(str(tmp_path / "folder" / "a"), gathered(), full_history=True) as files:
        files.write(10.0)
    rows = {path.name: list(csv.DictReader(path.read_text().splitlines())) for path in (tmp_path / "folder").iterdir()}
    assert [row["Name"] for row in rows["a_stats.csv"]] == ["/", "/order", "Aggregated"]
    assert rows["a_stats.csv"][0] | {"50%": "50", "99.99%": "100", "Median Response Time": "50"} == rows["a_stats.csv"][0]
    assert [(row["Name"], row["User Count"], row["Total Request Count"]) for row in rows["a_stats_history.csv"]] == [
        ("/", "7", "100"),
        ("/order", "7", "1"),
        ("Aggregated", "7", "101"),
    ]
    (failure,) = rows["a_failures.csv"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", failure.pop("First Seen"))
    assert failure.pop("Last Seen")
    assert failure == {"Method": "POST", "Name": "/order", "Error": "CatchResponseError('no')", "Occurrences": "1"}
    assert rows["a_exceptions.csv"] == [{"Count": "1", "Message": "boom", "Traceback": "Traceback: boom", "Nodes": "local"}]
    claims = read_report((tmp_path / "folder" / "a_stats.csv").read_text(), "a")
    assert claims is not None
    assert (claims[0].requests, claims[0].failed) == (101, 1)


def test_a_prefix_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--csv"):
        CsvFiles(str(tmp_path / "file" / "a"), gathered(), full_history=False)
