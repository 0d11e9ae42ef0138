"""Row types for samples. `schema` derives tables from these types. Each field has the name and type of a field in the
engine's record; a test compares row types and record. Rows are named tuples, because a run has hundreds of thousands of
rows. Creating a dataclass object would take ten times as long."""

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from weir.model.observer_records import ObserverCost, Pressures, Sample, SocketCounts
from weir.store.table import Row


class SampleRow(NamedTuple):
    """Resource usage of one process group (a started process and its descendants) at one moment. Counts are cumulative.
    Most samples have no PSS."""

    t_s: float
    name: str
    tier: str
    processes: int
    threads: int
    cpu_user_s: float
    cpu_system_s: float
    rss_bytes: int
    pss_bytes: int | None
    private_bytes: int | None
    swap_bytes: int | None
    minor_faults: int | None
    major_faults: int | None
    voluntary_switches: int
    involuntary_switches: int
    descriptors: int | None
    disk_read_bytes: int | None
    disk_written_bytes: int | None
    rchar_bytes: int | None
    wchar_bytes: int | None
    throttled_periods: int | None
    throttled_s: float | None


class UseRow(NamedTuple):
    """The fields of `SampleRow` for charts. Reading these fields takes half the time of reading a `SampleRow`."""

    t_s: float
    name: str
    tier: str
    cpu_user_s: float
    cpu_system_s: float
    rss_bytes: int
    disk_read_bytes: int | None
    disk_written_bytes: int | None


class CpuUseRow(NamedTuple):
    """Sums of the fields of `CpuSampleRow` for charts, with fewer values to read."""

    t_s: float
    cpu: int
    worked_s: float
    """Time of user, system and interrupts."""
    total_s: float
    """`worked_s`, and the time when the CPU was idle, waited for I/O, or was taken by the hypervisor."""
    steal_s: float


class CpuSampleRow(NamedTuple):
    """Cumulative times of one CPU since boot, in seconds, at one moment."""

    t_s: float
    cpu: int
    user_s: float
    system_s: float
    idle_s: float
    iowait_s: float
    irq_s: float
    softirq_s: float
    steal_s: float


class ThreadStateRow(NamedTuple):
    """Threads of one name in one process group, at one moment: number, and cumulative seconds by state."""

    t_s: float
    name: str
    tier: str
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


class NetworkSampleRow(NamedTuple):
    """Counters and numbers of sockets of a network namespace at one moment. `name`: process group of the namespace;
    empty for the machine's namespace. Counters are cumulative."""

    t_s: float
    name: str
    tcp_retransmits: int
    listen_overflows: int
    listen_drops: int
    received_bytes: int
    sent_bytes: int
    loopback_bytes: int
    established: int
    time_wait: int
    orphaned: int
    in_use: int


class MachineSampleRow(NamedTuple):
    """Cumulative seconds in which tasks of the machine waited for CPU, memory or I/O, and the observer's cost. Waiting
    times are None if the kernel does not support PSI."""

    t_s: float
    cpu_some_s: float | None
    cpu_full_s: float | None
    memory_some_s: float | None
    memory_full_s: float | None
    io_some_s: float | None
    io_full_s: float | None
    observer_cpu_s: float | None
    sweeps: int | None
    thread_sweeps: int | None


# Each getter reads all fields of a row in one call, because samples come ten times a second.
_GROUP = attrgetter(*SampleRow._fields[1:])
_CPU = attrgetter(*CpuSampleRow._fields[1:])
_POOL = attrgetter(*ThreadStateRow._fields[3:])
_SOCKETS = {name: f"sockets.{name}" for name in SocketCounts.names()}
_NETWORK = attrgetter(*(_SOCKETS.get(name, name) for name in NetworkSampleRow._fields[2:]))
_PRESSURE = attrgetter(*(f"{resource}.{tasks}_s" for resource in Pressures.names() for tasks in ("some", "full")))
_OBSERVER = attrgetter(*ObserverCost.names())
_NO_PRESSURE, _NO_OBSERVER = (None,) * 6, (None,) * 3


def split_sample(trial_id: int, t_s: float, sample: Sample) -> Iterator[tuple[str, Row]]:
    """Yields the rows of a sample, each with a table's name. A row has `trial_id` and the fields of a row type."""
    for group in sample.groups:
        yield "sample", (trial_id, t_s, *_GROUP(group))
        for pool in group.threads_by_state or ():
            # A thread's name may contain any bytes. The engine has replaced bytes that are not UTF-8.
            yield "thread_state", (trial_id, t_s, group.name, group.tier, *_POOL(pool))
        if group.network is not None:
            yield "network_sample", (trial_id, t_s, group.name, *_NETWORK(group.network))
    for cpu in sample.cpus:
        yield "cpu_sample", (trial_id, t_s, *_CPU(cpu))
    if sample.network is not None:
        yield "network_sample", (trial_id, t_s, "", *_NETWORK(sample.network))
    if sample.network is not None or sample.pressure is not None:
        waited = _NO_PRESSURE if sample.pressure is None else _PRESSURE(sample.pressure)
        cost = _NO_OBSERVER if sample.observer is None else _OBSERVER(sample.observer)
        yield "machine_sample", (trial_id, t_s, *waited, *cost)
