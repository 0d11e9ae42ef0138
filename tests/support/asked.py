"""Captures the plan that `weir load` would give to the engine."""

import pytest

import weir.cli.load_source
from weir.cli.commands import app
from weir.generators.handle import LoadHandle, LoadSource
from weir.model.load import LoadPlan


class _CaughtError(Exception):
    """The plan that `weir load` would give to the engine."""


def plan_asked_for(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> LoadPlan:
    """Returns the plan that `weir load` makes from arguments, with its own code up to the engine."""

    def catch(plan: LoadPlan, *_: object) -> LoadHandle:
        raise _CaughtError(plan)

    monkeypatch.setattr(weir.cli.load_source, "LOCAL", LoadSource(start=catch))
    with pytest.raises(_CaughtError) as caught:
        app(["load", *arguments], standalone_mode=False)
    plan: LoadPlan = caught.value.args[0]
    return plan
