"""Tests the position of known figures in the cost plane."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_run import FLASK, SANIC, SyntheticStudy, write_run
from weir.findings import of_run
from weir.findings.metrics import P99
from weir.model.load import ClosedLoad
from weir.report.scatter import Plane, build_planes
from weir.store import RunReader


def planes(folder: Path, study: SyntheticStudy) -> tuple[list[Plane], float | None]:
    """Returns the cost planes, and the first stack's p99 in microseconds."""
    with RunReader(write_run(folder / "run.weir", study)) as reader:
        findings = of_run(reader)
    return build_planes(findings), findings.points[0].stacks[0].measure(P99).value


def test_a_stack_lies_where_its_p99_and_its_costs_are(tmp_path: Path) -> None:
    (cpu, memory), p99_us = planes(tmp_path, SyntheticStudy(duration_s=5.0, aa=None))
    flask, sanic = cpu.paths
    assert (flask.name, sanic.name) == ("Flask", "Sanic")
    assert p99_us is not None
    assert flask.spots[0].p99_ms == pytest.approx(p99_us / 1e3)
    # A microsecond per request is a second of CPU time per million requests.
    assert flask.spots[0].cost == pytest.approx(380, rel=0.1)
    assert memory.paths[1].spots[0].cost == pytest.approx(88, rel=0.05)
    # Faster stacks lie further left, cheaper stacks further down.
    assert sanic.spots[0].x < flask.spots[0].x
    assert sanic.spots[0].y > flask.spots[0].y
    assert cpu.sentence.startswith("Sanic has the lowest p99 (")
    assert " and the lowest cost (" in cpu.sentence


def test_amounts_of_load_are_joined_in_their_order_and_named(tmp_path: Path) -> None:
    loads = [ClosedLoad(n) for n in (64, 4, 16)]
    slow = replace(FLASK, growth=lambda n: 1.0)
    (cpu, _), _ = planes(tmp_path, SyntheticStudy(stacks=(slow, SANIC), loads=loads, aa=None, duration_s=5.0))
    path = cpu.paths[0]
    assert [spot.words for spot in path.spots] == ["4", "16", "64"]
    assert [spot.x for spot in path.spots] == sorted(spot.x for spot in path.spots)
    assert len(path.steps) == 2
    assert all(0 <= place <= 100 for spot in path.spots for place in (spot.x, spot.y))


def test_one_stack_alone_has_no_plane(tmp_path: Path) -> None:
    found, _ = planes(tmp_path, SyntheticStudy(stacks=(SANIC,), aa=None, baseline=None, duration_s=1.0))
    assert found == []


def test_the_names_of_stacks_that_lie_on_each_other_stand_above_and_below(tmp_path: Path) -> None:
    alike = replace(SANIC, name="spring-webflux", title="Spring WebFlux on Netty")
    (cpu, memory), _ = planes(tmp_path, SyntheticStudy(stacks=(SANIC, alike, FLASK), aa=None, duration_s=5.0))
    assert [path.is_named_below for path in cpu.paths] == [False, True, False]
    assert [path.is_named_below for path in memory.paths] == [False, True, False]
