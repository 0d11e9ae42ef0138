"""Tests a run that weir on another machine controls: lines to the run's page, and commands from the page."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.end_to_end import conftest as end_to_end
from tests.end_to_end.ordeal import read_until
from tests.support.records import group, interval, sample, started
from weir.cli.remote_control import BoardLines, take_line
from weir.live import EventQueue, PageInfo, TrialEnded, TrialStarted
from weir.model.errors import ExitCode
from weir.model.load_records import LoadEvent

stacks = end_to_end.stacks
study = end_to_end.study
Study = end_to_end.Study


def board() -> EventQueue:
    return EventQueue(PageInfo("A run"), clock=lambda: 100.0)


def tell(told: EventQueue | BoardLines) -> None:
    """Calls every method that reports something."""
    told.on_step("building a stack")
    told.begin_trial(
        TrialStarted(number=1, total=2, block=1, name="a stack", point="hello, 4 connections", duration_s=10.0)
    )
    told.show_logs({})
    told.on_start(started())
    told.on_interval(interval(0, [1.0, 2.0], errors={"timeout": 1}))
    told.on_event(LoadEvent(t_s=0.5, kind="late", detail='a "detail"\nof two lines'))
    told.on_sample(sample(0.1, group(cpu_s=0.01, pools={"worker": 0.05})))
    told.on_sample(sample(0.2, group(cpu_s=0.05, pools={"worker": 0.1})))
    told.end_trial(
        TrialEnded(validity="suspect", reasons=("not steady",), throughput_rps=20.0, p50_us=1000.0, failed=1)
    )


def test_a_page_elsewhere_shows_what_one_of_this_machine_shows() -> None:
    here, there = board(), board()
    tell(here)
    lines: list[str] = []
    with BoardLines(lines.append) as told:
        tell(told)
    assert all(line.count("\n") == 1 for line in lines)
    assert all(take_line(there, line.rstrip("\n")) for line in lines)
    assert there.snapshot() == here.snapshot()


def test_a_line_of_another_version_is_left_out() -> None:
    there = board()
    before = there.snapshot()
    assert take_line(there, 'weir-live take_something {"a": 1}')
    assert take_line(there, 'weir-live on_interval {"a": 1}')
    assert there.snapshot() == before


def test_what_weir_says_itself_is_no_line_of_the_page() -> None:
    assert not take_line(board(), "weir: live: http://127.0.0.1:8000/")


@pytest.mark.usefixtures("stacks")
def test_a_run_whose_driver_is_gone_ends_with_what_was_finished(study: Study, tmp_path: Path) -> None:
    weir = Path(sysconfig.get_path("scripts")) / "weir"
    with subprocess.Popen(
        [weir, "run", study("good", duration_s=3600), "--out", tmp_path / "run", "--driven"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        read_until(process.stderr, "trial 1 of 1")
        process.stdin.close()
        assert "weir has kept all finished work" in process.stderr.read()
        assert process.wait() == ExitCode.INTERRUPTED
    assert end_to_end.servers_of(tmp_path) == []
