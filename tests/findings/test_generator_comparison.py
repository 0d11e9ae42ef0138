"""Tests the comparison of generators: which is the limit, which agree, and whose times are not the server's."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_generator import SyntheticGenerator
from tests.support.synthetic_run import FLASK, SANIC, SyntheticStack, SyntheticStudy, judged, write_run
from weir.findings import RunFindings, of_run
from weir.findings.generator_comparison import count_planned_generator_comparisons
from weir.findings.metrics import GENERATOR_CPU, GENERATOR_MEMORY, KERNEL_P99, REPORTED_P99, THROUGHPUT
from weir.findings.regression import compare_runs
from weir.findings.types import SameServer
from weir.model.errors import UsageError
from weir.model.run_types import TrialResult
from weir.model.verdict import Reason, TrialVerdict
from weir.report import render_json
from weir.store import RunReader

WEIR = SyntheticGenerator("weir")
WRK = SyntheticGenerator("wrk")
HEY = SyntheticGenerator("hey", reach=0.3, says=1.02, cpu_fraction=0.99, memory_bytes=40_000_000)
LOCUST = SyntheticGenerator("locust", reach=0.05, says=7.5, cpu_fraction=0.99, memory_bytes=90_000_000)
STUDY = SyntheticStudy(
    stacks=(SANIC,),
    aa=None,
    baseline="sanic",
    blocks=10,
    duration_s=1.0,
    generators=(WEIR, WRK, HEY, LOCUST),
    published=(),
)


def found(folder: Path, study: SyntheticStudy = STUDY) -> RunFindings:
    with RunReader(write_run(folder / "run.weir", study)) as reader:
        return of_run(reader)


def _two(stack: SyntheticStack) -> SyntheticStudy:
    return replace(STUDY, stacks=(stack,), generators=(WEIR, WRK))


def only(findings: RunFindings) -> SameServer:
    (same,) = findings.generators
    return same


def test_who_gets_less_from_the_same_server_is_told_to_be_the_limit_and_who_agrees_is_not(tmp_path: Path) -> None:
    same = only(found(tmp_path))
    assert same.reference == "weir"
    assert [one.generator for one in same.generators] == ["weir", "wrk", "hey", "locust"]
    assert same.where == "Sanic on echo, 20 connections"
    number, interval = r"[\d.]+×", r"\([\d.]+–[\d.]+\)"
    assert re.search(
        f"hey reaches {number} {interval} of weir's throughput at {number} the CPU per request and locust {number} {interval} at {number} "
        "the CPU per request: these generators are the limit, not the server; "
        f"wrk with {number} {interval}( gets about the same throughput as|: no clear difference from) weir "
        r"\(95 % intervals, 10 blocks: indicative\)",
        same.sentence,
    ), same.sentence
    by_name = {one.generator: one for one in same.generators}
    assert "So the generator is the limit, not the server." in by_name["hey"].sentence
    assert "limit" not in by_name["wrk"].sentence
    assert by_name["weir"].comparisons == ()


def test_each_generator_stands_there_with_what_it_got_what_it_says_and_what_it_took(tmp_path: Path) -> None:
    hey = next(one for one in only(found(tmp_path)).generators if one.generator == "hey")
    rate = hey.measure(THROUGHPUT).value or 0.0
    assert rate == pytest.approx(0.3 * SANIC.throughput_rps, rel=0.1)
    assert hey.measure(GENERATOR_CPU).value == pytest.approx(0.99e6 / rate, rel=0.05)
    assert hey.measure(GENERATOR_MEMORY).value == 40_000_000
    ratio = hey.comparison(THROUGHPUT)
    assert ratio is not None
    assert ratio.ratio == pytest.approx(0.3, rel=0.1)
    assert (ratio.outcome, ratio.label, ratio.against_label) == ("less", "hey", "weir")
    assert hey.version == "hey 1.0"
    assert hey.max_rate_rps == 50_000
    assert hey.measure(REPORTED_P99).value == pytest.approx(1.02 * (hey.measure(KERNEL_P99).value or 0), rel=1e-3)


def test_times_that_are_not_what_the_kernel_saw_are_told(tmp_path: Path) -> None:
    same = only(found(tmp_path))
    locust = next(one for one in same.generators if one.generator == "locust")
    assert [(one.quantile, round(one.ratio, 3)) for one in locust.against_kernel] == [("p50", 7.5), ("p99", 7.5)]
    assert "The reported p99 is 7.5× the kernel's p99 (" in locust.sentence
    assert "Reported p99: locust's is 7.5× the kernel's p99 (" in same.sentence
    assert "hey's is" not in same.sentence


def test_what_a_tool_rounds_away_is_no_difference_from_the_kernel(tmp_path: Path) -> None:
    coarse = replace(LOCUST, rounding_s=10.0)
    same = only(found(tmp_path, replace(STUDY, generators=(WEIR, coarse))))
    assert same.generators[1].against_kernel[1].within_rounding
    assert "the kernel's p99" not in same.sentence


def test_a_generator_that_gets_more_than_weir_makes_weir_the_limit(tmp_path: Path) -> None:
    same = only(found(tmp_path, replace(STUDY, generators=(WEIR, replace(WRK, reach=1.3)))))
    assert "wrk with 1." in same.sentence
    assert "gets more than weir, so weir is the limit" in same.sentence
    assert "So weir is the limit, not the server." in same.generators[1].sentence


def test_who_differs_by_no_more_than_trials_do_cannot_be_told_apart_and_who_is_within_two_percent_gets_as_much(
    tmp_path: Path,
) -> None:
    noisy = replace(SANIC, variation=0.2)
    assert re.search(
        r"wrk with [\d.]+× \(.*\): no clear difference from weir", only(found(tmp_path, _two(noisy))).sentence
    )
    calm = replace(SANIC, variation=0.002)
    assert re.search(
        r"wrk with [\d.]+× \(.*\) gets about the same throughput as weir",
        only(found(tmp_path / "calm", _two(calm))).sentence,
    )


def test_one_block_gives_no_interval_and_no_claim(tmp_path: Path) -> None:
    same = only(found(tmp_path, replace(STUDY, generators=(WEIR, HEY), blocks=1)))
    assert re.search(
        r"hey with 0\.\d+× of weir's throughput, without an interval and so without a claim", same.sentence
    )


def test_without_weir_the_first_generator_is_the_reference(tmp_path: Path) -> None:
    same = only(found(tmp_path, replace(STUDY, generators=(WRK, HEY))))
    assert same.reference == "wrk"
    assert " of wrk's throughput at " in same.sentence


def test_generators_are_the_answer_of_a_study_that_varies_them_and_stacks_are_compared_within_each(
    tmp_path: Path,
) -> None:
    findings = found(
        tmp_path, replace(STUDY, stacks=(FLASK, SANIC), baseline="flask-gunicorn", blocks=3, generators=(WEIR, HEY))
    )
    assert [same.label for same in findings.generators] == ["flask-gunicorn", "sanic"]
    assert findings.answer.sentence.startswith("Flask on echo, 20 connections: hey 0.")
    assert re.search(
        r"hey 0\.\d+× of weir's throughput, so that this generator is the limit\. Sanic on echo, 20 connections: hey 0\.\d+× of weir's "
        r"throughput, so that this generator is the limit \(95 % intervals below, 3 blocks: indicative\)\.",
        findings.answer.sentence,
    )
    assert [found.name for found in findings.answer.comparisons] == ["hey, Flask", "hey, Sanic"]
    assert [point.coordinates for point in findings.points] == [{"generator": "weir"}, {"generator": "hey"}]
    for point in findings.points:
        assert {(one.label, one.against_label) for one in point.comparisons} == {("sanic", "flask-gunicorn")}
        assert point.where == f"With generator {point.coordinates['generator']}: "


def test_a_trial_that_failed_says_nothing_of_its_generator_and_the_others_stand(tmp_path: Path) -> None:
    def crashed(label: str, block: int, result: TrialResult) -> TrialResult:
        if result.reported_result is None:
            return result
        return replace(
            judged(result, "invalid", "hey: ended with exit status 1"), summary=None, reported_result=None, tap=None
        )

    same = only(found(tmp_path, replace(STUDY, generators=(WEIR, HEY), blocks=2, change=crashed)))
    hey = same.generators[1]
    assert (hey.validity, hey.evidence.used) == ("invalid", ())
    assert hey.sentence == "hey has no usable trial."
    assert any("hey: ended with exit status 1" in reason for reason in hey.reasons)
    assert "hey: not measured, because no trial is usable." in same.sentence
    assert hey.measure(THROUGHPUT).value is None


def test_what_is_the_generators_own_is_told_in_short_and_what_is_the_machines_is_not(tmp_path: Path) -> None:
    def weak(label: str, block: int, result: TrialResult) -> TrialResult:
        if result.reported_result is None:
            return result
        physics = Reason(
            "physics", "suspect", "hey's load has figures that cannot be: a mean", "no load can give such figures"
        )
        return replace(result, verdict=TrialVerdict((physics, Reason("steal", "suspect", "the hypervisor took 9 %"))))

    same = only(found(tmp_path, replace(STUDY, generators=(WEIR, HEY), blocks=2, change=weak)))
    assert [one.notes for one in same.generators] == [
        (),
        ("2 of 2 trials, for example: hey's load has figures that cannot be: a mean",),
    ]
    assert [one.validity for one in same.generators] == ["valid", "suspect"]
    assert len(same.generators[1].reasons) == 2


def test_quantiles_of_a_tool_without_histograms_are_medians_over_trials(tmp_path: Path) -> None:
    findings = found(tmp_path)
    point = next(point for point in findings.points if point.coordinates["generator"] == "hey")
    p50 = point.stacks[0].measure("response_time_us.p50")
    assert p50.value is not None
    assert p50.note == "median over trials"
    weirs = next(point for point in findings.points if point.coordinates["generator"] == "weir")
    assert weirs.stacks[0].measure("response_time_us.p50").note == ""


def test_a_study_that_another_program_has_loaded_says_so(tmp_path: Path) -> None:
    findings = found(tmp_path, replace(STUDY, generators=(HEY,), blocks=2))
    assert findings.generators == ()
    assert "The generator of all loads was hey 1.0, whose response times are from here to there." in [
        one.fact for one in findings.cautions
    ]


def test_a_gate_compares_loads_of_the_same_generator_alone(tmp_path: Path) -> None:
    several = RunReader(write_run(tmp_path / "several.weir", replace(STUDY, blocks=2)))
    weirs = RunReader(write_run(tmp_path / "weir.weir", replace(STUDY, blocks=2, generators=())))
    heys = RunReader(write_run(tmp_path / "hey.weir", replace(STUDY, blocks=2, generators=(HEY,))))
    with several, weirs, heys:
        where = [one.where for one in compare_runs(several, weirs, [THROUGHPUT], 0.05, any_environment=False).checked]
        assert where == ["echo, 20 connections"]
        where = [one.where for one in compare_runs(several, heys, [THROUGHPUT], 0.05, any_environment=False).checked]
        assert where == ["echo, 20 connections, generator hey"]
        with pytest.raises(UsageError, match="found no stack with the same load in both"):
            compare_runs(weirs, heys, [THROUGHPUT], 0.05, any_environment=False)


def test_a_study_with_one_generator_has_none_side_by_side(tmp_path: Path) -> None:
    assert found(tmp_path, replace(STUDY, generators=(), blocks=2)).generators == ()


def test_what_a_tool_claims_is_held_against_physics(tmp_path: Path) -> None:
    def stretched(label: str, block: int, result: TrialResult) -> TrialResult:
        if result.reported_result is None or result.reported_result.mean_s is None:
            return result
        mean = replace(result.reported_result.mean_s, value=10 * result.reported_result.mean_s.value)
        return replace(result, reported_result=replace(result.reported_result, mean_s=mean, quantiles_s={}))

    findings = found(tmp_path, replace(STUDY, generators=(WEIR, WRK), blocks=2, change=stretched))
    assert {broken.law for broken in findings.audit.broken} == {"users = throughput × response time"}
    assert len(findings.audit.broken) == 2
    assert found(tmp_path / "again", replace(STUDY, blocks=2)).audit.broken == ()


def test_what_the_times_of_a_tool_are_stands_beside_them(tmp_path: Path) -> None:
    same = only(found(tmp_path, replace(STUDY, generators=(WEIR, HEY), blocks=2)))
    assert [one.figures for one in same.generators] == ["", "from here to there"]


def test_the_comparisons_of_generators_are_known_beforehand(tmp_path: Path) -> None:
    with RunReader(write_run(tmp_path / "run.weir", replace(STUDY, stacks=(FLASK, SANIC), blocks=1))) as reader:
        assert count_planned_generator_comparisons(reader.cells()) == 6
    with RunReader(write_run(tmp_path / "one.weir", replace(STUDY, blocks=1, generators=()))) as reader:
        assert count_planned_generator_comparisons(reader.cells()) == 0


def test_the_findings_as_json_have_them(tmp_path: Path) -> None:
    data = json.loads(render_json(found(tmp_path, replace(STUDY, blocks=2))))
    (same,) = data["generators"]
    assert [one["generator"] for one in same["generators"]] == ["weir", "wrk", "hey", "locust"]
    assert same["generators"][2]["against_kernel"][1]["quantile"] == "p99"
