"""Runs a study from its first check to the closed run file: build, verify, then blocks in random order, with retries of what was rejected.

A run can be interrupted at any moment; what was finished stays, and `resume` goes on with what is missing.
"""

import os
import random
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from weir import __version__
from weir.generators.running import HERE, LoadFrom
from weir.host import Host
from weir.lab.blocks import Progress, require_time, run_blocks
from weir.lab.environment import capture
from weir.lab.generator import ceiling_rps
from weir.lab.onlooker import SKIPPED
from weir.lab.placement import anywhere, place
from weir.lab.possible import check_stacks, possible
from weir.lab.refine import refine
from weir.lab.services import Services, started_services
from weir.lab.stack import process_names, running_stack
from weir.lab.trial import GENERATOR_FAILED, STACK_ENDED
from weir.lab.verdict import SERVICE_ENDED
from weir.model.alike import differences
from weir.model.errors import ExitCode, TargetError, UsageError
from weir.model.run import WEIR, Placement, RunInfo, Trial
from weir.services.manifest import FrontService, read_service
from weir.services.place import ServicePlace
from weir.stacks.build import BuiltStack, build, content_hash
from weir.stacks.check import check_many_answers
from weir.stacks.manifest import Stack
from weir.store import RUN_FILE_NAME, RunReader, RunWriter
from weir.study.needs import machine, require, require_generators
from weir.study.study import PlannedCell, Study, study_from

_CONTENTS = "stack_contents"
"""Of a run's environment: what its stacks were made of, so that it is gone on with the same."""


def start(
    study: Study, folder: Path, *, command: str, progress: Progress, load_from: LoadFrom = HERE, services_on: ServicePlace | None = None
) -> Path:
    """Runs a study into a new run folder and gives the run file.

    Args:
        study: the study.
        folder: the run folder; it must not hold a run yet.
        command: what reproduces the run, for the report.
        progress: what is told meanwhile.
        load_from: where weir's own loads come from.
        services_on: the machine for services; None: they are beside their stacks.

    Raises:
        UsageError: the study does not fit this machine, a stack or workload does not exist, a tool is missing, the folder holds a run.
        TargetError: a stack cannot be built, or does not answer right.
        KeyboardInterrupt: after the run file was closed with what was finished.
    """
    path = folder / RUN_FILE_NAME
    if path.exists():
        raise UsageError(f"{path}: found a run, expected none", hint=f"weir run --resume {path}, or another --out DIR")
    placement = _reached(placement_of(study, services_on), study, load_from)
    cells = study.cells(len(placement.stack))
    require_generators(study)
    require(cells, machine(), placement)
    require_time(study, cells)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: {folder}: cannot be made: {error.strerror}; expected a folder that weir may write to") from None
    environment = capture()
    with bound_to(placement.control), Host() as host, Services(host, on_step=progress.on_step, place=services_on) as services:
        prepared = _Prepared(host, services, placement, study, progress)
        head_start = study.head_start(cells)
        # The first answer does not wait for the builds of stacks that it is not about.
        prepared.prepare([one for one in cells if head_start is None or one.cell.id in head_start.cell_ids])
        progress.on_step("measuring each generator's own ceiling on a null server")
        environment["generator_ceiling_rps"] = _ceilings_rps(cells, placement, folder, progress, load_from)
        if load_from.agents:
            environment["agents"] = dict(load_from.agents)
        if services_on is not None and placement.services_on is not None:
            environment["services_on"] = {placement.services_on: dict(services_on.facts)}
        environment[_CONTENTS] = _contents(cells)
        environment["left_out_stacks"] = sorted(study.left_out)
        environment["left_out_generators"] = sorted(study.left_out_generators)
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
            study_folder=str(study.path.resolve().parent),
        )
        with RunWriter.create(path, info, [one.cell for one in cells]) as writer:
            _run_all(host, services, study, folder, cells, prepared, writer, (), progress, load_from)
    return path


