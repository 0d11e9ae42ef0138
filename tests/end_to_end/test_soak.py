"""Long tests: every stack under real load, and a study with enough blocks for claims. `test_crash` has hundreds of
kills."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Study, Weir


@pytest.mark.soak
def test_every_stack_and_variant_answers_right_under_load_and_ends_with_nothing_left(weir: Weir) -> None:
    done = weir("stacks", "check", "--all", "--json", timeout_s=2400)
    checked = json.loads(done.stdout)
    assert [one for one in checked if not one["ok"]] == []
    assert [one["stack"] for one in checked if one["problem"] is not None] == ["nest-typeorm[ids-0-99]"]


@pytest.mark.soak
@pytest.mark.needs("node")
def test_a_stack_that_answers_one_in_a_hundred_with_nothing_is_caught_by_a_check_and_by_a_run(
    weir: Weir, study: Study
) -> None:
    done = weir("stacks", "check", "nest-typeorm[ids-0-99]", timeout_s=300)
    assert done.returncode == 3
    assert "workload user-random: " in done.stdout
    asked = study("nest-typeorm[ids-0-99]", "nest-typeorm", workloads=["user-random"])
    # Each run misses the error with a probability of 5 %.
    runs = (weir("run", asked, "--out", f"out-{number}", timeout_s=300) for number in range(4))
    caught = next(run for run in runs if run.returncode == 3)
    assert "workload user-random: GET /user/random: wrong response: body: found '', expected JSON" in caught.stderr


@pytest.mark.soak
def test_the_first_study_holds_at_the_scale_of_evidence(tmp_path: Path, weir: Weir) -> None:
    done = weir("run", "sync-vs-async", "--scale", "evidence", "--out", "out", timeout_s=3000)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        assert connection.execute("SELECT count(DISTINCT block) FROM trial WHERE validity != 'invalid'").fetchone() == (
            10,
        )
