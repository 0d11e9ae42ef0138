"""Observers of loads made from functions."""

from collections.abc import Callable
from typing import Any

from weir.model.load_observer import LoadObserver


def observer(**callbacks: Callable[[Any], object]) -> LoadObserver:
    """Returns an observer that calls these functions: `observer(on_interval=intervals.append)`."""
    made = LoadObserver()
    for name, callback in callbacks.items():
        assert hasattr(made, name)
        setattr(made, name, callback)
    return made
