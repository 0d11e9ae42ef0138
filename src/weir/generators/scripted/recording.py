"""Builds intervals and tallies from the records of all processes of a tool. Pure: no clock, no socket. An interval is
complete when every running process has sent a report after the end of the interval."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from weir.generators.scripted.lines import REQUEST, Claims, Ended, Line, News, Outcome, Started, Stopped
from weir.model.hdr import HIGHEST_NS, Hdr
from weir.model.hdr_batch import HdrCollector, Integers
from weir.model.load_records import ErrorCounts, Interval, IntervalQuantiles

Key = tuple[str, str]
"""Type and name of requests, such as GET and `/items`. JMeter's samples have no type."""


@dataclass(slots=True)
class Tally:
    """Counts of requests, and the response times of the requests with a whole response."""

    begun: int = 0
    """Number of requests that began. Only the tallies of intervals count these requests."""
    requests: int = 0
    """Number of requests that ended."""
    errors: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    times: HdrCollector = field(default_factory=HdrCollector)
    sum_ns: int = 0
    """Sum of the response times."""
    longest_ns: int = 0
    received_bytes: int = 0

    @property
    def failed(self) -> int:
        """Number of requests without a whole response or with a wrong response."""
        return self.errors.total()

    @property
    def ok(self) -> int:
        """Number of requests with a right response."""
        return self.requests - self.failed

    @property
    def completed(self) -> int:
        """Number of requests with a whole response, right or wrong."""
        return self.ok + self.errors["check"]

    @property
    def response(self) -> Hdr:
        """The histogram of the response times."""
        return self.times.collect()

    def count(self, outcome: Outcome, requests: int) -> None:
        """Adds requests with the same outcome."""
        self.requests += requests
        if outcome.failure is not None:
            self.errors[outcome.failure] += requests
        if outcome.status:
            self.statuses[outcome.status] += requests

    def add(self, other: "Tally") -> None:
        self.begun += other.begun
        self.requests += other.requests
        self.received_bytes += other.received_bytes
        self.sum_ns += other.sum_ns
        self.longest_ns = max(self.longest_ns, other.longest_ns)
        self.errors.update(other.errors)
        self.statuses.update(other.statuses)
        self.times.merge(other.times)


@dataclass(slots=True)
class Process:
    """One process of the tool."""

    role: str | None = None
    """`local`, `master` or `worker`. None until a test starts in the process."""
    last_ns: int = 0
    stopped_ns: int | None = None
    news: News | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    has_ended: bool = False
    is_lost: bool = False
    """Whether the process ended without its last report."""

    @property
    def end_ns(self) -> int:
        """The end of the test in the process; the time of the last report if the test still runs."""
        return self.last_ns if self.stopped_ns is None else self.stopped_ns


