"""Tests skipping: a request to skip affects the current trial, in any phase, and no other trial."""

import threading
from typing import cast

import pytest

from weir.generators.engine import EngineLoad
from weir.lab.observer import ExtraBlocks, SkipControl, TrialSkippedError


class Load:
    """A load that counts calls of `stop`."""

    def __init__(self) -> None:
        self.stopped = 0

    def stop(self) -> None:
        self.stopped += 1


def as_load(load: Load) -> EngineLoad:
    return cast(EngineLoad, load)


def test_nothing_is_skipped_where_no_trial_goes_on() -> None:
    skip = SkipControl()
    assert not skip.request()
    with skip.trial():
        skip.check()
    assert not skip.request()
    assert not skip.is_requested


def test_skipping_ends_the_load_that_goes_on() -> None:
    skip, load = SkipControl(), Load()
    with skip.trial(), skip.stops(as_load(load)):
        assert skip.request()
        assert load.stopped == 1
    assert skip.is_requested


def test_a_load_that_begins_after_skipping_was_asked_ends_at_once() -> None:
    skip, load = SkipControl(), Load()
    with skip.trial():
        assert skip.request()
        with skip.stops(as_load(load)):
            assert load.stopped == 1


def test_a_load_that_is_over_is_not_ended_again() -> None:
    skip, load = SkipControl(), Load()
    with skip.trial():
        with skip.stops(as_load(load)):
            pass
        assert skip.request()
    assert load.stopped == 0


def test_a_trial_that_is_skipped_goes_no_further() -> None:
    skip = SkipControl()
    with skip.trial():
        skip.request()
        with pytest.raises(TrialSkippedError):
            skip.check()


def test_the_trial_after_a_skipped_one_is_not_skipped() -> None:
    skip = SkipControl()
    with skip.trial():
        skip.request()
    with skip.trial():
        assert not skip.is_requested
        skip.check()


def test_a_trial_that_waits_is_skipped_at_once() -> None:
    skip = SkipControl()
    with skip.trial():
        threading.Timer(0.0, skip.request).start()
        # Without the request, the test's timeout would end this wait.
        skip.wait(3600)
        assert skip.is_requested


def test_blocks_are_added_until_the_last_one_is_over() -> None:
    extension = ExtraBlocks()
    assert extension.blocks == 0
    assert extension.request()
    assert not extension.close(0), "one was asked for since that was read"
    assert extension.request()
    assert extension.blocks == 2
    assert extension.close(2)
    assert not extension.request()
    assert extension.blocks == 2
