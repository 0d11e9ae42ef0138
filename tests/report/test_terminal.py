"""Tests the output of `weir run` and `weir report`."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.synthetic_generator import SyntheticGenerator
from tests.support.synthetic_run import FLASK, NETTY, SANIC, SyntheticStudy, judged, write_run
from weir.findings import RunFindings, of_run
from weir.model.run_types import TrialResult
from weir.report import render_json, render_terminal
from weir.store import RunReader

GOLDEN = Path(__file__).parent / "golden"
GENERATORS = SyntheticStudy(
    stacks=(SANIC,), aa=None, baseline="sanic", duration_s=4.0, published=(), question="Do load generators agree about the same server?",
    generators=(
        SyntheticGenerator("weir"),
        SyntheticGenerator("wrk", says=0.98, memory_bytes=5_000_000),
        SyntheticGenerator("locust", reach=0.05, says=7.5, cpu_fraction=0.99, memory_bytes=90_000_000),
    ),
)  # fmt: skip


def findings_of(tmp_path: Path, study: SyntheticStudy) -> RunFindings:
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        return of_run(reader)


def printed(findings: RunFindings, width: int = 80, **options: bool) -> str:
    output = io.StringIO()
    Console(file=output, width=width, **options).print(render_terminal(findings))  # type: ignore[arg-type]
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def third_of_sanic_failed(label: str, block: int, result: TrialResult) -> TrialResult:
    return judged(result, "invalid", "3 requests failed (reset)") if (label, block) == ("sanic", 3) else result


@pytest.mark.parametrize(
    ("name", "study"),
    [
        ("two-stacks", SyntheticStudy(duration_s=4.0, change=third_of_sanic_failed)),
        ("three-stacks", SyntheticStudy(duration_s=4.0, stacks=(FLASK, SANIC, NETTY))),
        ("generators", GENERATORS),
        ("nothing", SyntheticStudy(skip=lambda label, block: True, ended="interrupted")),
    ],
)
def test_the_terminal_output_is_the_golden_one(name: str, study: SyntheticStudy, tmp_path: Path) -> None:
    """After an intended change: delete the file, run this test twice, and read the difference."""
    output = printed(findings_of(tmp_path, study))
    golden = GOLDEN / f"{name}.txt"
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(output, encoding="utf-8")
        pytest.fail(f"{golden} was missing and is written now: read it")
    assert output == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, width: int) -> None:
    long = replace(SANIC, name="a-stack-with-a-very-long-identifier-indeed-it-is", title="")
    output = printed(findings_of(tmp_path, SyntheticStudy(duration_s=1.0, stacks=(FLASK, long))), width)
    assert all(len(line) <= width for line in output.splitlines())
    assert "9,7" in output or "9,8" in output or "9,9" in output or "10," in output


def test_without_a_terminal_nothing_is_coloured_and_with_one_no_color_is_honoured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = findings_of(tmp_path, SyntheticStudy(duration_s=1.0))
    assert "\x1b" not in printed(findings)
    assert "\x1b[32m" in printed(findings, force_terminal=True).replace("\x1b[1;32m", "\x1b[32m")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in printed(findings, force_terminal=True)


def test_an_error_text_cannot_steer_the_terminal(tmp_path: Path) -> None:
    def hostile(label: str, block: int, result: TrialResult) -> TrialResult:
        return (
            judged(result, "invalid", "\x1b[2J\x1b]0;owned\x07 [red]markup[/red]\r\x9b31m")
            if label == "sanic"
            else result
        )

    output = printed(findings_of(tmp_path, SyntheticStudy(duration_s=1.0, change=hostile)))
    assert not set(output) & {"\x1b", "\x07", "\r", "\x9b"}
    assert "[red]markup[/red]" in output


def test_json_output_is_the_findings(tmp_path: Path) -> None:
    findings = findings_of(tmp_path, SyntheticStudy(duration_s=1.0))
    text = render_json(findings)
    assert text.startswith('{\n  "schema": 1,')
    assert findings.answer.sentence in text
