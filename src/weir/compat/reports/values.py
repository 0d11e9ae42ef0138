"""Reads the values that load tools print: numbers, counts, times and sizes, in the units of all tools. For any other
text, each function raises ValueError with the found text and the expected form."""

import math
import re
from collections.abc import Callable

from weir.model.reported_result import Figure

TIME_UNITS = {
    **dict.fromkeys(("ns", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
}
_SCALES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_NUMBER = r"[-+]?(?:\d[\d.,]*(?:e[-+]?\d+)?|inf(?:inity)?|nan)"
_TIME_PART = re.compile(rf"({_NUMBER})\s*([a-zµμ]*)\.?,?\s*", re.IGNORECASE)
_SCALED = re.compile(rf"({_NUMBER})\s*([kmgtp]?)(i?)(?:b|bytes)?", re.IGNORECASE)
_LARGEST = (2.0**53 - 1, 2.0**63 - 1, 2.0**64 - 1)
"""The largest numbers in JavaScript, Java and other languages. A report without samples shows one as its minimum."""
_CLOCK = re.compile(r"(\d+):(\d\d)(?::(\d\d))?")


def read_number(text: str, unit: float = 1.0) -> Figure:
    """Reads a number such as `1234.5`, `1,234.5`, `5,8`, `inf` or `NaN`. `unit` is the number's factor."""
    if not re.fullmatch(_NUMBER, text, re.IGNORECASE):
        raise ValueError(f"found {text!r}, expected a number")
    if "," in text:
        # A comma before three digits groups thousands. Any other comma is a decimal comma.
        grouped = re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text)
        text = text.replace(",", "" if grouped else ".")
    try:
        return Figure(math.inf) if is_largest(float(text)) else Figure.printed(text, unit)
    except ValueError:
        raise ValueError(f"found {text!r}, expected a number") from None


def is_largest(value: float) -> bool:
    """Returns whether a value is the largest number of a language, which some tools print as an empty minimum."""
    return value in _LARGEST


def read_count(text: str) -> int:
    """Reads a whole number such as `1234` or `1,234`."""
    digits = text.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+", text) else text
    if not re.fullmatch(r"\d{1,15}", digits):
        raise ValueError(f"found {text!r}, expected a whole number")
    return int(digits)


def read_time(text: str) -> Figure:
    """Reads a time such as `12.3ms`, `10 sec`, `1m30.5s`, `4 minutes, 30 seconds` or `00:01:30`. Returns seconds. A
    number without a unit is in seconds."""
    clock = _CLOCK.fullmatch(text)
    if clock:
        parts = [int(part) for part in clock.groups() if part is not None]
        return Figure(float(sum(part * 60**power for power, part in enumerate(reversed(parts)))), 0.5)
    value_s = rounding_s = 0.0
    end = 0
    for match in _TIME_PART.finditer(text):
        unit = TIME_UNITS.get(match[2].lower(), 1.0 if not match[2] else None)
        if match.start() != end or unit is None:
            break
        part = read_number(match[1].rstrip(","), unit)
        # Go prints decimals only for the smallest unit.
        value_s, rounding_s, end = value_s + part.value, part.rounding, match.end()
    if not text or end != len(text):
        raise ValueError(f"found {text!r}, expected a time such as 12.3ms or 10 sec")
    return Figure(value_s, rounding_s)


def _read_in(unit: float) -> Callable[[str], Figure]:
    return lambda text: read_number(text, unit) if text[-1:].isdigit() else read_time(text)


def read_whole_ms(text: str) -> Figure:
    """Reads whole milliseconds. Accepts either rounding, because some tools round down and others to the nearest."""
    return Figure(_read_in(1e-3)(text).value, 0.001)


def read_size(text: str) -> int:
    """Reads a size such as `7.70MB`, `40.45 MiB` or `1024 bytes`. Returns bytes; every prefix is a power of 1024."""
    return round(_read_scaled(text, 1024).value)


def _read_scaled(text: str, base: int) -> Figure:
    match = _SCALED.fullmatch(text)
    if match is None or not match[1][-1].isdigit():
        raise ValueError(f"found {text!r}, expected a number such as 1024 or 7.7M")
    return read_number(match[1], float(base ** _SCALES[match[2].lower()]))


READERS: dict[str, Callable[[str], object]] = {
    "count": read_count,
    "number": read_number,
    "percent": lambda text: round(read_number(text).value / 100, 7),
    "time": read_time,
    "ms": _read_in(1e-3),
    "whole_ms": read_whole_ms,
    "scaled": lambda text: _read_scaled(text, 1000),
    "size": read_size,
    "text": str,
}
"""The readers of values by kind. `ms` reads milliseconds, and `scaled` reads a count such as `575k`."""
