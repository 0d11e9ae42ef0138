"""What the cells of a study need of the machine, held against what there is, before anything starts. Pure but for `machine`."""

import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import UsageError
from weir.model.run import Placement
from weir.stacks.external import ExternalStack
from weir.study.study import PlannedCell, Study

SPARE_FILES = 64
"""Files that a generator or a server has open besides its connections: libraries, logs, pipes, its listening socket."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is."""

    memory_bytes: int
    """That programs can get without swapping."""
    open_files: int
    """What a process may have open (the soft limit), as servers find it."""
    most_open_files: int
    """What it may raise that to (the hard limit), as the generator does."""
    local_ports: int
    """Connections that one address of this machine can make to one server."""


def machine() -> Machine:
    """This machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return Machine(
        memory_bytes=int(fields["MemAvailable"].split()[0]) * 1024,
        open_files=1 << 30 if soft == unlimited else soft,
        most_open_files=1 << 30 if hard == unlimited else hard,
        local_ports=int(high) - int(low) + 1,
    )


def shortages(
    cells: Sequence[PlannedCell], there_is: Machine, placement: Placement, *, memory_bytes: Mapping[str, int] | None = None
) -> list[str]:
    """What does not suffice, a sentence each, the worst cell of each kind named.

    Args:
        cells: the study's cells.
        there_is: the machine.
        placement: what a process of a stack may use.
        memory_bytes: what a process of each stack was measured to use, by the stack's label. Of one that was not measured the limit is
            taken; without either nothing is said of its memory.
    """
    return [*_files(cells, there_is), *_ports(cells, there_is), *_memory(cells, there_is, placement, memory_bytes or {})]


def generator_shortages(study: Study) -> list[str]:
    """A sentence for each generator that is to run and is not here."""
    return [f"{study.path}: matrix.generators: {why}" for why in study.missing_generators().values()]


def require_generators(study: Study) -> None:
    """Ends what cannot succeed.

    Raises:
        UsageError: a generator is not here.
    """
    found = generator_shortages(study)
    if found:
        raise UsageError("\n".join(found), hint="--skip-missing leaves out what this machine does not have")


def require(cells: Sequence[PlannedCell], there_is: Machine, placement: Placement) -> None:
    """Ends what cannot succeed.

    Raises:
        UsageError: something does not suffice.
    """
    found = shortages(cells, there_is, placement)
    if found:
        raise UsageError("\n".join(found), hint="weir study check STUDY says what would run")


def _files(cells: Sequence[PlannedCell], there_is: Machine) -> Iterator[str]:
    most = max(cells, key=lambda one: one.cell.load.connections)
    needed = most.cell.load.connections + SPARE_FILES
    if needed > there_is.most_open_files:
        yield (
            f"open files: found {most.cell.load.connections:,} connections ({most.cell.point_label}), for which the generator opens "
            f"{needed:,} files; expected at most {there_is.most_open_files:,} (ulimit -Hn)"
        )
    started = [one for one in cells if not isinstance(one.stack, ExternalStack)]
    if started:
        fullest = max(started, key=_connections_each)
        needed = _connections_each(fullest) + SPARE_FILES
        if needed > there_is.open_files:
            yield (
                f"open files: found {_connections_each(fullest):,} connections to a process of {fullest.stack.label} "
                f"({fullest.cell.point_label}), for which it opens {needed:,} files; expected at most {there_is.open_files:,} (ulimit -n)"
            )


def _ports(cells: Sequence[PlannedCell], there_is: Machine) -> Iterator[str]:
    fullest = max(cells, key=_connections_each)
    if _connections_each(fullest) > there_is.local_ports:
        yield (
            f"ports: found {_connections_each(fullest):,} connections to one server ({fullest.cell.point_label}); expected at most "
            f"{there_is.local_ports:,}, as many as an address has local ports (/proc/sys/net/ipv4/ip_local_port_range)"
        )


def _memory(cells: Sequence[PlannedCell], there_is: Machine, placement: Placement, memory_bytes: Mapping[str, int]) -> Iterator[str]:
    def each(planned: PlannedCell) -> tuple[int, str]:
        """Memory of one process, and how that is known."""
        if planned.stack.label in memory_bytes:
            return memory_bytes[planned.stack.label], "as in the pilot"
        if isinstance(planned.stack, ExternalStack):
            return 0, ""
        limits = placement.limits.get(planned.stack.manifest.root_tier)
        return (limits.memory_bytes or 0) if limits else 0, "as cpus.memory allows"

    largest = max(cells, key=lambda one: each(one)[0] * one.cell.replicas)
    bytes_each, known = each(largest)
    needed = bytes_each * largest.cell.replicas
    if needed > there_is.memory_bytes:
        yield (
            f"memory: found {largest.cell.replicas} × {largest.stack.label} with {bytes_each / 1e6:,.0f} MB each {known}, "
            f"{needed / 1e6:,.0f} MB; expected at most {there_is.memory_bytes / 1e6:,.0f} MB, which is available"
        )


def _connections_each(planned: PlannedCell) -> int:
    """Connections to the fullest of a cell's processes."""
    return -(-planned.cell.load.connections // planned.cell.replicas)
