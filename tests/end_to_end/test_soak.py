"""What takes longer: every stack under real load, a study at the scale on which claims rest. Kills by the hundred: `test_crash`."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Weir


@pytest.mark.soak
def test_every_stack_and_variant_answers_right_under_load_and_ends_with_nothing_left(weir: Weir) -> None:
    done = weir("stacks", "check", "--all", "--json", timeout_s=2400)
    assert [one for one in json.loads(done.stdout) if not one["ok"]] == []


@pytest.mark.soak
def test_the_first_study_holds_at_the_scale_of_evidence(tmp_path: Path, weir: Weir) -> None:
    done = weir("run", "sync-vs-async", "--scale", "evidence", "--out", "out", timeout_s=3000)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        assert connection.execute("SELECT count(DISTINCT block) FROM trial WHERE validity != 'invalid'").fetchone() == (10,)
