"""Records of the observer: samples of processes and of the machine."""

from dataclasses import field

from weir.model.records import Record

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
"""A dict from thread state to description. Each state has a field `<state>_s` in `PoolTimes`."""
THREAD_STATES = tuple(THREAD_STATE_WORDS)


class PoolTimes(Record):
    """All threads with one name. Times are sums over these threads since the observation began, in seconds."""

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
    """Number of TCP sockets in each state. `in_use` counts all sockets except sockets in time-wait."""

    established: int
    time_wait: int
    orphaned: int
    in_use: int


class NetworkSample(Record):
    """Counters of one network namespace since its creation. `sockets` counts the sockets at this moment."""

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
    """Counters of the group's own network namespace. None if the group shares a namespace."""
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
    """Pressure on a resource since boot (PSI). `some_s`: seconds in which at least one task waited for the resource.
    `full_s`: seconds in which all tasks waited."""

    some_s: float
    full_s: float


class Pressures(Record):
    """Pressure on each resource of the machine."""

    cpu: Pressure
    memory: Pressure
    io: Pressure


class ObserverCost(Record):
    """Cost of the observation. `sweeps`: readings of the processes. `thread_sweeps`: readings that include threads."""

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
    limits: list[str] = field(default_factory=list)
    """Sentences about values that the host may not read, and about their replacements."""
