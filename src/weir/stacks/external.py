"""A server that weir did not start: it has an address, and perhaps processes to watch, but nothing to build, to set or to stop."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weir.stacks.manifest import Needed
from weir.stacks.workload import Workload


@dataclass(frozen=True, slots=True)
class ExternalStack:
    """What a study needs of such a server, in the words of `Stack`."""

    id: str
    url: str
    pids: tuple[int, ...]
    serves: tuple[str, ...]
    title: str
    model: str

    @property
    def label(self) -> str:
        """Its name."""
        return self.id

    @property
    def variant(self) -> None:
        """It runs as it runs."""
        return None

    def settings(self, stack_cpus: int, chosen: Mapping[str, int]) -> dict[str, str]:
        """None that weir knows."""
        return {}

    def services_for(self, workload: Workload) -> dict[str, Needed]:
        """None: it has what it needs already."""
        return {}

    def path_of(self, workload: str) -> str | None:
        """The workload's own path."""
        return None

    def gone(self) -> list[int]:
        """Those of its processes that do not run."""
        return [pid for pid in self.pids if not Path(f"/proc/{pid}").is_dir()]

    def cpus(self) -> tuple[int, ...]:
        """The CPUs that its processes may use; none where they are not known."""
        found: set[int] = set()
        for pid in self.pids:
            try:
                found |= os.sched_getaffinity(pid)
            except ProcessLookupError:
                continue
        return tuple(sorted(found))
