"""Runs a study: checks the study, builds and verifies its stacks, runs all blocks, and closes the run file. An
interruption at any moment keeps the finished trials; `resume` runs the missing trials."""

import os
import random
import time
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from weir import __version__
from weir.engine_process import pin_to_cpus
from weir.generators.engine import LOCAL
from weir.generators.handle import LoadSource
from weir.host import Host
from weir.lab.adaptive_points import refine_crossings
from weir.lab.blocks import require_time, run_blocks
from weir.lab.capabilities import resolve_placement, validate_stacks
from weir.lab.context import RunContext
from weir.lab.machine_facts import describe_environment
from weir.lab.measurement import STACK_ENDED
from weir.lab.observer import SKIPPED, RunControls, RunObserver
from weir.lab.placement import place, use_all_cpus
from weir.lab.trial import GENERATOR_FAILED
from weir.lab.trial_generator import measure_generator_limit
from weir.lab.trial_services import Services, list_started_services
from weir.lab.trial_verdict import SERVICE_ENDED
from weir.model.errors import ExitCode, TargetError, UsageError
from weir.model.run_types import WEIR, Cell, Placement, RunInfo, Trial, compare_environments
from weir.services.manifest import FrontService, read_service
from weir.services.service_host import ServiceHost
from weir.stacks.answer_check import check_answers, check_many_answers
from weir.stacks.build import BuiltStack, build, hash_content
from weir.stacks.manifest import Stack
from weir.store import RUN_FILE_NAME, RunReader, RunWriter
from weir.study.machine_needs import read_machine, require_generators, require_resources
from weir.study.study import PlannedCell, Study, parse_study

_CONTENTS = "stack_contents"
"""Key in a run's environment: the value has a digest of each stack's files. A resumed run must use the same files."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """The observer and the controls of a run, and the machines for loads and services."""

    observer: RunObserver
    controls: RunControls = field(default_factory=RunControls)
    """Controls for viewers: skip a trial, or request more blocks."""
    load_source: LoadSource = LOCAL
    """The machines on which weir's own engine generates the loads."""
    services_on: ServiceHost | None = None
    """The machine for services; None: the machine of the stacks."""
    checked: Iterable[str] = ()
    """Labels of the stacks whose responses the caller has already checked."""


def start(study: Study, folder: Path, setup: RunSetup, *, command: str) -> Path:
    """Runs a study, and writes a new run file to a folder without a run. Returns the path of the run file. The report
    shows `command`, with which a user can repeat the run. After Ctrl-C, the run file has the finished trials.

    Raises UsageError if the study does not fit this machine, a generator is missing, or the folder has a run. Raises
    TargetError if the build of a stack failed, or a response is wrong.
    """
    path = folder / RUN_FILE_NAME
    if path.exists():
        raise UsageError(f"{path}: found a run, expected none", hint=f"weir run --resume {path}, or another --out DIR")
    placement = _place_for_agents(plan_placement(study, setup.services_on), study, setup.load_source)
    cells = study.cells(len(placement.stack))
    require_generators(study)
    require_resources(cells, read_machine(), placement)
    require_time(study, cells)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        found = f"--out: {folder}: cannot be created: {error.strerror}"
        raise UsageError(f"{found}; expected a folder that weir may write to") from None
    environment = describe_environment()
    services_on = setup.services_on
    with _open_run(study, folder, placement, setup) as run:
        prepared = _PreparedStacks(run)
        prepared.verified |= set(product(setup.checked, study.file.matrix.workloads))
        head_start = study.head_start(cells)
        # The first answer must not wait for the builds of other stacks.
        prepared.prepare([one for one in cells if head_start is None or one.cell.id in head_start.cell_ids])
        run.observer.on_step("measuring each generator's limit on a null server")
        environment["generator_max_rate_rps"] = _measure_max_rates(run, cells)
        if services_on is not None and placement.services_on is not None:
            environment["services_on"] = {placement.services_on: dict(services_on.facts)}
        info = _describe_run(run, cells, command, environment)
        with RunWriter.create(path, info, [one.cell for one in cells]) as writer:
            _run_all(run, cells, prepared, writer, [])
    return path


def _describe_run(
    run: RunContext, cells: Sequence[PlannedCell], command: str, environment: Mapping[str, Any]
) -> RunInfo:
    study, file, agents = run.study, run.study.file, run.load_source.agents
    return RunInfo(
        study=study.name,
        title=file.title,
        question=file.question,
        scale=study.scale,
        seed=file.method.seed,
        blocks=file.method.blocks,
        indicative=study.indicative,
        baseline=file.method.baseline,
        study_text=study.text,
        command=command,
        weir_version=__version__,
        started_unix_ns=time.time_ns(),
        environment={
            **environment,
            **({"agents": dict(agents)} if agents else {}),
            _CONTENTS: _hash_stacks(cells),
            **({} if file.method.width is None else {"first_look": file.method.blocks}),
            "omitted_stacks": sorted(study.omitted_stacks),
            "omitted_generators": sorted(study.omitted_generators),
            "isolation": f"{run.host.isolation}: {run.host.isolation_detail}",
        },
        placement=run.placement,
        published=study.published,
        source=file.source,
        claims=tuple(file.claims),
        study_folder=str(study.path.resolve().parent),
    )


