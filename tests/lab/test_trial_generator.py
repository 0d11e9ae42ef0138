"""Tests a trial's generator: its choice by name, the files that it leaves, and its rate on a null server."""

from pathlib import Path

import pytest

from weir.generators.engine import EngineLoad
from weir.generators.external_load import ExternalLoad
from weir.generators.null_server import NullServer
from weir.generators.registry import get_tool
from weir.lab.trial_generator import begin_load, list_generator_files, measure_generator_limit
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, Request

needs_wrk = pytest.mark.skipif(get_tool("wrk").find() is None, reason="wrk is not there: apt-get install wrk")


def plan_for(address: str) -> LoadPlan:
    return LoadPlan(Request("GET", f"http://{address}/"), ClosedLoad(2), duration_s=1.0, cpus=(0,))


@needs_wrk
def test_a_load_is_made_by_the_generator_of_its_cell_and_its_output_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "wrk"
    folder.mkdir()
    (folder / "stale.txt").write_text("of a trial that was killed")
    with NullServer() as server:
        with begin_load("wrk", plan_for(server.address), folder=folder) as load:
            assert isinstance(load, ExternalLoad)
            assert load.result().summary.requests.completed > 0
        assert list(list_generator_files("wrk", folder)) == ["wrk output.txt"]
        with begin_load("weir", plan_for(server.address), folder=folder) as load:
            assert isinstance(load, EngineLoad)
            assert load.result().summary.requests.completed > 0
    assert list_generator_files("weir", folder) == {}


@needs_wrk
def test_each_generator_has_a_highest_rate_of_its_own(tmp_path: Path) -> None:
    plan = plan_for("127.0.0.1:1")
    assert measure_generator_limit("wrk", plan, (), tmp_path / "wrk") > 100
    assert measure_generator_limit("weir", plan, (), tmp_path / "weir") > 100


def test_a_generator_that_cannot_ask_again_at_once_has_no_highest_rate(tmp_path: Path) -> None:
    plan = LoadPlan(Request("GET", "http://127.0.0.1:1/"), OpenLoad(10.0, 2), duration_s=1.0)
    with pytest.raises(UsageError, match="wrk2"):
        measure_generator_limit("wrk2", plan, (), tmp_path)
