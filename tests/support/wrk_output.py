"""Parses wrk's output as scripts do, by patterns and positions: figures by name, in fixed units."""

import re
from dataclasses import dataclass

_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
_COUNT = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BYTES = {"B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}


@dataclass
class WrkFigures:
    """The figures that a usual script reads from a report."""

    latency_ms: tuple[float, float, float]
    """Average, standard deviation, maximum."""
    thread_rps: tuple[float, float, float]
    percentiles_ms: dict[float, float]
    requests: int
    duration_ms: float
    read_bytes: float
    errors: dict[str, int]
    non_2xx: int
    requests_per_s: float
    bytes_per_s: float


def parse(output: str) -> WrkFigures:
    """Returns the figures of a report. Fails if the text from `Thread Stats` on has other lines."""
    found: dict[str, list[str]] = {}
    percentiles: dict[float, float] = {}
    errors = dict.fromkeys(("connect", "read", "write", "timeout"), 0)
    non_2xx = 0
    for line in output.splitlines():
        words = line.split()
        if line.startswith("    Latency"):
            found["latency"] = words[1:4]
        elif line.startswith("    Req/Sec"):
            found["rate"] = words[1:4]
        elif match := re.match(r"^ +(\d+)% +(\S+)$", line):
            percentiles[float(match[1])] = _scaled(match[2], _MS)
        elif match := re.match(r"^  (\d+) requests in (\S+), (\S+) read$", line):
            found["total"] = [match[1], match[2], match[3]]
        elif match := re.match(r"^  Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$", line):
            errors = dict(zip(errors, map(int, match.groups()), strict=True))
        elif match := re.match(r"^  Non-2xx or 3xx responses: (\d+)$", line):
            non_2xx = int(match[1])
        elif line.startswith("Requests/sec:"):
            found["requests"] = words[1:]
        elif line.startswith("Transfer/sec:"):
            found["transfer"] = words[1:]
    return WrkFigures(
        latency_ms=(
            _scaled(found["latency"][0], _MS),
            _scaled(found["latency"][1], _MS),
            _scaled(found["latency"][2], _MS),
        ),
        thread_rps=(
            _scaled(found["rate"][0], _COUNT),
            _scaled(found["rate"][1], _COUNT),
            _scaled(found["rate"][2], _COUNT),
        ),
        percentiles_ms=percentiles,
        requests=int(found["total"][0]),
        duration_ms=_scaled(found["total"][1], _MS),
        read_bytes=_scaled(found["total"][2], _BYTES),
        errors=errors,
        non_2xx=non_2xx,
        requests_per_s=float(found["requests"][0]),
        bytes_per_s=_scaled(found["transfer"][0], _BYTES),
    )


def _scaled(text: str, units: dict[str, float]) -> float:
    match = re.fullmatch(r"([\d.]+)([a-zA-Z]*)", text)
    assert match is not None, text
    return float(match[1]) * units[match[2]]


_KINDS = {
    "TIME": re.compile(r"\d+\.\d\d(us|ms|s|m),?"),
    "BYTES": re.compile(r"\d+\.\d\d[KMGT]?B"),
    "SHARE": re.compile(r"(\d+\.\d\d|-nan)%"),
    "NUMBER": re.compile(r"\d+\.\d\d[kMGT]?"),
    "COUNT": re.compile(r"\d+,?"),
}
_RUNNING_TEXT = re.compile(r"  \d+ requests in |  Socket errors:|  Non-2xx")


def shape(output: str) -> list[str]:
    """Returns the lines with every figure replaced by its kind and its end. Two reports of one layout have the same
    shape.

    Figures in columns end at the same place with any length, with room for two letters of a unit. Figures in a sentence
    keep their place.
    """
    lines = []
    for line in output.splitlines():
        if line.startswith("Running ") or re.match(r"  \d+ threads and ", line):
            lines.append(line)
        else:
            in_columns = not _RUNNING_TEXT.match(line)
            lines.append(" ".join(_kind(word, in_columns) for word in re.finditer(r"\S+", line)))
    return lines


def _kind(word: re.Match[str], in_columns: bool) -> str:
    text = word.group()
    kind = next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(text)), None)
    if kind is None:
        return text
    letters = sum(character.isalpha() for character in text[-2:]) if kind in ("TIME", "NUMBER") else 2
    return f"{kind}@{word.end() + 2 - letters}" if in_columns else kind + "," * text.endswith(",")
