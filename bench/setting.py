"""The settings that all parts of the benchmark share."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.machine import Placement, Taken
from bench.nginx import Nginx


@dataclass(frozen=True, slots=True)
class Setting:
    """The server, the CPUs, the number and length of rounds, and a folder for temporary files."""

    nginx: Nginx
    cpus: Placement
    rounds: int
    seconds: int
    folder: Path
    connections: tuple[int, ...]
    """Numbers of connections in the throughput contests."""
    taken: list[Taken] = field(default_factory=list)
    """CPU time of other processes in each round that counts."""

    def with_length(self, rounds: int, seconds: int) -> "Setting":
        """Returns this setting with another number and length of rounds."""
        return replace(self, rounds=rounds, seconds=seconds)
