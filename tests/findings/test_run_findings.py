"""Tests the sentences about runs with known truth: they must be right in every case, above all with little data."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_load import SyntheticLoad, write_load
from tests.support.synthetic_run import FLASK, NETTY, SANIC, SyntheticStack, SyntheticStudy, judged, write_run
from weir.findings import LoadFindings, RunFindings, of_run
from weir.findings.metrics import CPU, P99, THROUGHPUT
from weir.findings.types import WhatRan
from weir.model.load import ClosedLoad
from weir.model.run_types import PublishedFigure, TrialResult
from weir.store import RunReader

BLOCKING = replace(SANIC, variant="blocking")
QUICK = SyntheticStudy(duration_s=2.0, interval_s=0.2)
TWIN = replace(FLASK, name="twin", title="Twin on gunicorn")
Find = Callable[[SyntheticStudy], RunFindings]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Returns a function that writes a study's run and returns its findings."""

    def of(study: SyntheticStudy) -> RunFindings:
        with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
            return of_run(reader)

    return of


def spoiled(
    *labels: str, blocks: tuple[int, ...] = (1, 2, 3), validity: str = "invalid"
) -> Callable[[str, int, TrialResult], TrialResult]:
    """Returns a change that gives trials of `labels` in `blocks` a bad verdict."""

    def change(label: str, block: int, result: TrialResult) -> TrialResult:
        if label in labels and block in blocks:
            return judged(result, "suspect" if validity == "suspect" else "invalid", "2 requests failed (reset)")
        return result

    return change


def test_the_answer_names_the_faster_stack_first_with_ratio_interval_and_blocks(find: Find) -> None:
    answer = find(QUICK).answer
    assert (
        answer.sentence
        == "Sanic answers 4.0× as many requests per second as Flask (95 % interval 3.7–4.3, 3 blocks: indicative)."
    )
    assert (answer.validity, answer.indicative) == ("valid", True)
    (comparison,) = answer.comparisons
    assert comparison.low is not None
    assert comparison.high is not None
    assert comparison.low < SANIC.throughput_rps / FLASK.throughput_rps < comparison.high


def test_a_faster_baseline_is_named_first_too(find: Find) -> None:
    answer = find(replace(QUICK, baseline="sanic")).answer
    assert (
        answer.sentence
        == "Sanic answers 4.0× as many requests per second as Flask (95 % interval 3.7–4.3, 3 blocks: indicative)."
    )


def test_three_stacks_are_compared_with_the_baseline_in_one_sentence(find: Find) -> None:
    slow = replace(NETTY, throughput_rps=2 * FLASK.throughput_rps, warm_up=0.0)
    sentence = find(replace(QUICK, stacks=(FLASK, SANIC, slow))).answer.sentence
    assert sentence.startswith("Compared with Flask, Sanic answers 4.0× (")
    assert ") and Spring WebFlux 1.97× (" in sentence
    assert sentence.endswith(") as many requests per second (95 % intervals, 3 blocks: indicative).")


def test_stacks_that_do_not_differ_cannot_be_told_apart(find: Find) -> None:
    noisy = replace(TWIN, variation=0.15)
    answer = find(replace(QUICK, seed=4, stacks=(FLASK, noisy))).answer
    assert "show no clear difference on throughput: ratio " in answer.sentence
    assert "95 % interval " in answer.sentence
    assert re.search(
        r"About \d+ blocks \(\d+ min of trials of both\) would narrow the interval to ±5 %", answer.would_change
    )


def test_one_that_differs_and_one_that_does_not_share_a_sentence(find: Find) -> None:
    sentence = find(replace(QUICK, stacks=(FLASK, SANIC, replace(TWIN, variation=0.15)))).answer.sentence
    assert sentence.startswith("Compared with Flask, Sanic answers 4.0× (")
    assert "; Twin " in sentence
    assert "no clear difference from Flask on throughput (95 % intervals" in sentence


def test_stacks_that_are_the_same_within_two_percent_are_called_so(find: Find) -> None:
    steady = [replace(stack, variation=0.004) for stack in (FLASK, TWIN)]
    answer = find(replace(QUICK, stacks=steady, blocks=12, indicative=False)).answer
    assert "are the same on throughput within ±2 %" in answer.sentence
    assert not answer.indicative


def test_ten_blocks_are_not_indicative(find: Find) -> None:
    answer = find(replace(QUICK, blocks=10, indicative=False, duration_s=1.0)).answer
    assert answer.sentence.endswith("10 blocks).")
    assert not answer.indicative


