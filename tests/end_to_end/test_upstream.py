"""A stack that waits on an upstream, and more requests than threads: what the arithmetic says is what is measured."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Study, Weir

DELAY_S = 0.5


@pytest.mark.soak
def test_twelve_requests_to_eight_threads_are_answered_in_two_waves(tmp_path: Path, weir: Weir, study: Study) -> None:
    done = weir(
        "run",
        study(
            "flask-gunicorn[gthread]",
            workloads=["ping"],
            connections="[12]",
            matrix="limits.workers = 1",
            load="requests = 12",
            duration_s=5,
            rest=f'[services.delay]\ndelay = "{DELAY_S * 1000:g}ms"',
        ),
        "--out",
        "out",
        timeout_s=110,
    )
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        (summary,) = (json.loads(text) for (text,) in connection.execute("SELECT summary FROM trial"))
        tiers = {tier for (tier,) in connection.execute("SELECT DISTINCT tier FROM sample")}
    assert tiers == {"app", "delay"}
    assert summary["requests"]["ok"] == 12
    times_us = summary["response_time_us"]
    assert DELAY_S <= times_us["p50"] / 1e6 < DELAY_S * 1.3
    assert 2 * DELAY_S <= times_us["max"] / 1e6 < 2 * DELAY_S * 1.3
