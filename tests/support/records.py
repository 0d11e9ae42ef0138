"""Records of a load and of its observer in the engine's form, for tests of their live use."""

from collections.abc import Mapping, Sequence

from weir.model.hdr import Hdr
from weir.model.load_records import ErrorCounts, Interval, IntervalQuantiles, LoadStarted
from weir.model.observer_records import GroupSample, PoolTimes, Sample


def interval(
    index: int,
    times_ms: Sequence[float] = (),
    *,
    length_s: float = 0.1,
    in_flight: int = 3,
    queued: int = 0,
    errors: Mapping[str, int] | None = None,
) -> Interval:
    """Returns an interval with these response times."""
    histogram = Hdr()
    for time_ms in times_ms:
        histogram.add(int(time_ms * 1e6))
    kinds = ErrorCounts(**(errors or {}))
    return Interval(
        index=index, start_s=index * length_s, end_s=(index + 1) * length_s, due=0, sent=0, completed=len(times_ms), ok=len(times_ms),
        failed=sum(kinds.occurred.values()), errors=kinds, in_flight=in_flight, queued=queued, oldest_age_us=1500.0,
        response_time_us=IntervalQuantiles(max=max(times_ms) * 1e3 if times_ms else None),
        histogram=histogram.to_text(),
    )  # fmt: skip


def started(monotonic_ns: int = 0) -> LoadStarted:
    """Returns the record of a load's start."""
    return LoadStarted(
        version="0",
        pid=1,
        backend="epoll",
        wait="sleep",
        threads=1,
        cpus=[0],
        connected=1,
        start_monotonic_ns=monotonic_ns,
        start_unix_ns=0,
    )


def group(
    name: str = "app",
    *,
    tier: str = "app",
    cpu_s: float = 0.0,
    threads: int = 1,
    pools: Mapping[str, float] | None = None,
) -> GroupSample:
    """Returns a process with this CPU time. Each of `pools` has one thread that waited for events for the given
    seconds."""
    nothing = dict.fromkeys(
        ("on_cpu_s", "runnable_s", "socket_io_s", "lock_s", "accept_s", "disk_s", "sleep_s", "other_s"), 0.0
    )
    times = (
        None
        if pools is None
        else [PoolTimes(pool=pool, threads=1, event_wait_s=spent_s, **nothing) for pool, spent_s in pools.items()]
    )
    return GroupSample(
        name=name,
        tier=tier,
        processes=1,
        threads=threads,
        cpu_user_s=cpu_s,
        cpu_system_s=0.0,
        rss_bytes=30_000_000,
        threads_by_state=times,
    )


def sample(t_s: float, *groups: GroupSample) -> Sample:
    """Returns a sample of these groups."""
    return Sample(t_ns=round(t_s * 1e9), groups=list(groups), cpus=[])
