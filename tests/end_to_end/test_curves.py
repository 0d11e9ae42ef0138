"""Runs that search the point where stacks change sides, and experiments on bottlenecks, with real processes."""

import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Study, Weir
from weir.findings import of_run
from weir.store import RunReader


@pytest.mark.usefixtures("stacks")
def test_a_refined_run_measures_where_its_stacks_change_sides_and_goes_on_with_that(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    # One stack takes 0.1 s for any number of requests at once, the other 20 ms one after the other: 10 N and 50 per
    # second, equal at five.
    mine = study(
        "slowest",
        "one-at-a-time",
        connections="[1, 20]",
        method="refine = true\nmost_points = 1\nextension_s = 0",
        blocks=2,
    )
    done = weir("run", mine, "--out", "out")
    assert done.returncode == 0, done.stderr
    # On a busy machine both are slower, so the test only checks that weir looks for the crossing, not where it lies.
    further = re.search(r"a further point at (\d+), near a crossing of one-at-a-time and slowest", done.stderr)
    assert further is not None, done.stderr
    with RunReader(tmp_path / "out") as reader:
        places = {cell.load.connections for cell in reader.cells()}
        (found,) = [one for one in of_run(reader).break_evens if one.metric == "throughput_rps"]
    assert places == {1, int(further.group(1)), 20}
    (crossing,) = found.crossings
    assert 1 < crossing.at < 20
    assert crossing.between[0] <= crossing.at <= crossing.between[1]
    # One trial of a further point is lost; the resumed run repeats only this trial.
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        (last, trials) = connection.execute("SELECT max(id), count(*) FROM trial").fetchone()
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM trial WHERE id = ?", (last,))
    done = weir("run", "--resume", "out")
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        assert connection.execute("SELECT count(*) FROM trial").fetchone() == (trials,)


@pytest.mark.usefixtures("stacks")
def test_refining_beside_a_width_is_refused(weir: Weir, study: Study) -> None:
    done = weir("study", "check", study("slow", "other", method="refine = true\nwidth = 0.05\nmost_blocks = 9"))
    assert done.returncode == 2
    assert "refine: found together with width, expected only one:" in done.stderr


@pytest.mark.soak
def test_a_load_that_holds_a_stack_back_is_proved_by_doubling_it(tmp_path: Path, weir: Weir, study: Study) -> None:
    mine = study(
        "flask-gunicorn[gthread]", workloads=["ping"], connections="[4]", matrix="limits.workers = 2", duration_s=2, blocks=2,
        method="extension_s = 0", rest='[services.delay]\ndelay = "100ms"',
    )  # fmt: skip
    assert weir("run", mine, "--out", "out").returncode == 0
    done = weir("confirm", "out", "--blocks", "2", "--out", "proof", timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert "8 connections instead of 4 connections gave" in done.stdout
    assert "predicted were 2.0" in done.stdout
    found = json.loads(weir("findings", "proof/1", "--json").stdout)
    assert found["question"].endswith("8 instead of 4?")
