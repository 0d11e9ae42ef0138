"""Collects facts about a run's machine for the run file. The facts do not identify the machine."""

import os
import platform
import resource
from pathlib import Path
from typing import Any

from weir.lab.jit_priority import can_raise_priority


def describe_environment() -> dict[str, Any]:
    """Returns the facts of `describe_machine`, the C library, and whether JVM compilers get priority in warm-ups."""
    return {**describe_machine(), "libc": " ".join(platform.libc_ver()), "compilers_first": can_raise_priority()}


def describe_machine() -> dict[str, Any]:
    """Returns facts about kernel, CPUs, memory, limits and load average. Starts no process."""
    memory = _field(Path("/proc/meminfo"), "MemTotal")
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cpu_model": _field(Path("/proc/cpuinfo"), "model name") or platform.processor(),
        "cpus": os.cpu_count(),
        "cpus_available": sorted(os.sched_getaffinity(0)),
        "hypervisor": "hypervisor" in (_field(Path("/proc/cpuinfo"), "flags") or "").split(),
        "governor": _text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        "memory_bytes": int(memory.split()[0]) * 1024 if memory else None,
        "open_files_limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "listen_backlog_limit": _text(Path("/proc/sys/net/core/somaxconn")),
        "local_ports": _text(Path("/proc/sys/net/ipv4/ip_local_port_range")),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def _field(path: Path, name: str) -> str | None:
    for line in (_text(path) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
