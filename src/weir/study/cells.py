"""Plans the cells of a study: combines the values of the matrix, applies overrides, and rejects contradictions."""

import difflib
import hashlib
import json
import random
import shlex
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from weir.generators.registry import get_tool
from weir.generators.scripted.script_settings import has_pauses
from weir.generators.scripted.tools import SCRIPT_TOOLS
from weir.load_spec import KEY_NAMES, PEM_SETTINGS, LoadSpec
from weir.model.errors import InvalidValueError, UsageError
from weir.model.load import ClosedLoad, LoadPlan, Request, Tls
from weir.model.run_types import GENERATOR, WEIR, Arm, Cell, Placement
from weir.parsing import parse_pem_path
from weir.scenario import parse_scenario, read_scenario
from weir.services.manifest import read_service
from weir.stacks.manifest import Needed, Stack, list_manifest_files, read_stack
from weir.stacks.unmanaged import ExternalStack
from weir.stacks.workload import Workload, read_workload
from weir.study.cell_bounds import find_upper_bounds
from weir.study.file import Method, StudyFile
from weir.study.load import LoadTable
from weir.study.matrix import DEFAULT_VARIANT
from weir.toml_file import list_data_files, name_place, validate

ASSUMED_OVERHEAD_S = 1.5
"""Assumed seconds to start, check and stop a stack. Flask takes 0.5 s, Sanic 1.2 s, and a JVM 2 to 3 s."""


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell with the stack, workload, load and settings of its trials."""

    cell: Cell
    stack: Stack | ExternalStack
    workload: Workload
    load: LoadSpec
    """Load settings after the study's overrides."""
    method: Method
    """Table `[method]` after the study's overrides."""
    services: Mapping[str, Needed] = field(default_factory=dict)
    """The stack's services. Settings of the study replace settings of the services' manifests."""
    table: LoadTable | None = None
    """Table `[load]` after the study's overrides. None if the cell does not come from a study file."""
    script: tuple[str, ...] = ()
    """The absolute path of the generator's script, and further arguments. Empty: the load has no script."""

    @property
    def duration_s(self) -> float:
        """Duration of the measured load in seconds, without an extension."""
        assert self.load.duration_s is not None
        return self.load.duration_s

    @property
    def load_key(self) -> tuple[object, ...]:
        """Properties that determine the generator's limit. Cells with equal keys share one measurement of the limit."""
        how = self.load.keep_alive, self.load.pipeline, self.load.kernel_timestamps
        return self.cell.generator, self.workload.id, self.cell.load.connections, *how

    @property
    def trial_s(self) -> float:
        """Planned duration of a trial in seconds, without an extension."""
        return self.duration_s + self.method.warmup_s + self.method.pause_s + ASSUMED_OVERHEAD_S

    @property
    def extension_s(self) -> float:
        """Maximum additional seconds of a load to reach a steady state."""
        return self.duration_s if self.method.extension_s is None else self.method.extension_s

    @property
    def name(self) -> str:
        """Returns the title of the stack, or its label if it has no title."""
        return self.stack.title or self.stack.label

    @property
    def tls(self) -> Tls | None:
        return self.load.to_tls(KEY_NAMES)

    def request(self, base_url: str) -> Request:
        """Returns the load's request to a process of the stack. The request is the same in every trial."""
        path = self.stack.find_path(self.workload.id)
        return self.workload.draw(base_url, random.Random(self.method.seed), path=path)

    def find_unsupported(self) -> str | None:
        """Returns the reason why the generator does not support the load; None if the generator supports the load."""
        if self.script and self.cell.generator not in SCRIPT_TOOLS:
            return f"load.script needs one of {', '.join(SCRIPT_TOOLS)}."
        if self.script or self.cell.generator == WEIR:
            return None
        request = self.request("http://127.0.0.1:1")
        targets = (request.target,) * self.cell.replicas if self.cell.replicas > 1 else ()
        plan = self.plan(request, targets=targets, duration_s=self.duration_s, interval_s=0.1, cpus=(0,))
        return get_tool(self.cell.generator).unsupported_reason(plan)

    def restrict_placement(self, placement: Placement) -> Placement:
        """Returns the run's placement with only this cell's number of CPUs for the stack. weir takes the stack's last
        CPUs, because CPU 0 handles most interrupts. An external server keeps the CPUs of its processes."""
        if isinstance(self.stack, ExternalStack):
            return replace(placement, stack=self.stack.cpus(), limits={}, network=None)
        return placement if self.cell.cpus is None else replace(placement, stack=placement.stack[-self.cell.cpus :])

    def plan(
        self, request: Request, *, targets: tuple[str, ...], duration_s: float, interval_s: float, cpus: tuple[int, ...]
    ) -> LoadPlan:
        """Returns the plan of a trial's load. The plan sends `request` to the first process of the stack. If the stack
        has several processes, `targets` contains each process's URL. The generator has one thread on each of `cpus`."""
        # The engine appends the paths of a scenario's steps to the path of the target.
        has_steps = self.load.scenario is not None
        own = {"seed": self.method.seed, "threads": len(cpus), "cpus": cpus}
        return LoadPlan(
            request=replace(request, target=urljoin(request.target, "/")) if has_steps else request,
            load=self.cell.load,
            duration_s=duration_s,
            interval_s=interval_s,
            expected_status=None if has_steps else (self.workload.answer.status,),
            targets=targets,
            script=self.script,
            tls=self.tls if request.target.startswith("https:") else None,
            **self.load.plan_options | own,
        )