def resume(path: Path, setup: RunSetup) -> Path:
    """Resumes a run: deletes unfinished trials, and runs the missing trials. Raises the errors of `start`. Also raises
    UsageError if `path` is no run file, or if weir's version or the machine has changed."""
    with RunReader(path) as reader:
        info, stored_cells = reader.info, reader.cells()
    if info.is_load:
        found = f"--resume: {path}: found a single load, expected a run of a study"
        raise UsageError(found, hint=f"weir report {path}")
    study_path = Path(info.study_folder, f"{info.study}.toml")
    study = replace(
        parse_study(study_path, info.study_text, tomllib.loads(info.study_text), info.scale),
        omitted_stacks=frozenset(info.environment.get("omitted_stacks", ())),
        omitted_generators=frozenset(info.environment.get("omitted_generators", ())),
    )
    require_generators(study)
    is_local = setup.load_source.address is None
    if (info.placement.advertised_address is None) != is_local:
        had, hint = ("had", "add --cluster ADDRESS") if is_local else ("had no", "omit --cluster")
        message = f"{path}: the run's finished loads {had} agents on a cluster, expected the same for new loads"
        raise UsageError(message, hint=hint)
    placement = _place_for_agents(plan_placement(study, setup.services_on), study, setup.load_source)
    cells = study.cells(len(placement.stack))
    _require_same_run(path, info, stored_cells, placement, cells)
    with _open_run(study, path.parent, placement, setup) as run, RunWriter.resume(path) as writer:
        # Reads the trials again, because another process may have written to the file meanwhile.
        with RunReader(path) as reader:
            earlier = reader.trials()
        prepared = _PreparedStacks(run)
        prepared.prepare(cells)
        _run_all(run, cells, prepared, writer, earlier)
    return path


@contextmanager
def _open_run(study: Study, folder: Path, placement: Placement, setup: RunSetup) -> Iterator[RunContext]:
    """Starts the host of a run, on the CPUs of weir's control."""
    observer, services_on = setup.observer, setup.services_on
    with pin_to_cpus(placement.control), Host() as host, Services(host, observer.on_step, services_on) as services:
        yield RunContext(study, folder, host, services, placement, observer, setup.controls, setup.load_source)


def _require_same_run(
    path: Path, info: RunInfo, stored_cells: Sequence[Cell], placement: Placement, cells: Sequence[PlannedCell]
) -> None:
    """Raises UsageError if the placement, the cells or the environment differ from those of the resumed run."""
    if placement.agent_threads != info.placement.agent_threads:
        threads, had_threads = (",".join(map(str, one.agent_threads)) for one in (placement, info.placement))
        had_flags = f"--agents {len(info.placement.agent_threads)} --agent-threads {had_threads}"
        raise UsageError(
            f"{path}: load threads of each agent: found {threads}, expected the run's numbers: {had_threads}",
            hint=f"{had_flags}; add --share-nodes if the cluster has fewer nodes than agents",
        )
    if placement.services_on != info.placement.services_on:
        found, had = (place or "this machine" for place in (placement.services_on, info.placement.services_on))
        raise UsageError(f"{path}: machine of the services: found {found!r}, expected {had!r} as in the run")
    if placement != info.placement or [one.cell for one in cells] != stored_cells[: len(cells)]:
        text = f"{path}: found another machine or other stacks, expected the run's machine and stacks"
        raise UsageError(f"{text}: new and old trials would not be comparable", hint=f"weir run {info.study}")
    have = _hash_stacks(cells)
    environment = {**info.environment, **describe_environment(), _CONTENTS: have}
    differ = compare_environments(info, replace(info, environment=environment, weir_version=__version__))
    had = info.environment.get(_CONTENTS, {})
    differ += [f"the files of {label}" for label, content in had.items() if have.get(label) != content]
    if differ:
        changed = f"{path}: the environment has changed since the run began: {'; '.join(differ)}"
        raise UsageError(f"{changed}; expected the same for the remaining trials", hint=f"weir run {info.study}")


def _hash_stacks(cells: Sequence[PlannedCell]) -> dict[str, str]:
    """Returns a dict from stack label to a digest of the stack's files."""
    return {planned.stack.label: hash_content(planned.stack) for planned in cells if isinstance(planned.stack, Stack)}


