"""ab's report, its CSV and its lines for gnuplot, from what weir's engine measured. Formats and ab's roundings, nothing else.

ab counts in whole microseconds and prints milliseconds, rounded half up.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weir.compat.times import Times, answers_in

if TYPE_CHECKING:
    from weir.model.records import LoadEnd

_PERCENTS = (50, 66, 75, 80, 90, 95, 98, 99, 100)


@dataclass(frozen=True, slots=True)
class Clocks:
    """The four rows of ab's table of times; all but the first have a time for each answer."""

    connect: Times
    """Making a connection, nothing for an answer that found one."""
    processing: Times
    """From the request's write to the answer's last byte."""
    waiting: Times
    """To its first byte."""
    total: Times

    @staticmethod
    def of(end: "LoadEnd") -> "Clocks":
        """Those of a load, from its histograms."""
        summary, histograms = end.summary, end.histograms

        def recorded(clock: str, zeros: int = 0) -> Times:
            return Times.recorded(histograms.get(f"{clock}_ns"), getattr(summary, f"{clock}_us"), zeros=zeros)

        found = max(0, summary.requests.completed - recorded("connect_time").count)
        return Clocks(recorded("connect_time", found), recorded("service_time"), recorded("time_to_first_byte"), recorded("response_time"))

    @staticmethod
    def logged(log: Path) -> "Clocks":
        """Those of a load, from its request log: here the time of a connection has its TLS handshake in it."""
        answered = answers_in(log)
        written = answered["written_ns"]
        return Clocks(
            Times.of_each(answered["connect_ns"]),
            Times.of_each(answered["last_byte_ns"] - written),
            Times.of_each(answered["first_byte_ns"] - written),
            Times.of_each(answered["last_byte_ns"] - answered["intended_ns"]),
        )

    def rows(self) -> tuple[tuple[str, str, Times], ...]:
        """Label, what a warning calls it, and times."""
        return (
            ("Connect:", "initial connection time", self.connect),
            ("Processing:", "processing time", self.processing),
            ("Waiting:", "waiting time", self.waiting),
            ("Total:", "total time", self.total),
        )


@dataclass(frozen=True, slots=True)
class AbResult:
    """The figures of ab's report."""

    server: str
    host: str
    port: int
    tls: Sequence[tuple[str, str]]
    """Lines on TLS."""
    path: str
    document_bytes: int | None
    """None: answers may differ in length."""
    concurrency: int
    taken_s: float
    complete: int
    failures: Mapping[str, int]
    """By what ab calls them, in its order."""
    not_2xx: int
    keep_alive: int | None
    """Answers on connections that were kept; None where none was to be."""
    received_bytes: int
    body_bytes: int
    sent_bytes: int | None
    """With their heads; None where requests have no body."""
    clocks: Clocks

    @property
    def failed(self) -> int:
        """All failures."""
        return sum(self.failures.values())

    def lines(self) -> list[tuple[str, str]]:
        """Label and value of each line before the table of times; two empty texts are an empty line."""
        length = "Variable" if self.document_bytes is None else f"{self.document_bytes} bytes"
        found = [
            ("Server Software:", self.server), ("Server Hostname:", self.host), ("Server Port:", str(self.port)), *self.tls, ("", ""),
            ("Document Path:", self.path), ("Document Length:", length), ("", ""),
            ("Concurrency Level:", str(self.concurrency)), ("Time taken for tests:", f"{self.taken_s:.3f} seconds"),
            ("Complete requests:", str(self.complete)), ("Failed requests:", str(self.failed)),
        ]  # fmt: skip
        if self.failed:
            found.append(("   (" + ", ".join(f"{kind}: {count}" for kind, count in self.failures.items()) + ")", ""))
        if self.not_2xx:
            found.append(("Non-2xx responses:", str(self.not_2xx)))
        if self.keep_alive is not None:
            found.append(("Keep-Alive requests:", str(self.keep_alive)))
        found.append(("Total transferred:", f"{self.received_bytes} bytes"))
        if self.sent_bytes is not None:
            found.append(("Total body sent:", str(self.sent_bytes)))
        found.append(("HTML transferred:", f"{self.body_bytes} bytes"))
        if self.complete and self.taken_s:
            found += self._rates()
        return found

    def _rates(self) -> list[tuple[str, str]]:
        each_ms = self.taken_s * 1000 / self.complete

        def kilobytes(count: int) -> str:
            return f"{count / 1024 / self.taken_s:.2f}"

        found = [
            ("Requests per second:", f"{self.complete / self.taken_s:.2f} [#/sec] (mean)"),
            ("Time per request:", f"{self.concurrency * each_ms:.3f} [ms] (mean)"),
            ("Time per request:", f"{each_ms:.3f} [ms] (mean, across all concurrent requests)"),
            ("Transfer rate:", f"{kilobytes(self.received_bytes)} [Kbytes/sec] received"),
        ]
        if self.sent_bytes is not None:
            found.append(("", f"{kilobytes(self.sent_bytes)} kb/s sent"))
            found.append(("", f"{kilobytes(self.received_bytes + self.sent_bytes)} kb/s total"))
        return found

    def text(self, *, percentages: bool, confidence: bool) -> str:
        """The report as ab prints it, without the banner."""
        head = [f"{label:<24}{value}" if value or label.endswith(":") else label for label, value in self.lines()]
        parts = ["", "", *head]
        if self.complete:
            parts += ["", "Connection Times (ms)", *(times_table(self.clocks) if confidence else short_table(self.clocks))]
            if percentages and self.complete > 1:
                parts += ["", "Percentage of the requests served within a certain time (ms)", *_percentages(self.clocks.total)]
        return "\n".join([*parts, ""])


