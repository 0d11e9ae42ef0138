"""From the matrix of a study to its cells: everything crossed, overrides applied, and what does not fit together refused."""

import difflib
import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from weir.generators.tools import tool
from weir.model.errors import UsageError
from weir.model.load import LoadPlan, Profile, Request
from weir.model.run import GENERATOR, WEIR, Arm, Cell, Placement
from weir.scenario import read_scenario, scenario_plan
from weir.services.manifest import read_service
from weir.stacks.external import ExternalStack
from weir.stacks.manifest import Needed, Stack, read_stack
from weir.stacks.workload import Workload, read_workload, workload_files
from weir.study.ceiling import ceilings
from weir.study.file import StudyFile
from weir.study.load import LoadTable
from weir.study.matrix import DEFAULT_VARIANT
from weir.study.method import Method
from weir.study.scenario_digest import scenario_digest
from weir.toml_file import validate

ASSUMED_OVERHEAD_S = 1.5
"""Start, check and stop of a stack where no pilot has measured them: Flask takes 0.5 s, Sanic 1.2 s, a JVM two to three."""
Coordinates = Mapping[str, frozenset[Any]]
"""What describes a cell for `override.where`: several values where it has several names."""


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell with what it needs to be run."""

    cell: Cell
    stack: Stack | ExternalStack
    workload: Workload
    load: LoadTable
    """How its trials are loaded, overrides applied."""
    method: Method
    """How its trials are run, overrides applied."""
    scenario: dict[str, Any] | None = None
    """What users do, in the plan's form."""
    services: Mapping[str, Needed] = field(default_factory=dict)
    """What must run beside the stack, with the study's settings over its own."""

    @property
    def asked(self) -> tuple[object, ...]:
        """Who makes its requests, and how: the generator's ceiling depends on that, and not on the stack."""
        how = self.load.keep_alive, self.load.pipeline, self.load.kernel_timestamps
        return self.cell.generator, self.workload.id, self.cell.load.connections, *how

    @property
    def trial_s(self) -> float:
        """How long a trial takes by the plan, in seconds, if its load need not be extended."""
        return self.load.duration_s + self.method.prime_s + self.method.pause_s + ASSUMED_OVERHEAD_S

    def request(self, base_url: str) -> Request:
        """What its load asks of a process of the stack: the same in every trial."""
        return self.workload.draw(base_url, random.Random(self.method.seed), path=self.stack.path_of(self.workload.id))

    def unable(self) -> str | None:
        """Why its generator cannot make its load, a sentence; None: it can."""
        if self.cell.generator == WEIR:
            return None
        request = self.request("http://127.0.0.1:1")
        targets = (request.target,) * self.cell.replicas if self.cell.replicas > 1 else ()
        plan = self.plan(request, targets=targets, duration_s=self.load.duration_s, interval_s=0.1, cpus=(0,))
        return tool(self.cell.generator).cannot(plan)

    def placed(self, placement: Placement) -> Placement:
        """The run's placement, with as many of the stack's CPUs as this cell asks for: those of an external stack are its own.

        The last ones, since CPU 0 takes most interrupts.
        """
        if isinstance(self.stack, ExternalStack):
            return replace(placement, stack=self.stack.cpus(), limits={}, network=None)
        return placement if self.cell.cpus is None else replace(placement, stack=placement.stack[-self.cell.cpus :])

    def plan(self, request: Request, *, targets: tuple[str, ...], duration_s: float, interval_s: float, cpus: tuple[int, ...]) -> LoadPlan:
        """The load of a trial, but for what `request` asks.

        Args:
            request: the workload's request, to the first process of the stack.
            targets: the URL of each process, where there are several.
            duration_s: how long.
            interval_s: length of an interval.
            cpus: the generator's CPUs, a thread each.
        """
        # The path of a scenario's target stands before those of its steps, and the workload's is none of theirs.
        asked = request if self.scenario is None else replace(request, target=urljoin(request.target, "/"))
        return LoadPlan(
            request=asked,
            load=self.cell.load,
            duration_s=duration_s,
            timeout_s=self.load.timeout_s,
            interval_s=interval_s,
            expected_status=None if self.scenario else (self.workload.answer.status,),
            threads=len(cpus),
            cpus=cpus,
            targets=targets,
            keep_alive=self.load.keep_alive,
            pipeline=self.load.pipeline,
            requests=self.load.requests,
            until_first_failure=self.load.until_first_failure,
            kernel_timestamps=self.load.kernel_timestamps,
            seed=self.method.seed,
            scenario=self.scenario,
        )


