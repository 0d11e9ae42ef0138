"""What `weir-engine` writes, line by line: the records of a load and of the host's observer.

These are the types at the socket, so they are validated (pydantic) and keep the names of the JSON. Keys that this version does not
know are ignored, as the contract in `docs/reference/engine.md` asks of readers.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Validity = Literal["valid", "suspect", "invalid"]
CLOCKS = ("response_time", "service_time", "schedule_lag", "connect_time", "time_to_first_byte")
"""The clocks of a load. Each has `<clock>_us` in the summary and a histogram `<clock>_ns`."""


class Record(BaseModel):
    """A line, or a part of one."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Quantiles(Record):
    """Statistics of one clock, in microseconds; None where there are no samples."""

    mean: float | None = None
    """The arithmetic mean."""
    stdev: float | None = None
    """The standard deviation."""
    min: float | None = None
    """The shortest."""
    p50: float | None = None
    """The median: half of them took at most so long."""
    p75: float | None = None
    """75 % took at most so long."""
    p90: float | None = None
    """90 % did."""
    p95: float | None = None
    """95 % did."""
    p99: float | None = None
    """99 % did."""
    p99_9: float | None = None
    """99.9 % did."""
    p99_99: float | None = None
    """99.99 % did."""
    max: float | None = None
    """The longest."""


class RequestCounts(Record):
    """Requests, each in one place: intended = ok + failed + unanswered + unsent."""

    intended: int
    """That were due, whether they were sent or not."""
    sent: int
    """That were written."""
    completed: int
    """That got a whole answer, right or wrong: ok + `errors.check`."""
    ok: int
    """That got a right one."""
    failed: int
    """That got none, or a wrong one: the sum of `errors`."""
    unanswered: int
    """In flight when the load ended."""
    unsent: int
    """Due and not written when it ended."""


class ErrorCounts(Record):
    """Failed requests by what went wrong."""

    connect: int = 0
    """The connection could not be made, TLS included."""
    timeout: int = 0
    """No whole answer came in time."""
    reset: int = 0
    """The connection ended with the answer missing or half there."""
    protocol: int = 0
    """What came is not HTTP."""
    check: int = 0
    """A whole answer came that is not the right one."""


class ByteCounts(Record):
    """Bytes of requests and answers, heads included, without those of TLS, TCP and below."""

    sent: int = 0
    """Of requests."""
    received: int = 0
    """Of answers."""
    received_body: int = 0
    """Of the bodies of whole answers, without what frames them."""


class KernelTimestamps(Record):
    """Of how many answers the kernel's timestamp says when the last byte came, and of how many it does not."""

    used: int
    """Answers whose last byte came when the kernel says."""
    missing: int
    """Answers whose last byte came when it was read."""


class FirstAnswer(Record):
    """The first whole answer of a load."""

    status: int
    """Its status."""
    server: str = ""
    """Its Server header; empty without."""
    body_bytes: int
    """Bytes of its body."""


class RequestLogUse(Record):
    """What came of a request log."""

    records: int
    """Records in the file."""
    lost: int
    """Records that are not, since the disk did not follow or took no more. `verdict` has a reason then."""
    problem: str | None = None
    """Why it took no more."""


class GeneratorUse(Record):
    """What the generator itself used. Fractions are of the CPU time its threads could have had."""

    version: str
    """weir-engine's, or another program's name and version; empty of a load that was killed."""
    cpu_fraction: float
    """CPU time of the process."""
    busy_fraction: float | None = None
    """Time that the busiest thread spent handling events, its waiting by spinning left out. From 0.85 on the throughput may be the
    generator's."""
    peak_rss_bytes: int
    """Its resident memory, at most."""
    threads: int
    """How many carried the load."""
    cpus: list[int]
    """What they were bound to; empty: to none."""
    ceiling_rps: float | None = None
    """What it reached on a server that does nothing; None where that was not measured. `weir load` adds it."""
    kernel_timestamps: KernelTimestamps | None = None
    """None where they were not asked for."""
    clock: str | None = Field(default=None, exclude_if=lambda clock: clock is None)
    """What the response times of another program are, from when to when; None of weir's own."""


class Verdict(Record):
    """How far a result can be trusted, and why not further."""

    validity: Validity
    """`valid`: nothing speaks against the figures; `suspect`: read the reasons; `invalid`: they say nothing of the server."""
    reasons: list[str] = Field(default_factory=list)
    """A sentence each: what was found, from where on it matters, and why it probably is so."""
    kinds: list[str] = Field(default_factory=list)
    """What sort of thing each reason is; empty where nobody says."""

    @property
    def lines(self) -> list[str]:
        """What is told of it at the prompt."""
        return [f"verdict: {self.validity}", *(f"  {reason}" for reason in self.reasons)]


