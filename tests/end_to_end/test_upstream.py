"""A stack that waits for an upstream, with more requests than threads: measured figures must agree with arithmetic."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Study, Weir

DELAY_S = 0.5
QUICK_S = 900.0
"""More seconds than either study takes at scale `quick`, including the build of its stacks."""


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


@pytest.mark.soak
def test_threads_that_wait_sit_at_their_upper_bound_and_event_loops_at_the_loads(tmp_path: Path, weir: Weir) -> None:
    done = weir("run", "mvc-vs-webflux", "--scale", "quick", "--out", "out", timeout_s=QUICK_S)
    # Exit code 4: measured with a reservation, as always if roles share CPUs.
    assert done.returncode in (0, 4), done.stderr
    findings = json.loads(weir("report", "out", "--json").stdout)
    reached = {stack["label"]: stack for stack in findings["points"][0]["stacks"]}
    for label, of in (("spring-mvc", "stack"), ("spring-webflux", "load")):
        bound = reached[label]["upper_bounds"][0]
        assert bound["of"] == of
        (rate,) = (measure["value"] for measure in reached[label]["measures"] if measure["metric"] == "throughput_rps")
        assert rate == pytest.approx(bound["throughput_rps"], rel=0.03)


@pytest.mark.soak
def test_sixty_requests_to_forty_spring_threads_come_in_two_waves(tmp_path: Path, weir: Weir) -> None:
    done = weir("run", "threadpool-exhaustion", "--scale", "quick", "--out", "out", timeout_s=QUICK_S)
    assert done.returncode in (0, 4), done.stderr
    findings = json.loads(weir("report", "out", "--json").stdout)
    threads = [
        stack for stack in findings["points"][0]["stacks"] if stack["label"] in ("spring-mvc", "spring-mvc (A/A)")
    ]
    assert len(threads) == 2
    for stack in threads:
        first, second = stack["waves"]
        assert (first["answers"], second["answers"]) == (40, 20)
        # A wave begins after the delay, and lasts as long as the stack needs CPU for its responses.
        assert first["begins_s"] == pytest.approx(3, rel=0.05)
        assert second["begins_s"] == pytest.approx(6, rel=0.05)
