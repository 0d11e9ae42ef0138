"""Tests the live page of a run whose stacks are on another node: this machine serves the page as usual."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.cluster.conftest import StartNodes, StartWeir
from tests.end_to_end import conftest as end_to_end
from tests.end_to_end import test_live
from weir.model.errors import ExitCode
from weir.store import RunReader

pytestmark = pytest.mark.usefixtures("stacks")

stacks = end_to_end.stacks
study = end_to_end.study
Study = end_to_end.Study
look = test_live.look
Look = test_live.Look


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_run_on_another_node_is_shown_and_stopped_here(
    study: Study, start_weir: StartWeir, look: Look, start_nodes: StartNodes, tmp_path: Path
) -> None:
    cluster = start_nodes({}, {"weir_stack": 1}, {"weir_load": 1})
    file = study("good", duration_s=3600, retries=1)
    process = start_weir("run", file, "--out", "out", "--cluster", cluster.address, "--agents", "1", "--live")
    url = test_live.address(process)
    assert urlsplit(url).hostname == "127.0.0.1"
    page = look(url)
    expect(page.locator("#question")).to_have_text("Which is better?")
    expect(page.locator("#run-progress")).to_contain_text("trial 1 of 1", timeout=60_000)
    expect(page.locator("#point")).to_have_text("hello, 4 connections")
    expect(page.locator("#progress-text")).to_contain_text(" of 3600 s", timeout=60_000)
    expect(page.locator("#processes tr")).to_contain_text("app")
    expect(page.locator("#chart-tiers canvas")).to_have_count(1)
    page.locator("#extend").click()
    page.locator("#skip").click()
    expect(page.locator("#trials tr")).to_contain_text("skipped by the viewer")
    expect(page.locator("#run-progress")).to_contain_text("trial 2 of 2 · block 2 of 2")
    page.locator("#stop").click()
    expect(page.locator("#point")).to_have_text(re.compile("^Ended early"), timeout=60_000)
    _, err = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert "Traceback" not in err
    assert "weir-live" not in err
    with RunReader(tmp_path / "out") as reader:
        (trial,) = reader.trials()
        assert trial.result.verdict.texts == ("skipped by the viewer",)
        assert reader.intervals(trial.id)
