"""Reads short test plans."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weir.compat.jmx.read import read_test_plan
from weir.compat.jmx.test_plan import TestPlan

Read = Callable[..., TestPlan]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Returns a function that reads a plan from its text, with properties as keywords."""

    def read_text(text: str, **properties: str) -> TestPlan:
        path = tmp_path / "plan.jmx"
        path.write_text(text)
        return read_test_plan(path, properties)

    return read_text
