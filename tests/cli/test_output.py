"""What becomes of what is said to a terminal that is gone, or to a disk that is full."""

import errno
import subprocess
from pathlib import Path

import pytest

from tests.support.side_by_side import WEIR
from weir.cli import output
from weir.model.errors import ExitCode


@pytest.fixture(autouse=True)
def _loud_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.stderr, "quiet", False)


def test_an_interruption_is_not_lost_to_a_terminal_that_takes_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def print_(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            # As Rich does, which writes what it has on its way out.
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(output.stderr, "print", print_)
    with pytest.raises(KeyboardInterrupt):
        output.say("trial 3 of 4")


def test_what_is_said_of_an_interruption_is_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def print_(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(output.stderr, "print", print_)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        output.say("ended early; what was finished is kept")


def test_progress_that_nobody_reads_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def print_(*_: object, **__: object) -> None:
        raise OSError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(output.stderr, "print", print_)
    output.say("trial 3 of 4")
    assert output.stderr.quiet


@pytest.mark.parametrize("arguments", [["--version"], ["stacks", "list"], ["study", "schema"]], ids=" ".join)
def test_data_for_which_there_is_no_space_is_told_and_is_no_defect(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([WEIR, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert done.stderr.splitlines() == [
        "weir: standard output: cannot be written: No space left on device",
        "  try: check the space left on the disk",
    ]