def resume(path: Path, *, progress: Progress, load_from: LoadFrom = HERE, services_on: ServicePlace | None = None) -> Path:
    """Goes on with a run: trials that were not finished are deleted, and what is missing is run.

    Raises:
        UsageError: not a run file, or of a weir or machine that this one cannot go on for.
        TargetError: a stack cannot be built, or does not answer right.
        KeyboardInterrupt: after the run file was closed with what was finished.
    """
    with RunReader(path) as reader:
        info, stored_cells = reader.info, reader.cells()
    if info.is_load:
        raise UsageError(f"--resume: {path}: found a single load, expected a run of a study", hint=f"weir report {path}")
    study = study_from(Path(info.study_folder, f"{info.study}.toml"), info.study_text, tomllib.loads(info.study_text), info.scale)
    left_out, generators = (frozenset(info.environment.get(key, ())) for key in ("left_out_stacks", "left_out_generators"))
    study = replace(study, left_out=left_out, left_out_generators=generators)
    require_generators(study)
    if (info.placement.reached_at is None) != (load_from.address is None):
        had, hint = ("had", "add --cluster ADDRESS") if load_from.address is None else ("had none", "leave --cluster out")
        raise UsageError(f"{path}: the loads of the run {had} agents on a cluster; its other trials have to be made alike", hint=hint)
    placement = _reached(placement_of(study, services_on), study, load_from)
    if placement.agent_threads != info.placement.agent_threads:
        threads, had_threads = (",".join(map(str, one.agent_threads)) for one in (placement, info.placement))
        had_flags = f"--agents {len(info.placement.agent_threads)} --shares {had_threads}"
        raise UsageError(
            f"{path}: load threads of each agent: found {threads}, expected those that the run had: {had_threads}; "
            "its other trials have to be made alike",
            hint=f"{had_flags}, and --share-nodes where there are fewer nodes than that",
        )
    cells = study.cells(len(placement.stack))
    if placement.services_on != info.placement.services_on:
        found, had = (place or "beside their stacks" for place in (placement.services_on, info.placement.services_on))
        raise UsageError(f"{path}: services: found {found}, expected where the run had them: {had}; its other trials have to be made alike")
    if placement != info.placement or [one.cell for one in cells] != stored_cells[: len(cells)]:
        raise UsageError(
            f"{path}: this machine or its stacks differ from those of the run, so that its trials could not stand together",
            hint="weir run " + info.study,
        )
    now = replace(info, environment={**info.environment, **capture(), _CONTENTS: _contents(cells)}, weir_version=__version__)
    differ = differences(info, now)
    had, have = info.environment.get(_CONTENTS, {}), now.environment[_CONTENTS]
    differ += [f"the files of {label}" for label, content in had.items() if have.get(label) != content]
    if differ:
        raise UsageError(
            f"{path}: its other trials would not be made as those that it has: {'; '.join(differ)}", hint=f"weir run {info.study}"
        )
    with (
        bound_to(placement.control),
        Host() as host,
        Services(host, on_step=progress.on_step, place=services_on) as services,
        RunWriter.resume(path) as writer,
    ):
        # Once more, now that nobody else writes to it.
        with RunReader(path) as reader:
            earlier = reader.trials()
        prepared = _Prepared(host, services, placement, study, progress)
        prepared.prepare(cells)
        _run_all(host, services, study, path.parent, cells, prepared, writer, earlier, progress, load_from)
    return path


def _contents(cells: Sequence[PlannedCell]) -> dict[str, str]:
    """What the files of each stack are, by its label."""
    return {planned.stack.label: content_hash(planned.stack) for planned in cells if isinstance(planned.stack, Stack)}


def _run_all(
    host: Host,
    services: Services,
    study: Study,
    folder: Path,
    cells: Sequence[PlannedCell],
    prepared: "_Prepared",
    writer: RunWriter,
    earlier: Sequence[Trial],
    progress: Progress,
    load_from: LoadFrom,
) -> None:
    """All blocks of the study's cells that are missing, and then further points, where it asks for them."""

    def run_cells(wanted: Sequence[PlannedCell], done: Sequence[Trial]) -> None:
        ids = {one.cell.id for one in wanted}
        of_these = [trial for trial in done if trial.cell.id in ids]
        ceiling_rps = _known_ceiling(wanted, writer)

        def ready(planned: PlannedCell) -> BuiltStack | None:
            if not prepared.has(planned):
                prepared.prepare(wanted)
            return prepared.built.get(planned.stack.label)

        run_blocks(host, services, study, folder, wanted, ready, writer, of_these, ceiling_rps, progress, load_from)

    run_cells(cells, earlier)
    if study.file.method.refine and not study.ends_with_first_answer:
        stack_cpus = len(writer.info.placement.stack)
        refine(study, cells, writer, stack_cpus, lambda wanted: run_cells(wanted, earlier), progress)


