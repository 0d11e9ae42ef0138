"""Rounds in which generators take turns, with second tries after failures and repeated rounds after disturbances."""

import json
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from bench.machine import BenchError, OtherLoad, Taken
from bench.result import QUIET_FRACTION

Measured = TypeVar("Measured")

# Errors of a generator or of its output. Any other exception is a defect of the benchmark.
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
    """Returns each generator's measurements, round by round; notes name the job by `what`.

    The order of the generators changes with each round, so that drift (clock speed, neighbours) affects all alike. A
    generator that fails gets a second try at once, with a note. After a second failure the generator is left out of all
    rounds, with a note. Raises BenchError if this generator is `required`.

    A round in which others took more than `QUIET_FRACTION` of the CPUs is discarded and repeated, at most `rounds`
    times. `taken` gets the CPU time of others in each round that counts; `notes` gets a line about the discarded ones.
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
