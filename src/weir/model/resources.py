"""What a stack's processes used during the measured window of a trial: in all, by tier, and what their threads spent their time on."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """Threads of one name during the window."""

    tier: str
    pool: str
    threads: int
    """Alive at the end of the window."""
    in_state: dict[str, float]
    """Mean number of threads by what they were doing (`records.THREAD_STATES`); states in which none was are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUse:
    """What a network namespace counted from the last reading before the window to the first one after it."""

    tcp_retransmits: int
    listen_overflows: int
    listen_drops: int
    received_bytes: int
    sent_bytes: int
    loopback_bytes: int
    peak_sockets: dict[str, int]
    """The most TCP sockets by state (`records.SocketCounts`), of readings about a second apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierResources:
    """What the processes of one tier used. Optional figures are None where they were not, or may not be read."""

    cpu_user_s: float
    cpu_system_s: float
    peak_threads: int
    peak_processes: int
    pss_bytes: int | None
    """Proportional set size under load: the last memory sweep of the window."""
    private_bytes: int | None
    swap_bytes: int | None = None
    peak_descriptors: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    disk_read_bytes: int | None = None
    disk_written_bytes: int | None = None
    rchar_bytes: int | None = None
    """Through read() and its like, files, pipes and sockets alike, but not recv()."""
    wchar_bytes: int | None = None
    """Through write() and its like, but not send()."""
    throttled_periods: int | None = None
    throttled_s: float | None = None
    """How long CPU quotas held the processes back, CPUs added up."""
    network: NetworkUse | None = None
    """Of a tier: its own network namespace's; None where it has none. Of the stack: that of the machine."""
    pools: list[PoolUse] = field(default_factory=list)

    @property
    def cpu_s(self) -> float:
        """User and system time."""
        return self.cpu_user_s + self.cpu_system_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StackResources(TierResources):
    """What all tiers together used, and what the machine around them counted."""

    steal_fraction: float | None
    """Share of the stack's CPUs that the hypervisor gave away during the window."""
    tiers: dict[str, TierResources] = field(default_factory=dict)
    pressure: dict[str, float] = field(default_factory=dict)
    """Share of the time in which some task (`cpu_some`) or all tasks (`memory_full`) of the machine waited for cpu, memory or io."""
    observer_cpu_s: float | None = None
    """What the observing itself took."""
    limits: list[str] = field(default_factory=list)
    """What might not be read and what stands in for it, in sentences."""

    @property
    def networks(self) -> list[NetworkUse]:
        """Every network namespace that was read: the machine's, and those of tiers that have one of their own."""
        found = [self.network, *(tier.network for tier in self.tiers.values())]
        return [network for network in found if network is not None]
