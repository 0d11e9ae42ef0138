"""Resources that a stack's processes used in the measured window of a trial, in total and by tier."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """All threads with one name, during the measured window."""

    tier: str
    """The tier of the threads."""
    pool: str
    """The common name of the threads, without numbers at the end."""
    threads: int
    """Threads alive at the end of the window."""
    in_state: dict[str, float]
    """A dict from state (`observer_records.THREAD_STATES`) to mean number of threads. Omits states without threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUse:
    """Growth of a network namespace's counters, from the last reading before the window to the first one after it."""

    tcp_retransmits: int
    """Number of TCP segments that the kernel sent again."""
    listen_overflows: int
    """Number of connections that arrived at a full accept queue."""
    listen_drops: int
    """Number of connections that the kernel dropped, because of a full accept queue or for another reason."""
    received_bytes: int
    """Bytes received on all interfaces except loopback."""
    sent_bytes: int
    """Bytes sent on all interfaces except loopback."""
    loopback_bytes: int
    """Bytes sent on loopback."""
    peak_sockets: dict[str, int]
    """A dict from state (`observer_records.SocketCounts`) to peak number of TCP sockets, read about once a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierResources:
    """Resources of the processes of one tier. None: weir did not read or may not read the value."""

    cpu_user_s: float
    """CPU time in user mode, including child processes that ended."""
    cpu_system_s: float
    """CPU time in the kernel."""
    peak_threads: int
    """Maximum number of threads."""
    peak_processes: int
    """Maximum number of processes."""
    pss_bytes: int | None
    """Proportional set size under load, from the last memory reading since the start of the window."""
    private_bytes: int | None
    """Memory that no other process shares, from the last memory reading since the start of the window."""
    swap_bytes: int | None = None
    """Memory that the kernel has swapped out."""
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
    """Bytes that the processes read from storage."""
    disk_written_bytes: int | None = None
    """Bytes that the processes wrote to storage."""
    rchar_bytes: int | None = None
    """Bytes read with read() and similar calls from files, pipes and sockets, but not with recv()."""
    wchar_bytes: int | None = None
    """Bytes written with write() and similar calls, but not with send()."""
    throttled_periods: int | None = None
    """Number of periods in which a CPU quota stopped the processes."""
    throttled_s: float | None = None
    """Time for which CPU quotas stopped the processes: the sum over all CPUs."""
    network: NetworkUse | None = None
    """Counters of the tier's own network namespace, if any. In `StackResources`: of the machine's namespace."""
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
    """Share of time that the hypervisor took from the stack's CPUs during the window."""
    tiers: dict[str, TierResources] = field(default_factory=dict)
    """A dict from tier to the resources of the tier. Services are tiers too."""
    pressure: dict[str, float] = field(default_factory=dict)
    """Shares of time (PSI) in which some or all tasks waited for cpu, memory or io. Examples: `cpu_some`, `io_full`."""
    observer_cpu_s: float | None = None
    """CPU time of the observation itself."""
    limits: list[str] = field(default_factory=list)
    """Sentences about values that weir may not read, and about their replacements."""

    @property
    def networks(self) -> list[NetworkUse]:
        """Counters of all network namespaces that weir read: the machine's namespace and the tiers' namespaces."""
        found = [self.network, *(tier.network for tier in self.tiers.values())]
        return [network for network in found if network is not None]
