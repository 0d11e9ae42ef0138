"""Generators that take turns: whose turn it is, and what becomes of one that fails."""

import json
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from bench.machine import BenchError

Measured = TypeVar("Measured")

# What a generator can do wrong, and what can be missing from its output. Whatever else is raised is a defect of the benchmark.
FAILURES = (BenchError, OSError, json.JSONDecodeError, ValueError, KeyError, IndexError, TypeError, ZeroDivisionError)


def alternate(
    generators: Mapping[str, Callable[[], Measured]], rounds: int, required: Collection[str], notes: list[str], what: str
) -> dict[str, list[Measured]]:
    """What each generator measured, round by round; `what` they do is named where one fails.

    The order goes there and back, and everybody comes first in turn, so that what drifts (clock speed, neighbours) touches all alike.
    One that fails has a second try at once, which is noted in `notes`; one that fails again is left out of all rounds, with a line,
    or ends the measurement if it is `required`.
    """
    measured: dict[str, list[Measured]] = {name: [] for name in generators}
    for index in range(rounds):
        names = list(measured)
        order = names if index % 2 == 0 else names[::-1]
        first = index // 2 % len(names)
        for name in order[first:] + order[:first]:
            try:
                measured[name].append(generators[name]())
            except FAILURES as error:
                _note(notes, f"{name}, {what}: a second try in round {index + 1}, after: {_said(error)}")
                try:
                    measured[name].append(generators[name]())
                except FAILURES as again:
                    if name in required:
                        raise BenchError(f"{name}, {what}: {_said(again)}") from again
                    _note(notes, f"{name}, {what}: left out, in round {index + 1}: {_said(again)}")
                    del measured[name]
    return measured


def _note(notes: list[str], line: str) -> None:
    notes.append(line)
    print(line, file=sys.stderr)


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, BenchError) else f"{type(error).__name__}: {text}"
