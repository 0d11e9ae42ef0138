"""hey's summary and its CSV, from what weir's engine measured. Formats alone: nothing is decided here."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weir.compat.times import Times, answers_in

if TYPE_CHECKING:
    from weir.model.records import LoadEnd, Quantiles

_PERCENTILES = (10, 25, 50, 75, 90, 95, 99)
_ROWS = 10
"""Of the histogram; hey has one more, the fastest alone."""
_BAR, _LONGEST_BAR = "■", 40
CSV_HEAD = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
"""The first line of a CSV."""

Spread = tuple[float, float, float]
"""Average, fastest and slowest, in seconds."""


@dataclass(frozen=True, slots=True)
class HeySummary:
    """The figures of hey's summary."""

    total_s: float
    throughput_rps: float
    average_s: float
    """Not a number where nothing was answered."""
    times: Times
    """Response times."""
    body_bytes: int
    dialup: Spread
    wait: Spread
    """From the request's end to the first byte of the answer."""
    read: Spread
    """From there to its last byte."""
    statuses: Mapping[int, int]
    errors: Mapping[str, int]

    @staticmethod
    def of_failures(errors: Mapping[str, int]) -> "HeySummary":
        """Nothing but errors."""
        nothing = (math.nan, 0.0, 0.0)
        return HeySummary(0.0, 0.0, math.nan, Times.of({}), 0, nothing, nothing, nothing, {}, errors)

    @staticmethod
    def of(end: "LoadEnd", errors: Mapping[str, int]) -> "HeySummary":
        """What a load came to.

        Args:
            end: of the load.
            errors: how many requests failed, by what hey would say of them.
        """
        summary = end.summary
        return HeySummary(
            total_s=summary.duration_s,
            throughput_rps=summary.throughput_rps,
            average_s=_seconds(summary.response_time_us.mean, math.nan),
            times=Times.recorded(end.histograms.get("response_time_ns"), summary.response_time_us),
            body_bytes=summary.bytes.received_body,
            dialup=_dialup(end),
            wait=_spread(summary.time_to_first_byte_us),
            read=_spread(summary.read_time_us),
            statuses={int(status): count for status, count in summary.status.items()},
            errors=errors,
        )

    def text(self) -> str:
        """The summary as hey prints it."""
        answered = self.times.count
        unmeasured = (0.0, 0.0, 0.0) if answered else (math.nan, 0.0, 0.0)
        data = ""
        if self.body_bytes:
            data = f"\n  Total data:\t{self.body_bytes} bytes\n  Size/request:\t{self.body_bytes // answered} bytes"
        return "".join(
            [
                "\nSummary:",
                f"\n  Total:\t{number(self.total_s)} secs",
                f"\n  Slowest:\t{number(self.times.longest / 1e9)} secs",
                f"\n  Fastest:\t{number(self.times.shortest / 1e9)} secs",
                f"\n  Average:\t{number(self.average_s)} secs",
                f"\n  Requests/sec:\t{number(self.throughput_rps)}",
                f"\n  {data}\n",
                f"\nResponse time histogram:\n{histogram_rows(self.times)}\n",
                "\nLatency distribution:",
                *(f"\n  {percent}% in {number(self.times.percentile(percent) / 1e9)} secs" for percent in _PERCENTILES if answered),
                "\n\nDetails (average, fastest, slowest):",
                _detail("DNS+dialup", self.dialup),
                _detail("DNS-lookup", unmeasured),
                _detail("req write", unmeasured),
                _detail("resp wait", self.wait),
                _detail("resp read", self.read),
                "\n\nStatus code distribution:",
                *(f"\n  [{status}]\t{count} responses" for status, count in sorted(self.statuses.items())),
                "\n\n",
                "Error distribution:" if self.errors else "",
                *(f"\n  [{count}]\t{message}" for message, count in sorted(self.errors.items())),
                "\n\n",
            ]
        )


def number(value: float) -> str:
    """Four decimals, as hey has them of seconds and rates."""
    return " NaN" if math.isnan(value) else f"{value:.4f}"


def histogram_rows(times: Times) -> str:
    """Ten steps of equal width from the fastest to the slowest, each with how many lie between the one before and itself, and a bar."""
    if not times.count:
        return ""
    step = (times.longest - times.shortest) / _ROWS
    marks = [*(times.shortest + step * row for row in range(_ROWS)), float(times.longest)]
    reached = [times.up_to(mark) for mark in marks]
    counts = [now - before for now, before in zip(reached, [0, *reached], strict=False)]
    most = max(counts)
    bars = [_BAR * ((count * _LONGEST_BAR + most // 2) // most) for count in counts]
    return "".join(f"  {mark / 1e9:.3f} [{count}]\t|{bar}\n" for mark, count, bar in zip(marks, counts, bars, strict=True))


def csv_text(log: Path) -> str:
    """A row for each answer, in the order of their ends: seconds, and the offset of the start from that of the load."""
    answered = answers_in(log)
    seconds = (
        (answered["last_byte_ns"] - answered["intended_ns"]) / 1e9,
        answered["connect_ns"] / 1e9,
        (answered["first_byte_ns"] - answered["written_ns"]) / 1e9,
        (answered["last_byte_ns"] - answered["first_byte_ns"]) / 1e9,
        answered["intended_ns"] / 1e9,
    )
    rows = zip(*(column.tolist() for column in (*seconds, answered["status"])), strict=True)
    lines = (
        f"{total:.4f},{dialup:.4f},0.0000,0.0000,{wait:.4f},{read:.4f},{status},{offset:.4f}\n"
        for total, dialup, wait, read, offset, status in rows
    )
    return CSV_HEAD + "".join(lines)


def _detail(name: str, spread: Spread) -> str:
    average, fastest, slowest = spread
    return f"\n  {name}:\t{number(average)} secs, {number(fastest)} secs, {number(slowest)} secs"


def _spread(clock: "Quantiles | None") -> Spread:
    if clock is None:
        return math.nan, 0.0, 0.0
    return _seconds(clock.mean, math.nan), _seconds(clock.min), _seconds(clock.max)


def _dialup(end: "LoadEnd") -> Spread:
    """Of all requests, most of which found a connection: nothing for them."""
    completed, made = end.summary.requests.completed, end.summary.connect_time_us
    if not completed:
        return math.nan, 0.0, 0.0
    connections = Times.recorded(end.histograms.get("connect_time_ns"), made).count
    parts: Sequence[Spread] = [
        _spread(clock) for clock in (made, end.summary.tls_handshake_us) if clock is not None and clock.mean is not None
    ]
    average, fastest, slowest = (sum(part[index] for part in parts) for index in range(3))
    return average * min(1.0, connections / completed), fastest if connections >= completed else 0.0, slowest


def _seconds(microseconds: float | None, nothing: float = 0.0) -> float:
    return nothing if microseconds is None else microseconds / 1e6
