"""Rows of samples. Their types declare the tables of samples (`schema`); this module has no SQL and no files. A field
has the name and type of the corresponding field of the engine's record; a test compares both. Rows are named tuples: a
run has hundreds of thousands, and a dataclass takes ten times as long to make."""

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from weir.model.records import ObserverCost, Pressures, Sample, SocketCounts
from weir.store.table import Row


class SampleRow(NamedTuple):
    """One started process and its descendants at one moment. Counts are cumulative. The observer rarely reads
    proportional memory."""

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
    """The fields of `SampleRow` that charts draw. Reading only these fields takes half of the time."""

    t_s: float
    name: str
    tier: str
    cpu_user_s: float
    cpu_system_s: float
    rss_bytes: int
    disk_read_bytes: int | None
    disk_written_bytes: int | None


class CpuSampleRow(NamedTuple):
    """One CPU of the machine at one moment, in cumulative seconds since boot."""

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
    """Threads of one name at one moment: their number, and cumulative thread-seconds by state."""

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
    """The network namespace of the machine (`name` is empty) or of a process group at one moment. Counts are
    cumulative."""

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
    """The cumulative time in which tasks of the machine waited (PSI; None if the kernel has no PSI), and the observer's
    cost."""

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


# Each reads a row's fields from the engine's record in one call: samples come ten times a second.
_GROUP = attrgetter(*SampleRow._fields[1:])
_CPU = attrgetter(*CpuSampleRow._fields[1:])
_POOL = attrgetter(*ThreadStateRow._fields[3:])
_SOCKETS = {name: f"sockets.{name}" for name in SocketCounts.model_fields}
_NETWORK = attrgetter(*(_SOCKETS.get(name, name) for name in NetworkSampleRow._fields[2:]))
_PRESSURE = attrgetter(*(f"{resource}.{tasks}_s" for resource in Pressures.model_fields for tasks in ("some", "full")))
_OBSERVER = attrgetter(*ObserverCost.model_fields)
_NO_PRESSURE, _NO_OBSERVER = (None,) * 6, (None,) * 3


def split_sample(trial_id: int, t_s: float, sample: Sample) -> Iterator[tuple[str, Row]]:
    """Yields the rows of a sample: for each row the table, and `trial_id` with the fields of the table's row type."""
    for group in sample.groups:
        yield "sample", (trial_id, t_s, *_GROUP(group))
        for pool in group.threads_by_state or ():
            # The name of a thread may be any bytes; the engine has replaced those that are not UTF-8.
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