class Recording:
    """The recorded load of all processes of a tool."""

    def __init__(self) -> None:
        self.processes: dict[int, Process] = {}
        self.tallies: dict[Key, Tally] = defaultdict(Tally)
        self.total = Tally()
        """All requests of the complete intervals."""
        self.service, self.lag = HdrCollector(), HdrCollector()
        """Histograms of service time and schedule lag. Empty without lag: then service time equals response time."""
        self.foreign = 0
        """Number of requests of clients other than Locust's own. weir computes their starts from their ends."""
        self.claims: Claims | None = None
        """The tool's own figures."""
        self.start_ns = 0
        self.measures_lag = False
        self._interval_ns = 1
        self._open: dict[int, Tally] = defaultdict(Tally)
        """The tallies of incomplete intervals, by the index of the interval."""
        self._closed = 0
        self._pending = 0
        """Number of requests that began and did not end in the closed intervals."""

    def begin(self, start_ns: int, interval_s: float, *, measures_lag: bool) -> None:
        """Sets the start of the load and the length of its intervals. Must be called before the first `News`."""
        self.start_ns, self._interval_ns, self.measures_lag = start_ns, round(interval_s * 1e9), measures_lag

    @property
    def load_processes(self) -> list[Process]:
        """The processes that had users; the master if no other process is known."""
        started = [process for process in self.processes.values() if process.role is not None]
        return [process for process in started if process.role != "master"] or started

    @property
    def users(self) -> int:
        """The highest number of users; 0 if unknown."""
        return sum(process.news.users for process in self.load_processes if process.news)

    @property
    def duration_s(self) -> float:
        """Seconds from the start of the load to the stop of the last process."""
        end_ns = max((process.end_ns for process in self.load_processes), default=self.start_ns)
        return max(end_ns - self.start_ns, 1_000_000) / 1e9

    def take(self, number: int, line: Line | None) -> Iterator[Interval]:
        """Adds a record of a process; None after the process has ended. Yields the intervals that are complete now."""
        process = self.processes.setdefault(number, Process())
        match line:
            case Started():
                process.role, process.last_ns = line.role, line.at_ns
            case News():
                process.last_ns, process.news = line.at_ns, line
                process.outcomes += line.outcomes
                self._count(process, line)
            case Claims():
                self.claims = line
            case Stopped():
                process.stopped_ns = process.stopped_ns or line.at_ns
            case Ended():
                process.has_ended = True
            case None:
                process.is_lost = process.role is not None and not process.has_ended
                process.has_ended = True
        if self.start_ns:
            yield from self._complete()

    def finish(self) -> Iterator[Interval]:
        """Yields the remaining intervals. The last interval may be short, and includes requests that end late."""
        end_ns = self.start_ns + round(self.duration_s * 1e9)
        last = max(self._closed, (end_ns - self.start_ns - 1) // self._interval_ns)
        for index in [index for index in self._open if index > last]:
            self._open[last].add(self._open.pop(index))
        while self._open or self.start_ns + self._closed * self._interval_ns < end_ns:
            yield self._close(end_ns)

    def _count(self, process: Process, news: News) -> None:
        """Adds the requests of a report. Uses arrays: a loop over all requests would take CPU time from the tool."""
        rows = np.frombuffer(news.requests, REQUEST)
        numbers, places = np.unique(rows["outcome"], return_inverse=True)
        outcomes = [process.outcomes[number] for number in numbers.tolist()]
        # A client class in a locustfile may report a request without a time.
        is_whole = np.array([outcome.failure in (None, "check") for outcome in outcomes], bool)[places]
        times = np.flatnonzero(is_whole & ~np.isnan(rows["response_time_ms"]))
        service_ns = np.clip(np.rint(np.nan_to_num(rows["response_time_ms"]) * 1e6), 0, HIGHEST_NS).astype(np.int64)
        response_ns = np.minimum(service_ns + rows["lag_ns"], HIGHEST_NS)
        if self.measures_lag:
            self.service.add(service_ns[times])
            self.lag.add(np.minimum(rows["lag_ns"][times], HIGHEST_NS))

        is_part = np.array([outcome.is_part for outcome in outcomes], bool)[places]
        has_no_start = ~np.array([outcome.has_start for outcome in outcomes], bool)[places] & ~is_part
        if news.in_flight is not None:
            self.foreign += int(has_no_start.sum())
        begun_ns = np.append(np.frombuffer(news.begun, np.int64), (rows["end_ns"] - service_ns)[has_no_start])
        for index, begun in _count_values(self._find_intervals(begun_ns)):
            self._open[index].begun += begun

        indexes, intervals = np.unique(np.where(is_part, -1, self._find_intervals(rows["end_ns"])), return_inverse=True)
        by_interval = [Tally() if index < 0 else self._open[index] for index in indexes.tolist()]
        by_key = [self.tallies[outcome.type, outcome.name] for outcome in outcomes]
        for tallies, of in ((by_interval, intervals), (by_key, places)):
            for pair, requests in _count_values(of * len(outcomes) + places):
                tallies[pair // len(outcomes)].count(outcomes[pair % len(outcomes)], requests)
            received = np.bincount(of, rows["received_bytes"], len(tallies))
            for number, (tally, size) in enumerate(zip(tallies, received.tolist(), strict=True)):
                tally.received_bytes += int(size)
                own_ns = response_ns[times[of[times] == number]]
                tally.sum_ns += int(own_ns.sum())
                tally.longest_ns = max(tally.longest_ns, int(own_ns.max(initial=0)))
                tally.times.add(own_ns)

    def _find_intervals(self, at_ns: Integers) -> Integers:
        """Returns the index of the interval of each time. A time before the first incomplete interval counts in it."""
        return np.maximum((at_ns - self.start_ns) // self._interval_ns, self._closed)

    def _complete(self) -> Iterator[Interval]:
        # A master runs on after its workers stop. A worker without users may still get users.
        known = [process for process in self.processes.values() if process.role != "master"] or self.load_processes
        going_on = [process for process in known if not process.has_ended and process.stopped_ns is None]
        if any(process.role for process in going_on):
            reported_ns = min(process.last_ns for process in going_on)
            while self.start_ns + (self._closed + 1) * self._interval_ns <= reported_ns:
                yield self._close(None)

    def _close(self, end_ns: int | None) -> Interval:
        """Completes the first incomplete interval. `end_ns` is the end of the load. If the load ends within the
        interval, the interval ends with the load."""
        index, interval_s = self._closed, self._interval_ns / 1e9
        tally = self._open.pop(index, Tally())
        self._closed += 1
        start_s, end_s = index * interval_s, (index + 1) * interval_s
        if end_ns is not None and start_s < (end_ns - self.start_ns) / 1e9 < end_s:
            end_s = (end_ns - self.start_ns) / 1e9
        self.total.add(tally)
        times = tally.response
        self._pending += tally.begun - tally.requests
        states = [process.news for process in self.processes.values() if process.news and not process.has_ended]
        return Interval(
            index=index,
            start_s=start_s,
            end_s=end_s,
            due=tally.begun,
            sent=tally.begun,
            completed=tally.completed,
            ok=tally.ok,
            failed=tally.failed,
            errors=ErrorCounts(**tally.errors),
            in_flight=sum(self._pending if state.in_flight is None else state.in_flight for state in states),
            oldest_age_us=max((state.oldest_ns for state in states), default=0) / 1e3,
            bytes_received=tally.received_bytes,
            response_time_us=_summarize_times(tally, times),
            histogram=times.to_text(),
        )


def _count_values(values: Integers) -> Iterator[tuple[int, int]]:
    """Yields each distinct value and its number of occurrences."""
    found, counts = np.unique(values, return_counts=True)
    return zip(found.tolist(), counts.tolist(), strict=True)


def _summarize_times(tally: Tally, times: Hdr) -> IntervalQuantiles:
    if not times.counts:
        return IntervalQuantiles()
    p50, p90, p99 = (min(time_ns, tally.longest_ns) / 1e3 for time_ns in times.quantiles((0.5, 0.9, 0.99)))
    mean = tally.sum_ns / times.total / 1e3
    return IntervalQuantiles(mean=mean, p50=p50, p90=p90, p99=p99, max=tally.longest_ns / 1e3)
