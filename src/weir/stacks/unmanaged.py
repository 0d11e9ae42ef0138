"""Describes an external server. weir loads and measures the server, but does not build, configure, start or stop it."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir.stacks.manifest import Needed
from weir.stacks.workload import Workload


@dataclass(frozen=True, slots=True)
class ExternalStack:
    """An external server with the interface of `Stack`."""

    id: str
    url: str
    pids: tuple[int, ...]
    serves: tuple[str, ...]
    title: str
    model: str
    variant: None = None

    @property
    def label(self) -> str:
        return self.id

    def settings(self, stack_cpus: int, chosen: Mapping[str, int]) -> dict[str, str]:
        return {}

    def services_for(self, workload: Workload) -> dict[str, Needed]:
        return {}

    def find_path(self, workload: str) -> None:
        """Returns None: an external server uses the workload's own path."""

    def find_ended_pids(self) -> list[int]:
        """Returns the ids of the server's processes that have ended."""
        return [pid for pid in self.pids if not Path(f"/proc/{pid}").is_dir()]

    def cpus(self) -> tuple[int, ...]:
        """Returns the CPUs that the server's processes may use. Empty if unknown."""
        found: set[int] = set()
        for pid in self.pids:
            with suppress(ProcessLookupError):
                found |= os.sched_getaffinity(pid)
        return tuple(sorted(found))