def _run_all(
    run: RunContext, cells: Sequence[PlannedCell], prepared: "_PreparedStacks", writer: RunWriter, earlier: list[Trial]
) -> None:
    """Runs all missing blocks of the study's cells. With `refine`, then runs further points near crossings."""

    def run_cells(wanted: Sequence[PlannedCell]) -> None:
        ids = {one.cell.id for one in wanted}

        def prepare_stack(planned: PlannedCell) -> BuiltStack | None:
            if not prepared.has(planned):
                prepared.prepare(wanted)
            return prepared.built.get(planned.stack.label)

        known = [trial for trial in earlier if trial.cell.id in ids]
        run_blocks(run, wanted, prepare_stack, writer, known, _read_max_rates(wanted, writer))

    run_cells(cells)
    if run.study.file.method.refine and not run.study.ends_with_first_answer:
        refine_crossings(run, cells, writer, run_cells)


def determine_exit_code(path: Path) -> ExitCode:
    """Returns the exit status of a run. `TARGET`: the stack failed in all trials of a cell. `NOT_VALID`: a cell has
    no valid trial. `MISSED`: a valid trial missed an objective. `DONE`: none of these. After a first answer, ignores
    cells without trials."""
    worst = ExitCode.DONE
    with RunReader(path) as reader:
        trials = reader.trials()
        may_lack_cells = reader.stopped is not None and reader.stopped.rule == "first_answer"
        for cell in reader.cells():
            of_cell = [trial for trial in trials if trial.cell.id == cell.id]
            counted = [trial.result for trial in of_cell if trial.result.verdict.validity != "invalid"]
            held = [one for result in counted if result.summary for one in result.summary.objectives or []]
            if not counted:
                if of_cell and all(_stack_failed(reader, trial) for trial in of_cell):
                    return ExitCode.TARGET
                if of_cell or not may_lack_cells:
                    worst = ExitCode.NOT_VALID
            elif worst is ExitCode.DONE and not all(one["met"] for one in held):
                worst = ExitCode.MISSED
    return worst


def _place_for_agents(placement: Placement, study: Study, source: LoadSource) -> Placement:
    """Returns the placement for loads from other machines. Raises UsageError if a feature requires a local load."""
    if source.address is None:
        return placement
    cannot = {
        "network.isolation": placement.network is not None,
        "method.tap": study.file.method.tap,
        "matrix.generators": any(planned.cell.generator != WEIR for planned in study.cells(len(placement.stack))),
    }
    if found := [key for key, is_asked in cannot.items() if is_asked]:
        text = f"{study.place}{found[0]}: found together with --cluster, expected loads from this machine"
        raise UsageError(text, hint="omit --cluster")
    threads = source.threads or (len(placement.load),) * len(source.agents)
    return replace(placement, advertised_address=source.address, agent_threads=threads)


def _measure_max_rates(run: RunContext, cells: Sequence[PlannedCell]) -> dict[str, int]:
    """Measures the generator's limit (requests/s) for each load. The keys are cell ids: the first cell of each load."""
    cpus, found = run.placement.load, {}
    for one in _index_loads(cells).values():
        if one.script:
            # A script has other requests and other users than the load on the null server.
            continue
        generator, request = one.cell.generator, one.request("http://null")
        plan = one.plan(request, targets=(), duration_s=one.duration_s, interval_s=0.1, cpus=cpus)
        folder = run.folder / "logs" / f"null-server-{one.cell.id}-{generator}"
        try:
            limit_rps = measure_generator_limit(generator, plan, run.placement.stack, folder, run.load_source)
            found[str(one.cell.id)] = round(limit_rps)
        except (UsageError, TargetError) as error:
            if generator == WEIR:
                raise
            # Without the limit, a verdict lacks only one check.
            run.observer.on_step(f"the limit of {generator} is unknown: {error.message}")
    return found


def _stack_failed(reader: RunReader, trial: Trial) -> bool:
    """Returns whether the stack or a service did not start, or ended under the load."""
    kinds = {reason.kind for reason in trial.result.verdict.reasons}
    return not kinds & {SKIPPED, GENERATOR_FAILED} and (
        SERVICE_ENDED in kinds
        or trial.result.summary is None
        or any(event.kind == STACK_ENDED for event in reader.events(trial.id))
    )


def _read_max_rates(cells: Sequence[PlannedCell], writer: RunWriter) -> Callable[[PlannedCell], float | None]:
    """Returns a function from a cell to the generator's limit for that cell's load. The limits are in the run file."""
    max_rates: dict[str, float] = writer.info.environment.get("generator_max_rate_rps", {})
    by_load = _index_loads(cells)
    return lambda planned: max_rates.get(str(by_load[planned.load_key].cell.id))


