"""Pauses of a JVM from its unified log: garbage collections and other stops of all threads, on the time axis of every other record.

The log is asked for with `logging_option`, whose decoration `timenanos` is CLOCK_MONOTONIC on Linux. What is read is what JDK 17 to 25
write with the collectors Serial, Parallel, G1 and Z (generational or not):

    [1205619565ns][info][gc       ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 6M->3M(64M) 12.407ms
    [633359032ns][info][gc,phases ] GC(0) Y: Pause Mark End 0.014ms
    [1225568186ns][info][safepoint] Safepoint "G1CollectForAllocation", …, Reaching safepoint: 5029 ns, …, Total: 20017277 ns

A line is written when its pause ends. The collector's own figure leaves out how long it took until the last thread had stopped; the
safepoint around it has that, and its total is what a request sees.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weir.model.run import TrialEvent

GC_PAUSE = "gc pause"
SAFEPOINT = "safepoint"
_VARIABLE = "JAVA_TOOL_OPTIONS"
_LEAST_SAFEPOINT_S = 0.001
"""A JVM stops its threads for many reasons; what is shorter and no collection is not worth an event."""

_DECORATED = re.compile(r"\[(\d+)ns\]")
_COLLECTION = re.compile(r"\] GC\(\d+\) (?:[yYoO]: )?(Pause .*\S) (\d+(?:\.\d+)?)ms$")
_STOPPED = re.compile(r'\] Safepoint "([^"]*)".* Total: *(\d+) ns')


@dataclass(frozen=True, slots=True)
class Pause:
    """All threads of a JVM stood still. `end_ns` is CLOCK_MONOTONIC."""

    kind: str
    """`GC_PAUSE`, or `SAFEPOINT` of another reason."""
    reason: str
    """As the JVM says it, with the heap before and after: `Pause Young (Allocation Failure) 16M->4M(61M)`."""
    end_ns: int
    duration_s: float

    @property
    def start_ns(self) -> int:
        """When the JVM began to stop its threads."""
        return self.end_ns - round(self.duration_s * 1e9)


def pause_log(log: Path) -> Path:
    """Where the JVMs of a process with this log write their pauses: beside it, a file each.

    >>> pause_log(Path("logs/trial-0001-app.log"))
    PosixPath('logs/trial-0001-app-gc-%p.log')
    """
    return log.with_name(f"{log.stem}-gc-%p.log")


def pause_logs(log: Path) -> list[Path]:
    """The files that `pause_log` became."""
    return sorted(log.parent.glob(pause_log(log).name.replace("%p", "*")))


def logging_option(log: Path) -> str:
    """The JVM's option that writes its pauses to `log`, in which `%p` becomes the JVM's process number.

    >>> logging_option(Path("/runs/gc-%p.log"))
    '-Xlog:gc,gc+phases,safepoint:file="/runs/gc-%p.log":timenanos,level,tags:filecount=0'
    """
    return f'-Xlog:gc,gc+phases,safepoint:file="{log}":timenanos,level,tags:filecount=0'


def with_pause_log(environment: Mapping[str, str], log: Path) -> dict[str, str]:
    """`environment` with the option that writes the pauses of every JVM in it to `log`; what a stack sets itself stays, and wins.

    >>> with_pause_log({"JAVA_TOOL_OPTIONS": "-Xmx64m"}, Path("/gc-%p.log"))["JAVA_TOOL_OPTIONS"]
    '\\'-Xlog:gc,gc+phases,safepoint:file="/gc-%p.log":timenanos,level,tags:filecount=0\\' -Xmx64m'
    """
    # The JVM divides the variable at spaces, but for what is quoted.
    return {**environment, _VARIABLE: f"'{logging_option(log)}' {environment.get(_VARIABLE, '')}".strip()}


def pauses(lines: Iterable[str]) -> Iterator[Pause]:
    """The pauses in a log, in the order in which they ended.

    Collections within one safepoint are told together, as long as the safepoint. Lines that are no pause are passed over.
    """
    collections: list[Pause] = []
    for line in lines:
        decorated = _DECORATED.search(line)
        if decorated is None:
            continue
        end_ns = int(decorated[1])
        if found := _COLLECTION.search(line):
            collections.append(Pause(GC_PAUSE, found[1], end_ns, float(found[2]) / 1e3))
        elif found := _STOPPED.search(line):
            safepoint = Pause(SAFEPOINT, found[1], end_ns, int(found[2]) / 1e9)
            within = [pause for pause in collections if pause.end_ns >= safepoint.start_ns]
            yield from collections[: len(collections) - len(within)]
            collections = []
            if within:
                reasons = "; ".join(pause.reason for pause in within)
                yield replace(safepoint, kind=GC_PAUSE, reason=reasons)
            elif safepoint.duration_s >= _LEAST_SAFEPOINT_S:
                yield safepoint
    yield from collections


def pause_events(logs: Sequence[Path], *, start_ns: int, end_ns: int) -> list[TrialEvent]:
    """The pauses that touch a window, from the logs of all JVMs of a stack, by the time at which they began.

    Args:
        logs: files that `with_pause_log` asked for; one that cannot be read has none.
        start_ns: start of the load, CLOCK_MONOTONIC, from which the events' times count.
        end_ns: its end.
    """
    events = []
    for log in logs:
        try:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for pause in pauses(lines):
            if pause.end_ns >= start_ns and pause.start_ns <= end_ns:
                detail = f"{pause.reason}, {pause.duration_s * 1e3:.3g} ms"
                events.append(TrialEvent((pause.start_ns - start_ns) / 1e9, pause.kind, detail, pause.duration_s))
    return sorted(events, key=lambda event: event.t_s)


def is_shared_by_jvms(path: str) -> bool:
    """Whether a file is one in which JVMs publish their counters: it is named by a process id, which is the same in many PID namespaces, so
    that what is still there may be another's."""
    return Path(path).parent.name.startswith("hsperfdata_")