def whole_ms(time_ns: float) -> int:
    """Milliseconds as ab prints them: whole microseconds, rounded half up.

    >>> [whole_ms(time_ns) for time_ns in (499_999, 500_000, 1_499_999, 1_500_000)]
    [0, 1, 1, 2]
    """
    return (int(time_ns) // 1000 + 500) // 1000


def times_table(clocks: Clocks) -> list[str]:
    """Shortest, mean with standard deviation, median and longest, and warnings where mean and median are apart."""
    lines = ["              min  mean[+/-sd] median   max"]
    warnings: list[str] = []
    for label, name, times in clocks.rows():
        mean, median, deviation = whole_ms(times.mean), whole_ms(times.median), times.deviation / 1e6
        lines.append(f"{label:<12}{whole_ms(times.shortest):5} {mean:4} {deviation:5.1f} {median:6} {whole_ms(times.longest):7}")
        apart = abs(mean - median)
        if apart > 2 * deviation:
            warnings += [
                f"ERROR: The median and mean for the {name} are more than twice the standard",
                "       deviation apart. These results are NOT reliable.",
            ]
        elif apart > deviation:
            warnings += [
                f"WARNING: The median and mean for the {name} are not within a normal deviation",
                "        These results are probably not that reliable.",
            ]
    return lines + warnings


def short_table(clocks: Clocks) -> list[str]:
    """Shortest, mean and longest."""
    rows = (
        f"{label:<12}{whole_ms(times.shortest):5} {whole_ms(times.mean):5}{whole_ms(times.longest):5}" for label, _, times in clocks.rows()
    )
    return ["              min   avg   max", *rows]


def _percentages(total: Times) -> list[str]:
    *most, _ = _PERCENTS
    lines = [f"  {percent}%  {whole_ms(total.at(total.count * percent // 100)):5}" for percent in most]
    return [*lines, f" 100%  {whole_ms(total.longest):5} (longest request)"]


def percentages_csv(total: Times) -> str:
    """The time within which each percentage was served, in milliseconds."""
    rows = (f"{percent},{total.at(int(0.5 + total.count * percent / 100)) / 1e6:.3f}" for percent in range(101))
    return "\n".join(["Percentage served,Time in ms", *rows, ""])


def gnuplot_lines(log: Path, start_unix_ns: int) -> str:
    """A line for each answer, the shortest first: when it was asked for, and its times in milliseconds."""
    answered = answers_in(log)
    answered = answered[(answered["last_byte_ns"] - answered["intended_ns"]).argsort(kind="stable")]
    times = (
        answered["connect_ns"],
        answered["last_byte_ns"] - answered["written_ns"],
        answered["last_byte_ns"] - answered["intended_ns"],
        answered["first_byte_ns"] - answered["written_ns"],
    )
    seconds = ((answered["intended_ns"] + start_unix_ns) // 1_000_000_000).tolist()
    rows = zip(seconds, *(((clock // 1000 + 500) // 1000).tolist() for clock in times), strict=True)
    return "\n".join(["starttime\tseconds\tctime\tdtime\tttime\twait", *(_gnuplot_line(*row) for row in rows), ""])


def _gnuplot_line(second: int, connect: int, processing: int, total: int, waiting: int) -> str:
    started = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(second))
    return f"{started}\t{second}\t{connect}\t{processing}\t{total}\t{waiting}"