def test_a_single_block_gives_a_ratio_without_interval_and_says_so(find: Find) -> None:
    answer = find(replace(QUICK, blocks=1)).answer
    assert (
        answer.sentence
        == "Sanic answers 3.9× as many requests per second as Flask in the only block with both: no interval, so no claim."
    )
    assert answer.comparisons[0].low is None
    assert answer.would_change == "A further block with another ratio would give an interval."


def test_a_run_without_any_valid_trial_has_no_answer_and_says_why(find: Find) -> None:
    findings = find(replace(QUICK, change=spoiled("sanic", "flask-gunicorn", "flask-gunicorn (A/A)")))
    assert findings.answer.sentence == (
        "No answer: none of 9 trials is usable. Most frequent reason: 2 requests failed (reset) (9 trials)."
    )
    assert findings.answer.validity == "invalid"
    assert len(findings.left_out) == 9
    assert findings.points[0].sentence == "Not measured yet: no server has a usable trial at this point."


def test_a_run_without_any_trial_has_no_answer(find: Find) -> None:
    findings = find(replace(QUICK, skip=lambda label, block: True, ended=None))
    assert findings.answer.sentence == "No answer: no trial was finished. So far, weir has tried 0 of 9 trials."
    assert findings.audit.sentence == "No trial measured anything that could be audited."


def test_a_baseline_without_a_valid_trial_is_named(find: Find) -> None:
    answer = find(replace(QUICK, change=spoiled("flask-gunicorn"))).answer
    assert answer.sentence.startswith("The servers cannot be compared: no usable trial of Flask. Sanic answers 9,")
    assert answer.validity == "invalid"


def test_a_single_stack_is_told_without_comparison(find: Find) -> None:
    answer = find(replace(QUICK, stacks=(SANIC,), aa=None, baseline=None)).answer
    assert answer.sentence.startswith("Sanic answers ")
    assert answer.sentence.endswith("There is no other stack for a comparison.")
    assert answer.validity == "valid"


def test_an_interrupted_run_says_how_far_it_came(find: Find) -> None:
    findings = find(replace(QUICK, skip=lambda label, block: block == 3, ended="interrupted"))
    assert findings.answer.sentence.endswith("2 blocks: indicative). The run was interrupted after 6 of 9 trials.")
    assert any("--resume" in caution.next_step for caution in findings.cautions)
    assert findings.blocks == 2
    assert "Indicative: 2 blocks." in [caution.fact for caution in findings.cautions]


def test_invalid_trials_are_left_out_and_suspect_ones_are_used_and_said(find: Find) -> None:
    findings = find(replace(QUICK, change=spoiled("sanic", blocks=(1,))))
    assert findings.answer.comparisons[0].pairs == 2
    assert findings.trials.left_out == 1
    (left_out,) = findings.left_out
    assert (left_out.label, left_out.block, left_out.reasons) == ("sanic", 1, ("2 requests failed (reset)",))
    assert left_out.trial in findings.answer.comparisons[0].evidence.left_out
    assert left_out.trial not in findings.answer.comparisons[0].evidence.used


def test_a_trial_that_was_tried_again_counts_once_in_its_own_block(find: Find) -> None:
    failures = iter([True])

    def first_fails(label: str, block: int, result: TrialResult) -> TrialResult:
        return judged(result, "invalid", "the server died") if label == "sanic" and next(failures, False) else result

    findings = find(
        replace(QUICK, retries=1, change=first_fails, skip=lambda label, block: block == 3, ended="interrupted")
    )
    assert findings.answer.comparisons[0].pairs == 2
    assert [(trial.block, trial.attempt) for trial in findings.left_out] == [(1, 1)]
    assert (findings.trials.finished, findings.trials.tried, findings.trials.used) == (7, 6, 6)
    assert findings.answer.sentence.endswith("The run was interrupted after 6 of 9 trials.")


def test_suspect_trials_are_used_and_make_the_answer_suspect(find: Find) -> None:
    findings = find(replace(QUICK, change=spoiled("sanic", blocks=(1,), validity="suspect")))
    assert findings.answer.validity == "suspect"
    assert findings.answer.comparisons[0].pairs == 3
    assert any(
        caution.fact == "Averages use 1 suspect trial: 2 requests failed (reset)." for caution in findings.cautions
    )


def test_copies_of_one_stack_show_how_far_identical_systems_differ(find: Find) -> None:
    copies = find(QUICK).identical_copies
    assert copies is not None
    assert copies.spread is not None
    assert 0.005 < copies.spread < 0.1
    assert f"Two copies of Flask differed by {copies.spread * 100:.1f} %" in copies.sentence
    assert copies.compared == 7  # one on each metric


def test_the_copy_is_never_an_answer(find: Find) -> None:
    findings = find(QUICK)
    assert {comparison.label for comparison in findings.points[0].comparisons} == {"sanic"}


