"""Tests the command: the measured parts, the written files, and the last lines."""

import signal
import sys
from pathlib import Path

import pytest

from bench import __main__ as command
from bench.machine import BenchError
from bench.result import Bar, Found, PartResult, Provenance, Table, read_results
from bench.throughput import CONNECTIONS


def result(part: str, rounds: int, seconds: float, *, reached: bool = True, others_fraction: float = 0.0) -> PartResult:
    return PartResult(
        part,
        Found(f"Section of {part}", Table(["", "requests/s"], [["weir", "1"]]), [Bar(f"bar of {part}", "1", reached)]),
        Provenance(rounds, seconds, ["CPU: one"], "server on CPU 1", others_fraction, ["weir 0.1.0"]),
    )


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "Run":
    return Run(monkeypatch, tmp_path)


class Run:
    """`python -m bench` with parts that measure nothing; those in `broken` fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._monkeypatch = monkeypatch
        self.results = folder / "results"
        self.page = folder / "RESULTS.md"
        self.broken: set[str] = set()
        self.reached = True
        self.others_fraction = 0.0
        monkeypatch.setattr(command, "RESULTS", self.results)
        monkeypatch.setattr(command, "PAGE", self.page)
        monkeypatch.setattr(command, "measure", self._measure)
        monkeypatch.setattr(command, "allowed", lambda connections: connections)
        monkeypatch.setattr(signal, "signal", lambda *_: None)

    def __call__(self, *arguments: str) -> int:
        self._monkeypatch.setattr(sys, "argv", ["bench", *arguments])
        return command.main()

    def _measure(self, name: str, rounds: int, seconds: int, connections: tuple[int, ...]) -> PartResult:
        if name in self.broken:
            raise BenchError("it broke")
        return result(name, rounds, seconds, reached=self.reached, others_fraction=self.others_fraction)


def test_all_parts_but_those_that_are_asked_for_by_name_are_measured_and_written(run: Run) -> None:
    assert run() == 0
    parts = [kept.part for kept in read_results(run.results, list(command.PARTS))]
    assert parts == [name for name, part in command.PARTS.items() if part.by_default]
    assert "bar of throughput" in run.page.read_text()


def test_everything_takes_forty_minutes_at_most_and_has_five_rounds_at_least() -> None:
    parts = [part for part in command.PARTS.values() if part.by_default]
    assert all(part.rounds >= command.LEAST_ROUNDS for part in parts)
    assert sum(part.expected_s(part.rounds, part.seconds, CONNECTIONS) for part in parts) <= 40 * 60


def test_one_part_measured_again_keeps_the_others_on_the_page(run: Run) -> None:
    assert run("--only", "tls") == 0
    assert run("--only", "memory") == 0
    assert "Section of tls" in run.page.read_text()
    assert "Section of memory" in run.page.read_text()


@pytest.mark.parametrize("arguments", [("--rounds", "1"), ("--seconds", "3"), ("--connections", "64")])
def test_a_trial_is_printed_and_not_written(
    run: Run, arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--only", "tls", *arguments) == 0
    assert not run.results.exists()
    assert not run.page.exists()
    assert "bar of tls" in capsys.readouterr().out


def test_other_rounds_are_written_if_asked_for_and_not_too_few(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--only", "tls", "--rounds", "21", "--keep") == 0
    assert read_results(run.results, ["tls"])[0].provenance.rounds == 21
    assert run("--only", "tls", "--rounds", "4", "--keep") == 3
    assert "5 rounds at least" in capsys.readouterr().err


def test_a_part_that_cannot_be_measured_does_not_end_the_others(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run.broken = {"tls"}
    assert run("--only", "tls", "--only", "ceiling") == 3
    assert "tls could not be measured: it broke" in capsys.readouterr().err
    assert [kept.part for kept in read_results(run.results, list(command.PARTS))] == ["ceiling"]


def test_a_missed_bar_and_a_machine_that_was_not_quiet_have_exit_codes_of_their_own(run: Run) -> None:
    run.reached = False
    assert run("--only", "tls") == 1
    run.others_fraction = 0.5
    assert run("--only", "tls") == 4