def plan_cells(
    file: StudyFile,
    path: Path,
    shown_path: Path | None,
    stack_cpus: int,
    *,
    omitted_stacks: Set[str],
    omitted_generators: Set[str],
) -> list[PlannedCell]:
    """Returns the cells of the matrix, and second copies of the cells of `method.aa`. Paths of scenarios are relative
    to the study file `path`; messages show `shown_path`. `stack_cpus`: default number of a stack's CPUs. Raises
    UsageError for unknown names, contradictory keys, overrides without a matching cell, and loads that a generator does
    not support."""
    try:
        cells = _CellPlanner(file, path, shown_path, stack_cpus).cells()
        kept = [one for one in cells if one.stack.label not in omitted_stacks]
        return number_cells(one for one in kept if one.cell.generator not in omitted_generators)
    except UsageError as error:
        place = name_place(shown_path)
        if error.message.startswith(place):
            raise
        raise UsageError(f"{place}{error.message}", hint=error.hint) from None


@dataclass(slots=True)
class _CellPlanner:
    _file: StudyFile
    _path: Path
    _shown_path: Path | None
    _stack_cpus: int
    _matched: set[int] = field(default_factory=set)
    """Indices of the overrides that match a cell."""

    def cells(self) -> list[PlannedCell]:
        matrix, method = self._file.matrix, self._file.method
        main = self._stacks()
        arms: list[tuple[Stack | ExternalStack, Arm]] = [(stack, "main") for stack in main]
        labels = [stack.label for stack in main]
        for key, label in (("method.baseline", method.baseline), ("method.aa", method.aa)):
            if label is not None and label not in {*labels, *(stack.id for stack in main)}:
                raise UsageError(f"{key}: found {label!r}, expected a stack of the matrix: {', '.join(labels)}")
        if method.aa is not None:
            by_name = {stack.id: stack for stack in reversed(main)} | {stack.label: stack for stack in main}
            arms.append((by_name[method.aa], "aa"))
        self._check_limits(main)
        self._check_services(main)
        planned = [
            cell
            for stack, arm in arms
            for workload_id in matrix.workloads
            for cell in self._cross_factors(stack, arm, workload_id)
        ]
        known = {"workload", "connections", *planned[0].cell.coordinates, *matrix.limits, *matrix.services}
        if matrix.rate_rps:
            known.add("rate_rps")
        for index, figure in enumerate(self._file.published):
            for key in figure.where.keys() - known:
                raise UsageError(f"published.{index}.where.{key}: unknown key; expected one of: {_list(known)}")
        for index, override in enumerate(self._file.override):
            if index not in self._matched:
                found = f"found {override.where!r}, which does not match any cell"
                raise UsageError(f"override.{index}.where: {found}; expected values from the matrix")
        return number_cells(_add_conditions(planned))

    def _stacks(self) -> list[Stack | ExternalStack]:
        matrix = self._file.matrix
        wanted = set(matrix.variants) - {DEFAULT_VARIANT}
        found: list[Stack | ExternalStack] = []
        for label in matrix.stacks:
            if label in self._file.external:
                found.append(self._external(label))
                continue
            if (server := self._file.server.get(label)) is not None:
                self._require_new_name("server", label)
                found.append(server.to_stack(label, self._path.parent))
                continue
            stack = read_stack(label)
            has = [name for name in matrix.variants if name == DEFAULT_VARIANT or name in stack.manifest.variants]
            if stack.variant is not None or not wanted & set(has):
                found.append(stack)
            else:
                found += [stack if name == DEFAULT_VARIANT else read_stack(f"{stack.id}[{name}]") for name in has]
        offered = {name for stack in found if isinstance(stack, Stack) for name in stack.manifest.variants}
        if unknown := wanted - offered:
            expected = f"expected variants of the stacks: {_list(offered)}"
            raise UsageError(f"matrix.variants: found {_list(unknown)}, {expected}", hint="weir stacks list")
        labels = [stack.label for stack in found]
        if twice := {label for label in labels if labels.count(label) > 1}:
            by = "twice, by name and from matrix.variants"
            raise UsageError(f"matrix.stacks: found {_list(twice)} {by}; expected every stack once")
        return found

    def _external(self, name: str) -> ExternalStack:
        external = self._file.external[name]
        self._require_new_name("external", name)
        title, pids, serves = external.title or name, tuple(external.pids), tuple(external.serves)
        stack = ExternalStack(name, external.url, pids, serves, title=title, model=external.model)
        if missing := stack.find_ended_pids():
            found = ", ".join(map(str, missing))
            raise UsageError(f"external.{name}.pids: found {found}, expected ids of running processes")
        return stack

    def _require_new_name(self, table: str, name: str) -> None:
        if name in {path.parent.name for path in list_manifest_files()}:
            taken = f"{table}.{name}: found the name of a built-in stack, expected another name"
            raise UsageError(taken, hint="weir stacks list")

    def _check_limits(self, stacks: Iterable[Stack | ExternalStack]) -> None:
        offered = {name for stack in stacks if isinstance(stack, Stack) for name in stack.limits}
        for name in self._file.matrix.limits.keys() - offered:
            found = f"found a limit that no stack of the matrix has, expected one of: {_list(offered)}"
            raise UsageError(f"matrix.limits.{name}: {found}", hint="weir stacks list --json")

    def _check_services(self, stacks: Iterable[Stack | ExternalStack]) -> None:
        needed = {name for stack in stacks if isinstance(stack, Stack) for name in stack.services}
        for key in self._file.matrix.services:
            service, dot, setting = key.partition(".")
            if service not in needed or not dot or not setting:
                expected = f"expected SERVICE.SETTING, with SERVICE one of: {_list(needed)}"
                raise UsageError(f"matrix.services.{key}: found {key!r}, {expected}", hint="weir stacks list")
        for name in self._file.services.keys() - needed:
            found = f"found a service that no stack of the matrix needs, expected one of: {_list(needed)}"
            raise UsageError(f"services.{name}: {found}", hint="weir stacks list")

    def _configure_services(self, services: Mapping[str, Needed], varied: Mapping[str, str]) -> dict[str, Needed]:
        found = {}
        for name, needed in services.items():
            mine = {key.partition(".")[2]: value for key, value in varied.items() if key.partition(".")[0] == name}
            settings = needed.settings | self._file.services.get(name, {}) | mine
            found[name] = needed.model_copy(update={"settings": settings})
            try:
                read_service(name).check(settings)
            except ValueError as error:
                raise UsageError(f"services.{name}: {error}") from None
        return found

    def _cross_factors(self, stack: Stack | ExternalStack, arm: Arm, workload_id: str) -> Iterator[PlannedCell]:
        matrix = self._file.matrix
        workload = self._workload(workload_id)
        if workload_id not in stack.serves:
            found = f"found {workload_id!r}, expected a workload of {stack.label}: {', '.join(stack.serves)}"
            raise UsageError(f"matrix.workloads: {found}", hint="weir stacks list")
        if isinstance(stack, Stack):
            limits = {name: values for name, values in matrix.limits.items() if name in stack.limits}
            started: tuple[list[int], list[int] | list[None]] = (matrix.replicas, matrix.cpus or [None])
        else:
            # weir cannot change the processes, settings and CPUs of an external server.
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
            single = {"workload": workload_id, "replicas": replicas, GENERATOR: generator, **amount, **chosen, **varied}
            where: dict[str, frozenset[Any]] = {key: frozenset({value}) for key, value in single.items()} | {
                "stack": frozenset({stack.id, stack.label}),
                "variant": frozenset({stack.variant or DEFAULT_VARIANT}),
                "cpus": frozenset() if cpus is None else frozenset({cpus}),
            }
            load_table, method = self._apply_overrides(where)
            load = self._find_pem_files(load_table.to_spec(amount, self._scenario(load_table)))
            arrivals = load.to_load(KEY_NAMES)
            load.to_tls(KEY_NAMES)
            load.check_pipeline(arrivals, KEY_NAMES)
            cell = Cell(
                id=0,
                stack=stack.id,
                variant=stack.variant,
                workload=workload_id,
                load=arrivals,
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
            services = self._configure_services(needed, varied)
            # The requests of a scenario and the limits of an external server are unknown in advance.
            if isinstance(stack, Stack) and load.scenario is None:
                cell = replace(cell, upper_bounds=find_upper_bounds(cell, load, stack.limits, services))
            script = self._script(load_table)
            if script:
                # weir knows neither the requests nor the pauses of a script.
                cell = replace(cell, upper_bounds=())
                if isinstance(arrivals, ClosedLoad) and has_pauses(generator, Path(script[0])):
                    cell = replace(cell, load=replace(arrivals, has_pauses=True))
            planned = PlannedCell(cell, stack, workload, load, method, services, load_table, script)
            if (why := planned.find_unsupported()) is not None:
                found = f"matrix.generators: found {generator!r} for {cell.load.label} on {workload_id}: {why}"
                raise UsageError(found, hint="choose a load that docs/guides/generators.md lists for the generator")
            yield planned

    def _workload(self, name: str) -> Workload:
        own = self._file.workload.get(name)
        if own is None:
            return read_workload(name)
        if name in list_data_files("workloads"):
            raise UsageError(f"workload.{name}: found the name of a built-in workload, expected another name")
        return own.to_workload(name)

    def _scenario(self, load: LoadTable) -> dict[str, Any] | None:
        match load.scenario_source:
            case None:
                return None
            case str(file):
                return read_scenario(self._path.parent / file)
            case table:
                return parse_scenario(table, self._path, below="load.scenario.")

    def _find_pem_files(self, load: LoadSpec) -> LoadSpec:
        """Returns the load with absolute paths of its PEM files, which are relative to the study file."""
        found: dict[str, Any] = {}
        for name in PEM_SETTINGS:
            if (file := getattr(load, name)) is not None:
                try:
                    found[name] = parse_pem_path(str(self._path.parent / file))
                except InvalidValueError as error:
                    raise error.at(KEY_NAMES[name]) from None
        return replace(load, **found)

    def _script(self, load: LoadTable) -> tuple[str, ...]:
        if load.script is None:
            return ()
        try:
            script, *rest = shlex.split(load.script)
        except ValueError as error:
            raise UsageError(f"load.script: found {load.script!r}, expected a script and arguments: {error}") from None
        path = self._path.parent / script
        if not path.is_file():
            raise UsageError(
                f"load.script: {path}: found no such file, expected a JMeter plan, k6 script or locustfile"
            )
        return str(path.absolute()), *rest

    def _apply_overrides(self, where: Mapping[str, frozenset[Any]]) -> tuple[LoadTable, Method]:
        load, method = self._file.load.model_dump(exclude_unset=True), self._file.method.model_dump(exclude_unset=True)
        for index, override in enumerate(self._file.override):
            for key in override.where:
                if key not in where and key not in self._file.matrix.limits and key not in self._file.matrix.services:
                    near = difflib.get_close_matches(key, where, n=1)
                    guess = f"did you mean {near[0]!r}?" if near else f"expected one of: {_list(where)}"
                    raise UsageError(f"override.{index}.where.{key}: unknown key; {guess}")
            if override.matches(where):
                self._matched.add(index)
                load |= override.load
                method |= override.method
                validate(LoadTable, load, path=self._shown_path, below=f"override.{index}.load.")
                validate(Method, method, path=self._shown_path, below=f"override.{index}.method.")
        return LoadTable.model_validate(load), Method.model_validate(method)


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _check_replicas(cell: Cell, load: LoadSpec) -> None:
    if cell.replicas == 1:
        return
    if load.scenario is not None:
        raise UsageError("load.scenario: found together with matrix.replicas above 1, expected matrix.replicas = 1")
    if (connections := cell.load.connections) < cell.replicas:
        expected = "expected at least one connection for each process"
        raise UsageError(f"matrix.replicas: found {cell.replicas} processes for {connections} connections, {expected}")


def _add_conditions(planned: list[PlannedCell]) -> list[PlannedCell]:
    """Adds a coordinate for each load option that differs between cells, because weir compares only equal options."""
    conditions = [
        {
            "keep-alive": "on" if one.load.keep_alive else "off",
            "retry": "on" if one.load.retry else "off",
            "pipeline": str(one.load.pipeline),
            "kernel timestamps": "on" if one.load.kernel_timestamps else "off",
            "scenario": _describe_scenario(one.load),
            "script": _describe_script(one.script),
        }
        for one in planned
    ]
    # Added even if all cells agree: weir resumes a run only with the same values, and the audit reads the pipeline.
    always = {"pipeline": "1", "scenario": "none", "script": "none"}
    differing = [
        key
        for key, first in conditions[0].items()
        if any(one[key] != first for one in conditions) or first != always.get(key, first)
    ]
    found = []
    for one, mine in zip(planned, conditions, strict=True):
        coordinates = one.cell.coordinates | {key: mine[key] for key in differing}
        found.append(replace(one, cell=replace(one.cell, coordinates=coordinates)))
    return found


def _describe_scenario(load: LoadSpec) -> str:
    """Returns the scenario's name and eight digits of a digest. The digest covers the content of the scenario and of
    its feeder files, but not the folders of the feeder files."""
    plan = load.scenario
    if plan is None:
        return "none"
    feeders = plan.get("feeders", {})
    digest = hashlib.sha256()
    for feeder in feeders.values():
        digest.update(Path(feeder["file"]).read_bytes())
    without_folders = {name: feeder | {"file": Path(feeder["file"]).name} for name, feeder in feeders.items()}
    digest.update(json.dumps(plan | {"feeders": without_folders}, sort_keys=True).encode())
    name = "its own" if load.scenario_file is None else Path(load.scenario_file).stem
    return f"{name} {digest.hexdigest()[:8]}"


def _describe_script(script: tuple[str, ...]) -> str:
    """Returns the script's name, its arguments, and eight digits of a digest of its content."""
    if not script:
        return "none"
    path, *rest = script
    return shlex.join([Path(path).name, *rest, hashlib.sha256(Path(path).read_bytes()).hexdigest()[:8]])


def number_cells(planned: Iterable[PlannedCell], first: int = 1) -> list[PlannedCell]:
    """Returns the cells with consecutive ids. The first id is `first`."""
    return [replace(one, cell=replace(one.cell, id=number)) for number, one in enumerate(planned, start=first)]