class Fairness(Record):
    """How many requests connections had, or users where they come and go."""

    min: int
    """That which had fewest."""
    median: float
    """The middle one."""
    max: int
    """That which had most."""


class UntilFailure(Record):
    """What was reached before the first failure."""

    requests_before: int
    """Right answers until then."""
    highest_throughput_rps: float
    """Of them, over a second of whole intervals; over the whole load if that was shorter."""
    mean_response_time_us: float | None = None
    """Theirs."""
    at_s: float | None = None
    """When it came; None: none came."""
    kind: str | None = None
    """A key of `errors`; None: none came."""


class StepSummary(Record):
    """What came of one step of a scenario."""

    sent: int
    """As in `requests`."""
    completed: int
    """As in `requests`."""
    ok: int
    """As in `requests`."""
    failed: int
    """As in `requests`."""
    response_time_us: Quantiles
    """As of the whole load."""


class SlowRequest(Record):
    """One of the slowest requests; moments since the start."""

    intended_us: float
    """When it was due."""
    written_us: float
    """When it was written."""
    first_byte_us: float
    """When its answer began."""
    last_byte_us: float
    """When that was whole."""
    status: int
    """Of the answer."""
    connection: int
    """Which one of its thread's, from 0."""


class TargetSummary(StepSummary):
    """What came of one target of several."""

    url: str
    """Where to."""


LOST_AGENT = "lost_agent"
"""The kind of the reason of a load that lost one of its agents."""
FEWER_AGENTS = "fewer_agents"
"""The kind of the reason of a load that was made without some of its agents, which were lost before it."""
LATE_AGENT = "late_agent"
"""The kind of the reason of a load that one of its agents began late."""


class AgentSummary(Record):
    """What one of several agents had of a load, on a machine of its own."""

    name: str
    """As the nodes of a cluster are called."""
    requests: RequestCounts
    """Its own."""
    throughput_rps: float
    """Its answers a second."""
    response_time_us: Quantiles
    """As it measured them, by its own clock."""
    generator: GeneratorUse
    """What it used of its machine."""
    clock_offset_us: float
    """Its monotonic clock less that of the machine that weir runs on."""
    clock_error_us: float
    """How far that may be off: half of the quickest round trip in which it was read."""
    began_late_us: float
    """From the moment agreed upon to its start, by its own clock."""


class LoadSummary(Record):
    """The JSON of one load (`weir load --json`), computed once, by the engine; what `weir load` adds is None where it is not there."""

    schema_number: int = Field(alias="schema")
    """The version of this format: 1."""
    target: str
    """The URL; of several all of them, with spaces between."""
    duration_s: float
    """The time that really passed."""
    requests: RequestCounts
    throughput_rps: float
    """`requests.completed` ÷ `duration_s`."""
    status: dict[str, int]
    """Answers by status."""
    errors: ErrorCounts
    response_time_us: Quantiles
    """From the moment a request was due to the last byte of its answer, in microseconds; of completed requests, as in every clock below."""
    service_time_us: Quantiles
    """From the moment it was written to the last byte."""
    schedule_lag_us: Quantiles
    """From the moment it was due to the moment it was written."""
    connect_time_us: Quantiles
    """How long making a connection took."""
    tls_handshake_us: Quantiles | None = None
    """From the connection to the end of its handshake; None without TLS."""
    time_to_first_byte_us: Quantiles
    """From the moment it was written to the first byte of the answer."""
    read_time_us: Quantiles | None = None
    """From the first byte of an answer to the last: mean, min and max alone; None where nobody says."""
    bytes: ByteCounts
    first_answer: FirstAnswer | None = None
    """None where none came, or nobody says."""
    other_length: int = 0
    """Answers whose body is not as long as that of the first."""
    generator: GeneratorUse
    fairness: Fairness | None = None
    until_failure: UntilFailure | None = None
    """With `--until-failure`, otherwise None."""
    steps: dict[str, StepSummary] | None = Field(default=None, exclude_if=lambda steps: steps is None)
    """By name; None without a scenario."""
    targets: list[TargetSummary] | None = Field(default=None, exclude_if=lambda targets: targets is None)
    """In the order of the plan; None where there is one."""
    request_log: RequestLogUse | None = Field(default=None, exclude_if=lambda log: log is None)
    """None where none was asked for."""
    agents: list[AgentSummary] | None = Field(default=None, exclude_if=lambda agents: agents is None)
    """What each had of the load, where several shared it; None of one engine."""
    verdict: Verdict
    slowest: list[SlowRequest] | None = Field(default=None, exclude_if=lambda slowest: slowest is None)
    """The ten with the longest response times, the slowest first."""
    objectives: list[dict[str, Any]] | None = Field(default=None, exclude_if=lambda objectives: objectives is None)
    """What was asked of the load with what was found; None where nothing was."""
    aborted: dict[str, Any] | None = Field(default=None, exclude_if=lambda aborted: aborted is None)
    """Why the load was stopped early, in the same form; None where it was not."""

    @property
    def limit_sentence(self) -> str:
        """What the throughput is held against where the generator may be the limit; nothing where its ceiling was not measured."""
        ceiling, reached = self.generator.ceiling_rps, self.throughput_rps
        if not ceiling:
            return ""
        nothing = "that it reaches on a server that does nothing"
        if reached >= ceiling:
            return f"the generator is the limit: {reached:,.0f} requests/s, no fewer than the {ceiling:,.0f} {nothing}"
        return f"the generator may be the limit: {reached:,.0f} requests/s of at most {ceiling:,.0f} {nothing}"


