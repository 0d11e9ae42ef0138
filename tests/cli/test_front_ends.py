"""What runs a front end: a tool of the test's own, whose report is what became of each part of the contract."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from weir.cli.front_ends import front_end
from weir.compat.front_end import Asked, Outcome, ToolExit, not_offered
from weir.model.errors import TargetError, WeirError
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.model.request_log import read_requests

Serve = Callable[..., str]
Run = Callable[..., int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOfTool(Asked):
    written: Path | None = None

    def heading(self) -> str:
        return "heading\n"

    def report(self, outcome: Outcome) -> str:
        logged = -1 if outcome.requests is None else len(read_requests(outcome.requests))
        completed = outcome.end.summary.requests.completed
        of_intervals = sum(interval.completed for interval in outcome.intervals)
        histograms = [interval.histogram for interval in outcome.intervals if interval.histogram]
        return f"{logged} {completed} {of_intervals} {histograms} {outcome.interrupted} {outcome.requests}\n"

    def notes(self, outcome: Outcome) -> list[str]:
        return ["a note"]

    def exit_code(self, outcome: Outcome) -> int:
        return 7

    def cannot_begin(self, error: WeirError) -> ToolExit:
        return ToolExit(out="nothing\n", err=f"{type(error).__name__}\n", code=9)

    def files(self, outcome: Outcome) -> Mapping[str, str]:
        return {} if self.written is None else {str(self.written): "content"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs a tool that asks for 10 requests of a URL."""

    def front_end_of(url: str, *, needs_requests: bool = False, written: Path | None = None, exit_: ToolExit | None = None) -> int:
        def read(arguments: Sequence[str]) -> Asked:
            if exit_ is not None:
                raise exit_
            assert arguments == ["-x", url]
            plan = LoadPlan(Request("GET", url), ClosedLoad(2), duration_s=30, requests=10)
            return AskedOfTool(plan=plan, native="weir load", needs_requests=needs_requests, written=written)

        monkeypatch.setitem(sys.modules, "weir.compat.tool", SimpleNamespace(read=read))
        return front_end("tool", ["-x", url])

    return front_end_of


def test_the_report_goes_to_standard_output_and_what_weir_adds_to_standard_error(
    run: Run, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"http://{serve('null')}/") == 7
    shown = capsys.readouterr()
    assert shown.out == "heading\n-1 10 10 [] False None\n"
    lines = shown.err.splitlines()
    assert lines[0].startswith("weir: verdict: ")
    assert lines[-2:] == ["weir: a note", "weir: the same natively: weir load"]


def test_the_log_of_requests_is_there_for_the_report_and_gone_behind_it(run: Run, serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    run(f"http://{serve('null')}/", needs_requests=True)
    logged, completed, *_, path = capsys.readouterr().out.removeprefix("heading\n").split()
    assert logged == completed == "10"
    assert not Path(path).exists()


def test_files_are_written(run: Run, serve: Serve, tmp_path: Path) -> None:
    run(f"http://{serve('null')}/", written=tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "content"


def test_a_file_that_cannot_be_written_is_told(run: Run, serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"http://{serve('null')}/", written=tmp_path / "none" / "a.csv") == 1
    assert "a.csv: cannot be written: No such file or directory" in capsys.readouterr().err


def test_a_load_that_cannot_begin_is_told_by_the_tool(run: Run, free_port: Callable[[], int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"http://127.0.0.1:{free_port()}/") == 9
    assert capsys.readouterr() == ("nothing\n", f"{TargetError.__name__}\n")


def test_the_tools_own_end_is_passed_on(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("", exit_=ToolExit(out="usage\n", err="wrong\n", code=22)) == 22
    assert capsys.readouterr() == ("usage\n", "wrong\n")


def test_what_is_not_offered_names_the_native_way(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("", exit_=not_offered("-x: found 'p', and weir has no proxy", "weir load", 1)) == 1
    assert capsys.readouterr().err == "weir: -x: found 'p', and weir has no proxy\n  try: weir load\n"
