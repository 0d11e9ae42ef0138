"""Records of a load, as `weir-engine load` writes them."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Self

from weir.model.hdr import Hdr
from weir.model.records import OMITTED_IF_NONE, Record

Validity = Literal["valid", "suspect", "invalid"]
CLOCKS = ("response_time", "service_time", "schedule_lag", "connect_time", "time_to_first_byte")
"""Names of the times that weir measures. Each time has a key `<clock>_us` and a histogram `<clock>_ns`."""


class Quantiles(Record):
    """Statistics of one measured time, in microseconds. All fields are None without samples."""

    mean: float | None = None
    """The arithmetic mean."""
    stdev: float | None = None
    """The standard deviation."""
    min: float | None = None
    """The minimum."""
    p50: float | None = None
    """The median: half of the requests took at most this time."""
    p75: float | None = None
    """75 % of the requests took at most this time."""
    p90: float | None = None
    """90 % of the requests took at most this time."""
    p95: float | None = None
    """95 % of the requests took at most this time."""
    p99: float | None = None
    """99 % of the requests took at most this time."""
    p99_9: float | None = None
    """99.9 % of the requests took at most this time."""
    p99_99: float | None = None
    """99.99 % of the requests took at most this time."""
    max: float | None = None
    """The maximum."""

    @classmethod
    def from_counts(cls, counts: Mapping[int, int], max_us: float | None) -> Self:
        """Returns the same statistics as the engine. `counts` is a dict from bucket to number of samples of a histogram
        in nanoseconds. `max_us` is the exact maximum, because buckets round values."""
        if not counts:
            return cls()
        times = Hdr(counts)
        percentiles = zip(PERCENTILES, times.quantiles(PERCENTILES.values()), strict=True)
        us = {name: value / 1e3 for name, value in percentiles}
        return cls(mean=times.mean / 1e3, stdev=times.stdev / 1e3, min=times.min / 1e3, max=max_us, **us)


PERCENTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
"""A dict from each percentile of `Quantiles` to the share of the samples."""
LIVE_PERCENTILES = {name: PERCENTILES[name] for name in ("p50", "p90", "p99")}
"""The percentiles that weir shows for a part of a load."""
BUSY_FRACTION = 0.85
"""A CPU or generator may be the limit if it is busy for at least this share of the time. The engine uses it too."""


class RequestCounts(Record):
    """Counts of requests: intended = ok + failed + unanswered + unsent."""

    intended: int
    """Requests that were due, including unsent requests."""
    sent: int
    """Requests that the generator wrote. A request that the generator sent twice counts once."""
    completed: int
    """Requests with a whole response, correct or wrong: ok + `errors.check`."""
    ok: int
    """Requests with a correct response."""
    failed: int
    """Requests without a whole response, or with a wrong response: the sum of `errors`."""
    unanswered: int
    """Requests in flight at the end of the load."""
    unsent: int
    """Requests that were due, but that the generator had not written before the load's end."""
    retried: int = 0
    """Requests that the generator sent twice, because the server closed the reused connection before a response."""

    @classmethod
    def from_outcomes(cls, *, ok: int, failed: int, wrong: int = 0, unanswered: int = 0, unsent: int = 0) -> Self:
        """Returns all counts from the number of requests by outcome. `wrong`: failed requests with a whole response."""
        sent = ok + failed + unanswered
        outcomes = {"ok": ok, "failed": failed, "unanswered": unanswered, "unsent": unsent}
        return cls(intended=sent + unsent, sent=sent, completed=ok + wrong, **outcomes)


class ErrorCounts(Record):
    """Number of failed requests of each kind."""

    connect: int = 0
    """The connection or its TLS handshake failed."""
    timeout: int = 0
    """A whole response did not arrive within the timeout."""
    reset: int = 0
    """The connection ended before the whole response arrived."""
    protocol: int = 0
    """The response was not HTTP."""
    check: int = 0
    """A whole response arrived, but the response was wrong."""

    @property
    def occurred(self) -> dict[str, int]:
        """A dict from each kind that occurred to its number of failed requests."""
        return {kind: count for kind, count in self.to_json().items() if count}


class ByteCounts(Record):
    """Bytes of requests and responses, including heads, but without the bytes of TLS, TCP and lower layers."""

    sent: int = 0
    """Bytes of requests."""
    received: int = 0
    """Bytes of responses."""
    received_body: int = 0
    """Bytes of the bodies of whole responses, without the framing of chunks."""


class KernelTimestamps(Record):
    """Numbers of responses with and without a kernel timestamp for the last byte."""

    used: int
    """Responses with a kernel timestamp."""
    missing: int
    """Responses without a kernel timestamp. Their response time ends when the generator reads the response."""


class FirstResponse(Record):
    """The first whole response of a load."""

    status: int
    """Status of the response."""
    server: str = ""
    """Value of the response's header Server. Empty if the response has no such header."""
    body_bytes: int
    """Length of the body of the response."""


class RequestLogUse(Record):
    """Size and completeness of a request log."""

    records: int
    """Records in the file."""
    lost: int
    """Number of records that weir could not write, because the disk was too slow or full. `verdict` reports them."""
    problem: str | None = None
    """The reason why the disk rejected records. None if the disk accepted all records."""


