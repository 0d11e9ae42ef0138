"""Runs a study from its first check to the closed run file: build, verify, then blocks in random order, with retries of what was rejected.

A run can be interrupted at any moment; what was finished stays, and `resume` goes on with what is missing.
"""

import os
import random
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir import __version__
from weir.generators.ceiling import measure_ceiling
from weir.lab.environment import capture
from weir.lab.host import Host
from weir.lab.placement import place
from weir.lab.schedule import Done, done_in, schedule
from weir.lab.stack import running_stack
from weir.lab.trial import STACK_ENDED, Bench, run_trial
from weir.model.errors import ExitCode, UsageError
from weir.model.load import LoadPlan
from weir.model.run import Placement, RunInfo, Trial, TrialResult
from weir.stacks.build import BuiltStack, build
from weir.store import RUN_FILE_NAME, RunReader, RunWriter
from weir.study.study import PlannedCell, Study, study_from

_CEILING_S = 1.0


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run tells while it goes on. Every function gets plain values and must return quickly."""

    on_step: Callable[[str], None] = lambda _: None
    """A step before the first trial: building, checking."""
    on_trial: Callable[[int, int, PlannedCell, int], None] = lambda *_: None
    """A trial begins: how many were done, how many there are, the cell, the block."""
    on_result: Callable[[PlannedCell, TrialResult], None] = lambda *_: None
    """A trial has ended."""


def start(study: Study, folder: Path, *, command: str, progress: Progress) -> Path:
    """Runs a study into a new run folder and gives the run file.

    Args:
        study: the study.
        folder: the run folder; it must not hold a run yet.
        command: what reproduces the run, for the report.
        progress: what is told meanwhile.

    Raises:
        UsageError: the study does not fit this machine, a stack or workload does not exist, a tool is missing, the folder holds a run.
        TargetError: a stack cannot be built, or does not answer right.
        KeyboardInterrupt: after the run file was closed with what was finished.
    """
    path = folder / RUN_FILE_NAME
    if path.exists():
        raise UsageError(f"{path}: found a run, expected none", hint=f"weir run --resume {path}, or another --out DIR")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: {folder}: cannot be made: {error.strerror}; expected a folder that weir may write to") from None
    placement = _placed(study)
    cells = study.cells(len(placement.stack))
    environment = capture()
    with bound_to(placement.control), Host() as host:
        built = _built_and_verified(host, cells, placement, study, progress)
        progress.on_step("measuring the generator's own ceiling on a null server")
        environment["generator_ceiling_rps"] = {
            str(one.cell.id): round(_ceiling_rps(one, placement, study)) for one in _one_per_load(cells)
        }
        environment["isolation"] = f"{host.isolation}: {host.isolation_detail}"
        info = RunInfo(
            study=study.name,
            title=study.file.title,
            question=study.file.question,
            scale=study.scale,
            seed=study.file.method.seed,
            blocks=study.file.method.blocks,
            indicative=study.indicative,
            baseline=study.file.method.baseline,
            study_text=study.text,
            command=command,
            weir_version=__version__,
            started_unix_ns=time.time_ns(),
            environment=environment,
            placement=placement,
            published=study.published,
            source=study.file.source,
            claims=tuple(study.file.claims),
        )
        with RunWriter.create(path, info, [one.cell for one in cells]) as writer:
            _blocks(host, study, folder, cells, built, writer, Done(), progress)
    return path


def resume(path: Path, *, progress: Progress) -> Path:
    """Goes on with a run: trials that were not finished are deleted, and what is missing is run.

    Raises:
        UsageError: not a run file, or of a weir or machine that this one cannot go on for.
        TargetError: a stack cannot be built, or does not answer right.
        KeyboardInterrupt: after the run file was closed with what was finished.
    """
    with RunReader(path) as reader:
        info, stored_cells = reader.info, reader.cells()
        done = done_in(reader.trials())
    if info.is_load:
        raise UsageError(f"--resume: {path}: found a single load, expected a run of a study", hint=f"weir report {path}")
    study = study_from(Path(f"{info.study}.toml"), info.study_text, tomllib.loads(info.study_text), info.scale)
    placement = _placed(study)
    cells = study.cells(len(placement.stack))
    if placement != info.placement or [one.cell for one in cells] != stored_cells:
        raise UsageError(
            f"{path}: this machine or its stacks differ from those of the run, so that its trials could not stand together",
            hint="weir run " + info.study,
        )
    with bound_to(placement.control), Host() as host, RunWriter.resume(path) as writer:
        built = _built_and_verified(host, cells, placement, study, progress)
        _blocks(host, study, path.parent, cells, built, writer, done, progress)
    return path


def outcome(path: Path) -> ExitCode:
    """What the exit status of a run is: a cell without a single trial that counts makes it `TARGET` (its stack failed) or `NOT_VALID`."""
    worst = ExitCode.DONE
    with RunReader(path) as reader:
        trials = reader.trials()
        for cell in reader.cells():
            of_cell = [trial for trial in trials if trial.cell.id == cell.id]
            if any(trial.result.verdict.validity != "invalid" for trial in of_cell):
                continue
            if of_cell and all(_stack_failed(reader, trial) for trial in of_cell):
                return ExitCode.TARGET
            worst = ExitCode.NOT_VALID
    return worst


def _ceiling_rps(planned: PlannedCell, placement: Placement, study: Study) -> float:
    """What the generator reaches with a cell's request and connections on a server that does nothing."""
    plan = LoadPlan(
        request=planned.workload.draw("http://null", random.Random(study.file.method.seed)),
        load=planned.cell.load,
        duration_s=_CEILING_S,
        threads=len(placement.load),
        cpus=placement.load,
    )
    return measure_ceiling(plan, duration_s=_CEILING_S, server_cpus=placement.stack)


