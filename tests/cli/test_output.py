"""What becomes of an interruption while something is said to a terminal that is gone."""

import errno

import pytest

from weir.cli import output


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