def outcome(path: Path) -> ExitCode:
    """What the exit status of a run is: a cell without a single trial that counts makes it `TARGET` (its stack failed) or `NOT_VALID`; an
    objective that a trial that counts missed makes it `MISSED`. A run that ends with its first answer leaves cells out on purpose."""
    worst = ExitCode.DONE
    with RunReader(path) as reader:
        trials = reader.trials()
        may_lack_cells = reader.stopped is not None and reader.stopped.rule == "first_answer"
        for cell in reader.cells():
            of_cell = [trial for trial in trials if trial.cell.id == cell.id]
            if not of_cell and may_lack_cells:
                continue
            counted = [trial for trial in of_cell if trial.result.verdict.validity != "invalid"]
            if counted:
                held = [one for trial in counted if trial.result.summary for one in trial.result.summary.objectives or []]
                if worst is ExitCode.DONE and not all(one["met"] for one in held):
                    worst = ExitCode.MISSED
                continue
            if of_cell and all(_stack_failed(reader, trial) for trial in of_cell):
                return ExitCode.TARGET
            worst = ExitCode.NOT_VALID
    return worst


def _reached(placement: Placement, study: Study, load_from: LoadFrom) -> Placement:
    """The placement where loads come from other machines.

    Raises:
        UsageError: the study asks for what then cannot be.
    """
    if load_from.address is None:
        return placement
    cannot = {
        "network.isolation": placement.network is not None,
        "method.tap": study.file.method.tap,
        "matrix.generators": any(planned.cell.generator != WEIR for planned in study.cells(len(placement.stack))),
    }
    if found := [key for key, is_asked in cannot.items() if is_asked]:
        raise UsageError(
            f"{study.path}: {found[0]}: found beside --cluster, expected loads of this machine for it", hint="leave --cluster out"
        )
    threads = load_from.threads or (len(placement.load),) * len(load_from.agents)
    return replace(placement, reached_at=load_from.address, agent_threads=threads)


def _ceilings_rps(
    cells: Sequence[PlannedCell], placement: Placement, folder: Path, progress: Progress, load_from: LoadFrom
) -> dict[str, int]:
    """What each generator reaches with the request and connections of its cells on a server that does nothing, by the first of them."""
    found = {}
    for one in _one_per_load(cells):
        generator = one.cell.generator
        plan = one.plan(one.request("http://null"), targets=(), duration_s=one.load.duration_s, interval_s=0.1, cpus=placement.load)
        kept_in = folder / "logs" / f"ceiling-{one.cell.id}-{generator}"
        try:
            reached = ceiling_rps(generator, plan, server_cpus=placement.stack, folder=kept_in, load_from=load_from)
            found[str(one.cell.id)] = round(reached)
        except (UsageError, TargetError) as error:
            if generator == WEIR:
                raise
            # Without it a trial only says less of itself.
            progress.on_step(f"the ceiling of {generator} is not known: {error.message}")
    return found


def _stack_failed(reader: RunReader, trial: Trial) -> bool:
    """True where the stack or a service did not come up or ended under the load, and nobody wanted that."""
    kinds = {reason.kind for reason in trial.result.verdict.reasons}
    if kinds & {SKIPPED, GENERATOR_FAILED}:
        return False
    return SERVICE_ENDED in kinds or trial.result.summary is None or any(event.kind == STACK_ENDED for event in reader.events(trial.id))


def _known_ceiling(cells: Sequence[PlannedCell], writer: RunWriter) -> Callable[[PlannedCell], float | None]:
    """What the generator reaches on a null server with the load of a cell, as the run file has it."""
    ceilings: dict[str, float] = writer.info.environment.get("generator_ceiling_rps", {})
    return lambda planned: ceilings.get(str(_ceiling_cell(cells, planned).cell.id))


def placement_of(study: Study, services_on: ServicePlace | None = None) -> Placement:
    """Where everything runs. Where the study varies the stack's CPUs, it gets as many as any cell asks for.

    Args:
        study: the study.
        services_on: the machine for services; None: they are beside their stacks.

    Raises:
        UsageError: there are too few, this machine cannot limit or isolate stacks as the study asks for, or services cannot be elsewhere.
    """
    cpus, varied = study.file.cpus, study.file.matrix.cpus
    cells = study.cells(1)
    stacks = [one.stack for one in cells]
    services = started_services(cells)
    elsewhere = None if services_on is None else _elsewhere(study, services, services_on)
    here = [name for name in services if elsewhere is None or isinstance(read_service(name), FrontService)]
    widest = max(varied) if varied and cpus.stack == "auto" else None
    try:
        placement = place(cpus, study.file.network, with_services=bool(here), stack_cpus=widest)
    except UsageError as error:
        if varied is None:
            raise
        raise UsageError(f"matrix.cpus: found {max(varied)}: {error.message}", hint=error.hint) from None
    if varied is not None and len(placement.stack) < max(varied):
        raise UsageError(f"matrix.cpus: found {max(varied)} beside cpus.stack = {cpus.stack!r}, expected no more than the stack has")
    placement = replace(placement, services_on=elsewhere)
    check_stacks(placement, stacks, {name for one in cells for name in one.services})
    if placement.limits or placement.network:
        # Limits and networks only after the machine has shown that it can do that.
        with Host() as host:
            return possible(placement, host.capabilities(), fallback=study.file.network.fallback)
    return placement


