"""Records of a load and of the host's observer. `weir-engine` writes each record as one line of JSON. pydantic
validates the records; field names are the JSON's keys. Readers ignore unknown keys (`docs/reference/engine.md`)."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from weir.model.hdr import Hdr

Validity = Literal["valid", "suspect", "invalid"]
CLOCKS = ("response_time", "service_time", "schedule_lag", "connect_time", "time_to_first_byte")
"""Names of the times that weir measures. Each has the key `<clock>_us` in the summary and a histogram `<clock>_ns`."""


class Record(BaseModel):
    """A line of the engine's output, or a part of such a line."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Quantiles(Record):
    """Statistics of one clock, in microseconds. All are None without samples."""

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
        """Returns statistics as the engine computes them. `counts` has the number of samples in each bucket of a
        histogram in nanoseconds. `max_us` is the exact maximum, because buckets round values."""
        if not counts:
            return cls()
        times = Hdr(counts)
        percentiles = zip(PERCENTILES, times.quantiles(PERCENTILES.values()), strict=True)
        us = {name: value / 1e3 for name, value in percentiles}
        return cls(mean=times.mean / 1e3, stdev=times.stdev / 1e3, min=times.min / 1e3, max=max_us, **us)


PERCENTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
"""The percentiles of `Quantiles`, with their shares."""
LIVE_PERCENTILES = {name: PERCENTILES[name] for name in ("p50", "p90", "p99")}
"""The percentiles that weir shows for a part of a load."""
BUSY_FRACTION = 0.85
"""Share of busy time from which a CPU or a generator may be the limit, because its queues are rarely empty. The
engine's verdict has the same threshold."""


class RequestCounts(Record):
    """Counts of requests: intended = ok + failed + unanswered + unsent."""

    intended: int
    """Requests that were due, whether sent or not."""
    sent: int
    """Requests that the generator wrote."""
    completed: int
    """Requests with a whole response, correct or wrong: ok + `errors.check`."""
    ok: int
    """Requests with a correct response."""
    failed: int
    """Requests without a whole response, or with a wrong response: the sum of `errors`."""
    unanswered: int
    """Requests in flight at the end of the load."""
    unsent: int
    """Requests that were due but not written at the end of the load."""

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
    """The response is not HTTP."""
    check: int = 0
    """A whole response arrived, but it is wrong."""


class ByteCounts(Record):
    """Bytes of requests and responses with their heads, without TLS, TCP and lower layers."""

    sent: int = 0
    """Bytes of requests."""
    received: int = 0
    """Bytes of responses."""
    received_body: int = 0
    """Bytes of the bodies of whole responses, without their framing."""


class KernelTimestamps(Record):
    """Counts of responses with and without a kernel timestamp of their last byte."""

    used: int
    """Responses whose time is the kernel's timestamp."""
    missing: int
    """Responses whose time is the moment when the generator read them."""


class FirstAnswer(Record):
    """The first whole response of a load."""

    status: int
    """Status of the response."""
    server: str = ""
    """Server header of the response. Empty if the response has no such header."""
    body_bytes: int
    """Length of the body of the response."""


class RequestLogUse(Record):
    """Size and completeness of a request log."""

    records: int
    """Records in the file."""
    lost: int
    """Records that weir could not write, because the disk was too slow or full. If any: `verdict` has a reason."""
    problem: str | None = None
    """Why the disk did not accept more records."""


class GeneratorUse(Record):
    """CPU and memory of the generator itself. Fractions are shares of the CPU time available to its threads."""

    version: str
    """Version of weir-engine, or name and version of another program. Empty if the generator was killed."""
    cpu_fraction: float
    """Share of CPU time that the process used."""
    busy_fraction: float | None = None
    """Share of time in which the busiest thread handled events, without spinning. From 0.85 on the generator may be the
    limit."""
    peak_rss_bytes: int
    """Peak resident memory of the process."""
    threads: int
    """Number of threads that carried the load."""
    cpus: list[int]
    """CPUs to which the threads are bound. Empty if the threads are not bound."""
    max_rate_rps: float | None = None
    """Throughput of the generator on a null server. None if not measured. `weir load` adds this key."""
    kernel_timestamps: KernelTimestamps | None = None
    """Use of kernel timestamps. None if not requested."""
    clock: str | None = Field(default=None, exclude_if=lambda clock: clock is None)
    """For another program: the events at which its response times begin and end. None for weir's engine."""


class Verdict(Record):
    """The engine's judgement on its own figures."""

    validity: Validity
    """`valid`: no problem found. `suspect`: read the reasons. `invalid`: the figures do not describe the server."""
    reasons: list[str] = Field(default_factory=list)
    """One sentence for each reason: observation, limit and probable cause."""
    kinds: list[str] = Field(default_factory=list)
    """The kind of each reason. Empty if unknown."""

    @property
    def lines(self) -> list[str]:
        """The lines that the terminal shows."""
        return [f"verdict: {self.validity}", *(f"  {reason}" for reason in self.reasons)]