def _stack_failed(reader: RunReader, trial: Trial) -> bool:
    """True where the stack did not come up or ended under the load."""
    return trial.result.summary is None or any(event.kind == STACK_ENDED for event in reader.events(trial.id))


def _blocks(
    host: Host,
    study: Study,
    folder: Path,
    cells: Sequence[PlannedCell],
    built: dict[str, BuiltStack],
    writer: RunWriter,
    done: Done,
    progress: Progress,
) -> None:
    method = study.file.method
    ceilings: dict[str, float] = writer.info.environment.get("generator_ceiling_rps", {})
    total = method.blocks * len(cells)
    for number, (block, position, planned) in enumerate(schedule(cells, method.blocks, method.seed, method.retries, done)):
        attempt = done.attempts(planned.cell.id, block) + 1
        progress.on_trial(number, max(total, number + 1), planned, block)
        bench = Bench(
            host=host,
            placement=writer.info.placement,
            load=study.file.load,
            method=method,
            folder=folder,
            ceiling_rps=ceilings.get(str(_ceiling_cell(cells, planned).cell.id)),
        )
        trial_id = writer.begin_trial(planned.cell, block=block, position=position, attempt=attempt, started_unix_ns=time.time_ns())
        try:
            result = run_trial(
                bench, planned, built[planned.stack.label], writer, trial_id, seed=f"{method.seed}/{block}/{planned.cell.id}/{attempt}"
            )
        except BaseException:
            writer.discard_trial(trial_id)
            raise
        writer.finish_trial(trial_id, result)
        done.note(planned.cell.id, block, result.verdict.validity)
        progress.on_result(planned, result)


def _placed(study: Study) -> Placement:
    cpus = study.file.cpus
    return place(cpus.load, cpus.stack, cpus.control)


def _one_per_load(cells: Sequence[PlannedCell]) -> list[PlannedCell]:
    """The first cell of every workload and load: the generator's ceiling depends on these, not on the stack."""
    firsts: dict[tuple[str, str], PlannedCell] = {}
    for planned in cells:
        firsts.setdefault((planned.workload.id, planned.cell.load.label), planned)
    return list(firsts.values())


def _ceiling_cell(cells: Sequence[PlannedCell], planned: PlannedCell) -> PlannedCell:
    return next(one for one in _one_per_load(cells) if (one.workload.id, one.cell.load) == (planned.workload.id, planned.cell.load))


def _built_and_verified(
    host: Host, cells: Sequence[PlannedCell], placement: Placement, study: Study, progress: Progress
) -> dict[str, BuiltStack]:
    """Every stack of the study, built, started once and found to answer each of its workloads right."""
    built: dict[str, BuiltStack] = {}
    verified: set[tuple[str, str]] = set()
    for planned in cells:
        label = planned.stack.label
        if label not in built:
            built[label] = build_stack(host, planned, progress)
        if (label, planned.workload.id) not in verified:
            progress.on_step(f"checking that {label} answers {planned.workload.id} right")
            verify(host, built[label], planned, placement, seed=study.file.method.seed, timeout_s=study.file.load.timeout_s)
            verified.add((label, planned.workload.id))
    return built


def build_stack(host: Host, planned: PlannedCell, progress: Progress) -> BuiltStack:
    """Builds a stack under the host, so that a build ends with weir."""

    def run(argv: list[str], cwd: Path, env: dict[str, str], log: Path) -> int:
        # Nothing is measured yet: a build may have every CPU.
        ended = host.run("build", argv, cwd=cwd, env=env, log=log, cpus=range(os.cpu_count() or 1))
        return ended.exit_code if ended.exit_code is not None else 128 + (ended.signal or 0)

    return build(planned.stack, run, on_build=lambda log: progress.on_step(f"building {planned.stack.label} (log: {log})"))


def verify(host: Host, built: BuiltStack, planned: PlannedCell, placement: Placement, *, seed: int, timeout_s: float) -> None:
    """Starts a stack once and checks its answers.

    Raises:
        TargetError: it does not start or answers wrong; the message names its log.
    """
    log = built.folder.with_name(f"{built.folder.name}-check.log")
    log.write_bytes(b"")
    with running_stack(host, built, planned, cpus=placement.stack, log=log, inputs=random.Random(seed), timeout_s=timeout_s):
        pass


@contextmanager
def bound_to(cpus: Sequence[int]) -> Iterator[None]:
    """Keeps weir's control on its CPUs while a study runs: this thread and what it starts from here on, the host among them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
