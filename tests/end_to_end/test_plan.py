"""Compares a plan's prediction for more processes with their measured throughput."""

import json
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Study, Weir


@pytest.mark.soak
@pytest.mark.timeout(2000)
def test_two_and_three_processes_behind_nginx_answer_what_one_lets_expect(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    asked = study(
        "nest-typeorm-nginx",
        workloads=["user-random"],
        connections="[50]",
        matrix="replicas = [1, 2, 3]",
        blocks=5,
        duration_s=10,
        # Each process needs eight seconds of CPU to warm up; three processes share the requests, so each warms up more
        # slowly.
        warmup_s=40,
        # Fifteen trials take fifteen minutes. A block that lost a trial is left out, and four blocks remain.
        retries=0,
        # Three processes leave room for nginx and PostgreSQL on the CPU that they share.
        rest='[cpus]\nservices = "stack"\nquota = { app = 0.2 }',
    )
    done = weir("run", asked, "--out", "out", timeout_s=1800)
    assert done.returncode in (0, 4), done.stderr
    found = json.loads(weir("plan", "--from", "out", "--replicas", "2,3", "--json").stdout)
    assert [one["replicas"] for one in found["replicas"]] == [2, 3]
    assert [one["error"] for one in found["replicas"]] == pytest.approx([0, 0], abs=0.10)
