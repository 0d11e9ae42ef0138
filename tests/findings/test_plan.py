"""How many machines a rate takes, from runs whose demands are known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic_run import SANIC, SyntheticStudy, write_run
from weir.findings.plan import MachinePlan, ReplicaPrediction, plan_machines, predict_replicas
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad
from weir.model.resources import TierResources
from weir.model.run import Limits, TrialResult
from weir.objective import objective
from weir.stats import BUSY
from weir.store import RunReader

# 100 us a request.
STACK = replace(SANIC, throughput_rps=9_000, cpu_us_per_request=100, variation=0.002)
STUDY = SyntheticStudy(stacks=(STACK,), baseline="sanic", aa=None, blocks=5, duration_s=2.0, indicative=False)


def plan(path: Path, study: SyntheticStudy, rate_rps: float, limit: str | None = None, **given: Any) -> MachinePlan:
    with RunReader(write_run(path / "run.weir", study)) as reader:
        wanted = None if limit is None else objective(limit)
        return plan_machines(reader, rate_rps=rate_rps, objective=wanted, **given)


def tiers(**cpu_s: float) -> Callable[[str, int, TrialResult], TrialResult]:
    def change(_: str, __: int, result: TrialResult) -> TrialResult:
        assert result.resources is not None
        of = {
            name: TierResources(cpu_user_s=used, cpu_system_s=0.0, peak_threads=1, peak_processes=1, pss_bytes=None, private_bytes=None)
            for name, used in cpu_s.items()
        }
        return replace(result, resources=replace(result.resources, tiers=of))

    return change


def test_a_rate_takes_as_many_machines_as_its_work_without_any_that_is_full(tmp_path: Path) -> None:
    found = plan(tmp_path, STUDY, 100_000)
    (app,) = found.tiers
    # 10 CPUs' worth of work, of each CPU no more than 85 %.
    assert app.machines == 12
    assert app.low <= 12 <= app.high
    assert app.demand_us == pytest.approx(100, rel=0.03)
    assert app.busy == pytest.approx(10 / 12, rel=0.03)
    assert app.busy <= BUSY
    assert found.met
    assert "100,000 req/s take 12" in found.sentence


def test_larger_machines_are_fewer(tmp_path: Path) -> None:
    (app,) = plan(tmp_path, STUDY, 100_000, cpus={"app": 4.0}).tiers
    assert (app.machines, app.servers) == (3, 4.0)


def test_every_tier_gets_what_it_needs_itself(tmp_path: Path) -> None:
    # 9,000 req/s in 2 s: 50 and 25 us a request.
    found = plan(tmp_path, replace(STUDY, change=tiers(node=0.9, postgres=0.45)), 40_000)
    assert {one.tier: one.machines for one in found.tiers} == {"node": 3, "postgres": 2}
    assert any("More than one postgres helps only where its work can be split" in one for one in found.assumptions)


def test_an_objective_takes_more_machines_than_the_work_alone(tmp_path: Path) -> None:
    quick = replace(STUDY, loads=(ClosedLoad(1),))
    loose, tight = (plan(tmp_path / name, quick, 20_000, limit) for name, limit in (("a", "p99<=100ms"), ("b", "p99<=0.6ms")))
    assert loose.tiers[0].machines < tight.tiers[0].machines
    assert tight.met
    assert tight.found is not None
    assert tight.found <= 600
    # Machines that take turns are met by steadier arrivals than those of which each gets a part at random.
    assert 100 < tight.simulated_mean_us < tight.mean_us


def test_what_no_number_of_machines_can_do_is_said(tmp_path: Path) -> None:
    found = plan(tmp_path, replace(STUDY, loads=(ClosedLoad(1),)), 1_000, "p99<=0.05ms")
    assert not found.met
    assert "no number of machines" in found.sentence


def test_the_generator_gets_agents_too(tmp_path: Path) -> None:
    def busy(_: str, __: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        generator = result.summary.generator.model_copy(update={"busy_fraction": 0.09})
        return replace(result, summary=result.summary.model_copy(update={"generator": generator}))

    found = plan(tmp_path, replace(STUDY, change=busy), 500_000)
    assert found.agents is not None
    # 10 us a request.
    assert found.agents.demand_us == pytest.approx(10, rel=0.05)
    assert found.agents.machines == 6
    assert "load agents" in found.sentence


def test_a_quota_is_a_machine_of_that_size(tmp_path: Path) -> None:
    (app,) = plan(tmp_path, replace(STUDY, limits={"app": Limits(cpus=0.5)}), 10_000).tiers
    assert (app.servers, app.machines) == (0.5, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stack": "flask"}, "--stack: found 'flask', expected one of sanic"),
        ({"cpus": {"db": 4.0}}, "--cpus: found db, expected tiers of the run: app"),
    ],
)
def test_what_the_run_has_not_is_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        plan(tmp_path, STUDY, 1_000, **given)


def test_an_objective_that_is_no_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected one of response times"):
        plan(tmp_path, STUDY, 1_000, "errors<1%")


def replicas(path: Path, study: SyntheticStudy, *counts: int) -> tuple[ReplicaPrediction, ...]:
    with RunReader(write_run(path / "run.weir", study)) as reader:
        return predict_replicas(reader, replicas=counts)


# 100 us a request on 0.2 CPUs each: 2,000 a second, five times of which fill the CPU.
PROCESSES = replace(
    STUDY,
    stacks=(replace(STACK, throughput_rps=2_000, scaled=lambda place: min(int(place["replicas"]), 5)),),
    limits={"app": Limits(cpus=0.2)},
    coordinates=tuple({"replicas": str(count)} for count in (1, 2, 3)),
    loads=(ClosedLoad(100),),
)


def test_more_processes_under_a_quota_each_answer_in_proportion_until_the_cpu_is_full(tmp_path: Path) -> None:
    found = {one.replicas: one for one in replicas(tmp_path, PROCESSES, 8)}
    assert sorted(found) == [2, 3, 8]
    for count in (2, 3):
        assert found[count].predicted_rps == pytest.approx(2_000 * count, rel=0.05)
        low, high, error = found[count].low_rps, found[count].high_rps, found[count].error
        assert low is not None
        assert high is not None
        assert low < found[count].predicted_rps < high
        assert error is not None
        assert abs(error) < 0.1
    assert found[8].predicted_rps == pytest.approx(10_000, rel=0.05)
    assert found[8].measured_rps is None


def test_a_prediction_from_one_trial_has_no_interval(tmp_path: Path) -> None:
    found = replicas(tmp_path, replace(PROCESSES, blocks=1), 8)
    assert [(one.replicas, one.low_rps, one.high_rps) for one in found] == [(count, None, None) for count in (2, 3, 8)]
    assert found[0].predicted_rps == pytest.approx(4_000, rel=0.05)
