"""The machine of a benchmark: its CPUs, its description, and programs that run on one CPU with measured CPU and
memory."""

import os
import platform
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.paths import find_cache_folder

# The folder of scripts/bench-peers comes first, because the versions of its programs are known.
SEARCH_PATH = os.pathsep.join(
    [str(find_cache_folder() / "bench-peers" / "bin"), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]
)
# A program that has not ended this long after its planned end hangs.
PATIENCE_S = 30.0
MEMORY_PERIOD_MS = 100


WEIR = Path(sys.executable).with_name("weir")
"""The `weir` command of this environment."""


class BenchError(Exception):
    """A problem that ends a measurement; the message tells the user what to do."""


def program(command: str, package: str) -> str:
    """Returns the path of a program. Raises BenchError with the Debian package if the program is missing."""
    path = shutil.which(command, path=SEARCH_PATH)
    if path is None:
        raise BenchError(f"{command} is not installed (Debian: apt-get install {package})")
    return path


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPU of the server and the CPU of the load."""

    server: int
    load: int


def placement() -> Placement:
    """Returns the last CPU for the server and the first CPU, which usually handles the interrupts, for the load."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise BenchError(
            f"the benchmark needs two CPUs, one for the server and one for the load; this process may use {len(cpus)}"
        )
    return Placement(server=cpus[-1], load=cpus[0])


def built(name: str) -> Path:
    """Returns the path of a program that `make bench` has built. Raises BenchError if the file is missing."""
    target = os.environ.get("CARGO_TARGET_DIR")
    path = (Path(target) if target else Path(__file__).resolve().parent.parent / "target") / "release" / name
    if not path.is_file():
        raise BenchError(f"{name} is not built: cargo build --release --package {name}")
    return path


@dataclass(frozen=True, slots=True)
class Finished:
    """A program's output, with its CPU time and peak memory."""

    output: str
    cpu_user_s: float
    cpu_system_s: float
    peak_rss_bytes: int | None
    """Peak memory, read ten times a second: the kernel's figure at the end includes Python's memory before the fork."""


def run_on(cpu: int | None, command: Sequence[str | Path], folder: Path, duration_s: float) -> Finished:
    """Runs `command` on `cpu`, or on any CPU, to its end. The process never outlives this call.

    The output goes to a file, so that no reader takes CPU time meanwhile. Raises BenchError if the command fails or
    takes much longer than `duration_s`.
    """
    name = Path(command[0]).name
    pinned = [] if cpu is None else ["taskset", "--cpu-list", str(cpu)]
    output_path, error_path = folder / "output", folder / "error"
    with output_path.open("wb") as output, error_path.open("wb") as error:
        process = subprocess.Popen([*pinned, *command], stdin=subprocess.DEVNULL, stdout=output, stderr=error)
        try:
            peak_rss_bytes = _watch(process.pid, duration_s + PATIENCE_S)
            _, status, usage = os.wait4(process.pid, 0)
        except TimeoutError:
            process.kill()
            process.wait()
            raise BenchError(f"{name} did not end within {PATIENCE_S:g} s of its time") from None
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        text = error_path.read_text(errors="replace") or output_path.read_text(errors="replace")
        raise BenchError(f"{name} ended with exit code {process.returncode}: {' '.join(text.split())[-300:]}")
    return Finished(output_path.read_text(), usage.ru_utime, usage.ru_stime, peak_rss_bytes)


def _watch(pid: int, limit_s: float) -> int | None:
    """Waits until a process ends, without reaping it; returns its peak memory in bytes."""
    deadline = time.monotonic() + limit_s
    peak_rss_bytes = None
    descriptor = os.pidfd_open(pid)
    try:
        end = select.poll()
        end.register(descriptor, select.POLLIN)
        while not end.poll(MEMORY_PERIOD_MS):
            status = Path(f"/proc/{pid}/status").read_text()
            if peak := re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE):
                peak_rss_bytes = int(peak.group(1)) * 1024
            if time.monotonic() > deadline:
                raise TimeoutError
    finally:
        os.close(descriptor)
    return peak_rss_bytes


class Idleness:
    """The idle time of a placement's CPUs since this object was created."""

    def __init__(self, cpus: Placement) -> None:
        self._cpus = cpus
        self._at = time.monotonic()
        self._idle_s = self._read()

    def fractions(self) -> tuple[float, float]:
        """Returns the idle fractions of the load's CPU and of the server's CPU. The kernel counts in ticks of 10 ms."""
        length_s = time.monotonic() - self._at
        load, server = (min(1.0, (now - then) / length_s) for now, then in zip(self._read(), self._idle_s, strict=True))
        return load, server

    def _read(self) -> list[float]:
        ticks = {}
        for line in Path("/proc/stat").read_text().splitlines():
            name, *counts = line.split()
            if name.startswith("cpu"):
                # Idle time without and with a pending disk request.
                ticks[name] = int(counts[3]) + int(counts[4])
        return [ticks[f"cpu{cpu}"] / os.sysconf("SC_CLK_TCK") for cpu in (self._cpus.load, self._cpus.server)]


@dataclass(frozen=True, slots=True)
class Taken:
    """CPU seconds that other processes and virtual machines took, and the seconds that all CPUs had."""

    others_s: float = 0.0
    capacity_s: float = 0.0

    @property
    def fraction(self) -> float:
        """The others' share of all CPU time."""
        return self.others_s / self.capacity_s if self.capacity_s else 0.0

    def __add__(self, other: "Taken") -> "Taken":
        return Taken(self.others_s + other.others_s, self.capacity_s + other.capacity_s)


class OtherLoad:
    """The CPU time of processes outside the benchmark since this object was created.

    The sum includes the reaped children of every process, so the time of an ended process stays in the sum. The sum
    leaves out this process with its descendants, and the kernel's threads, which may work for them.
    """

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._used_s = self._read()

    def taken(self) -> Taken:
        """Returns the CPU time of others until now."""
        used_s = self._read() - self._used_s
        return Taken(max(0.0, used_s), (time.monotonic() - self._at) * (os.cpu_count() or 1))

    @staticmethod
    def _read() -> float:
        parents, ticks = {}, {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                # Fields after the command's name, which may contain spaces: state, parent, …, user, system, reaped
                # user, reaped system.
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # the process has ended
            process = int(path.parent.name)
            parents[process] = int(fields[1])
            ticks[process] = sum(int(field) for field in fields[11:15])
        left_out = {2, os.getpid()}
        others_ticks = sum(ticks[process] for process in parents if left_out.isdisjoint(_line(process, parents)))
        stolen_ticks = int(Path("/proc/stat").read_text().split(maxsplit=9)[8])
        return (others_ticks + stolen_ticks) / os.sysconf("SC_CLK_TCK")


def _line(process: int, parents: Mapping[int, int]) -> Iterator[int]:
    """Yields a process id, its parent's id, and so on."""
    while process:
        yield process
        process = parents.get(process, 0)


def facts() -> list[str]:
    """Returns the facts that a reader needs to judge the figures; no fact identifies the machine's owner."""
    return [
        f"CPU: {_cpu_model()}, {len(os.sched_getaffinity(0))} CPUs{_hypervisor()}",
        f"memory: {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        f"kernel: {platform.system()} {platform.release()}",
    ]


def _cpu_model() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match.group(1) if match else platform.machine()


def _hypervisor() -> str:
    return (
        ", virtual machine"
        if re.search(r"^flags\s*:.*\bhypervisor\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        else ""
    )
