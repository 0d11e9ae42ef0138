"""Tests experiments that prove a bottleneck: the prediction, and the findings of a run with its trials."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_run import SANIC, SyntheticStudy, write_run
from weir.findings import RunFindings, of_run
from weir.model.load import ClosedLoad
from weir.model.resources import TierResources
from weir.model.run_types import Limits, TrialResult, UpperBound
from weir.store import RunReader

# With 2 ms of CPU per request and 0.2 CPUs, each process carries 100 requests per second.
NODE = replace(
    SANIC, throughput_rps=100, cpu_us_per_request=2_000, variation=0.01, scaled=lambda at: int(at["replicas"])
)
STUDY = SyntheticStudy(
    stacks=(NODE,), baseline="sanic", aa=None, blocks=10, indicative=False, duration_s=1.0, limits={"app": Limits(cpus=0.2)},
    coordinates=[{"replicas": "1"}, {"replicas": "2"}],
)  # fmt: skip


def of(path: Path, study: SyntheticStudy) -> RunFindings:
    with RunReader(write_run(path / "run.weir", study)) as reader:
        return of_run(reader)


def test_one_more_process_brings_what_its_quota_allows_and_the_run_proves_it(tmp_path: Path) -> None:
    findings = of(tmp_path, STUDY)
    one, two = findings.bottlenecks
    assert (one.kind, one.what, two.what) == ("resource", "app's quota of 0.2 CPUs", "app's quota of 0.2 CPUs × 2")
    assert one.experiment is not None
    assert (one.experiment.of, one.experiment.before, one.experiment.after) == ("replicas", 1, 2)
    assert one.experiment.predicted_ratio == pytest.approx(2.0, rel=0.03)
    assert "2 replicas instead of 1 replica: expect 200 req/s, 2.00× as many" in one.would_prove
    (proof,) = findings.proofs
    assert proof.agrees is True
    assert proof.ratio == pytest.approx(2.0, rel=0.03)
    assert proof.sentence.endswith("the prediction was 2.00×: app's quota of 0.2 CPUs is confirmed as the bottleneck.")


def test_a_prediction_that_does_not_come_true_is_said(tmp_path: Path) -> None:
    findings = of(tmp_path, replace(STUDY, stacks=(replace(NODE, scaled=lambda at: 1.0),)))
    (proof,) = findings.proofs
    assert proof.agrees is False
    assert proof.sentence.endswith("there is a second bottleneck.")


def test_what_the_next_narrowest_allows_bounds_the_prediction(tmp_path: Path) -> None:
    # 16 processes use all of CPU 1, so a 17th adds no throughput.
    study = replace(
        STUDY,
        stacks=(replace(NODE, throughput_rps=475, scaled=lambda at: 1.0),),
        coordinates=[{"replicas": "5"}],
        blocks=2,
    )
    (found,) = of(tmp_path, study).bottlenecks
    assert found.kind == "resource"
    assert found.experiment is not None
    assert found.experiment.predicted_ratio == pytest.approx(1.0, abs=0.1)


def test_a_limit_is_doubled_until_the_next_upper_bound(tmp_path: Path) -> None:
    upper_bounds = (UpperBound("stack", 40.0, "4 threads ÷ 0.1 s", 4, 0.1), UpperBound("load", 60.0, "6 users ÷ 0.1 s"))
    stack = replace(
        SANIC,
        throughput_rps=39,
        cpu_us_per_request=1_000,
        model="thread per request",
        scaled=lambda at: int(at["threads"]) / 4,
    )
    study = replace(
        STUDY,
        stacks=(stack,),
        limits={},
        upper_bounds={"sanic": upper_bounds},
        coordinates=[{"threads": "4"}, {"threads": "6"}],
        loads=[ClosedLoad(6)],
    )
    found = of(tmp_path, study).bottlenecks[0]
    assert found.experiment is not None
    assert (found.experiment.of, found.experiment.name, found.experiment.before, found.experiment.after) == (
        "limit",
        "threads",
        4,
        8,
    )
    assert found.experiment.predicted_ratio == pytest.approx(60 / 39, rel=0.03)
    # No cell has eight threads.
    assert of(tmp_path / "again", study).proofs == ()


def test_a_load_that_asks_for_no_more_is_doubled(tmp_path: Path) -> None:
    stack = replace(SANIC, throughput_rps=1, cpu_us_per_request=1_000, growth=lambda n: 9.8 * n, variation=0.005)
    study = replace(
        STUDY, stacks=(stack,), limits={}, coordinates=[{}], loads=[ClosedLoad(10), ClosedLoad(20)],
        upper_bounds={"sanic": (UpperBound("load", 196.5, "20 users ÷ 0.1 s"),)},
    )  # fmt: skip
    (found,) = of(tmp_path, study).bottlenecks
    assert (found.kind, found.at) == ("load", "20 connections")
    assert found.experiment is not None
    assert (found.experiment.of, found.experiment.name, found.experiment.after) == ("users", "connections", 40)


def test_more_processes_are_no_answer_to_a_service_that_is_full(tmp_path: Path) -> None:
    def with_database(_: str, __: int, result: TrialResult) -> TrialResult:
        assert result.resources is not None
        used = TierResources(
            cpu_user_s=0.2, cpu_system_s=0.0, peak_threads=1, peak_processes=1, pss_bytes=None, private_bytes=None
        )
        tiers = {"app": replace(used, cpu_user_s=0.05), "postgres": used}
        return replace(
            result, resources=replace(result.resources, tiers=tiers), logs={"app": "a.log", "postgres": "p.log"}
        )

    study = replace(STUDY, limits={"postgres": Limits(cpus=0.2)}, change=with_database, blocks=2)
    for found in of(tmp_path, study).bottlenecks:
        assert (found.kind, found.what, found.experiment) == ("resource", "postgres's quota of 0.2 CPUs", None)
        assert found.would_prove.startswith("Add capacity to postgres's quota of 0.2 CPUs: up to about ")