def test_a_study_without_copies_has_no_such_finding(find: Find) -> None:
    assert find(replace(QUICK, aa=None)).identical_copies is None


def test_each_point_has_a_sentence_of_its_own_and_the_headline_names_its_point(find: Find) -> None:
    findings = find(replace(QUICK, loads=(ClosedLoad(20), ClosedLoad(50))))
    assert [point.label for point in findings.points] == ["20 connections", "50 connections"]
    assert findings.answer.sentence.startswith("With 20 connections: Sanic answers")
    assert all(point.sentence.startswith("Sanic answers 4.") for point in findings.points)


def test_holms_correction_counts_all_comparisons_on_a_metric(find: Find) -> None:
    findings = find(replace(QUICK, stacks=(FLASK, SANIC, NETTY)))
    throughput = [found for found in findings.points[0].comparisons if found.metric == THROUGHPUT]
    smallest = min(found.p_value for found in throughput if found.p_value is not None)
    assert min(found.p_adjusted for found in throughput if found.p_adjusted is not None) == pytest.approx(2 * smallest)


def test_a_percentile_that_the_samples_do_not_support_is_refused(find: Find) -> None:
    few = replace(FLASK, throughput_rps=40.0)
    findings = find(replace(QUICK, stacks=(few, SANIC)))
    measure = findings.points[0].stacks[0].measure(P99)
    assert measure.value is None
    assert measure.note.startswith("not supported by ")
    assert any(measure.note in caution.fact for caution in findings.cautions)
    comparison = findings.points[0].comparison("sanic", P99)
    assert comparison is not None
    assert comparison.outcome == "not measured"


def test_cpu_per_request_is_that_of_the_process_tree_over_completed_requests(find: Find) -> None:
    flask, _, sanic = find(QUICK).points[0].stacks
    assert flask.measure(CPU).value == pytest.approx(FLASK.cpu_us_per_request, rel=0.02)
    assert sanic.measure(CPU).value == pytest.approx(SANIC.cpu_us_per_request, rel=0.02)


def test_trials_without_resources_leave_cpu_and_memory_unsaid(find: Find) -> None:
    findings = find(replace(QUICK, change=lambda label, block, result: replace(result, resources=None)))
    assert findings.points[0].stacks[0].measure(CPU).note == "not measured"
    assert findings.answer.validity == "valid"


def test_the_audit_holds_on_honest_trials(find: Find) -> None:
    audit = find(QUICK).audit
    assert audit.broken == ()
    assert audit.sentence == "All 126 checks of the physics audit hold on 9 trials."


def broken_summary(**changes: object) -> Callable[[str, int, TrialResult], TrialResult]:
    def change(label: str, block: int, result: TrialResult) -> TrialResult:
        if label != "sanic" or block != 1 or result.summary is None:
            return result
        values = result.summary.to_json()
        for path, value in changes.items():
            *parents, last = path.split("__")
            at = values
            for parent in parents:
                at = at[parent]
            at[last] = value
        return replace(result, summary=type(result.summary).from_json(values))

    return change


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"response_time_us__mean": 6_000.0, "response_time_us__max": 9e9}, "users = throughput × response time"),
        ({"requests__intended": 5}, "every request has one outcome"),
        ({"errors__reset": 7}, "every request has one outcome"),
        ({"status": {"200": 3}}, "the statuses add up"),
        ({"throughput_rps": 33_593.0, "response_time_us__mean": 400.0}, "requests = throughput × time"),
        ({"response_time_us__p99": 1.0}, "percentiles rise"),
    ],
)
def test_the_audit_finds_each_broken_law(find: Find, changes: dict[str, object], law: str) -> None:
    findings = find(replace(QUICK, change=broken_summary(**changes)))
    assert law in {broken.law for broken in findings.audit.broken}
    assert len({broken.trial for broken in findings.audit.broken}) == 1
    assert "violation" in findings.audit.sentence
    assert any("breaks" in caution.fact for caution in findings.cautions)
    assert findings.answer.validity == "suspect"
    assert findings.audit.sentence in findings.answer.reasons


