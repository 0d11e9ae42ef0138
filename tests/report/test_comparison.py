"""Tests the output of `weir compare` for runs whose truth is known."""

import io
import re
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from tests.support.synthetic_run import FLASK, NETTY, SANIC, SyntheticStudy, write_run
from weir.findings import RunFindings, of_run
from weir.model.load import ClosedLoad, OpenLoad
from weir.model.run_types import TrialResult
from weir.report.comparison import format_markdown, list_ratios, render_comparison, render_so_far, summarize
from weir.store import RunReader


def findings_of(tmp_path: Path, study: SyntheticStudy) -> RunFindings:
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        found = of_run(reader)
    assert isinstance(found, RunFindings)
    return found


def printed(findings: RunFindings, width: int = 80) -> str:
    output = io.StringIO()
    Console(file=output, width=width).print(render_comparison(findings))
    return output.getvalue()


def test_the_sentence_tells_the_faster_side_with_the_interval_and_the_cost(tmp_path: Path) -> None:
    sentence = summarize(findings_of(tmp_path, SyntheticStudy(duration_s=2.0)))
    assert sentence.startswith("Sanic answers ")
    assert "as many requests as Flask, with 0." in sentence
    assert "× the CPU per request" in sentence


def test_two_copies_cannot_be_told_apart_and_the_sentence_says_so(tmp_path: Path) -> None:
    twin = replace(FLASK, name="twin", title="Twin")
    sentence = summarize(findings_of(tmp_path, SyntheticStudy(duration_s=2.0, stacks=(FLASK, twin))))
    assert "cannot be told apart: 1.0" in sentence or "cannot be told apart: 0.9" in sentence


def test_at_a_fixed_rate_the_answer_is_about_the_response_time(tmp_path: Path) -> None:
    def serve_rate(_: str, block: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        return replace(result, summary=replace(result.summary, throughput_rps=1000.0 + block))

    study = SyntheticStudy(duration_s=2.0, stacks=(FLASK, SANIC), loads=(OpenLoad(1000.0, 20),), change=serve_rate)
    findings = findings_of(tmp_path, study)
    for sentence in (summarize(findings), findings.answer.sentence):
        assert re.search(r"Sanic takes 0\.2\d× .*as long for the median response as Flask", sentence), sentence
    assert summarize(findings).startswith("With 1000 req/s over 20 connections, Sanic ")
    text = printed(findings)
    assert "% in median response time within a block" in " ".join(text.split())
    assert text.index("\nSanic  ") < text.index("\nFlask  ")
    (tmp_path / "overload").mkdir()
    overload = findings_of(tmp_path / "overload", replace(study, change=lambda _, __, result: result))
    assert summarize(overload).startswith("Sanic answers ")


def test_with_pauses_the_answer_is_about_the_response_time_unless_a_side_is_saturated(tmp_path: Path) -> None:
    def pause(label: str, block: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        throughput_rps = (109.0 if label == "sanic" else 100.0) + block / 10
        return replace(result, summary=replace(result.summary, throughput_rps=throughput_rps))

    study = SyntheticStudy(
        duration_s=2.0, stacks=(FLASK, SANIC), loads=(ClosedLoad(20, has_pauses=True),), change=pause
    )
    findings = findings_of(tmp_path, study)
    assert summarize(findings).startswith("With 20 connections, with pauses, Sanic takes 0.2")
    assert "The users' pauses limit the throughput; users without pauses would" in printed(findings, 200)
    (tmp_path / "saturated").mkdir()
    saturated = findings_of(tmp_path / "saturated", replace(study, change=lambda _, __, result: result))
    assert summarize(saturated).startswith("Sanic answers ")


def test_a_trial_with_too_few_requests_for_a_median_tells_the_number(tmp_path: Path) -> None:
    def few(_: str, __: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        counts = replace(result.summary.requests, completed=150, ok=150)
        return replace(result, summary=replace(result.summary, requests=counts))

    text = " ".join(printed(findings_of(tmp_path, SyntheticStudy(duration_s=2.0, change=few))).split())
    assert "p50 needs 200 requests in each trial: use a longer --duration." in text
    assert "p99 needs" not in text


def test_the_fastest_side_comes_first_and_each_ratio_has_a_bar_that_holds_it(tmp_path: Path) -> None:
    findings = findings_of(tmp_path, SyntheticStudy(duration_s=2.0, stacks=(FLASK, SANIC, NETTY)))
    text = printed(findings)
    throughput = {stack.name: stack.measure("throughput_rps").value or 0.0 for stack in findings.points[0].stacks}
    fastest = max(throughput, key=lambda name: throughput[name])
    assert text.index(f"\n{fastest}") < text.index("\nFlask")
    bars = [line for line in text.splitlines() if "●" in line]
    assert len(bars) == len(list(list_ratios(findings)))


def test_markdown_has_the_sentence_and_both_tables(tmp_path: Path) -> None:
    text = format_markdown(findings_of(tmp_path, SyntheticStudy(duration_s=2.0)))
    assert text.startswith("**Sanic answers ")
    assert "| | req/s |" in text
    assert "| ÷ Flask | requests/s |" in text


def test_no_line_is_wider_than_the_terminal_and_each_bar_is_whole(tmp_path: Path) -> None:
    findings = findings_of(tmp_path, SyntheticStudy(duration_s=2.0))
    for width in (80, 60):
        lines = printed(findings, width).splitlines()
        assert max(len(line) for line in lines) <= width
        bars = [line for line in lines if "●" in line]
        assert len(bars) == len(list(list_ratios(findings)))
        assert all("." in line for line in bars), "a bar stands beside its ratio"


def test_an_interval_that_tells_nothing_is_not_shown(tmp_path: Path) -> None:
    findings = findings_of(tmp_path, SyntheticStudy(duration_s=2.0))
    (point,) = findings.points
    wide = [replace(one, low=0.0001, high=20_000.0) for one in point.comparisons]
    findings = replace(findings, points=(replace(point, comparisons=tuple(wide)),))
    assert "no narrow interval yet" in summarize(findings)
    assert "20,000" not in printed(findings)


def test_the_answer_so_far_has_the_sentence_and_the_bars_of_throughput(tmp_path: Path) -> None:
    output = io.StringIO()
    Console(file=output, width=100).print(
        render_so_far(findings_of(tmp_path, SyntheticStudy(duration_s=2.0, stacks=(FLASK, SANIC, NETTY))))
    )
    lines = output.getvalue().splitlines()
    assert "as many requests as Flask" in lines[0]
    assert [line.split(" ÷ ")[0].strip() for line in lines if "●" in line][-1] == "Flask (A/A)"
    assert sum("●" in line for line in lines) == 3


def test_the_view_of_a_narrow_terminal_keeps_its_bars(tmp_path: Path) -> None:
    long = replace(SANIC, title="A server whose name is much too long")
    output = io.StringIO()
    findings = findings_of(tmp_path, SyntheticStudy(duration_s=2.0, stacks=(FLASK, long)))
    Console(file=output, width=60).print(render_so_far(findings))
    # The bar has room for the line of the ratio 1.
    assert "│" in next(line for line in output.getvalue().splitlines() if "●" in line)