def _elsewhere(study: Study, services: Sequence[str], place: ServicePlace) -> str | None:
    """The name of the machine for services; None where all of them stand in front of a stack, and so beside it.

    Raises:
        UsageError: the study gives CPUs of this machine to services, and none is here.
    """
    in_front = [name for name in services if isinstance(read_service(name), FrontService)]
    if len(in_front) == len(services):
        return None
    if not in_front and study.file.cpus.services != "auto":
        raise UsageError(
            f"cpus.services: found {study.file.cpus.services!r} beside a node for services, {place.node}; expected it left out",
            hint="--services-here, which has them beside their stacks",
        )
    return place.node


def _one_per_load(cells: Sequence[PlannedCell]) -> list[PlannedCell]:
    """The first cell of every way of asking: the generator's ceiling depends on that, not on the stack."""
    firsts: dict[tuple[object, ...], PlannedCell] = {}
    for planned in cells:
        firsts.setdefault(planned.asked, planned)
    return list(firsts.values())


def _ceiling_cell(cells: Sequence[PlannedCell], planned: PlannedCell) -> PlannedCell:
    return next(one for one in _one_per_load(cells) if one.asked == planned.asked)


class _Prepared:
    """The stacks of a study that are built, were started once, and answered each of their workloads right."""

    def __init__(self, host: Host, services: Services, placement: Placement, study: Study, progress: Progress) -> None:
        self.built: dict[str, BuiltStack] = {}
        self._verified: set[tuple[str, str]] = set()
        self._host = host
        self._services = services
        self._placement = placement
        self._seed = study.file.method.seed
        self._progress = progress

    def has(self, planned: PlannedCell) -> bool:
        """Whether the stack of a cell is prepared for its workload."""
        return (planned.stack.label, planned.workload.id) in self._verified

    def prepare(self, cells: Sequence[PlannedCell]) -> None:
        """Builds and checks the stacks of these cells, except those that it has prepared before.

        Raises:
            TargetError: a stack cannot be built, or does not answer right.
        """
        for planned in cells:
            label = planned.stack.label
            if label not in self.built and isinstance(planned.stack, Stack):
                self.built[label] = build_stack(self._host, planned.stack, self._progress)
            if not self.has(planned):
                self._progress.on_step(f"checking that {label} answers {planned.workload.id} right")
                verify(self._host, self._services, self.built.get(label), planned, self._placement, seed=self._seed)
                self._verified.add((label, planned.workload.id))


def build_stack(host: Host, stack: Stack, progress: Progress) -> BuiltStack:
    """Builds a stack under the host, so that a build ends with weir."""

    def run(argv: list[str], cwd: Path, env: dict[str, str], log: Path) -> int:
        # Nothing is measured yet: a build may have every CPU.
        ended = host.run("build", argv, cwd=cwd, env=env, log=log, cpus=range(os.cpu_count() or 1))
        return ended.exit_code if ended.exit_code is not None else 128 + (ended.signal or 0)

    return build(stack, run, on_build=lambda log: progress.on_step(f"building {stack.label} (log: {log})"))


def verify(host: Host, services: Services, built: BuiltStack | None, planned: PlannedCell, placement: Placement, *, seed: int) -> None:
    """Starts a stack once and checks its answers; an external one is only checked.

    Raises:
        TargetError: it does not start or answers wrong; the message names its log.
    """
    logs = []
    if built is not None:
        names = process_names(planned.cell.replicas)
        logs = [built.folder.with_name(f"{built.folder.name}-check{name.removeprefix('app')}.log") for name in names]
    inputs, placed = random.Random(seed), anywhere(planned.placed(placement))
    with (
        services.running(planned, placed, log_of=lambda name: logs[0].with_name(f"{logs[0].stem}-{name}.log")) as needed,
        running_stack(
            host,
            built,
            planned,
            placement=placed,
            logs=logs,
            inputs=inputs,
            timeout_s=planned.load.timeout_s,
            fields=needed.fields,
            front=needed.front,
            check=check_many_answers,
        ),
    ):
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
