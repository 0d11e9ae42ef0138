"""Tests weir's own generator: the requests that are left in the server after a load."""

from collections.abc import Callable
from dataclasses import replace

from weir.generators.engine import EngineLoad
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, Request
from weir.model.load_records import RequestCounts


def counted(plan: LoadPlan) -> RequestCounts:
    with EngineLoad(plan) as load:
        return load.result().summary.requests


def test_a_load_that_is_answered_to_the_end_leaves_nothing_in_the_server(serve: Callable[..., str]) -> None:
    plan = LoadPlan(Request("GET", f"http://{serve('delay', '--wait', '400ms')}/"), ClosedLoad(4), 0.2)
    left = counted(plan)
    assert (left.sent, left.unanswered) == (4, 4)
    ended = counted(plan.answered_to_the_end())
    assert (ended.sent, ended.ok, ended.unanswered) == (4, 4, 0)
    # Open arrivals do not wait for responses, and two of them come in this time.
    arriving = replace(plan, load=OpenLoad(10.0, 4))
    assert counted(arriving).unanswered > 0
    ended = counted(arriving.answered_to_the_end())
    assert (ended.ok, ended.unanswered) == (2, 0)
