"""The front end for wrk 4.1 and wrk2."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from weir.compat import wrk_report
from weir.compat.flags import Flag, ToolFlags, format_authority, format_path
from weir.compat.front_end import TOOLS, FrontEnd, LoadResult
from weir.load_spec import LoadSpec
from weir.model.errors import InvalidValueError, WeirError

_FAILED = 1
"""The exit code of wrk and wrk2 for every error before the load."""
_CALIBRATION_S = 10


def _parse_scaled(text: str, scale: int, units: Sequence[str], expected: str) -> int:
    match = re.fullmatch(r"([0-9]+)([a-z]?)", text.lower())
    if match is None or (match[2] and match[2] not in units):
        raise InvalidValueError(text, expected)
    return int(match[1]) * int(scale ** units.index(match[2] or units[0]))


_parse_count = partial(
    _parse_scaled, scale=1000, units=("", "k", "m", "g"), expected="a whole number such as 400, 10k or 1M"
)
_parse_seconds = partial(
    _parse_scaled, scale=60, units=("s", "m", "h"), expected="whole seconds, minutes or hours such as 30s, 2m or 1h"
)
_FLAGS = (
    Flag("connections", "-c --connections", _parse_count, 10, "number of open connections. Default: 10"),
    Flag("duration_s", "-d --duration", _parse_seconds, 10, "length of the load. Default: 10s"),
    Flag("threads", "-t --threads", _parse_count, 2, "number of threads. Maximum: the number of CPUs. Default: 2"),
    Flag("headers", "-H --header", str, [], "a header, 'Name: value'. The flag may be repeated"),
    Flag("latency", "-L --latency", None, False, "also print percentiles of the response times"),
    Flag("timeout_s", "-T --timeout", _parse_seconds, 2, "maximum time to wait for a response. Default: 2s"),
)
_RATE_FLAGS = (
    Flag("rate_rps", "-R --rate", _parse_count, 0, "requests per second. Required"),
    Flag("uncorrected", "-U --u_latency", None, False, "also print percentiles of the times from the actual send"),
    Flag("batch", "-B --batch_latency", None, False, "has no effect: only Lua scripts send batches"),
)
_TABLES = {
    tool: ToolFlags(
        tool=tool,
        example=TOOLS[tool],
        flags=flags,
        instead={"-s --script": "weir load URL --scenario FILE (see docs/guides/scenarios.md). weir runs no Lua"},
        version="wrk 4.1.0",
        version_flags=("-v", "--version"),
        version_code=_FAILED,
        wrong_code=_FAILED,
        flags_follow_url=True,
    )
    for tool, flags in (("wrk", _FLAGS), ("wrk2", _FLAGS + _RATE_FLAGS))
}


@dataclass(frozen=True, kw_only=True)
class WrkFrontEnd(FrontEnd):
    """The load and the report for a command line of wrk or wrk2."""

    tool: str

    def format_heading(self) -> str:
        flags = self.flags
        running = f"Running {wrk_report.format_length(flags.duration_s)} test @ {flags.url.geturl()}"
        return f"{running}\n  {flags.threads} threads and {flags.connections} connections\n"

    def format_report(self, result: LoadResult) -> str:
        end, flags = result.end, self.flags
        blocks = ""
        if self.tool == "wrk2":
            blocks = wrk_report.format_spectra(end, has_latency=flags.latency, has_uncorrected=flags.uncorrected)
        elif flags.latency:
            blocks = wrk_report.format_percentiles(end.summary.response_time_us)
        thread_stats = wrk_report.format_thread_stats(result, self.plan.interval_s, flags.threads)
        return thread_stats + blocks + wrk_report.format_totals(end.summary)

    def list_differences(self, result: LoadResult) -> list[str]:
        flags, tool, threads = self.flags, self.tool, self.plan.threads
        notes = [
            "all latencies are measured; wrk adds computed latencies to correct for stalls"
            if tool == "wrk"
            else "requests are due at exact microseconds; wrk2 waits whole milliseconds, then doubles its rate to catch up"
        ]
        if tool == "wrk2" and flags.duration_s > _CALIBRATION_S:
            notes.append("the latencies cover the whole run; wrk2 leaves out its calibration in the first 10 s")
        if threads < flags.threads:
            carried = f"the load used {threads} thread{'s' if threads > 1 else ''}, one for each CPU"
            notes.append(f"{carried}; Req/Sec is the total rate divided by {flags.threads}")
        if spare := flags.connections % flags.threads:
            opened = flags.connections - spare
            notes.append(f"the load opened {flags.connections} connections; {tool} opens {opened}, the same per thread")
        if result.end.summary.errors.timeout:
            notes.append(f"weir closes a connection after a timeout; {tool} keeps waiting and counts the late response")
        return notes

    def format_failed_start(self, error: WeirError) -> tuple[str, int]:
        return "", _FAILED


def read_command_line(tool: str, words: Sequence[str]) -> WrkFrontEnd:
    """Returns the front end for a command line of wrk or wrk2."""
    table = _TABLES[tool]
    flags = table.parse(words)
    for name, spelling in (("threads", "-t"), ("duration_s", "-d"), ("timeout_s", "-T")):
        if not getattr(flags, name):
            raise table.reject(f"{spelling}: found 0, expected 1 or more")
    if flags.connections < flags.threads:
        raise table.reject(f"-c: found {flags.connections}, expected {flags.threads} or more, one per thread (-t)")
    if tool == "wrk2" and not flags.rate_rps:
        raise table.reject("-R: found no rate, expected requests per second", hint=table.example)
    target = f"{flags.url.scheme}://{format_authority(flags.url)}{format_path(flags.url)}"
    spec = LoadSpec(
        urls=(target,),
        headers=_choose_headers(flags.headers),
        connections=flags.connections,
        rate_rps=float(flags.rate_rps) if tool == "wrk2" else None,
        duration_s=float(flags.duration_s),
        timeout_s=float(flags.timeout_s),
        # If the server closes a connection, both tools count the request as a read error.
        retry=False,
        # Both tools trust every certificate.
        tls_insecure=flags.url.scheme == "https",
        # weir's threads never wait for one another. More threads than CPUs would only compete for CPU time.
        threads=min(flags.threads, len(os.sched_getaffinity(0))),
    )
    return WrkFrontEnd(spec=spec, tool=tool, flags=flags)


def _choose_headers(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Returns the headers that wrk sends: the last header of each name, without Content-Length and malformed texts."""
    parts = [text.partition(": ") for text in texts]
    return tuple({name: value for name, colon, value in parts if colon and name != "Content-Length"}.items())
