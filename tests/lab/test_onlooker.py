"""Skipping a trial: what is asked takes effect on the trial that goes on, wherever it is, and on no other."""

import threading
from typing import cast

import pytest

from weir.generators.engine import EngineLoad
from weir.lab.onlooker import Extension, Skip, TrialSkippedError


class Load:
    """A load that notes that it was told to end."""

    def __init__(self) -> None:
        self.stopped = 0

    def stop(self) -> None:
        self.stopped += 1


def as_load(load: Load) -> EngineLoad:
    return cast(EngineLoad, load)


def test_nothing_is_skipped_where_no_trial_goes_on() -> None:
    skip = Skip()
    assert not skip.ask()
    with skip.trial():
        skip.check()
    assert not skip.ask()
    assert not skip.asked


def test_skipping_ends_the_load_that_goes_on() -> None:
    skip, load = Skip(), Load()
    with skip.trial(), skip.ends(as_load(load)):
        assert skip.ask()
        assert load.stopped == 1
    assert skip.asked


def test_a_load_that_begins_after_skipping_was_asked_ends_at_once() -> None:
    skip, load = Skip(), Load()
    with skip.trial():
        assert skip.ask()
        with skip.ends(as_load(load)):
            assert load.stopped == 1


def test_a_load_that_is_over_is_not_ended_again() -> None:
    skip, load = Skip(), Load()
    with skip.trial():
        with skip.ends(as_load(load)):
            pass
        assert skip.ask()
    assert load.stopped == 0


def test_a_trial_that_is_skipped_goes_no_further() -> None:
    skip = Skip()
    with skip.trial():
        skip.ask()
        with pytest.raises(TrialSkippedError):
            skip.check()


def test_the_trial_after_a_skipped_one_is_not_skipped() -> None:
    skip = Skip()
    with skip.trial():
        skip.ask()
    with skip.trial():
        assert not skip.asked
        skip.check()


def test_a_trial_that_waits_is_skipped_at_once() -> None:
    skip = Skip()
    with skip.trial():
        threading.Timer(0.0, skip.ask).start()
        # The test's own deadline ends it otherwise.
        skip.wait(3600)
        assert skip.asked


def test_blocks_are_added_until_the_last_one_is_over() -> None:
    extension = Extension()
    assert extension.blocks == 0
    assert extension.ask()
    assert not extension.close(0), "one was asked for since that was read"
    assert extension.ask()
    assert extension.blocks == 2
    assert extension.close(2)
    assert not extension.ask()
    assert extension.blocks == 2