class LoadReady(Record):
    """`ready`: the connections of a load that is held are open."""

    connected: int
    soonest_monotonic_ns: int
    """When it could begin."""


class LoadStarted(Record):
    """`hello` of a load: the clock has started."""

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
    """Response time within one interval, in microseconds; None where nothing completed."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class Interval(Record):
    """What the generator saw in one slice of time, by completion time."""

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
    """Response times in nanoseconds, HdrHistogram V2 in base64."""


class LoadEvent(Record):
    """Something worth telling that happened during a load."""

    t_s: float
    kind: str
    detail: str


class LoadEnd(Record):
    """`end` of a load."""

    stopped: str
    summary: LoadSummary
    histograms: dict[str, str]
    slowest: list[SlowRequest] = Field(default_factory=list)


THREAD_STATES = ("on_cpu", "runnable", "socket_io", "event_wait", "lock", "accept", "disk", "sleep", "other")
"""What a thread's time goes to. Each has `<state>_s` in `PoolTimes`."""
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
"""What people read of them: where a thread is."""


class PoolTimes(Record):
    """Threads of one name: how many are alive, and thread-seconds by what they were doing, since the observation began."""

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
    """TCP sockets by state; `in_use` is every one but those in time-wait."""

    established: int
    time_wait: int
    orphaned: int
    in_use: int


class NetworkSample(Record):
    """One network namespace; counts are since it began."""

    tcp_retransmits: int
    listen_overflows: int
    listen_drops: int
    sockets: SocketCounts
    received_bytes: int
    sent_bytes: int
    loopback_bytes: int


class GroupSample(Record):
    """One started process and everything below it.

    What counts up is cumulative and covers children that ended. None: not allowed to be read; of memory, faults, `network` and
    `threads_by_state` also: not read in this sample. `docs/reference/engine.md` tells what each is.
    """

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
    """Of the group's own network namespace."""
    threads_by_state: list[PoolTimes] | None = None


class CpuSample(Record):
    """One CPU of the machine since boot, in seconds."""

    cpu: int
    user_s: float
    system_s: float
    idle_s: float
    iowait_s: float
    irq_s: float
    softirq_s: float
    steal_s: float


class Pressure(Record):
    """How long some task, and all tasks, waited for a resource (PSI), since boot."""

    some_s: float
    full_s: float


class Pressures(Record):
    """The resources that tasks wait for."""

    cpu: Pressure
    memory: Pressure
    io: Pressure


class ObserverCost(Record):
    """What the observing itself has cost; threads are looked at in `thread_sweeps` of all sweeps."""

    cpu_s: float
    sweeps: int
    thread_sweeps: int


class Sample(Record):
    """A reading of the processes and of the machine. `network` and `pressure` are None where they were not read in it."""

    t_ns: int
    groups: list[GroupSample]
    cpus: list[CpuSample]
    network: NetworkSample | None = None
    """Of the host's own network namespace."""
    pressure: Pressures | None = None
    observer: ObserverCost | None = None
    limits: list[str] = Field(default_factory=list)
    """What may not be read and what stands in for it, in sentences."""
