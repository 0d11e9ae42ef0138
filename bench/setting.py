"""What every part of the benchmark is given."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.machine import Placement, Taken
from bench.nginx import Nginx


@dataclass(frozen=True, slots=True)
class Setting:
    """The server, the CPUs, how often and how long, and a folder for what is only needed meanwhile."""

    nginx: Nginx
    cpus: Placement
    rounds: int
    seconds: int
    folder: Path
    connections: tuple[int, ...]
    """Of the contests of throughput."""
    taken: list[Taken] = field(default_factory=list)
    """By others, in each round that counts."""

    def with_length(self, rounds: int, seconds: int) -> "Setting":
        """The same with other rounds."""
        return replace(self, rounds=rounds, seconds=seconds)
