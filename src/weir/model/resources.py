"""Resources that a stack's processes used in the measured window of a trial: total, by tier and by thread state."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """Threads with one name during the window."""

    tier: str
    """The tier of the threads."""
    pool: str
    """The common name of the threads, without numbers at the end."""
    threads: int
    """Threads alive at the end of the window."""
    in_state: dict[str, float]
    """A dict from state to mean number of threads (`records.THREAD_STATES`, see engine.md), without unused states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUse:
    """Changes of a network namespace's counters, from the last reading before to the first reading after the window."""

    tcp_retransmits: int
    """TCP segments sent again."""
    listen_overflows: int
    """Connections that arrived at a full accept queue."""
    listen_drops: int
    """Connections that the kernel dropped because of a full accept queue, or for another reason."""
    received_bytes: int
    """Bytes received on all interfaces except loopback."""
    sent_bytes: int
    """Bytes sent on all interfaces except loopback."""
    loopback_bytes: int
    """Bytes sent on loopback."""
    peak_sockets: dict[str, int]
    """A dict from state (`records.SocketCounts`) to maximum number of TCP sockets, read about once a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierResources:
    """Resources of the processes of one tier. An optional figure is None if weir did not or may not read it."""

    cpu_user_s: float
    """CPU time in user mode, including children that ended."""
    cpu_system_s: float
    """CPU time in the kernel."""
    peak_threads: int
    """Maximum number of threads."""
    peak_processes: int
    """Maximum number of processes."""
    pss_bytes: int | None
    """Proportional set size under load, from the last memory sweep of the window."""
    private_bytes: int | None
    """Memory that no other process shares, from the same memory sweep."""
    swap_bytes: int | None = None
    """Memory that is swapped out."""
    peak_descriptors: int | None = None
    """Maximum number of open file descriptors."""
    minor_faults: int | None = None
    """Page faults without a disk access."""
    major_faults: int | None = None
    """Page faults that waited for a disk."""
    voluntary_switches: int | None = None
    """Number of times that a thread gave up its CPU to wait."""
    involuntary_switches: int | None = None
    """Number of times that the kernel took a CPU from a thread."""
    disk_read_bytes: int | None = None
    """Bytes read from storage."""
    disk_written_bytes: int | None = None
    """Bytes that the processes wrote for storage."""
    rchar_bytes: int | None = None
    """Bytes read with read() and similar calls from files, pipes and sockets, but not with recv()."""
    wchar_bytes: int | None = None
    """Bytes written with write() and similar calls, but not with send()."""
    throttled_periods: int | None = None
    """Number of periods in which a CPU quota stopped the processes."""
    throttled_s: float | None = None
    """Time for which CPU quotas stopped the processes, added up over CPUs."""
    network: NetworkUse | None = None
    """Counters of the tier's own network namespace, or None. For the stack: the machine's namespace."""
    pools: list[PoolUse] = field(default_factory=list)
    """The threads of the tier, grouped by name."""

    @property
    def cpu_s(self) -> float:
        """CPU time in user and kernel mode, in seconds."""
        return self.cpu_user_s + self.cpu_system_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StackResources(TierResources):
    """Resources of all tiers together, and counters of the machine."""

    steal_fraction: float | None
    """Share of the stack's CPU time that the hypervisor took during the window."""
    tiers: dict[str, TierResources] = field(default_factory=dict)
    """A dict from tier to its resources, including services."""
    pressure: dict[str, float] = field(default_factory=dict)
    """Share of the time in which some task (`cpu_some`) or all tasks (`memory_full`) waited for cpu, memory or io."""
    observer_cpu_s: float | None = None
    """CPU time of the observation itself."""
    limits: list[str] = field(default_factory=list)
    """Sentences on readings that are not permitted, and on their substitutes."""

    @property
    def networks(self) -> list[NetworkUse]:
        """All network namespaces that weir read: the machine's and the tiers'."""
        found = [self.network, *(tier.network for tier in self.tiers.values())]
        return [network for network in found if network is not None]
