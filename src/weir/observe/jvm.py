"""Reads a JVM's pauses from its unified log: garbage collections and other stops of all threads.

`add_pause_log` requests the decoration `timenanos`: a time of CLOCK_MONOTONIC, the clock of weir's records. The parser
reads the format of JDK 17 to 25 with the collectors Serial, Parallel, G1 and Z (generational or not):

    [1205619565ns][info][gc       ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 6M->3M(64M) 12.407ms
    [633359032ns][info][gc,phases ] GC(0) Y: Pause Mark End 0.014ms
    [1225568186ns][info][safepoint] Safepoint "G1CollectForAllocation", …, Reaching safepoint: 5029 ns, …, Total:
        20017277 ns

The JVM writes a line at the end of a pause. A request waits for the total time of the safepoint. The time in a garbage
collection's line is shorter, because this time excludes the wait until the last thread has stopped.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from weir.model.run_types import TrialEvent

GC_PAUSE = "gc pause"
SAFEPOINT = "safepoint"
_VARIABLE = "JAVA_TOOL_OPTIONS"
_LEAST_SAFEPOINT_S = 0.001
"""Minimum length of a stop without garbage collection, in seconds. weir ignores the many shorter stops."""

_DECORATED = re.compile(r"\[(\d+)ns\]")
_COLLECTION = re.compile(r"\] GC\(\d+\) (?:[yYoO]: )?(Pause .*\S) (\d+(?:\.\d+)?)ms$")
_STOPPED = re.compile(r'\] Safepoint "([^"]*)".* Total: *(\d+) ns')


@dataclass(frozen=True, slots=True)
class Pause:
    """A stop of all threads of a JVM. `end_ns`: time of the stop's end, on CLOCK_MONOTONIC."""

    kind: str
    """`GC_PAUSE` for a garbage collection, or `SAFEPOINT` for any other reason."""
    reason: str
    """The JVM's text, with the heap size before and after: `Pause Young (Allocation Failure) 16M->4M(61M)`."""
    end_ns: int
    duration_s: float

    @property
    def start_ns(self) -> int:
        return self.end_ns - round(self.duration_s * 1e9)


def build_pause_log_path(log: Path) -> Path:
    """Returns the path of the JVMs' pause logs, next to a process's log. Each JVM replaces `%p` by its process id."""
    return log.with_name(f"{log.stem}-gc-%p.log")


def find_pause_logs(log: Path) -> list[Path]:
    """Returns the files that JVMs wrote to `build_pause_log_path`."""
    return sorted(log.parent.glob(build_pause_log_path(log).name.replace("%p", "*")))


def add_pause_log(environment: Mapping[str, str], log: Path) -> dict[str, str]:
    """Returns `environment` with the option for a pause log. The stack's own options come later and have precedence.

    >>> add_pause_log({"JAVA_TOOL_OPTIONS": "-Xmx64m"}, Path("/gc-%p.log"))["JAVA_TOOL_OPTIONS"]
    '\\'-Xlog:gc,gc+phases,safepoint:file="/gc-%p.log":timenanos,level,tags:filecount=0\\' -Xmx64m'
    """
    # The JVM splits the variable at spaces outside of quotes.
    return {**environment, _VARIABLE: f"'{pause_log_option(log)}' {environment.get(_VARIABLE, '')}".strip()}


def pause_log_option(log: Path) -> str:
    """Returns the JVM's option for a pause log."""
    return f'-Xlog:gc,gc+phases,safepoint:file="{log}":timenanos,level,tags:filecount=0'


def parse_pauses(lines: Iterable[str]) -> Iterator[Pause]:
    """Yields the pauses of a log, sorted by end. The garbage collections of one safepoint become one pause."""
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
                yield replace(safepoint, kind=GC_PAUSE, reason="; ".join(pause.reason for pause in within))
            elif safepoint.duration_s >= _LEAST_SAFEPOINT_S:
                yield safepoint
    yield from collections


def read_pause_events(logs: Iterable[Path], *, start_ns: int, end_ns: int) -> list[TrialEvent]:
    """Returns the pauses from JVMs' logs during a load, sorted by start. `start_ns`, `end_ns`: CLOCK_MONOTONIC."""
    events = []
    for log in logs:
        lines: list[str] = []
        with suppress(OSError):
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        for pause in parse_pauses(lines):
            if pause.end_ns >= start_ns and pause.start_ns <= end_ns:
                detail = f"{pause.reason}, {pause.duration_s * 1e3:.3g} ms"
                events.append(TrialEvent((pause.start_ns - start_ns) / 1e9, pause.kind, detail, pause.duration_s))
    return sorted(events, key=lambda event: event.t_s)


def is_shared_by_jvms(path: str) -> bool:
    """Returns whether several JVMs can write to this file. A JVM publishes counters in `hsperfdata_USER/PID`, and JVMs
    in different PID namespaces can have the same PID."""
    return Path(path).parent.name.startswith("hsperfdata_")
