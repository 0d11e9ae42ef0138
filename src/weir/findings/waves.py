"""A burst that is answered in waves: everybody asks once, at once, and who finds no thread free waits until the first have theirs back.

How many requests a second a burst was answered at says little of it; when each wave began says how many the server has in hand at a time.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

from weir import stats
from weir.findings.evidence import CellTrials
from weir.findings.types import StackFindings, Wave
from weir.findings.words import amount, listed, ratio_text, significant
from weir.model.histogram import recorded_in
from weir.model.load import ClosedLoad

_APART = 0.5
"""Of the time until the first answer: for so long there is none between two waves."""


def waves_of(cell: CellTrials, histogram: Callable[[int], bytes | None]) -> tuple[Wave, ...]:
    """The waves in which a stack answers, by the response times of its used trials.

    Empty where users come over time or ask more than once, and where trials differ in how many waves they have.

    Args:
        cell: what was measured.
        histogram: the response times of a trial, by its id.
    """
    load = cell.cell.load
    if not isinstance(load, ClosedLoad) or load.loops != 1 or isinstance(load.users, tuple):
        return ()
    trials = [_waves(data) for trial in cell.used if (data := histogram(trial.id)) is not None]
    if len({len(waves) for waves in trials}) != 1:
        return ()
    found = []
    for of_trials in zip(*trials, strict=True):
        begins = stats.mean_interval([begins_s for begins_s, _ in of_trials])
        found.append(Wave(fmean(answers for _, answers in of_trials), begins.value, begins.low, begins.high))
    return tuple(found)


def waves_sentence(stacks: Sequence[StackFindings]) -> str:
    """When each stack's waves began, beside when arithmetic says; empty where nobody has any."""
    parts = []
    for stack in stacks:
        if stack.arm != "main" or not stack.waves:
            continue
        waves = listed([f"{amount(wave.answers)} from {_begins(wave)} on" for wave in stack.waves])
        lowest = next(iter(stack.ceilings), None)
        expected = ""
        if lowest is not None and lowest.of == "stack" and lowest.wait_s is not None:
            times = listed([f"{lowest.wait_s * number:g}" for number in range(1, len(stack.waves) + 1)])
            expected = f", where {lowest.because} let them begin at {times} s"
        parts.append(f"{stack.name} answers {waves}{expected}")
    return f"Waves after all had asked at once: {'; '.join(parts)}." if parts else ""


def _begins(wave: Wave) -> str:
    value, interval = ratio_text(wave.begins_s, wave.low_s, wave.high_s)
    return f"{value} s ({interval})" if interval else f"{significant(wave.begins_s)} s"


def _waves(data: bytes) -> list[tuple[float, int]]:
    """Of one trial, when each wave began, in seconds, and how many answers it has."""
    times = [(time_ns / 1e9, answers) for time_ns, answers in recorded_in(data).items()]
    if not times:
        return []
    apart_s = _APART * times[0][0]
    found = [times[0]]
    for (before_s, _), (time_s, answers) in pairwise(times):
        if time_s - before_s >= apart_s:
            found.append((time_s, answers))
        else:
            found[-1] = (found[-1][0], found[-1][1] + answers)
    return found
