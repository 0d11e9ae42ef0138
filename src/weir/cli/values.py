"""Values of flags: durations, headers, bodies."""

import os
import re
from pathlib import Path

from weir.model.errors import UsageError
from weir.model.load import ExponentialThink, Point, Profile, Think, ThinkTime

_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration_s(text: str, flag: str) -> float:
    """Seconds in `10`, `500ms`, `1.5s`, `2m` or `1h`.

    Raises:
        UsageError: it is none of these, or not above 0.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", text)
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
        match = re.fullmatch(r"(?:(\d+(?:\.\d+)?)(ms|s|m|h):)?(\d+(?:\.\d+)?)", part.strip())
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


def think_time(text: str) -> ThinkTime:
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
        think = Think(duration_s(shortest, ""), duration_s(longest, ""))
    except UsageError:
        kind = "none"
    if kind != "uniform" or think.shortest_s > think.longest_s:
        raise UsageError(f"--think: found {text!r}, expected a pause such as 1s, uniform:1s..3s or exp:2s")
    return think


def cpu_list(text: str) -> tuple[int, ...]:
    """CPUs in `0`, `0,2` or `1-3,5`, in the kernel's notation.

    Raises:
        UsageError: it is none of these, or weir may not use one of them.
    """
    usable = os.sched_getaffinity(0)
    chosen: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise UsageError(f"--cpus: found {text!r}, expected CPUs such as 0 or 0,2-3")
        first = int(match.group(1))
        chosen.extend(range(first, int(match.group(2) or first) + 1))
    if not chosen or not set(chosen) <= usable:
        raise UsageError(f"--cpus: found {text!r}, expected some of the CPUs weir may use: {sorted(usable)}")
    return tuple(chosen)


def header(text: str) -> tuple[str, str]:
    """Name and value in `Name: value`.

    Raises:
        UsageError: it has no colon, or the name is not one.
    """
    name, colon, value = text.partition(":")
    if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name.strip()):
        raise UsageError(f"-H: found {text!r}, expected 'Name: value'")
    if "\r" in value or "\n" in value:
        raise UsageError(f"-H: found a line break in the value of {name.strip()!r}, expected one line")
    return name.strip(), value.strip()


def body(text: str) -> bytes:
    """The body that `-b` names: `@FILE` its content, anything else itself.

    Raises:
        UsageError: the file cannot be read.
    """
    if not text.startswith("@"):
        return text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise UsageError(f"-b/--body: {text[1:]}: cannot be read: {error.strerror}") from None
