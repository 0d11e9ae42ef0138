"""Finds the waves in which a server responds to a burst. In a burst, all users send one request at the same time.

Requests without a free thread wait until the first requests finish. The start times and the sizes of the waves show how
many requests the server handles at the same time. The throughput of a burst does not show this number.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

from weir import stats
from weir.findings.evidence import CellTrials
from weir.findings.formatting import amount, listed, ratio_text, significant
from weir.findings.point_types import StackFindings, Wave
from weir.model.hdr import Hdr
from weir.model.load import ClosedLoad

_APART = 0.5
"""Minimum gap between two waves, as a share of the time to the first response."""


def find_waves(cell: CellTrials, histogram: Callable[[int], bytes | None]) -> tuple[Wave, ...]:
    """Returns the waves of a stack's responses, computed from the response times of counted trials.

    `histogram` takes a trial's id and returns the trial's histogram of response times. The result is empty if users
    arrive over time or send several requests, or if trials differ in the number of waves.
    """
    load = cell.cell.load
    if not isinstance(load, ClosedLoad) or load.requests_per_user != 1 or isinstance(load.users, tuple):
        return ()
    trials = [_split_waves(data) for trial in cell.used if (data := histogram(trial.id)) is not None]
    if len({len(waves) for waves in trials}) != 1:
        return ()
    found = []
    for of_trials in zip(*trials, strict=True):
        begins = stats.mean_interval([begins_s for begins_s, _ in of_trials])
        found.append(Wave(fmean(answers for _, answers in of_trials), begins.value, begins.low, begins.high))
    return tuple(found)


def describe_waves(stacks: Sequence[StackFindings]) -> str:
    """Describes the measured and predicted start times of each stack's waves. Returns '' without waves."""
    parts = []
    for stack in stacks:
        if stack.arm != "main" or not stack.waves:
            continue
        waves = listed([f"{amount(wave.answers)} from {_begins(wave)} on" for wave in stack.waves])
        lowest = next(iter(stack.upper_bounds), None)
        expected = ""
        if lowest is not None and lowest.of == "stack" and lowest.wait_s is not None:
            times = listed([f"{lowest.wait_s * number:g}" for number in range(1, len(stack.waves) + 1)])
            expected = f" (predicted from {lowest.because}: {times} s)"
        parts.append(f"{stack.name} answers {waves}{expected}")
    return f"Waves of responses to a burst: {'; '.join(parts)}." if parts else ""


def _begins(wave: Wave) -> str:
    value, interval = ratio_text(wave.begins_s, wave.low_s, wave.high_s)
    return f"{value} s ({interval})" if interval else f"{significant(wave.begins_s)} s"


def _split_waves(data: bytes) -> list[tuple[float, int]]:
    """Returns (start in seconds, number of responses) for each wave of a trial."""
    times = [(time_ns / 1e9, answers) for time_ns, answers in Hdr.decode(data).by_value().items()]
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
