"""The reports of wrk, wrk2, hey and ab, as they print them."""

import re
from collections.abc import Iterable
from dataclasses import replace

from weir.model.claim import Claim, Figure

_WRK_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_WRK_TIME = r"([\d.]+)(us|ms|s|m|h)\b"


def is_wrk(text: str) -> bool:
    """wrk's or wrk2's."""
    return "Thread Stats" in text and "Requests/sec:" in text


def is_wrk2(text: str) -> bool:
    """wrk2's: it alone records latencies in an HdrHistogram, or calibrates."""
    return is_wrk(text) and ("HdrHistogram" in text or "Thread calibration" in text)


def is_hey(text: str) -> bool:
    """hey's summary."""
    return "Response time histogram:" in text and "Requests/sec:" in text


def is_ab(text: str) -> bool:
    """ab's."""
    return "Concurrency Level:" in text and "Time per request:" in text


def read_wrk(text: str, name: str) -> list[Claim]:
    """A closed loop of as many users as it had connections."""
    latency = _match(rf"^\s*Latency\s+{_WRK_TIME}\s+{_WRK_TIME}\s+{_WRK_TIME}", text)
    ran = _match(rf"^\s*(\d+) requests in {_WRK_TIME}", text)
    wrong = re.search(r"^\s*Non-2xx or 3xx responses: (\d+)", text, re.MULTILINE)
    return [
        Claim(
            name=name,
            tool="wrk",
            users=int(_match(r"(\d+) connections", text)[1]),
            duration_s=_wrk_time(ran[2], ran[3]),
            requests=int(ran[1]),
            failed=int(wrong[1]) if wrong else 0,
            throughput_rps=Figure.printed(_match(r"^Requests/sec:\s*([\d.]+)", text)[1]),
            mean_s=_wrk_time(latency[1], latency[2]),
            stdev_s=_wrk_time(latency[3], latency[4]),
            max_s=_wrk_time(latency[5], latency[6]),
            quantiles_s=_quantiles(re.findall(rf"^\s+([\d.]+)%\s+{_WRK_TIME}\s*$", text, re.MULTILINE)),
        )
    ]


def read_wrk2(text: str, name: str) -> list[Claim]:
    """An open loop: its response times count from the schedule, so that its connections bound nothing."""
    return [replace(claim, tool="wrk2", users=None) for claim in read_wrk(text, name)]


def read_hey(text: str, name: str) -> list[Claim]:
    """hey does not say how many workers it had."""

    def seconds(what: str) -> Figure:
        return Figure.printed(_match(rf"^\s*{what}:\s*([\d.]+) secs", text)[1])

    statuses = {status: int(count) for status, count in re.findall(r"^\s*\[(\d{3})\]\s+(\d+) responses", text, re.MULTILINE)}
    _, _, errors = text.partition("Error distribution:")
    failed = sum(int(count) for count in re.findall(r"^\s*\[(\d+)\]\t", errors, re.MULTILINE))
    steps = re.findall(r"^\s*(\d+)%+ in ([\d.]+) secs", text, re.MULTILINE)
    return [
        Claim(
            name=name,
            tool="hey",
            duration_s=seconds("Total"),
            throughput_rps=Figure.printed(_match(r"^\s*Requests/sec:\s*([\d.]+)", text)[1]),
            requests=sum(statuses.values()) + failed,
            failed=failed,
            mean_s=seconds("Average"),
            min_s=seconds("Fastest"),
            max_s=seconds("Slowest"),
            quantiles_s={int(percent) / 100: Figure.printed(value) for percent, value in steps},
            statuses=statuses,
        )
    ]


def read_ab(text: str, name: str) -> list[Claim]:
    """Percentiles are whole milliseconds. The mean is that of the table: the `Time per request` is computed from the throughput."""
    total = re.search(r"^Total:\s+(\d+)\s+(\d+)\s+([\d.]+)\s+(\d+)\s+(\d+)", text, re.MULTILINE)
    steps = re.findall(r"^\s+(\d+)%\s+(\d+)", text, re.MULTILINE)
    return [
        Claim(
            name=name,
            tool="ab",
            users=int(_match(r"^Concurrency Level:\s+(\d+)", text)[1]),
            duration_s=Figure.printed(_match(r"^Time taken for tests:\s+([\d.]+)", text)[1]),
            requests=int(_match(r"^Complete requests:\s+(\d+)", text)[1]),
            failed=int(_match(r"^Failed requests:\s+(\d+)", text)[1]),
            throughput_rps=Figure.printed(_match(r"^Requests per second:\s+([\d.]+)", text)[1]),
            # It rounds to whole milliseconds and not always to the nearer one.
            min_s=_whole_ms(total[1]) if total else None,
            mean_s=_whole_ms(total[2]) if total else None,
            stdev_s=Figure.printed(total[3], 1e-3) if total else None,
            max_s=_whole_ms(total[5]) if total else None,
            quantiles_s={int(percent) / 100: _whole_ms(value) for percent, value in steps if percent != "100"},
        )
    ]


def _whole_ms(text: str) -> Figure:
    return Figure(float(text) / 1000, 0.001)


def _wrk_time(number: str, unit: str) -> Figure:
    return Figure.printed(number, _WRK_UNITS[unit])


def _quantiles(found: Iterable[tuple[str, str, str]]) -> dict[float, Figure]:
    return {float(percent) / 100: _wrk_time(number, unit) for percent, number, unit in found if float(percent) < 100}


def _match(pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ValueError(f"nothing in it matches {pattern!r}")
    return match
