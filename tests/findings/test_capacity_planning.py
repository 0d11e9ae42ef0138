"""Tests the number of machines for a rate, from runs with known demands."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic_run import SANIC, SyntheticStudy, put_elsewhere, write_run
from weir.findings.capacity_planning import MachinePlan, ReplicaPrediction, plan_machines, predict_replicas
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad
from weir.model.load_records import BUSY_FRACTION, AgentSummary, Quantiles
from weir.model.resources import TierResources
from weir.model.run_types import Limits, MeasurementWindow, TrialResult
from weir.objective import parse_objective
from weir.store import RunReader

# A request takes 100 us.
STACK = replace(SANIC, throughput_rps=9_000, cpu_us_per_request=100, variation=0.002)
STUDY = SyntheticStudy(stacks=(STACK,), baseline="sanic", aa=None, blocks=5, duration_s=2.0, indicative=False)


def plan(path: Path, study: SyntheticStudy, rate_rps: float, limit: str | None = None, **given: Any) -> MachinePlan:
    with RunReader(write_run(path / "run.weir", study)) as reader:
        wanted = None if limit is None else parse_objective(limit)
        return plan_machines(reader, rate_rps=rate_rps, objective=wanted, **given)


def tiers(**cpu_s: float) -> Callable[[str, int, TrialResult], TrialResult]:
    def change(_: str, __: int, result: TrialResult) -> TrialResult:
        assert result.resources is not None
        of = {
            name: TierResources(
                cpu_user_s=used, cpu_system_s=0.0, peak_threads=1, peak_processes=1, pss_bytes=None, private_bytes=None
            )
            for name, used in cpu_s.items()
        }
        return replace(result, resources=replace(result.resources, tiers=of))

    return change


def run_elsewhere(path: Path, cpus: int | None) -> Path:
    """Writes a run with a database on a separate node: 9,000 req/s in 2 s, 50 us per request here and 100 us there."""

    def change(label: str, block: int, result: TrialResult) -> TrialResult:
        return replace(
            tiers(node=0.9, postgres=1.8)(label, block, result), logs={"app": "app.log", "postgres": "postgres.log"}
        )

    run_file = write_run(path / "run.weir", replace(STUDY, change=change))
    put_elsewhere(run_file, ["postgres"], "10.0.0.3", cpus)
    return run_file


def test_a_rate_takes_as_many_machines_as_its_work_without_any_that_is_full(tmp_path: Path) -> None:
    found = plan(tmp_path, STUDY, 100_000)
    (app,) = found.tiers
    # The work needs 10 CPUs, and each CPU may be at most 85 % busy.
    assert app.machines == 12
    assert app.low <= 12 <= app.high
    assert app.demand_us == pytest.approx(100, rel=0.03)
    assert app.busy == pytest.approx(10 / 12, rel=0.03)
    assert app.busy <= BUSY_FRACTION
    assert found.met
    assert "100,000 req/s need 12" in found.sentence


def test_a_tier_that_had_a_node_of_its_own_gets_machines_like_that(tmp_path: Path) -> None:
    with RunReader(run_elsewhere(tmp_path, 2)) as reader:
        found = plan_machines(reader, rate_rps=40_000)
        larger = plan_machines(reader, rate_rps=40_000, cpus={"postgres": 4.0})
        (prediction,) = predict_replicas(reader, replicas=[2])
    assert {one.tier: (one.machines, one.servers) for one in found.tiers} == {"node": (3, 1.0), "postgres": (3, 2.0)}
    assert {one.tier: one.machines for one in larger.tiers} == {"node": 3, "postgres": 2}
    # 20 users: one CPU with 50 us per request, and two CPUs with 100 us per request.
    assert 15_000 < prediction.predicted_rps < 19_500


def test_a_plan_without_a_tier_that_worked_is_refused(tmp_path: Path) -> None:
    with RunReader(run_elsewhere(tmp_path, None)) as reader:
        for planned in (lambda: plan_machines(reader, rate_rps=40_000), lambda: predict_replicas(reader, replicas=[2])):
            with pytest.raises(
                UsageError,
                match=r"environment\.services_on: missing the number of CPUs of 10\.0\.0\.3, on which postgres",
            ):
                planned()


def test_larger_machines_are_fewer(tmp_path: Path) -> None:
    (app,) = plan(tmp_path, STUDY, 100_000, cpus={"app": 4.0}).tiers
    assert (app.machines, app.servers) == (3, 4.0)


def test_every_tier_gets_what_it_needs_itself(tmp_path: Path) -> None:
    # 9,000 req/s in 2 s: a request takes 50 and 25 us.
    found = plan(tmp_path, replace(STUDY, change=tiers(node=0.9, postgres=0.45)), 40_000)
    assert {one.tier: one.machines for one in found.tiers} == {"node": 3, "postgres": 2}
    assert any("More than one postgres helps only if its work can be split" in one for one in found.assumptions)


def test_an_objective_takes_more_machines_than_the_work_alone(tmp_path: Path) -> None:
    quick = replace(STUDY, loads=(ClosedLoad(1),))
    loose, tight = (
        plan(tmp_path / name, quick, 20_000, limit) for name, limit in (("a", "p99<=100ms"), ("b", "p99<=0.6ms"))
    )
    assert loose.tiers[0].machines < tight.tiers[0].machines
    assert tight.met
    assert tight.found is not None
    assert tight.found <= 600
    # Machines that get requests in turn have steadier arrivals than machines that get them at random.
    assert 100 < tight.simulated_mean_us < tight.mean_us


def test_what_no_number_of_machines_can_do_is_said(tmp_path: Path) -> None:
    found = plan(tmp_path, replace(STUDY, loads=(ClosedLoad(1),)), 1_000, "p99<=0.05ms")
    assert not found.met
    # Exponential times: 100 us × ln 100.
    assert found.alone == pytest.approx(460, rel=0.1)
    assert "cannot be reached with any number of machines" in found.sentence
    assert "takes 0.4" in found.sentence


def test_an_objective_that_takes_more_machines_than_are_looked_at_is_not_called_impossible(tmp_path: Path) -> None:
    found = plan(tmp_path, replace(STUDY, loads=(ClosedLoad(1),)), 1e9, "p99<=0.6ms")
    assert (found.met, found.alone) == (False, None)
    assert "need more than" in found.sentence
    assert "any number of machines" not in found.sentence


def test_queues_of_a_thousand_machines_are_as_long_as_those_of_a_few(tmp_path: Path) -> None:
    # 1,177 machines at 85 % get requests in turn: D/M/1 with σ = 0.716. A 99th percentile of 1.4 ms needs shorter
    # queues.
    quick = replace(STUDY, loads=(ClosedLoad(1),))
    loose, tight = (plan(tmp_path / name, quick, 1e7, limit) for name, limit in (("a", None), ("b", "p99<=1.4ms")))
    assert loose.tiers[0].machines == pytest.approx(1_177, rel=0.03)
    assert loose.simulated_mean_us - loose.delay_us == pytest.approx(352, rel=0.06)
    assert tight.met
    assert tight.tiers[0].busy < 0.84


def made_by(*agents: tuple[float, int, float]) -> Callable[[str, int, TrialResult], TrialResult]:
    """Returns a change that adds agents with these busy fractions, threads and shares of the responses, and their
    sum."""

    def change(_: str, __: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        alone = result.summary.generator
        uses = [replace(alone, busy_fraction=busy, threads=threads) for busy, threads, _ in agents]
        merged = replace(
            alone, busy_fraction=max(busy for busy, *_ in agents), threads=sum(use.threads for use in uses)
        )
        of_each = [
            AgentSummary(
                name=f"10.0.0.{number}", requests=result.summary.requests, throughput_rps=part * result.summary.throughput_rps,
                response_time_us=Quantiles(), generator=use, clock_offset_us=0, clock_error_us=0, began_late_us=0,
            )
            for number, (use, (_, _, part)) in enumerate(zip(uses, agents, strict=True))
        ]  # fmt: skip
        told = replace(result.summary, generator=merged, agents=of_each if len(agents) > 1 else None)
        return replace(result, summary=told)

    return change


@pytest.mark.parametrize(
    ("agents", "demand_us", "threads", "machines"),
    [
        # At 9,000 req/s: 10 us for one agent, or for two equal agents.
        ([(0.09, 1, 1.0)], 10, 1, 6),
        ([(0.045, 1, 0.5), (0.045, 1, 0.5)], 10, 1, 6),
        # Two agents, of which one does twice as much as the other.
        ([(0.06, 1, 2 / 3), (0.03, 1, 1 / 3)], 10, 1, 6),
        ([(0.03, 2, 2 / 3), (0.03, 1, 1 / 3)], 10, 1, 6),
        ([(0.0225, 2, 0.5), (0.0225, 2, 0.5)], 10, 2, 3),
    ],
)
def test_the_generator_gets_agents_too_each_as_large_as_one_of_the_run(
    agents: list[tuple[float, int, float]], demand_us: float, threads: int, machines: int, tmp_path: Path
) -> None:
    found = plan(tmp_path, replace(STUDY, change=made_by(*agents)), 500_000)
    assert found.agents is not None
    assert found.agents.demand_us == pytest.approx(demand_us, rel=0.05)
    assert (found.agents.servers, found.agents.machines) == (threads, machines)
    assert "load agents" in found.sentence


def test_the_agents_demand_is_that_of_every_trial_at_the_load_with_the_most_answers(tmp_path: Path) -> None:
    # A request takes 11 us under half of the load, and 6, 8, 10, 12 and 14 us under the full load.
    def busy(_: str, block: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        share = 4_500 * 11e-6 if result.summary.throughput_rps < 7_000 else 9_000 * (4 + 2 * block) * 1e-6
        return made_by((share, 1, 1.0))(_, block, result)

    grows = replace(STACK, growth=lambda connections: 1.0 if connections > 10 else 0.5)
    found = plan(
        tmp_path, replace(STUDY, stacks=(grows,), loads=(ClosedLoad(10), ClosedLoad(20)), change=busy), 500_000
    ).agents
    assert found is not None
    assert found.demand_us == pytest.approx(10, rel=0.02)
    # Student's t: 10 ± 2.776 × √10 ÷ √5.
    assert found.demand_low_us == pytest.approx(10 - 3.93, rel=0.05)
    assert found.demand_high_us == pytest.approx(10 + 3.93, rel=0.05)


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
    with pytest.raises(UsageError, match="expected a response time limit"):
        plan(tmp_path, STUDY, 1_000, "errors<1%")


def test_trials_that_were_not_steady_are_said_to_be_behind_a_plan(tmp_path: Path) -> None:
    def drifts(_: str, block: int, result: TrialResult) -> TrialResult:
        return replace(
            result,
            window=MeasurementWindow(
                start_s=0.0, end_s=2.0, steady=block > 2, why="it drifts", extended=True, segments=()
            ),
        )

    found = plan(tmp_path / "a", replace(STUDY, change=drifts), 100_000)
    assert any("2 of 5 trials had no steady state" in one for one in found.assumptions)
    assert not any("no steady state" in one for one in plan(tmp_path / "b", STUDY, 100_000).assumptions)
    cautions = [one.caution for one in replicas(tmp_path / "c", replace(PROCESSES, change=drifts), 8)]
    # Two cells of five trials each, and a case in which eight trials were not measured.
    assert [caution and caution.partition(" trials")[0] for caution in cautions] == ["4 of 10", "4 of 10", "2 of 5"]
    assert all(one.caution is None for one in replicas(tmp_path / "d", PROCESSES, 8))


def replicas(path: Path, study: SyntheticStudy, *counts: int) -> tuple[ReplicaPrediction, ...]:
    with RunReader(write_run(path / "run.weir", study)) as reader:
        return predict_replicas(reader, replicas=counts)


# With 100 us per request and 0.2 CPUs, a process carries 2,000 per second. Five processes fill the CPU.
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


def test_a_prediction_is_held_against_what_the_same_block_measured(tmp_path: Path) -> None:
    def neighbours(_: str, block: int, result: TrialResult) -> TrialResult:
        # All requests of one block take twice as long, and those of another block four times.
        assert result.summary is not None
        slower = {2: 2, 4: 4}.get(block, 1)
        return replace(result, summary=replace(result.summary, throughput_rps=result.summary.throughput_rps / slower))

    for one in replicas(tmp_path, replace(PROCESSES, change=neighbours)):
        assert len(one.differences) == PROCESSES.blocks
        assert list(one.differences) == sorted(one.differences)
        assert one.differences == pytest.approx([0] * PROCESSES.blocks, abs=0.05)


def test_one_block_that_is_far_off_does_not_make_a_prediction_wrong() -> None:
    differences = (-0.03, -0.02, 0.01, 0.02, 0.82)
    found = ReplicaPrediction(
        2, "50 connections", 1_021, None, None, measured_rps=903, differences=differences, caution=None
    )
    assert found.error == 0.01
    assert replace(found, differences=()).error is None


def test_a_prediction_from_one_trial_has_no_interval(tmp_path: Path) -> None:
    found = replicas(tmp_path, replace(PROCESSES, blocks=1), 8)
    assert [(one.replicas, one.low_rps, one.high_rps) for one in found] == [(count, None, None) for count in (2, 3, 8)]
    assert found[0].predicted_rps == pytest.approx(4_000, rel=0.05)
