"""Values of a load as people write them, at the prompt and in studies: durations, profiles, pauses, numbers. Text in, values out."""

import re

from weir.model.errors import UsageError
from weir.model.load import ExponentialThink, Point, Profile, Think, ThinkTime

_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})(?:\.\.({_NUMBER})(?: +step +({_NUMBER}))?)?")
MOST_NUMBERS = 1000
"""A list with more of them is a mistake in a range, not a question that anybody waits for."""


def duration_s(text: str, flag: str) -> float:
    """Seconds in `10`, `500ms`, `1.5s`, `2m` or `1h`.

    Raises:
        UsageError: it is none of these, or not above 0.
    """
    match = re.fullmatch(rf"({_NUMBER})(ms|s|m|h)?", text)
    if match is None or float(match.group(1)) == 0:
        raise UsageError(f"{flag}: found {text!r}, expected a duration such as 10s, 500ms or 2m")
    return float(match.group(1)) * _UNITS_S[match.group(2) or ""]


def profile(text: str, flag: str) -> Profile:
    """A number, or its points over time in `0s:100,30s:1000`: linear between points, a step where two share a time.

    Raises:
        UsageError: it is none of these, goes back in time, or is never above 0.
    """
    points: list[Point] = []
    for part in text.split(","):
        match = re.fullmatch(rf"(?:({_NUMBER})(ms|s|m|h):)?({_NUMBER})", part.strip())
        if match is None:
            raise UsageError(f"{flag}: found {text}, expected a number above 0, or points such as 0s:100,30s:1000")
        t_s = 0.0 if match.group(1) is None else float(match.group(1)) * _UNITS_S[match.group(2)]
        if "," in text and match.group(1) is None:
            raise UsageError(f"{flag}: found {text}, expected a time before each value, as in 0s:100,30s:1000")
        if points and t_s < points[-1][0]:
            raise UsageError(f"{flag}: found {text}, expected points in the order of their times")
        points.append((t_s, float(match.group(3))))
    if max(value for _, value in points) <= 0:
        raise UsageError(f"{flag}: found {text}, expected a value above 0")
    return points[0][1] if ":" not in text else tuple(points)


def think_time(text: str, flag: str = "--think") -> ThinkTime:
    """A pause: `1s`, `uniform:1s..3s` or `exp:2s`.

    Raises:
        UsageError: it is none of these.
    """
    kind, colon, rest = text.partition(":")
    try:
        if not colon:
            return Think(duration_s(text, ""), duration_s(text, ""))
        if kind == "exp":
            return ExponentialThink(duration_s(rest, ""))
        shortest, _, longest = rest.partition("..")
        think = Think(0.0 if re.fullmatch(r"0(ms|s|m|h)?", shortest) else duration_s(shortest, ""), duration_s(longest, ""))
    except UsageError:
        kind = "none"
    if kind != "uniform" or think.shortest_s > think.longest_s:
        raise UsageError(f"{flag}: found {text!r}, expected a pause such as 1s, uniform:1s..3s or exp:2s")
    return think


def numbers(text: str) -> list[float]:
    """Numbers and ranges: `4, 50..200 step 50` is 4, 50, 100, 150 and 200; without a step it is 1. A range's end belongs to it.

    >>> numbers("4, 50..200 step 50")
    [4.0, 50.0, 100.0, 150.0, 200.0]

    Raises:
        ValueError: it is none of these, a range goes down or never ends, or there are too many.
    """
    found: list[float] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError("expected numbers and ranges such as '4, 50..500 step 50'")
        first, last = float(match.group(1)), float(match.group(2) or match.group(1))
        step = float(match.group(3) or 1)
        if last < first:
            raise ValueError(f"expected a range that goes up, as {match.group(2)}..{match.group(1)}")
        if step == 0:
            raise ValueError(f"expected a step above 0 in {part.strip()!r}: this range never ends")
        # The count from the start and not by adding up, so that 0.1 ten times is 1; the tolerance keeps an end that binary cannot hold.
        count = int((last - first) / step + 1e-9) + 1
        if len(found) + count > MOST_NUMBERS:
            raise ValueError(f"expected at most {MOST_NUMBERS:,} numbers")
        found += [round(first + index * step, 9) for index in range(count)]
    return found
