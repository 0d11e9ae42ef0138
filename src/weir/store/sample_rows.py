"""Between the samples of `weir.model` and the columns of the run file, both ways. No SQL and no file here.

Rows are named tuples: a run has hundreds of thousands, and a dataclass takes ten times as long to make.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from weir.model.records import CpuSample, GroupSample, NetworkSample, PoolTimes, Sample

Row = tuple[Any, ...]


class SampleRow(NamedTuple):
    """One started process with everything below it, at one moment. What counts up is cumulative; proportional memory is read rarely."""

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
    """What charts draw of a `SampleRow`: of a large run it is read in half the time."""

    t_s: float
    name: str
    tier: str
    cpu_user_s: float
    cpu_system_s: float
    rss_bytes: int
    disk_read_bytes: int | None
    disk_written_bytes: int | None


class CpuSampleRow(NamedTuple):
    """One CPU of the machine at one moment, cumulative seconds since boot."""

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
    """Threads of one name at one moment: how many, and cumulative thread-seconds by what they were doing."""

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
    """One network namespace at one moment: the machine's, whose `name` is empty, or that of a group. Counts are cumulative."""

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
    """What tasks of the machine waited for (PSI, cumulative; None where the kernel keeps none) and what the observer took."""

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


TABLES: dict[str, tuple[str, ...]] = {
    "sample": SampleRow._fields,
    "cpu_sample": CpuSampleRow._fields,
    "thread_state": ThreadStateRow._fields,
    "network_sample": NetworkSampleRow._fields,
    "machine_sample": MachineSampleRow._fields,
}
"""The tables that keep samples, and their columns beside the trial."""


def rows_of(trial_id: int, t_s: float, sample: Sample) -> Iterator[tuple[str, Row]]:
    """A sample as rows: the table, and `trial_id` with the values of `TABLES`."""
    for group in sample.groups:
        yield "sample", (trial_id, t_s, *_values(group, TABLES["sample"][1:]))
        for pool in group.threads_by_state or ():
            yield "thread_state", (trial_id, t_s, group.name, group.tier, *_pool(pool))
        if group.network is not None:
            yield "network_sample", (trial_id, t_s, group.name, *_network(group.network))
    for cpu in sample.cpus:
        yield "cpu_sample", (trial_id, t_s, *_cpu(cpu))
    if sample.network is not None:
        yield "network_sample", (trial_id, t_s, "", *_network(sample.network))
    if sample.network is not None or sample.pressure is not None:
        yield "machine_sample", (trial_id, t_s, *_machine(sample))


def _values(record: GroupSample | CpuSample | PoolTimes | NetworkSample, names: tuple[str, ...]) -> Row:
    return tuple(getattr(record, name) for name in names)


def _cpu(cpu: CpuSample) -> Row:
    return _values(cpu, TABLES["cpu_sample"][1:])


def _pool(pool: PoolTimes) -> Row:
    # A thread may call itself anything: bytes that are no UTF-8 came as replacement characters.
    return _values(pool, TABLES["thread_state"][3:])


def _network(network: NetworkSample) -> Row:
    sockets = network.sockets
    return (*_values(network, TABLES["network_sample"][2:8]), sockets.established, sockets.time_wait, sockets.orphaned, sockets.in_use)


def _machine(sample: Sample) -> Row:
    pressure, observer = sample.pressure, sample.observer
    waited: Row = (None,) * 6
    if pressure is not None:
        waited = tuple(value for one in (pressure.cpu, pressure.memory, pressure.io) for value in (one.some_s, one.full_s))
    cost: Row = (None,) * 3 if observer is None else (observer.cpu_s, observer.sweeps, observer.thread_sweeps)
    return (*waited, *cost)
