"""Two contexts: one for a run, and one for each trial."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from weir.generators.handle import LoadSource
from weir.host import Host
from weir.lab.observer import RunControls, RunObserver
from weir.lab.stack_process import list_process_names
from weir.lab.trial_services import Services
from weir.model.run_types import Placement
from weir.stacks.build import BuiltStack
from weir.store import RunWriter
from weir.study.file import Failures, Method
from weir.study.study import PlannedCell, Study

_LONG_TRIAL_S = 60.0


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run of a study: the run's folder, machines and observers."""

    study: Study
    folder: Path
    host: Host
    services: Services
    placement: Placement
    observer: RunObserver
    controls: RunControls
    load_source: LoadSource
    """The machines on which weir's own engine generates the loads."""


@dataclass(frozen=True)
class TrialContext:
    """One trial of a run."""

    run: RunContext
    planned: PlannedCell
    built: BuiltStack | None
    """The built stack; None if weir did not start the server."""
    writer: RunWriter
    trial_id: int
    """Id of the trial's row in the run file."""
    inputs: random.Random
    """Generates random inputs for the requests of checks. The load's request is the same in every trial."""
    generator_limit_rps: float | None
    """Throughput of the generator on a null server with the load of this cell; None if unknown."""
    phases_s: dict[str, float] = field(default_factory=dict)
    """A dict from the name of each finished phase to its duration in seconds."""

    @cached_property
    def placement(self) -> Placement:
        """The CPUs, limits and network of the trial."""
        return self.planned.restrict_placement(self.run.placement)

    @property
    def method(self) -> Method:
        return self.planned.method

    @property
    def generator(self) -> str:
        return self.planned.cell.generator

    @property
    def generator_folder(self) -> Path:
        """The folder for the output and files of a generator other than weir's engine."""
        return self.run.folder / "logs" / f"trial-{self.trial_id:04d}-{self.generator}"

    @property
    def stack_processes(self) -> Sequence[str]:
        """Names of the processes that the host starts for the stack."""
        return list_process_names(self.planned.cell.replicas) if self.built is not None else []

    def log_path(self, process: str) -> Path:
        return self.run.folder / "logs" / f"trial-{self.trial_id:04d}-{process}.log"

    @property
    def interval_s(self) -> float:
        """Length of an interval: 0.1 s in short trials for more detail, 1 s in long trials for a small run file."""
        return 0.1 if self.planned.duration_s <= _LONG_TRIAL_S else 1.0

    @property
    def failures(self) -> Failures:
        """Effect of failed requests on the trial. Always `measure` for a load that ends with the first failure."""
        return "measure" if self.planned.load.until_first_failure else self.method.failures
