"""Parses values from command lines, study files and forms: durations, profiles, pauses and parts of requests. A parser
raises `InvalidValueError` for a text that is not valid. The caller adds the flag, key or field. `write_*` is the exact
inverse of `parse_*`; `format_duration` rounds. Only the parsers of CPUs, files and hosts depend on the machine."""

import ipaddress
import os
import re
import socket
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from weir.model.errors import InvalidValueError
from weir.model.load import METHODS, ExponentialThink, Point, Profile, Think, ThinkTime

_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})(?:\.\.({_NUMBER})(?: +step +({_NUMBER}))?)?")
MAX_NUMBERS = 1000
"""Maximum length of a list of numbers. A longer list is probably a mistake in a range."""
_MAX_COUNT_DIGITS = 9
_MAX_ARGUMENT_BYTES = 128 * 1024
"""Maximum bytes of one argument on Linux, including the final zero byte."""
_PROFILE = "a number above 0, or points such as 0s:100,30s:1000"
_THINK_TIME = "a pause such as 1s, uniform:1s..3s or exp:2s"


def parse_duration(text: str) -> float:
    """Parses a duration such as `10`, `500ms`, `1.5s`, `2m` or `1h`. Returns seconds. Rejects 0."""
    match = re.fullmatch(rf"({_NUMBER})(ms|s|m|h)?", text)
    if match is None or float(match[1]) == 0:
        raise InvalidValueError(text, "a duration such as 10s, 500ms or 2m")
    return float(match[1]) * _UNITS_S[match[2] or ""]


def write_duration(length_s: float) -> str:
    """Writes a duration in seconds as text. Inverse of `parse_duration`.

    >>> write_duration(7200.0), write_duration(0.5)
    ('2h', '500ms')
    """
    for unit, unit_s in (("h", 3600), ("m", 60), ("s", 1)):
        if length_s % unit_s == 0 and length_s:
            return f"{int(length_s // unit_s)}{unit}"
    milliseconds = round(length_s * 1e3)
    is_exact = length_s < 1 and milliseconds * 0.001 == length_s
    return f"{milliseconds}ms" if is_exact else f"{write_number(length_s)}s"


