"""Tests the runner of front ends with a tool of the test, whose report shows all parts of the interface."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

import weir.cli.front_ends
from weir.cli.front_ends import run_front_end
from weir.compat.flags import ToolError, ToolExit
from weir.compat.front_end import FrontEnd, LoadResult
from weir.load_spec import LoadSpec
from weir.model.errors import WeirError
from weir.model.request_log import read_requests

Serve = Callable[..., str]
Run = Callable[..., int]


@dataclass(frozen=True, kw_only=True)
class FrontEndOfTest(FrontEnd):
    written: Path | None = None

    def format_heading(self) -> str:
        return "heading\n"

    def format_progress(self, before: int, now: int, *, has_ended: bool) -> str:
        return f"finished {now}\n" if has_ended else ""

    def format_report(self, result: LoadResult) -> str:
        logged = -1 if result.request_log is None else len(read_requests(result.request_log))
        completed = result.end.summary.requests.completed
        in_intervals = sum(interval.completed for interval in result.intervals)
        histograms = [interval.histogram for interval in result.intervals if interval.histogram]
        return f"{logged} {completed} {in_intervals} {histograms} {result.request_log}\n"

    def list_differences(self, result: LoadResult) -> list[str]:
        return ["a note"]

    def choose_exit_code(self, result: LoadResult) -> int:
        return 7

    def format_failed_start(self, error: WeirError) -> tuple[str, int]:
        return "nothing\n", 9

    def format_files(self, result: LoadResult) -> Mapping[str, str]:
        return {} if self.written is None else {str(self.written): "content"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns a function that runs a tool which makes 10 requests of a URL."""

    def run_tool(
        url: str, *, needs_request_log: bool = False, written: Path | None = None, end: Exception | None = None
    ) -> int:
        def read_command_line(tool: str, words: Sequence[str]) -> FrontEnd:
            if end is not None:
                raise end
            assert (tool, words) == ("tool", ["-x", url])
            spec = LoadSpec(urls=(url,), connections=2, duration_s=30.0, requests=10)
            return FrontEndOfTest(
                flags=SimpleNamespace(), spec=spec, needs_request_log=needs_request_log, written=written
            )

        monkeypatch.setattr(weir.cli.front_ends, "read_command_line", read_command_line)
        return run_front_end("tool", ["-x", url])

    return run_tool


def test_the_report_goes_to_standard_output_and_what_weir_adds_to_standard_error(
    run: Run, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"http://{serve('null')}/") == 7
    shown = capsys.readouterr()
    assert shown.out == "heading\n-1 10 10 [] None\n"
    lines = shown.err.splitlines()
    assert lines[0] == "finished 10"
    assert lines[1].startswith("weir: verdict: ")
    assert lines[-2] == "weir: a note"
    assert lines[-1].startswith("weir: the same with weir load: weir load http://")


def test_the_log_of_requests_is_there_for_the_report_and_gone_behind_it(
    run: Run, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    run(f"http://{serve('null')}/", needs_request_log=True)
    logged, completed, *_, path = capsys.readouterr().out.removeprefix("heading\n").split()
    assert logged == completed == "10"
    assert not Path(path).exists()


def test_files_are_written(run: Run, serve: Serve, tmp_path: Path) -> None:
    run(f"http://{serve('null')}/", written=tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "content"


def test_a_file_that_cannot_be_written_is_told(
    run: Run, serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"http://{serve('null')}/", written=tmp_path / "none" / "a.csv") == 1
    assert "a.csv: cannot be written: No such file or directory" in capsys.readouterr().err


def test_a_load_that_cannot_begin_has_the_tools_output_and_weirs_error(
    run: Run, free_port: Callable[[], int], capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    assert run(f"http://127.0.0.1:{port}/") == 9
    shown = capsys.readouterr()
    assert shown.out == "nothing\n"
    assert shown.err.startswith(f"weir: connection refused by 127.0.0.1:{port}\n  try: ")


def test_help_goes_to_standard_output(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("", end=ToolExit("usage\n", 22)) == 22
    assert capsys.readouterr() == ("usage\n", "")


def test_a_wrong_command_line_is_told_with_the_next_command(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("", end=ToolError("-x: found 'p', expected a number", hint="weir load", code=1)) == 1
    assert capsys.readouterr() == ("", "weir: -x: found 'p', expected a number\n  try: weir load\n")