def test_a_run_whose_trials_are_mostly_not_to_be_used_is_invalid(find: Find) -> None:
    def reset_seven(label: str, block: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        errors = replace(result.summary.errors, reset=7)
        return replace(result, summary=replace(result.summary, errors=errors))

    findings = find(replace(QUICK, change=reset_seven))
    assert findings.answer.validity == findings.audit.validity == "invalid"
    assert findings.audit.sentence.endswith("in trials 1–9.")
    assert "Do not use these trials" in findings.cautions[0].next_step


def test_a_stack_that_warms_up_during_the_window_is_said_to_drift(find: Find) -> None:
    findings = find(replace(QUICK, stacks=(FLASK, NETTY), duration_s=6.0))
    drifting = [caution for caution in findings.cautions if caution.fact.startswith("Throughput drifted in 3 trials")]
    assert len(drifting) == 1


def test_a_published_mean_stands_beside_our_mean(find: Find) -> None:
    printed = PublishedFigure("sanic", "response_time_us.mean", 600, "A published comparison")
    (figure,) = find(replace(QUICK, published=(printed,))).points[0].published
    assert figure.unit == "µs"
    assert figure.ours == pytest.approx(20 / SANIC.throughput_rps * 1e6, rel=0.1)


@pytest.mark.parametrize(
    ("beside", "run"), [("sanic", (FLASK, SANIC, BLOCKING)), ("sanic[blocking]", (FLASK, BLOCKING))]
)
def test_a_published_figure_is_one_of_a_variant_only_where_the_stack_itself_did_not_run(
    find: Find, beside: str, run: tuple[SyntheticStack, ...]
) -> None:
    printed = PublishedFigure("sanic", "throughput_rps", 33_593, "A published comparison")
    figures = find(replace(QUICK, stacks=run, published=(printed,))).points[0].published
    assert [figure.stack for figure in figures] == [beside]


def test_published_figures_stand_beside_ours_and_change_nothing(find: Find) -> None:
    figures = find(QUICK).points[0].published
    throughput = [figure for figure in figures if figure.metric == THROUGHPUT]
    assert [(figure.name, figure.value) for figure in throughput] == [("Flask", 7191.2708), ("Sanic", 33593.4268)]
    assert throughput[0].ours == pytest.approx(FLASK.throughput_rps, rel=0.05)


def test_what_a_stack_was_built_into_and_what_ran_it_is_said_once_for_all_points(find: Find) -> None:
    def moved(label: str, block: int, result: TrialResult) -> TrialResult:
        return (
            replace(result, runtime="Python 3.13.0", artifact_bytes=31_000_000)
            if (label, block) == ("sanic", 3)
            else result
        )

    alone = replace(NETTY, runtime="", artifact_bytes=None)
    findings = find(replace(QUICK, stacks=(FLASK, SANIC, alone), loads=(ClosedLoad(4), ClosedLoad(20)), change=moved))
    assert findings.what_ran == (
        WhatRan("flask-gunicorn", "Flask", 30_000_000, None, ("Python 3.12.3",)),
        WhatRan("sanic", "Sanic", 31_000_000, 31 / 30, ("Python 3.12.3", "Python 3.13.0")),
        WhatRan("spring-webflux", "Spring WebFlux", None, None, ()),
    )


def test_findings_are_json_with_a_schema_number(find: Find) -> None:
    value = json.loads(json.dumps(find(QUICK).to_json(), allow_nan=False))
    assert value["schema"] == 1
    assert value["answer"]["sentence"].startswith("Sanic answers")
    assert value["points"][0]["comparisons"][0]["evidence"]["used"]


def test_stacks_with_the_same_short_name_are_told_apart_by_their_labels(find: Find) -> None:
    gthread = replace(FLASK, variant="gthread", throughput_rps=5_000.0)
    sentence = find(replace(QUICK, stacks=(FLASK, gthread), aa=None)).answer.sentence
    assert sentence.startswith("flask-gunicorn[gthread] answers 2.0")
    assert "as flask-gunicorn (" in sentence


def test_a_title_of_any_kind_is_only_text(find: Find) -> None:
    odd = SyntheticStack("odd", "", "", 5_000.0, 100, 10_000_000, 0.1, 1)
    assert find(replace(QUICK, stacks=(FLASK, odd))).answer.sentence.startswith("odd answers 2.0")


@pytest.mark.parametrize("finished", [True, False])
def test_a_load_has_the_findings_of_one_cell_and_compares_nothing(tmp_path: Path, finished: bool) -> None:
    with RunReader(write_load(tmp_path / "load.weir", SyntheticLoad(finished=finished))) as reader:
        found = of_run(reader)
    assert isinstance(found, LoadFindings)
    assert found.finished is finished
    ((stack,),) = (point.stacks for point in found.points)
    assert stack.measure(THROUGHPUT).value == 2000
    assert found.answer.sentence.startswith("2,000 requests per second; ")
    assert found.basis == "4 connections, 4.0\u00a0s: 8,000 requests answered, none failed"
    nothing = (
        found.answer.comparisons,
        found.generators,
        found.break_evens,
        found.bottlenecks,
        found.left_out,
        found.cautions,
    )
    assert set(nothing) == {()}
    assert (found.identical_copies, found.variation, found.stopped, found.audit.checks) == (None, None, None, 0)
