"""Tests studies that give their stacks a CPU quota, a memory limit or a network namespace."""

import json
import os
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Study, Weir, servers_of
from weir.host import Capabilities, Host
from weir.store import RunReader

QUOTA = 0.3


def able(key: str) -> None:
    """Skips the test if the machine lacks the capability `key`."""
    with Host() as host:
        found: Capabilities = host.capabilities()
    ability = getattr(found, key)
    if not ability.possible:
        pytest.skip(f"{key}: {ability.detail}")


def with_tables(study: Path, tables: str) -> Path:
    study.write_text(study.read_text() + tables)
    return study


def test_a_stack_under_a_quota_uses_no_more_than_it_and_the_run_says_so(
    weir: Weir, stacks: Path, study: Study, tmp_path: Path
) -> None:
    able("limits")
    path = with_tables(
        study("good", duration_s=3), f"[cpus]\nquota = {{ app = {QUOTA} }}\nmemory = {{ app = '512 MB' }}\n"
    )
    done = weir("run", path, "--out", "out")
    assert done.returncode == 0, done.stderr
    with RunReader(tmp_path / "out" / "run.weir") as reader:
        limits = reader.info.placement.limits
        trial = reader.trials()[0]
    assert (limits["app"].cpus, limits["app"].memory_bytes) == (QUOTA, 512_000_000)
    assert trial.result.resources is not None
    assert trial.result.summary is not None
    cpus = trial.result.resources.cpu_s / trial.result.summary.duration_s
    # A window that does not begin with a period may contain one more period's quota.
    assert cpus < QUOTA * (1 + 0.1 / 3) * 1.02
    assert "quota" in (tmp_path / "out" / "report.html").read_text()


def test_a_stack_that_outgrows_its_memory_is_rejected_and_its_limit_is_named(
    weir: Weir, stacks: Path, study: Study, tmp_path: Path
) -> None:
    able("limits")
    # The load ends with the server, however long the server takes to outgrow the limit.
    path = with_tables(study("hoards-memory", duration_s=60, retries=0), "[cpus]\nmemory = { app = '128 MiB' }\n")
    done = weir("run", path, "--out", "out")
    assert done.returncode == 3, done.stderr
    with RunReader(tmp_path / "out" / "run.weir") as reader:
        reasons = " ".join(reader.trials()[0].result.verdict.texts)
    assert "after the kernel had killed 1 process at the memory limit" in reasons
    assert servers_of(tmp_path) == []


def test_a_stack_in_a_network_of_its_own_is_loaded_on_its_published_port(
    weir: Weir, stacks: Path, study: Study, tmp_path: Path
) -> None:
    able("port_translation")
    path = with_tables(study("good"), '[network]\nisolation = "netns"\nport = 8000\npublish = 1234\n')
    done = weir("run", path, "--out", "out")
    assert done.returncode == 0, done.stderr
    with RunReader(tmp_path / "out" / "run.weir") as reader:
        network = reader.info.placement.network
        summary = reader.trials()[0].result.summary
    assert network is not None
    assert (network.port, network.published_port) == (8000, 1234)
    assert summary is not None
    assert summary.target.startswith("http://198.1")
    assert ":1234/" in summary.target
    assert summary.requests.ok > 0
    assert not any(name.startswith("weir") for name in os.listdir("/sys/class/net"))


def test_delay_without_netem_is_refused_before_anything_starts_or_left_out_with_a_fallback(
    weir: Weir, stacks: Path, study: Study, tmp_path: Path
) -> None:
    able("network")
    with Host() as host:
        if host.capabilities().netem.possible:
            pytest.skip("this kernel has netem")
    wish = '[network]\nisolation = "netns"\ndelay_ms = 20\n'
    refused = weir("run", with_tables(study("good"), wish), "--out", "refused")
    assert refused.returncode == 2
    assert "network: delay_ms, loss: this machine does not support the delay and loss" in refused.stderr
    assert not (tmp_path / "refused" / "run.weir").exists()
    done = weir("run", with_tables(study("good"), wish + "fallback = true\n"), "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "This machine does not support the delay and loss" in done.stdout


def test_a_limit_of_a_tier_that_is_not_there_is_refused_before_anything_starts(
    weir: Weir, stacks: Path, study: Study, tmp_path: Path
) -> None:
    able("limits")
    refused = weir("run", with_tables(study("good"), "[cpus]\nquota = { ap = 0.5 }\n"), "--out", "out")
    assert refused.returncode == 2
    assert "found tier 'ap'" in refused.stderr
    assert not (tmp_path / "out" / "run.weir").exists()


def test_doctor_says_what_can_be_limited_and_isolated(weir: Weir) -> None:
    done = weir("doctor", "--json")
    found = {finding["what"]: finding for finding in json.loads(done.stdout)}
    for what in ("quotas and memory limits", "networks of stacks", "published ports", "delay and loss"):
        assert found[what]["found"]
        assert found[what]["required"] is False
