"""Command lines as Go's `flag` package reads them: `-n 5`, `-n=5` and `--n=5` are the same, and flags end at the first word that is none.

Words: a flag's *kind* says what its text may be and what it becomes.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_INT64 = range(-(2**63), 2**63)
_DURATION_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_DIGITS = {"0x": r"[0-9a-fA-F]", "0o": r"[0-7]", "0b": r"[01]", "0": r"[0-7]", "": r"[0-9]"}
_BASES = {"0x": 16, "0o": 8, "0b": 2, "0": 8, "": 10}


class GoFlagError(Exception):
    """What `flag` says of a wrong command line, before the usage. `wants_help`: nothing was wrong, the usage is all that is wanted."""

    def __init__(self, message: str, *, wants_help: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.wants_help = wants_help


def parse_int(text: str) -> int:
    """A whole number of 64 bits: `200`, `0x10`, `0b11`, `0o17`, `017`, `1_000` (with a prefix or without one).

    Raises:
        ValueError: it is none (`parse error`), or too large (`value out of range`).
    """
    sign, prefix, digits = _number_parts(text)
    digit = _DIGITS[prefix]
    # An underscore stands between digits, or between the prefix and a digit.
    if not re.fullmatch(rf"{'_?' if prefix else ''}{digit}(?:_?{digit})*", digits):
        raise ValueError("parse error")
    value = int(digits.replace("_", ""), _BASES[prefix]) * (-1 if sign == "-" else 1)
    if value not in _INT64:
        raise ValueError("value out of range")
    return value


def _number_parts(text: str) -> tuple[str, str, str]:
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    for prefix in ("0x", "0o", "0b"):
        if rest[:2].lower() == prefix:
            return sign, prefix, rest[2:]
    return (sign, "0", rest[1:]) if len(rest) > 1 and rest[0] == "0" else (sign, "", rest)


def parse_float(text: str) -> float:
    """A number: `2`, `0.5`, `1e3`, `inf`.

    Raises:
        ValueError: it is none (`parse error`), or too large (`value out of range`).
    """
    if re.fullmatch(r"[+-]?(?:inf|infinity)|nan", text, re.IGNORECASE):
        return float(text)
    if not re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text):
        raise ValueError("parse error")
    value = float(text)
    if math.isinf(value):
        raise ValueError("value out of range")
    return value


def parse_duration_s(text: str) -> float:
    """Seconds in `90s`, `1m30s`, `1.5h`, `300ms` or `0`: a number always has a unit.

    >>> parse_duration_s("1m30s")
    90.0

    Raises:
        ValueError: it is none.
    """
    sign, rest = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    if not re.fullmatch(rf"(?:{_DURATION_PART})+", rest):
        raise ValueError("parse error")
    return sign * sum(float(number) * _DURATION_UNITS_S[unit] for number, unit in re.findall(_DURATION_PART, rest))


def parse_bool(text: str) -> bool:
    """`true` or `false`, in one of the spellings that Go knows.

    Raises:
        ValueError: it is none of them.
    """
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError("parse error")


Kind = Callable[[str], Any]
"""Text in, value out; raises ValueError with Go's words for what is wrong with it."""


@dataclass(frozen=True, slots=True)
class GoFlags:
    """The flags that a program has, by name: what each one's text becomes.

    A flag of the kind `parse_bool` needs no text, one of `repeated` is a list of all that it was given.
    """

    kinds: Mapping[str, Kind]
    repeated: Sequence[str] = field(default=())

    def parse(self, arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """The values of the flags that were given, and the words behind the flags.

        Raises:
            GoFlagError: an unknown flag, one without its text, or a text that its kind does not take; or `-help`.
        """
        given: dict[str, Any] = {}
        words = list(arguments)
        while words and len(words[0]) > 1 and words[0].startswith("-"):
            word = words.pop(0)
            if word == "--":
                break
            name, value = self._one(word, words)
            if name in self.repeated:
                given.setdefault(name, []).append(value)
            else:
                given[name] = value
        return given, words

    def _one(self, word: str, words: list[str]) -> tuple[str, Any]:
        bare = word[2:] if word.startswith("--") else word[1:]
        if bare[0] in "-=":
            raise GoFlagError(f"bad flag syntax: {word}")
        name, equals, text = bare.partition("=")
        kind = self.kinds.get(name)
        if kind is None:
            if name in ("help", "h"):
                raise GoFlagError("", wants_help=True)
            raise GoFlagError(f"flag provided but not defined: -{name}")
        if kind is parse_bool and not equals:
            return name, True
        if not equals:
            if not words:
                raise GoFlagError(f"flag needs an argument: -{name}")
            text = words.pop(0)
        try:
            return name, kind(text)
        except ValueError as error:
            what, where = ("boolean value", "for") if kind is parse_bool else ("value", "for flag")
            raise GoFlagError(f"invalid {what} {json.dumps(text, ensure_ascii=False)} {where} -{name}: {error}") from None