class GeneratorUse(Record):
    """CPU and memory of the generator itself."""

    version: str
    """Version of weir-engine, or name and version of another program. Empty if the generator was killed."""
    cpu_fraction: float
    """CPU time of the process ÷ maximum CPU time of its threads."""
    busy_fraction: float | None = None
    """Share of the time in which the busiest thread handled events, without spinning. From 0.85, the generator may be
    the limit."""
    peak_rss_bytes: int
    """Peak resident memory of the process."""
    threads: int
    """Number of threads that carried the load."""
    cpus: list[int]
    """CPUs to which the threads are bound. Empty if the threads are not bound."""
    max_rate_rps: float | None = None
    """Throughput of the generator on a server that does nothing. None if not measured. `weir load` adds this key."""
    kernel_timestamps: KernelTimestamps | None = None
    """Use of kernel timestamps. None without `--kernel-timestamps`."""
    clock: str | None = field(default=None, metadata=OMITTED_IF_NONE)
    """The start and end events of another generator's response times. None for weir's engine."""


class Verdict(Record):
    """The engine's judgement on its own figures."""

    validity: Validity
    """`valid`: no problem found. `suspect`: read the reasons. `invalid`: the figures do not describe the server."""
    reasons: list[str] = field(default_factory=list)
    """One sentence for each reason: observation, limit and probable cause."""
    kinds: list[str] = field(default_factory=list)
    """The kind of each reason. Empty if unknown."""

    @property
    def lines(self) -> list[str]:
        """The verdict and the reasons, as lines for the terminal."""
        return [f"verdict: {self.validity}", *(f"  {reason}" for reason in self.reasons)]


class Fairness(Record):
    """Numbers of written requests per connection, or per user if users come and go."""

    min: int
    """The smallest number of requests of a connection or user."""
    median: float
    """The median number of requests."""
    max: int
    """The largest number of requests of a connection or user."""


class UntilFailure(Record):
    """Figures before the first failure."""

    requests_before: int
    """Correct responses before the first failure."""
    highest_throughput_rps: float
    """Highest throughput of correct responses in one second before the first failure. For a load of less than 1 s: the
    throughput of the whole load."""
    mean_response_time_us: float | None = None
    """Mean response time of the correct responses before the first failure."""
    at_s: float | None = None
    """Time of the first failure. None if no request failed."""
    kind: str | None = None
    """Kind of the first failure, a key of `errors`."""


class StepSummary(Record):
    """Figures of one step of a scenario."""

    sent: int
    """See `sent` in `requests`."""
    completed: int
    """See `completed` in `requests`."""
    ok: int
    """See `ok` in `requests`."""
    failed: int
    """See `failed` in `requests`."""
    response_time_us: Quantiles
    """Response times of the step. See `response_time_us` of the load."""


class SlowRequest(Record):
    """One of the slowest requests. Times count from the start of the load."""

    intended_us: float
    """Time at which the request was due."""
    written_us: float
    """Time at which the generator wrote the request."""
    first_byte_us: float
    """Time at which the first byte of the response arrived."""
    last_byte_us: float
    """Time at which the last byte of the response arrived."""
    status: int
    """Status of the response."""
    connection: int
    """Number of the connection among the connections of one thread, from 0."""


class TargetSummary(StepSummary):
    """Figures of one of several targets."""

    url: str
    """The URL of the target."""


LOST_AGENT = "lost_agent"
"""Kind of a verdict's reason: weir lost an agent during the load."""
FEWER_AGENTS = "fewer_agents"
"""Kind of a verdict's reason: weir lost agents before the load, and the other agents generated the load."""
LATE_AGENT = "late_agent"
"""Kind of a verdict's reason: an agent began its part of the load late."""


class AgentSummary(Record):
    """One agent's part of a load. Each agent runs on its own machine."""

    name: str
    """Name of the agent's node in the cluster."""
    requests: RequestCounts
    """Requests of this agent."""
    throughput_rps: float
    """Responses per second that this agent received."""
    response_time_us: Quantiles
    """Response times, measured with the agent's own clock."""
    generator: GeneratorUse
    """CPU and memory of the agent's engine."""
    clock_offset_us: float
    """The agent's monotonic clock minus the clock of weir's machine."""
    clock_error_us: float
    """Maximum error of `clock_offset_us`: half of the shortest round trip of a clock reading."""
    began_late_us: float
    """Time from the agreed start to the agent's real start, measured with the agent's own clock."""