def plan_placement(study: Study, services_on: ServiceHost | None = None) -> Placement:
    """Returns the placement of a study. If the study varies the stack's number of CPUs, takes the largest number.

    Raises UsageError if this machine lacks CPUs or does not support the limits or the network. Also raises UsageError
    if `cpus.services` names CPUs of this machine, but the services run on another machine.
    """
    cpus, varied = study.file.cpus, study.file.matrix.cpus
    cells = study.cells(1)
    stacks = [one.stack for one in cells]
    services = list_started_services(cells)
    elsewhere = None if services_on is None else _find_services_machine(study, services, services_on)
    here = [name for name in services if elsewhere is None or isinstance(read_service(name), FrontService)]
    widest = max(varied) if varied and cpus.stack == "auto" else None
    try:
        placement = place(cpus, study.file.network, with_services=bool(here), stack_cpus=widest)
    except UsageError as error:
        if varied is None:
            raise
        raise UsageError(f"matrix.cpus: found {max(varied)}: {error.message}", hint=error.hint) from None
    if varied is not None and len(placement.stack) < max(varied):
        beside = f"together with cpus.stack = {cpus.stack!r}"
        raise UsageError(f"matrix.cpus: found {max(varied)} {beside}, expected at most the stack's CPUs")
    placement = replace(placement, services_on=elsewhere)
    validate_stacks(placement, stacks, {name for one in cells for name in one.services})
    if placement.limits or placement.network:
        # Only a host process can find out which of these features this machine supports.
        with Host() as host:
            return resolve_placement(placement, host.capabilities(), fallback=study.file.network.fallback)
    return placement


def _find_services_machine(study: Study, services: Sequence[str], place: ServiceHost) -> str | None:
    """Returns the name of the machine for services; None if all services are proxies: a proxy runs with its stack.
    Raises UsageError if the study assigns this machine's CPUs to services on another machine."""
    in_front = [name for name in services if isinstance(read_service(name), FrontService)]
    if len(in_front) == len(services):
        return None
    if not in_front and study.file.cpus.services != "auto":
        found = f"cpus.services: found {study.file.cpus.services!r} together with a node for services, {place.node}"
        raise UsageError(f"{found}, expected no cpus.services", hint="add --services-here, or omit cpus.services")
    return place.node


def _index_loads(cells: Sequence[PlannedCell]) -> dict[Hashable, PlannedCell]:
    """Returns a dict from load to the first cell with that load. The generator's limit depends only on the load."""
    return {planned.load_key: planned for planned in reversed(cells)}


@dataclass(slots=True)
class _PreparedStacks:
    """The built and checked stacks of a run."""

    run: RunContext
    built: dict[str, BuiltStack] = field(default_factory=dict)
    verified: set[tuple[str, str]] = field(default_factory=set)
    """Stack label and workload id of each passed check."""

    def has(self, planned: PlannedCell) -> bool:
        """Returns whether weir has checked the stack of a cell with the cell's workload."""
        return (planned.stack.label, planned.workload.id) in self.verified

    def prepare(self, cells: Sequence[PlannedCell]) -> None:
        """Builds each stack of these cells and checks each workload, once. Raises TargetError if a stack fails."""
        run = self.run
        for planned in cells:
            label = planned.stack.label
            if label not in self.built and isinstance(planned.stack, Stack):
                self.built[label] = build_stack(run.host, planned.stack, run.observer.on_step)
            if not self.has(planned):
                run.observer.on_step(f"checking the responses of {label} to {planned.workload.id}")
                placed = use_all_cpus(planned.restrict_placement(run.placement))
                built, inputs = self.built.get(label), random.Random(run.study.file.method.seed)
                # An external server may be in use, so it gets only a few requests.
                check = check_many_answers if built is not None else check_answers
                with run.services.running_with_stack(built, planned, placed, "check", inputs=inputs, check=check):
                    pass
                self.verified.add((label, planned.workload.id))


def run_build_command(host: Host, argv: list[str], cwd: Path, env: dict[str, str], log: Path) -> int:
    """Runs a build command and returns the exit status. The host ends the command if weir ends."""
    # A build may use every CPU, because no measurement runs.
    ended = host.run("build", argv, cwd=cwd, env=env, log=log, cpus=range(os.cpu_count() or 1))
    return ended.exit_code if ended.exit_code is not None else 128 + (ended.signal or 0)


def build_stack(host: Host, stack: Stack, on_step: Callable[[str], None]) -> BuiltStack:
    """Builds a stack. The host ends a running build if weir ends."""
    return build(
        stack, partial(run_build_command, host), on_build=lambda log: on_step(f"building {stack.label} (log: {log})")
    )