def planned_cells(
    file: StudyFile,
    path: Path,
    stack_cpus: int,
    *,
    left_out: Collection[str] = (),
    left_out_generators: Collection[str] = (),
) -> list[PlannedCell]:
    """Every cell of the matrix, the A/A arm's included.

    Args:
        file: the study file.
        path: where it lies: its scenarios are relative to it, and messages name it.
        stack_cpus: the number of CPUs that a stack gets where the study does not say, for limits that follow it.
        left_out: labels of stacks that are not run.
        left_out_generators: generators that are not run.

    Raises:
        UsageError: a stack, workload or limit does not exist, keys contradict each other, an override matches nothing, or a generator
            cannot make a load.
    """
    try:
        cells = _Crossing(file, path, stack_cpus).cells()
        return _numbered([one for one in cells if one.stack.label not in left_out and one.cell.generator not in left_out_generators])
    except UsageError as error:
        if error.message.startswith(str(path)):
            raise
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from None


class _Crossing:
    def __init__(self, file: StudyFile, path: Path, stack_cpus: int) -> None:
        self._file = file
        self._path = path
        self._stack_cpus = stack_cpus
        self._matched: set[int] = set()

    def cells(self) -> list[PlannedCell]:
        matrix, method = self._file.matrix, self._file.method
        main = self._stacks()
        arms: list[tuple[Stack | ExternalStack, Arm]] = [(stack, "main") for stack in main]
        labels = [stack.label for stack in main]
        for key, label in (("method.baseline", method.baseline), ("method.aa", method.aa)):
            if label is not None and label not in labels and not any(stack.id == label for stack in main):
                raise UsageError(f"{key}: found {label!r}, expected one of the stacks of the matrix: {', '.join(labels)}")
        if method.aa is not None:
            copied = next((stack for stack in main if stack.label == method.aa), None)
            arms.append((copied or next(stack for stack in main if stack.id == method.aa), "aa"))
        self._check_limits(main)
        self._check_services(main)
        planned = [cell for stack, arm in arms for workload_id in matrix.workloads for cell in self._of_stack(stack, arm, workload_id)]
        known = {
            "workload",
            "connections",
            *(["rates_rps"] if matrix.rates_rps else []),
            *planned[0].cell.coordinates,
            *matrix.limits,
            *matrix.services,
        }
        for index, figure in enumerate(self._file.published):
            for key in figure.where:
                if key not in known:
                    raise UsageError(f"published.{index}.where.{key}: unknown key; expected one of: {', '.join(sorted(known))}")
        for index, override in enumerate(self._file.override):
            if index not in self._matched:
                raise UsageError(
                    f"override.{index}.where: found {override.where!r}, which describes no cell; expected values of the matrix"
                )
        return _numbered(_with_conditions(planned))

    def _stacks(self) -> list[Stack | ExternalStack]:
        matrix = self._file.matrix
        wanted = set(matrix.variants) - {DEFAULT_VARIANT}
        found: list[Stack | ExternalStack] = []
        for label in matrix.stacks:
            external = self._file.external.get(label)
            if external is not None:
                found.append(self._external(label))
                continue
            stack = read_stack(label)
            has = [name for name in matrix.variants if name == DEFAULT_VARIANT or name in stack.manifest.variants]
            if stack.variant is not None or not wanted & set(has):
                found.append(stack)
            else:
                found += [stack if name == DEFAULT_VARIANT else read_stack(f"{stack.id}[{name}]") for name in has]
        offered = {name for stack in found if isinstance(stack, Stack) for name in stack.manifest.variants}
        if nobodys := sorted(wanted - offered):
            raise UsageError(
                f"matrix.variants: found {', '.join(nobodys)}, which no stack of the matrix has; "
                f"they have: {', '.join(sorted(offered)) or 'none'}",
                hint="weir stacks list",
            )
        labels = [stack.label for stack in found]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise UsageError(
                f"matrix.stacks: found {', '.join(twice)} twice, by its name and by matrix.variants; expected every stack once"
            )
        return found

    def _external(self, name: str) -> ExternalStack:
        external = self._file.external[name]
        try:
            read_stack(name)
        except UsageError:
            pass
        else:
            raise UsageError(f"external.{name}: found the name of a stack that weir has, expected another name", hint="weir stacks list")
        stack = ExternalStack(
            id=name,
            url=external.url,
            pids=tuple(external.pids),
            serves=tuple(external.serves),
            title=external.title or name,
            model=external.model,
        )
        if missing := stack.gone():
            raise UsageError(
                f"external.{name}.pids: found {', '.join(map(str, missing))}, of which no process runs; expected its process ids"
            )
        return stack

    def _check_limits(self, stacks: Iterable[Stack | ExternalStack]) -> None:
        offered = {name for stack in stacks if isinstance(stack, Stack) for name in stack.limits}
        for name in self._file.matrix.limits:
            if name not in offered:
                raise UsageError(
                    f"matrix.limits.{name}: found a limit that no stack of the matrix has; "
                    f"they have: {', '.join(sorted(offered)) or 'none'}",
                    hint="weir stacks list --json",
                )

    def _check_services(self, stacks: Iterable[Stack | ExternalStack]) -> None:
        needed = {name for stack in stacks if isinstance(stack, Stack) for name in stack.services}
        for key in self._file.matrix.services:
            service, dot, setting = key.partition(".")
            if service not in needed or not dot or not setting:
                raise UsageError(
                    f"matrix.services.{key}: found a setting of no service that a stack of the matrix needs, expected SERVICE.SETTING; "
                    f"they need: {', '.join(sorted(needed)) or 'none'}",
                    hint="weir stacks list",
                )
        for name in self._file.services:
            if name not in needed:
                raise UsageError(
                    f"services.{name}: found a service that no stack of the matrix needs; they need: {', '.join(sorted(needed)) or 'none'}",
                    hint="weir stacks list",
                )

    def _services_of(self, stack: Stack | ExternalStack, workload: Workload, varied: Mapping[str, str]) -> dict[str, Needed]:
        found = {}
        for name, needed in stack.services_for(workload).items():
            mine = {key.partition(".")[2]: value for key, value in varied.items() if key.partition(".")[0] == name}
            found[name] = needed.model_copy(update={"settings": {**needed.settings, **self._file.services.get(name, {}), **mine}})
            try:
                read_service(name).check(found[name].settings)
            except ValueError as error:
                raise UsageError(f"services.{name}: {error}") from None
        return found

    def _of_stack(self, stack: Stack | ExternalStack, arm: Arm, workload_id: str) -> Iterator[PlannedCell]:
        matrix = self._file.matrix
        workload = self._workload(workload_id)
        if workload_id not in stack.serves:
            raise UsageError(
                f"matrix.workloads: found {workload_id!r}, which {stack.label} does not serve; it serves: {', '.join(stack.serves)}",
                hint="weir stacks list",
            )
        if isinstance(stack, Stack):
            limits = {name: values for name, values in matrix.limits.items() if name in stack.limits}
            started: tuple[list[int], list[int] | list[None]] = (matrix.replicas, matrix.cpus or [None])
        else:
            # What weir did not start has the processes, the settings and the CPUs that it has.
            limits, started = {}, ([1], [None])
        needed = stack.services_for(workload)
        served = {key: values for key, values in matrix.services.items() if key.partition(".")[0] in needed}
        for amount, values, settings, (replicas, cpus), generator in product(
            matrix.amounts(), product(*limits.values()), product(*served.values()), product(*started), matrix.generators
        ):
            chosen = dict(zip(limits, values, strict=True))
            varied = dict(zip(served, settings, strict=True))
            coordinates: dict[str, str] = {name: str(value) for name, value in chosen.items()} | varied
            if isinstance(stack, Stack):
                coordinates |= {"replicas": str(replicas)} if len(matrix.replicas) > 1 else {}
                coordinates |= {} if cpus is None else {"cpus": str(cpus)}
            coordinates |= {GENERATOR: generator} if len(matrix.generators) > 1 else {}
            where = _described(stack, workload_id, amount, {**chosen, **varied}, replicas, cpus, generator)
            load, method = self._overridden(where)
            scenario = self._scenario(load)
            cell = Cell(
                id=0,
                stack=stack.id,
                variant=stack.variant,
                workload=workload_id,
                load=load.of(amount),
                arm=arm,
                title=stack.title,
                model=stack.model,
                settings=stack.settings(max(1, (cpus or self._stack_cpus) // replicas), chosen),
                replicas=replicas,
                cpus=cpus,
                started=isinstance(stack, Stack),
                generator=generator,
                coordinates=coordinates,
            )
            _check_replicas(cell, load)
            services = self._services_of(stack, workload, varied)
            # What users of a scenario ask, and what an external server holds, is not known beforehand.
            if isinstance(stack, Stack) and scenario is None:
                cell = replace(cell, ceilings=ceilings(cell, load, stack.limits, services))
            planned = PlannedCell(cell, stack, workload, load, method, scenario, services)
            if (why := planned.unable()) is not None:
                raise UsageError(
                    f"matrix.generators: found {generator!r} for {cell.load.label} on {workload_id}: {why}",
                    hint="docs/guides/generators.md says which generator can make which load",
                )
            yield planned

    def _workload(self, name: str) -> Workload:
        own = self._file.workload.get(name)
        if own is None:
            return read_workload(name)
        if name in (path.stem for path in workload_files()):
            raise UsageError(f"workload.{name}: found the name of a workload that weir has, expected another name")
        return own.named(name)

    def _scenario(self, load: LoadTable) -> dict[str, Any] | None:
        match load.scenario:
            case None:
                return None
            case str(file):
                return read_scenario(self._path.parent / file)
            case table:
                return scenario_plan(table, self._path, below="load.scenario.")

    def _overridden(self, where: Coordinates) -> tuple[LoadTable, Method]:
        load, method = self._file.load.model_dump(exclude_unset=True), self._file.method.model_dump(exclude_unset=True)
        for index, override in enumerate(self._file.override):
            for key in override.where:
                if key not in where and key not in self._file.matrix.limits and key not in self._file.matrix.services:
                    near = difflib.get_close_matches(key, where, n=1)
                    guess = f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(sorted(where))}"
                    raise UsageError(f"override.{index}.where.{key}: unknown key; {guess}")
            if override.describes(where):
                self._matched.add(index)
                prefix = f"override.{index}."
                load |= override.load
                method |= override.method
                validate(LoadTable, load, path=self._path, below=prefix + "load.")
                validate(Method, method, path=self._path, below=prefix + "method.")
        return LoadTable.model_validate(load), Method.model_validate(method)


def _described(
    stack: Stack | ExternalStack,
    workload: str,
    amount: Mapping[str, Profile | int],
    settings: Mapping[str, int | str],
    replicas: int,
    cpus: int | None,
    generator: str,
) -> Coordinates:
    where: dict[str, frozenset[Any]] = {
        "stack": frozenset({stack.id, stack.label}),
        "variant": frozenset({stack.variant or DEFAULT_VARIANT}),
        "workload": frozenset({workload}),
        "replicas": frozenset({replicas}),
        "cpus": frozenset() if cpus is None else frozenset({cpus}),
        GENERATOR: frozenset({generator}),
    }
    where |= {key: frozenset({value}) for key, value in amount.items()}
    return where | {name: frozenset({value}) for name, value in settings.items()}


def _check_replicas(cell: Cell, load: LoadTable) -> None:
    if cell.replicas == 1:
        return
    if load.scenario is not None:
        raise UsageError("load.scenario: found beside matrix.replicas above 1, expected one process: a scenario has one target")
    if cell.load.connections < cell.replicas:
        raise UsageError(
            f"matrix.replicas: found {cell.replicas} for {cell.load.connections} connections, expected a connection for each process"
        )


def _with_conditions(planned: list[PlannedCell]) -> list[PlannedCell]:
    """Coordinates for what overrides ask of some cells in another way: cells that are asked differently are not compared."""
    conditions = [
        {
            "keep-alive": "on" if one.load.keep_alive else "off",
            "pipeline": str(one.load.pipeline),
            "kernel timestamps": "on" if one.load.kernel_timestamps else "off",
            "scenario": "none" if one.scenario is None else f"{_scenario_name(one.load)} {scenario_digest(one.scenario)}",
        }
        for one in planned
    ]
    # A scenario stands there always, so that a run is not resumed with another one.
    differing = [
        key for key in conditions[0] if len({one[key] for one in conditions}) > 1 or (key == "scenario" and conditions[0][key] != "none")
    ]
    return [
        replace(one, cell=replace(one.cell, coordinates=one.cell.coordinates | {key: mine[key] for key in differing}))
        for one, mine in zip(planned, conditions, strict=True)
    ]


def _scenario_name(load: LoadTable) -> str:
    return Path(load.scenario).stem if isinstance(load.scenario, str) else "its own"


def _numbered(planned: list[PlannedCell]) -> list[PlannedCell]:
    return [replace(one, cell=replace(one.cell, id=number)) for number, one in enumerate(planned, start=1)]
