"""Generators that take turns: whose turn it is, what becomes of one that fails, and of a round that others
disturbed."""

import json
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from bench.machine import BenchError, OtherLoad, Taken
from bench.result import QUIET_FRACTION

Measured = TypeVar("Measured")

# What a generator can do wrong, and what can be missing from its output. Whatever else is raised is a defect of the
# benchmark.
FAILURES = (BenchError, OSError, json.JSONDecodeError, ValueError, KeyError, IndexError, TypeError, ZeroDivisionError)


def alternate(
    generators: Mapping[str, Callable[[], Measured]],
    rounds: int,
    required: Collection[str],
    notes: list[str],
    what: str,
    taken: list[Taken],
    watch: Callable[[], OtherLoad] = OtherLoad,
) -> dict[str, list[Measured]]:
    """What each generator measured, round by round; `what` they do is named where one fails.

    The order goes there and back, and everybody comes first in turn, so that what drifts (clock speed, neighbours)
    touches all alike. One that fails has a second try at once, which is noted in `notes`; one that fails again is left
    out of all rounds, with a line, or ends the measurement if it is `required`.

    A round in which others took more than `QUIET_FRACTION` of the CPUs is set aside whole, whatever came out, and done
    again; not more than `rounds` of them, then they count. What others took of the rounds that count goes to `taken`, a
    line on the others to `notes`.
    """
    measured: dict[str, list[Measured]] = {name: [] for name in generators}
    set_aside: list[float] = []
    counted = turn = 0
    while counted < rounds:
        names = list(measured)
        order = names if turn % 2 == 0 else names[::-1]
        first = turn // 2 % len(names)
        turn += 1
        others = watch()
        for name in order[first:] + order[:first]:
            try:
                measured[name].append(generators[name]())
            except FAILURES as error:
                _note(notes, f"{name}, {what}: a second try in round {turn}, after: {_said(error)}")
                try:
                    measured[name].append(generators[name]())
                except FAILURES as again:
                    if name in required:
                        raise BenchError(f"{name}, {what}: {_said(again)}") from again
                    _note(notes, f"{name}, {what}: left out, in round {turn}: {_said(again)}")
                    del measured[name]
        found = others.taken()
        if found.fraction > QUIET_FRACTION and len(set_aside) < rounds:
            set_aside.append(found.fraction)
            for values in measured.values():
                values.pop()
        else:
            counted += 1
            taken.append(found)
    if set_aside:
        _note(
            notes,
            f"{what}: {len(set_aside)} of {turn} rounds set aside and done again, in which others took "
            f"{min(set_aside):.1%} to {max(set_aside):.1%} of the CPUs",
        )
    return measured


def _note(notes: list[str], line: str) -> None:
    notes.append(line)
    print(line, file=sys.stderr)


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, BenchError) else f"{type(error).__name__}: {text}"