class LoadSummary(Record):
    """The JSON of one load (`weir load --json`) from the engine. Keys that only `weir load` adds may be None."""

    schema: int
    """The version of this format: 1."""
    target: str
    """The URL, or all URLs, separated by spaces."""
    duration_s: float
    """Measured length of the load."""
    requests: RequestCounts
    throughput_rps: float
    """`requests.completed` ÷ `duration_s`."""
    status: dict[str, int]
    """Number of responses with each status."""
    errors: ErrorCounts
    response_time_us: Quantiles
    """Time from the intended start of a completed request to receiving the last byte of the response, in µs."""
    service_time_us: Quantiles
    """Time from writing the request to receiving the last byte of the response."""
    schedule_lag_us: Quantiles
    """Delay from the intended start of the request to writing the request."""
    connect_time_us: Quantiles
    """Time to make a connection."""
    tls_handshake_us: Quantiles | None = None
    """Time of the TLS handshake. None without TLS."""
    time_to_first_byte_us: Quantiles
    """Time from writing the request to receiving the first byte of the response."""
    read_time_us: Quantiles | None = None
    """Time from the first to the last byte of a response. Only mean, min and max are known. None if not measured."""
    bytes: ByteCounts
    first_response: FirstResponse | None = None
    """The first whole response. None if no response arrived, or if the response is unknown."""
    other_length: int = 0
    """Number of responses whose body is longer or shorter than the body of the first response."""
    generator: GeneratorUse
    fairness: Fairness | None = None
    until_failure: UntilFailure | None = None
    """Figures before the first failure. Only with `--until-failure`."""
    steps: dict[str, StepSummary] | None = field(default=None, metadata=OMITTED_IF_NONE)
    """A dict from the name of each step to the figures of the step. None without a scenario."""
    targets: list[TargetSummary] | None = field(default=None, metadata=OMITTED_IF_NONE)
    """The targets in the order of the plan. None with a single target."""
    request_log: RequestLogUse | None = field(default=None, metadata=OMITTED_IF_NONE)
    """Size of the request log. None without a request log."""
    agents: list[AgentSummary] | None = field(default=None, metadata=OMITTED_IF_NONE)
    """Each agent's part of the load. None if a single engine generated the load."""
    verdict: Verdict
    slowest: list[SlowRequest] | None = field(default=None, metadata=OMITTED_IF_NONE)
    """The ten requests with the longest response times, the slowest first."""
    objectives: list[dict[str, Any]] | None = field(default=None, metadata=OMITTED_IF_NONE)
    """Each objective with its measured value. None without objectives."""
    aborted: dict[str, Any] | None = field(default=None, metadata=OMITTED_IF_NONE)
    """The condition of `--abort-on` that stopped the load, in the form of an objective. None without such a stop."""

    @classmethod
    def from_figures(cls, requests: RequestCounts, duration_s: float, **figures: Any) -> Self:
        """Builds the summary of a load, or of a part of a load, from `figures` (fields of the summary). None counts as
        missing. A missing throughput is computed, a missing verdict is "valid", and all other missing figures stay
        empty."""
        usual: dict[str, Any] = {
            "schema": 1,
            "target": "",
            "throughput_rps": requests.completed / duration_s if duration_s else 0.0,
            "status": {},
            "errors": ErrorCounts(),
            "bytes": ByteCounts(),
            "verdict": Verdict(validity="valid"),
            **{f"{clock}_us": Quantiles() for clock in CLOCKS},
        }
        known = {name: figure for name, figure in figures.items() if figure is not None}
        return cls(requests=requests, duration_s=duration_s, **usual | known)

    @property
    def limit_sentence(self) -> str:
        """A sentence that compares the throughput with the generator's limit. Empty if this limit is unknown."""
        most, reached = self.generator.max_rate_rps, self.throughput_rps
        if not most:
            return ""
        nothing = "that the generator reaches on a server that does nothing"
        if reached >= most:
            return f"the generator is the limit: {reached:,.0f} requests/s, at least the {most:,.0f} {nothing}"
        return f"the generator may be the limit: {reached:,.0f} requests/s of at most {most:,.0f} {nothing}"


class LoadReady(Record):
    """The record `ready`: a held load has opened its connections."""

    connected: int
    soonest_monotonic_ns: int
    """Earliest possible start of the load, on the monotonic clock of the engine's machine."""


class LoadStarted(Record):
    """The record `hello` of a load: the load's clock has started."""

    version: str
    pid: int
    backend: str
    wait: str
    kernel_timestamps: bool = False
    threads: int
    cpus: list[int]
    connected: int
    start_monotonic_ns: int
    start_unix_ns: int


class IntervalQuantiles(Record):
    """Response times of one interval, in microseconds. All fields are None if no request completed."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class Interval(Record):
    """The generator's report about one interval of time. A request belongs to the interval in which it completed."""

    index: int
    start_s: float
    end_s: float
    due: int
    sent: int
    completed: int
    ok: int
    failed: int
    errors: ErrorCounts
    in_flight: int
    queued: int = 0
    oldest_age_us: float
    bytes_sent: int = 0
    bytes_received: int = 0
    response_time_us: IntervalQuantiles
    histogram: str
    """Response times in nanoseconds (HdrHistogram V2 in base64)."""


class LoadEvent(Record):
    """An event during a load, such as a stall or the first failed request of each kind."""

    t_s: float
    kind: str
    detail: str


class LoadEnd(Record):
    """The record `end` of a load."""

    stopped: str
    summary: LoadSummary
    histograms: dict[str, str]
    slowest: list[SlowRequest] = field(default_factory=list)