class Fairness(Record):
    """Number of requests per connection, or per user if users come and go."""

    min: int
    """The smallest number."""
    median: float
    """The median."""
    max: int
    """The largest number."""


class UntilFailure(Record):
    """Figures before the first failure."""

    requests_before: int
    """Correct responses before the first failure."""
    highest_throughput_rps: float
    """Highest throughput of these responses over one second of whole intervals, or over the whole of a shorter load."""
    mean_response_time_us: float | None = None
    """Mean response time of these responses."""
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
    """Response times of the step, as for the whole load."""


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
    """Number of the connection within its thread, from 0."""


class TargetSummary(StepSummary):
    """Figures of one of several targets."""

    url: str
    """The URL of the target."""


LOST_AGENT = "lost_agent"
"""Kind of a verdict's reason: the load lost an agent."""
FEWER_AGENTS = "fewer_agents"
"""Kind of a verdict's reason: weir lost agents before the load, and the other agents generated the load."""
LATE_AGENT = "late_agent"
"""Kind of a verdict's reason: an agent began late."""


class AgentSummary(Record):
    """One agent's part of a load. Each agent runs on its own machine."""

    name: str
    """Name of the agent's node in the cluster."""
    requests: RequestCounts
    """Requests of this agent."""
    throughput_rps: float
    """Responses per second to this agent."""
    response_time_us: Quantiles
    """Response times, measured with the agent's own clock."""
    generator: GeneratorUse
    """CPU and memory of the agent's engine."""
    clock_offset_us: float
    """The agent's monotonic clock minus the clock of weir's machine."""
    clock_error_us: float
    """Maximum error of the offset: half of the shortest round trip of a reading."""
    began_late_us: float
    """Delay of the agent's start after the agreed moment, measured with the agent's own clock."""


