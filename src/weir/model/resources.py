"""What a stack's processes used during the measured window of a trial: in all, by tier, and what their threads spent their time on."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """Threads of one name during the window."""

    tier: str
    """Whose they are."""
    pool: str
    """Their name, numbers at its end left out."""
    threads: int
    """Alive at the end of the window."""
    in_state: dict[str, float]
    """Mean number of threads by what they were doing, as `on_cpu` or `lock` (`records.THREAD_STATES`; engine.md says what they are);
    states in which none was are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUse:
    """What a network namespace counted from the last reading before the window to the first one after it."""

    tcp_retransmits: int
    """Segments of TCP that were sent again."""
    listen_overflows: int
    """Connections for which an accept queue had no room."""
    listen_drops: int
    """These, and those that were lost for other reasons."""
    received_bytes: int
    """On all interfaces but loopback."""
    sent_bytes: int
    """On all interfaces but loopback."""
    loopback_bytes: int
    """Sent on that one."""
    peak_sockets: dict[str, int]
    """The most TCP sockets by state, as `established` (`records.SocketCounts`), of readings about a second apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierResources:
    """What the processes of one tier used. Optional figures are None where they were not, or may not be read."""

    cpu_user_s: float
    """CPU time in their own code, children that ended included."""
    cpu_system_s: float
    """CPU time in the kernel on their behalf."""
    peak_threads: int
    """The most at a time."""
    peak_processes: int
    """The most at a time."""
    pss_bytes: int | None
    """Proportional set size under load: the last memory sweep of the window."""
    private_bytes: int | None
    """Memory that nobody else shares, of the same sweep."""
    swap_bytes: int | None = None
    """What of it is swapped out."""
    peak_descriptors: int | None = None
    """The most open file descriptors at a time."""
    minor_faults: int | None = None
    """Page faults that waited for no disk."""
    major_faults: int | None = None
    """Those that did."""
    voluntary_switches: int | None = None
    """How often a thread gave its CPU up to wait."""
    involuntary_switches: int | None = None
    """How often it was taken away."""
    disk_read_bytes: int | None = None
    """What had to come from storage."""
    disk_written_bytes: int | None = None
    """What is to go to storage."""
    rchar_bytes: int | None = None
    """Through read() and its like, files, pipes and sockets alike, but not recv()."""
    wchar_bytes: int | None = None
    """Through write() and its like, but not send()."""
    throttled_periods: int | None = None
    """How many periods a CPU quota cut short."""
    throttled_s: float | None = None
    """How long CPU quotas held the processes back, CPUs added up."""
    network: NetworkUse | None = None
    """Of a tier: its own network namespace's; None where it has none. Of the stack: that of the machine."""
    pools: list[PoolUse] = field(default_factory=list)
    """What its threads spent their time on."""

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
    """The same of each tier, services included."""
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
