"""Numbers as wrk and wrk2 read and print them: whole numbers with a unit in, two decimals with a unit out.

A printed value goes up a unit at 0.85 of the next one, and the last unit of each kind is never reached: two hours are `120.00m`.
"""

import re
from collections.abc import Callable

Format = Callable[[float], str]

_ROOM = 2
"""Letters that a unit may have: shorter ones are filled up with spaces on the right, so that digits stand below digits."""
_STEP_UP = 0.85
_LARGEST = 2**64 - 1
_METRIC = ("", "k", "M", "G", "T", "P")
_BINARY = ("", "K", "M", "G", "T", "P")
_SHORT_TIMES = ("us", "ms", "s")
_TIMES = ("s", "m", "h")


def number(text: str) -> int | None:
    """A whole number with a unit of thousands: `400`, `10k`, `1M`; None where it is no such thing."""
    return _read(text, 1000, _METRIC)


def seconds(text: str) -> int | None:
    """Whole seconds, minutes or hours: `30`, `30s`, `2m`, `1H`; None where it is no such thing, as `500ms` and `1.5s` are not."""
    return _read(text, 60, _TIMES)


def _read(text: str, scale: int, units: tuple[str, ...]) -> int | None:
    # What stands behind two characters of a unit and a space is not looked at, as in wrk.
    match = re.match(r"\s*\+?(\d+)\s*(\S{0,2})", text, re.ASCII)
    known = [unit.lower() for unit in units]
    if match is None or match[2].lower() not in ("", *known):
        return None
    power = known.index(match[2].lower()) if match[2] else 0
    return min(int(match[1]) * int(scale**power), _LARGEST)


def metric(value: float) -> str:
    """A number: `999.00k`, of which 850 is the first in thousands.

    >>> metric(849.99), metric(850)
    ('849.99', '0.85k')
    """
    return _printed(value, 1000, _METRIC)


def binary(value: float) -> str:
    """A number of bytes, without the `B`.

    >>> binary(870), binary(871)
    ('870.00', '0.85K')
    """
    return _printed(value, 1024, _BINARY)


def microseconds(value: float) -> str:
    """A time that is given in microseconds.

    >>> microseconds(850), microseconds(999_999), microseconds(51e6)
    ('0.85ms', '1000.00ms', '0.85m')
    """
    return _printed(value / 1e6, 60, _TIMES) if value >= 1e6 else _printed(value, 1000, _SHORT_TIMES)


def whole_seconds(value: int) -> str:
    """The length of a run, as its heading has it.

    >>> whole_seconds(50), whole_seconds(51), whole_seconds(90)
    ('50s', '1m', '2m')
    """
    return _printed(value, 60, _TIMES, decimals=0)


def _printed(value: float, scale: int, units: tuple[str, ...], decimals: int = 2) -> str:
    step = 0
    while step < len(units) - 2 and value >= scale * _STEP_UP:
        value /= scale
        step += 1
    return f"{value:.{decimals}f}{units[step]}"


def aligned(value: float, form: Format, width: int) -> str:
    """A value in a column.

    Args:
        value: the value.
        form: how it is printed.
        width: of the column, the room for two letters of a unit included. What is longer is cut off.
    """
    text = form(value)
    missing = _ROOM - sum(character.isalpha() for character in text[-_ROOM:])
    return f"{text[: width - missing]:>{width - missing}}" + " " * missing
