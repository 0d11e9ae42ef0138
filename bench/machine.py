"""The machine that a benchmark runs on: its CPUs, what it is, and running a program on one CPU with its use of CPU and
memory read off."""

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

# First what scripts/bench-peers installs, whose versions are known.
SEARCH_PATH = os.pathsep.join(
    [str(find_cache_folder() / "bench-peers" / "bin"), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]
)
# Beyond the time that a program was told to take: after that it hangs.
PATIENCE_S = 30.0
MEMORY_PERIOD_MS = 100


WEIR = Path(sys.executable).with_name("weir")
"""The command of this environment."""


class BenchError(Exception):
    """What the person at the prompt must know or do before the benchmark can run."""


def program(command: str, package: str) -> str:
    """The path of a program, or how to get it."""
    path = shutil.which(command, path=SEARCH_PATH)
    if path is None:
        raise BenchError(f"{command} is not installed (Debian: apt-get install {package})")
    return path


@dataclass(frozen=True, slots=True)
class Placement:
    """One CPU for what is measured against, another for what measures."""

    server: int
    load: int


def placement() -> Placement:
    """The last CPU for the server; the first for the load, where interrupts usually go as well."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise BenchError(
            f"the benchmark needs two CPUs, one for the server and one for the load; this process may use {len(cpus)}"
        )
    return Placement(server=cpus[-1], load=cpus[0])


def built(name: str) -> Path:
    """A program of this workspace that `make bench` has built."""
    target = os.environ.get("CARGO_TARGET_DIR")
    path = (Path(target) if target else Path(__file__).resolve().parent.parent / "target") / "release" / name
    if not path.is_file():
        raise BenchError(f"{name} is not built: cargo build --release --package {name}")
    return path


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program printed, and the CPU and memory it used."""

    output: str
    cpu_user_s: float
    cpu_system_s: float
    peak_rss_bytes: int | None
    """As it was last seen, ten times a second: what the kernel tells at the end includes what Python held when it
    forked."""


def run_on(cpu: int, command: Sequence[str | Path], folder: Path, duration_s: float) -> Finished:
    """Run `command`, which should take `duration_s`, on `cpu` to its end. It does not outlive this call, whatever ends
    it.

    Its output goes to a file, so that nobody reads along while it measures.
    """
    name = Path(command[0]).name
    output_path, error_path = folder / "output", folder / "error"
    with output_path.open("wb") as output, error_path.open("wb") as error:
        process = subprocess.Popen(
            ["taskset", "--cpu-list", str(cpu), *command], stdin=subprocess.DEVNULL, stdout=output, stderr=error
        )
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
    """Wait for the end of a process without reaping it; gives the most memory it had."""
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
    """How much of their time the CPUs of a placement have nothing to do, from its making until it is asked."""

    def __init__(self, cpus: Placement) -> None:
        self._cpus = cpus
        self._at = time.monotonic()
        self._idle_s = self._read()

    def fractions(self) -> tuple[float, float]:
        """Of the load's CPU and of the server's. The kernel counts in ticks of 10 ms."""
        length_s = time.monotonic() - self._at
        load, server = (min(1.0, (now - then) / length_s) for now, then in zip(self._read(), self._idle_s, strict=True))
        return load, server

    def _read(self) -> list[float]:
        ticks = {}
        for line in Path("/proc/stat").read_text().splitlines():
            name, *counts = line.split()
            if name.startswith("cpu"):
                # Idle, and idle while a disk is waited for.
                ticks[name] = int(counts[3]) + int(counts[4])
        return [ticks[f"cpu{cpu}"] / os.sysconf("SC_CLK_TCK") for cpu in (self._cpus.load, self._cpus.server)]


@dataclass(frozen=True, slots=True)
class Taken:
    """CPU time that others took, other virtual machines included, and what all CPUs had to give meanwhile."""

    others_s: float = 0.0
    capacity_s: float = 0.0

    @property
    def fraction(self) -> float:
        """The others' part of it all."""
        return self.others_s / self.capacity_s if self.capacity_s else 0.0

    def __add__(self, other: "Taken") -> "Taken":
        return Taken(self.others_s + other.others_s, self.capacity_s + other.capacity_s)


class OtherLoad:
    """How much of the machine went to processes that are not ours, from its making until it is asked.

    Every process's CPU time is added up, with that of the children it has reaped: an ended process's time moves to its
    parent and stays in the sum. Left out are this process with all that it started, and the kernel's threads, which
    work for whoever causes interrupts.
    """

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._used_s = self._read()

    def taken(self) -> Taken:
        """What others took until now."""
        used_s = self._read() - self._used_s
        return Taken(max(0.0, used_s), (time.monotonic() - self._at) * (os.cpu_count() or 1))

    @staticmethod
    def _read() -> float:
        parents, ticks = {}, {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                # After the command's name, which may hold spaces: state, parent, … user, system, reaped user, reaped
                # system.
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # ended meanwhile
            process = int(path.parent.name)
            parents[process] = int(fields[1])
            ticks[process] = sum(int(field) for field in fields[11:15])
        left_out = {2, os.getpid()}
        others_ticks = sum(ticks[process] for process in parents if left_out.isdisjoint(_line(process, parents)))
        stolen_ticks = int(Path("/proc/stat").read_text().split(maxsplit=9)[8])
        return (others_ticks + stolen_ticks) / os.sysconf("SC_CLK_TCK")


def _line(process: int, parents: Mapping[int, int]) -> Iterator[int]:
    """A process, its parent, and so on."""
    while process:
        yield process
        process = parents.get(process, 0)


def facts() -> list[str]:
    """What a reader must know of the machine to judge the numbers; nothing that says whose it is."""
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