def format_duration(seconds: float) -> str:
    """Returns a duration in words, such as '45 s', '12 min' or '3.5 h'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def write_number(value: float) -> str:
    """Writes a number without an exponent."""
    whole = int(value)
    return str(whole) if whole == value else format(Decimal(repr(value)), "f")


def parse_count(text: str) -> int:
    """Parses a whole number above 0."""
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_COUNT_DIGITS or int(text) == 0:
        raise InvalidValueError(text, "a whole number above 0")
    return int(text)


def parse_seed(text: str) -> int:
    """Parses a whole number that is at least 0."""
    if not (text.isascii() and text.isdigit()) or int(text[:20]) >= 2**63:
        raise InvalidValueError(text, "a whole number that is at least 0")
    return int(text)


def parse_profile(text: str) -> Profile:
    """Parses a constant number, or points such as `0s:100,30s:1000`. Two points with the same time are a step."""
    points: list[Point] = []
    for part in text.split(","):
        match = re.fullmatch(rf"(?:({_NUMBER})(ms|s|m|h):)?({_NUMBER})", part.strip())
        if match is None:
            raise InvalidValueError(text, _PROFILE)
        time, unit, value = match.groups()
        if "," in text and time is None:
            raise InvalidValueError(text, "a time before each value, such as 0s:100,30s:1000")
        t_s = 0.0 if time is None else float(time) * _UNITS_S[unit]
        if points and t_s < points[-1][0]:
            raise InvalidValueError(text, "points sorted by time")
        points.append((t_s, float(value)))
    if max(value for _, value in points) <= 0:
        raise InvalidValueError(text, "at least one value above 0")
    return points[0][1] if ":" not in text else tuple(points)


def write_profile(profile: Profile) -> str:
    """Writes a profile as text. Inverse of `parse_profile`."""
    if not isinstance(profile, tuple):
        return write_number(profile)
    return ",".join(f"{write_number(t_s)}s:{write_number(value)}" for t_s, value in profile)


def parse_think_time(text: str) -> ThinkTime:
    """Parses a pause such as `1s`, `uniform:1s..3s` or `exp:2s`."""
    kind, colon, rest = text.partition(":")
    try:
        if not colon:
            return Think(parse_duration(text), parse_duration(text))
        if kind == "exp":
            return ExponentialThink(parse_duration(rest))
        shortest, _, longest = rest.partition("..")
        is_zero = re.fullmatch(r"0(ms|s|m|h)?", shortest)
        think = Think(0.0 if is_zero else parse_duration(shortest), parse_duration(longest))
    except InvalidValueError:
        raise InvalidValueError(text, _THINK_TIME) from None
    if kind != "uniform" or think.shortest_s > think.longest_s:
        raise InvalidValueError(text, _THINK_TIME)
    return think


def write_think_time(think: ThinkTime) -> str:
    """Writes a pause as text. Inverse of `parse_think_time`."""
    if not isinstance(think, Think):
        return f"exp:{write_duration(think.mean_s)}"
    if think.shortest_s == think.longest_s:
        return write_duration(think.longest_s)
    return f"uniform:{write_duration(think.shortest_s)}..{write_duration(think.longest_s)}"


def parse_numbers(text: str) -> list[float]:
    """Parses a list of numbers and ranges. A range includes its end. The default step of a range is 1.

    >>> parse_numbers("4, 50..200 step 50")
    [4.0, 50.0, 100.0, 150.0, 200.0]
    """
    found: list[float] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise InvalidValueError(text, "numbers and ranges such as '4, 50..500 step 50'")
        first, last, step = float(match[1]), float(match[2] or match[1]), float(match[3] or 1)
        if last < first:
            raise InvalidValueError(text, f"a range from lower to higher, such as {match[2]}..{match[1]}")
        if step == 0:
            raise InvalidValueError(text, f"a step above 0 in {part.strip()!r}: with step 0 the range never ends")
        # Multiplication avoids the rounding errors of repeated addition. The 1e-9 keeps a range's end despite rounding.
        count = int((last - first) / step + 1e-9) + 1
        if len(found) + count > MAX_NUMBERS:
            raise InvalidValueError(text, f"at most {MAX_NUMBERS:,} numbers")
        found += [round(first + index * step, 9) for index in range(count)]
    return found


def parse_method(text: str) -> str:
    """Parses an HTTP method, and returns the method in capitals."""
    if text.upper() not in METHODS:
        raise InvalidValueError(text, f"one of: {', '.join(METHODS)}")
    return text.upper()


def parse_header(text: str) -> tuple[str, str]:
    """Parses a header such as `Name: value`. Returns the name and the value."""
    name, colon, value = text.partition(":")
    if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name.strip()):
        raise InvalidValueError(text, "'Name: value'")
    if "\r" in value or "\n" in value:
        raise InvalidValueError(text, f"a value of header {name.strip()!r} without a line break")
    return name.strip(), value.strip()


def write_header(header: tuple[str, str]) -> str:
    """Writes a header as text. Inverse of `parse_header`."""
    return f"{header[0]}: {header[1]}"


def parse_credentials(text: str) -> tuple[str, str]:
    """Parses `NAME:PASSWORD`. The first colon ends the name (RFC 7617)."""
    name, colon, password = text.partition(":")
    if not colon or any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise InvalidValueError(name if colon else text, "NAME:PASSWORD without a line break")
    return name, password


def write_credentials(credentials: tuple[str, str]) -> str:
    """Writes a name and a password as text. Inverse of `parse_credentials`."""
    return ":".join(credentials)


def parse_body(text: str) -> bytes:
    """Returns the bytes of a body. For `@FILE`: the content of FILE. For any other text: the text in UTF-8."""
    return _read_file(text, text[1:]) if text.startswith("@") else text.encode()


def write_body(body: bytes) -> str:
    """Returns a body as the value of `--body`: `@body` if the body is binary, too long, or begins with @."""
    if not (body.startswith(b"@") or b"\0" in body or len(body) >= _MAX_ARGUMENT_BYTES):
        with suppress(UnicodeDecodeError):
            return body.decode()
    return "@body"


def parse_cpus(text: str) -> tuple[int, ...]:
    """Parses CPUs such as `0`, `0,2` or `1-3,5` (the kernel's notation). Rejects a CPU that weir may not use."""
    usable = os.sched_getaffinity(0)
    chosen: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if match is None:
            raise InvalidValueError(text, "CPUs such as 0 or 0,2-3")
        first = int(match[1])
        chosen.extend(range(first, int(match[2] or first) + 1))
    if not chosen or not set(chosen) <= usable:
        raise InvalidValueError(text, f"CPUs that weir may use: {sorted(usable)}")
    return tuple(chosen)


def write_cpus(cpus: tuple[int, ...]) -> str:
    """Writes CPUs as text. Inverse of `parse_cpus`."""
    return ",".join(map(str, cpus))


def parse_addresses(text: str) -> tuple[str, ...]:
    """Parses IP addresses, separated by commas."""
    parts = tuple(part.strip() for part in text.split(","))
    for part in parts:
        try:
            ipaddress.ip_address(part)
        except ValueError:
            raise InvalidValueError(part, "addresses of this machine, such as 127.0.0.2,127.0.0.3") from None
    return parts


def parse_endpoint(text: str) -> str:
    """Parses `HOST:PORT`, resolves the host's name, and returns `ADDRESS:PORT`."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536:
        raise InvalidValueError(text, "HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InvalidValueError(text, f"a host name with a known address ({error})") from None
    address = found[0][4][0]
    return f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"


def parse_pem_path(text: str) -> str:
    """Returns the absolute path of a PEM file."""
    if b"-----BEGIN " not in _read_file(text, text):
        raise InvalidValueError(text, "a PEM file that contains -----BEGIN ...-----")
    return str(Path(text).absolute())


def _read_file(text: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidValueError(text, f"a readable file ({error.strerror})") from None