class LoadSummary(Record):
    """The JSON of one load (`weir load --json`), computed by the engine. `weir load` adds some keys, otherwise None."""

    schema_number: int = Field(alias="schema")
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
    """Time from the intended start of a completed request to the last byte of its response, in microseconds."""
    service_time_us: Quantiles
    """Time from the write of the request to the last byte of its response."""
    schedule_lag_us: Quantiles
    """Time from the intended start of the request to its write."""
    connect_time_us: Quantiles
    """Time to make a connection."""
    tls_handshake_us: Quantiles | None = None
    """Time of the TLS handshake. None without TLS."""
    time_to_first_byte_us: Quantiles
    """Time from the write of the request to the first byte of its response."""
    read_time_us: Quantiles | None = None
    """Time from the first to the last byte of a response: only mean, min and max. None if unknown."""
    bytes: ByteCounts
    first_answer: FirstAnswer | None = None
    """The first response. None without a response, or if unknown."""
    other_length: int = 0
    """Number of responses whose body has another length than the first response."""
    generator: GeneratorUse
    fairness: Fairness | None = None
    until_failure: UntilFailure | None = None
    """Figures before the first failure. Only with `--until-failure`."""
    steps: dict[str, StepSummary] | None = Field(default=None, exclude_if=lambda steps: steps is None)
    """A dict from the name of each step to its figures. None without a scenario."""
    targets: list[TargetSummary] | None = Field(default=None, exclude_if=lambda targets: targets is None)
    """The targets in the order of the plan. None with a single target."""
    request_log: RequestLogUse | None = Field(default=None, exclude_if=lambda log: log is None)
    """Size of the request log. None if not requested."""
    agents: list[AgentSummary] | None = Field(default=None, exclude_if=lambda agents: agents is None)
    """The parts of a load that several agents share. None for a single engine."""
    verdict: Verdict
    slowest: list[SlowRequest] | None = Field(default=None, exclude_if=lambda slowest: slowest is None)
    """The ten requests with the longest response times, the slowest first."""
    objectives: list[dict[str, Any]] | None = Field(default=None, exclude_if=lambda objectives: objectives is None)
    """Each objective with its measured value. None without objectives."""
    aborted: dict[str, Any] | None = Field(default=None, exclude_if=lambda aborted: aborted is None)
    """The condition that stopped the load early, in the form of an objective. None if no condition stopped the load."""

    @classmethod
    def from_figures(cls, requests: RequestCounts, duration_s: float, **figures: Any) -> Self:
        """Returns a summary for a load (or a part of a load) without the engine's summary. `figures` are fields, None
        if unknown. Unknown clocks and counts stay empty. An unknown throughput is computed. An unknown verdict is
        valid."""
        usual = {
            "schema_number": 1,
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
        """A sentence on throughput and the generator's own limit. Empty if weir did not measure the limit."""
        most, reached = self.generator.max_rate_rps, self.throughput_rps
        if not most:
            return ""
        nothing = "that it reaches on a server that does nothing"
        if reached >= most:
            return f"the generator is the limit: {reached:,.0f} requests/s, no fewer than the {most:,.0f} {nothing}"
        return f"the generator may be the limit: {reached:,.0f} requests/s of at most {most:,.0f} {nothing}"


class LoadReady(Record):
    """The record `ready`: a held load has opened its connections."""

    connected: int
    soonest_monotonic_ns: int
    """Earliest possible start."""


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
    """Response times of one interval, in microseconds. All are None if no request completed."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class Interval(Record):
    """The generator's report of one slice of time. A request belongs to the slice in which it completed."""

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
    """An event during a load, such as the first failure of a kind or a stall."""

    t_s: float
    kind: str
    detail: str


class LoadEnd(Record):
    """The record `end` of a load."""

    stopped: str
    summary: LoadSummary
    histograms: dict[str, str]
    slowest: list[SlowRequest] = Field(default_factory=list)


THREAD_STATE_WORDS = {
    "on_cpu": "on a CPU",
    "runnable": "waiting for a CPU",
    "socket_io": "in socket I/O",
    "event_wait": "waiting for events",
    "lock": "parked or on a lock",
    "accept": "accepting",
    "disk": "on files",
    "sleep": "asleep",
    "other": "elsewhere",
}
"""States of a thread, in words. Each has `<state>_s` in `PoolTimes`."""
THREAD_STATES = tuple(THREAD_STATE_WORDS)


class PoolTimes(Record):
    """Threads with one name: their number, and thread-seconds in each state since the observation began."""

    pool: str
    threads: int
    on_cpu_s: float
    runnable_s: float
    socket_io_s: float
    event_wait_s: float
    lock_s: float
    accept_s: float
    disk_s: float
    sleep_s: float
    other_s: float


class SocketCounts(Record):
    """TCP sockets by state. `in_use` counts all except time-wait."""

    established: int
    time_wait: int
    orphaned: int
    in_use: int


class NetworkSample(Record):
    """One network namespace. The counters start when the namespace starts."""

    tcp_retransmits: int
    listen_overflows: int
    listen_drops: int
    sockets: SocketCounts
    received_bytes: int
    sent_bytes: int
    loopback_bytes: int


class GroupSample(Record):
    """One started process and its descendants. Counters are cumulative and include children that ended. A field is None
    if the observer may not read the value. Memory, faults, `network` and `threads_by_state` are also None if this
    sample omits them. `docs/reference/engine.md` explains each field."""

    name: str
    tier: str
    processes: int
    threads: int
    cpu_user_s: float
    cpu_system_s: float
    rss_bytes: int
    minor_faults: int | None = None
    major_faults: int | None = None
    voluntary_switches: int = 0
    involuntary_switches: int = 0
    descriptors: int | None = None
    disk_read_bytes: int | None = None
    disk_written_bytes: int | None = None
    rchar_bytes: int | None = None
    wchar_bytes: int | None = None
    throttled_periods: int | None = None
    throttled_s: float | None = None
    pss_bytes: int | None = None
    private_bytes: int | None = None
    swap_bytes: int | None = None
    network: NetworkSample | None = None
    """The network namespace of the group, if it is separate."""
    threads_by_state: list[PoolTimes] | None = None


class CpuSample(Record):
    """Times of one CPU of the machine since boot, in seconds."""

    cpu: int
    user_s: float
    system_s: float
    idle_s: float
    iowait_s: float
    irq_s: float
    softirq_s: float
    steal_s: float


class Pressure(Record):
    """Seconds since boot in which some tasks, and in which all tasks, waited for a resource (PSI)."""

    some_s: float
    full_s: float


class Pressures(Record):
    """The resources that tasks wait for."""

    cpu: Pressure
    memory: Pressure
    io: Pressure


class ObserverCost(Record):
    """Cost of the observation itself. `thread_sweeps` is the number of sweeps that read threads."""

    cpu_s: float
    sweeps: int
    thread_sweeps: int


class Sample(Record):
    """A reading of the processes and of the machine. `network` and `pressure` are None if the reading omits them."""

    t_ns: int
    groups: list[GroupSample]
    cpus: list[CpuSample]
    network: NetworkSample | None = None
    """Counters of the host's own network namespace."""
    pressure: Pressures | None = None
    observer: ObserverCost | None = None
    limits: list[str] = Field(default_factory=list)
    """Sentences on readings that are not permitted, and on their substitutes."""
