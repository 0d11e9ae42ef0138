"""Compares the needs of a study's cells with the machine's resources, before weir starts any process."""

import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import UsageError
from weir.model.run_types import Placement
from weir.stacks.unmanaged import ExternalStack
from weir.study.study import PlannedCell, Study

SPARE_FILES = 64
"""Assumed number of a process's open files without connections: libraries, logs, pipes, the listening socket."""


@dataclass(frozen=True, slots=True)
class MachineResources:
    """Memory of a machine, and its limits for files and ports."""

    memory_bytes: int
    """Memory available without swapping."""
    open_files: int
    """Soft limit of open files, which applies to servers."""
    most_open_files: int
    """Hard limit of open files. The generator raises its own soft limit to this value."""
    local_ports: int
    """Maximum number of connections from one address to one server."""


def read_machine() -> MachineResources:
    """Reads the resources of this machine from the kernel."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return MachineResources(
        memory_bytes=int(fields["MemAvailable"].split()[0]) * 1024,
        open_files=1 << 30 if soft == unlimited else soft,
        most_open_files=1 << 30 if hard == unlimited else hard,
        local_ports=int(high) - int(low) + 1,
    )


def find_shortages(
    cells: Sequence[PlannedCell],
    machine: MachineResources,
    placement: Placement,
    *,
    memory_bytes: Mapping[str, int] | None = None,
) -> list[str]:
    """Returns a sentence for each insufficient resource, with the cell that needs most. `memory_bytes`: a dict from a
    stack's label to one process's measured memory. Without a measurement, weir uses the memory limit in `placement`."""
    return [
        *_find_connection_shortages(cells, machine),
        *_find_memory_shortages(cells, machine, placement, memory_bytes or {}),
    ]


def find_missing_generators(study: Study) -> list[str]:
    """Returns a sentence for each generator of the study that is not installed."""
    return [f"{study.place}matrix.generators: {why}" for why in study.missing_generators().values()]


def require_generators(study: Study) -> None:
    """Raises UsageError if a generator of the study is not installed."""
    if found := find_missing_generators(study):
        hint = "use --skip-missing to omit what this machine cannot run"
        raise UsageError("\n".join(found), hint=hint)


def require_resources(cells: Sequence[PlannedCell], machine: MachineResources, placement: Placement) -> None:
    """Raises UsageError if a machine's resource is insufficient for a cell."""
    if found := find_shortages(cells, machine, placement):
        raise UsageError("\n".join(found), hint="choose fewer connections or processes, or raise the limit")


def _find_connection_shortages(cells: Sequence[PlannedCell], machine: MachineResources) -> Iterator[str]:
    most = max(cells, key=lambda one: one.cell.load.connections)
    files = most.cell.load.connections + SPARE_FILES
    if files > machine.most_open_files:
        found = (
            f"{files:,} files of the generator for {most.cell.load.connections:,} connections ({most.cell.point_label})"
        )
        yield f"open files: found {found}; expected at most {machine.most_open_files:,} (ulimit -Hn)"
    started = [one for one in cells if not isinstance(one.stack, ExternalStack)]
    fullest = max(started, key=_count_connections_each, default=None)
    if fullest is not None and (files := _count_connections_each(fullest) + SPARE_FILES) > machine.open_files:
        process = f"a process of {fullest.name} ({fullest.cell.point_label})"
        found = f"{_count_connections_each(fullest):,} connections to {process}, which opens {files:,} files"
        yield f"open files: found {found}; expected at most {machine.open_files:,} (ulimit -n)"
    fullest = max(cells, key=_count_connections_each)
    if (each := _count_connections_each(fullest)) > machine.local_ports:
        ports = f"{machine.local_ports:,}, the local ports of one address (/proc/sys/net/ipv4/ip_local_port_range)"
        yield f"ports: found {each:,} connections to one server ({fullest.cell.point_label}); expected at most {ports}"


def _find_memory_shortages(
    cells: Sequence[PlannedCell], machine: MachineResources, placement: Placement, memory_bytes: Mapping[str, int]
) -> Iterator[str]:
    def each(planned: PlannedCell) -> tuple[int, str]:
        """Returns the memory of one process in bytes, and the source of this figure."""
        if planned.stack.label in memory_bytes:
            return memory_bytes[planned.stack.label], "as in the pilot"
        if isinstance(planned.stack, ExternalStack):
            return 0, ""
        limits = placement.limits.get(planned.stack.manifest.root_tier)
        return (limits.memory_bytes or 0) if limits else 0, "as cpus.memory allows"

    largest = max(cells, key=lambda one: each(one)[0] * one.cell.replicas)
    bytes_each, known = each(largest)
    needed = bytes_each * largest.cell.replicas
    if needed > machine.memory_bytes:
        yield (
            f"memory: found {largest.cell.replicas} × {largest.stack.label} with {bytes_each / 1e6:,.0f} MB each "
            f"{known}, {needed / 1e6:,.0f} MB; expected at most {machine.memory_bytes / 1e6:,.0f} MB of free memory"
        )


def _count_connections_each(planned: PlannedCell) -> int:
    """Returns the largest number of connections to one process of a cell."""
    return -(-planned.cell.load.connections // planned.cell.replicas)
