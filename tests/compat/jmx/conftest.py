"""Reads short test plans."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weir.compat.jmx.read import read_plan
from weir.compat.jmx.test_plan import ExactPlan

Read = Callable[..., ExactPlan]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Returns a function that reads a plan from its text, with properties as keywords."""

    def read_text(text: str, **properties: str) -> ExactPlan:
        path = tmp_path / "plan.jmx"
        path.write_text(text)
        return read_plan(path, properties)

    return read_text
