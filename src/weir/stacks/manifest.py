"""A stack's manifest, `stack.toml`: how it is built, started and reached, and what it serves.

`{port}`, `{python}` and the like are filled in by `filled`; nothing else in a manifest is interpreted.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from weir.model.errors import UsageError
from weir.model.needs import Unmet
from weir.model.variables import Variable
from weir.places import data_folder
from weir.services.dataset import read_dataset
from weir.services.manifest import StandbyService, read_service, service_ids
from weir.services.needs import unmet_by_machine
from weir.stacks.runtime import Runtime, implied_runtime
from weir.stacks.tools import NEED, unmet_needs
from weir.stacks.workload import Workload
from weir.toml_file import Table, read_toml, validate

_FIELD = re.compile(r"\{([a-z0-9_.-]+)\}")
RUN_FIELDS = frozenset({"address", "port", "artifact", "cpus", "python"})
"""What a run command and its environment may ask for: the address and the port to listen on, the built artifact, the number of CPUs, weir's
Python; and of each of the stack's services its `fields`, as in `{postgres.url}`."""
BUILD_FIELDS = frozenset({"python", "npm"})
"""weir's Python, and the npm of the Node that is used."""


def _check_needs(needs: list[str]) -> list[str]:
    for need in needs:
        if NEED.fullmatch(need) is None:
            raise ValueError(f"{need!r}: expected a tool, 'mvn', or with the oldest version that will do, 'java>=17'")
    return needs


Needs = Annotated[list[str], AfterValidator(_check_needs)]
"""Tools that must be there: `mvn`, `java>=17`."""


class Build(Table):
    """How the stack is built, once per content of what it is made from, in a copy of its folder in the cache."""

    command: str
    """Run by `sh`, with the copy as its working directory."""
    artifact: str | None = None
    """File or folder that the build leaves, relative to the copy; its size is reported."""
    beside: list[str] = Field(default_factory=list)
    """What the build takes from beside the stack's folder, as patterns: `pom.xml` of a parent, a folder of shared code. Copied beside the
    copy; the build is repeated when it changes."""
    needs: Needs = Field(default_factory=list)
    """Tools that building and running it need, with the oldest version that will do: `["mvn", "java>=17"]`. `weir doctor` looks for
    them."""

    @field_validator("command")
    @classmethod
    def _fields_are_known(cls, command: str) -> str:
        _check_fields(command, BUILD_FIELDS)
        return command

    @field_validator("beside")
    @classmethod
    def _patterns_stay_beside(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            parts = PurePath(pattern).parts
            if not parts or pattern.startswith("/") or ".." in parts or "**" in parts:
                raise ValueError(f"{pattern!r}: expected a file or folder beside the stack's, or a pattern of such: '*/pom.xml'")
        return patterns


class OtherBuild(Table):
    """What differs in the build of a variant; the rest is as the stack's own."""

    command: str
    """In place of the stack's own."""
    artifact: str | None = None
    """In place of the stack's own."""

    @field_validator("command")
    @classmethod
    def _fields_are_known(cls, command: str) -> str:
        _check_fields(command, BUILD_FIELDS)
        return command


class Ready(Table):
    """The stack is ready when this path answers with a status below 500."""

    path: str = "/"
    """What is asked for."""
    timeout_s: float = Field(default=60, gt=0)
    """How long it may take to get there, from its start."""


class Run(Table):
    """How the stack is started, with the built copy as its working directory."""

    command: list[str] = Field(min_length=1)
    """The program and its arguments; a relative program with a slash is of the built copy. `{port}` has to be in it, or in `env`."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables beside the few that every stack is given (environment.md)."""
    ready: Ready = Field(default_factory=Ready)
    runtime: Runtime | Literal["none"] | None = None
    """What runs it, and is told the number of CPUs by its own convention; where not given, what the command and the needs imply."""

    @model_validator(mode="after")
    def _port_is_passed(self) -> "Run":
        if not any("{port}" in text for text in [*self.command, *self.env.values()]):
            raise ValueError("expected '{port}' in the command or the environment: weir chooses the port")
        return self


class Limit(Table):
    """A setting that findings compare concurrency with: workers, threads, a pool. Passed as an argument or in the environment."""

    default: int | Literal["cpus"]
    """`cpus`: as many as the stack has CPUs."""
    arg: str | None = None
    """`--workers={value}`, appended to the command."""
    env: str | None = None
    """The variable's name."""
    requests_each: int | None = Field(default=None, ge=1)
    """How many requests each of these holds at a time, from their start to their end; left out: it bounds none. A stack whose requests wait
    on an upstream answers no more than so many ÷ that wait, which reports draw."""

    @model_validator(mode="after")
    def _is_passed_somehow(self) -> "Limit":
        if (self.arg is None) == (self.env is None):
            raise ValueError("expected either 'arg' or 'env'")
        if self.arg is not None and "{value}" not in self.arg:
            raise ValueError("arg: expected '{value}' in it")
        return self


class Needed(Table):
    """A service that the stack needs."""

    dataset: str | None = None
    """What is in it when the stack starts."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Settings of the server beside its manifest's own: `max_connections = "200"`."""


class Tier(Table):
    """Which process belongs to the tier."""

    root: bool = False
    """The process that weir starts, with everything below it."""


class Serves(Table):
    """A workload that the stack answers."""

    path: str | None = None
    """Only where it differs from the workload's own."""


class Variant(Table):
    """The same stack with other settings."""

    title: str | None = None
    """What reports call it. Default: the stack's title and the variant's name."""
    model: str | None = None
    """In place of the stack's own."""
    args: list[str] = Field(default_factory=list)
    """Appended to the command."""
    env: dict[str, str] = Field(default_factory=dict)
    """Added to the stack's own, or in place of variables that are there."""
    needs: Needs = Field(default_factory=list)
    """Beside those of the build."""
    services: dict[str, Needed] = Field(default_factory=dict)
    """Beside those of the stack."""
    build: OtherBuild | None = None
    """What differs in how it is built, where it is made from other parts."""
    limits: dict[str, Limit] | None = None
    """In place of the stack's own, where it has others."""
    answers_wrong: bool = False
    """Flawed on purpose: `weir stacks check --all` passes where a wrong answer is found, and fails where none is.
    Whoever names the variant is told what is wrong with it."""


class Manifest(Table):
    """The file `stacks/LANGUAGE/NAME/stack.toml`."""

    schema_number: Literal[1] = Field(alias="schema")
    """The version of this format: 1."""
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """The stack's name, which is its folder's as well: small letters, digits and hyphens."""
    title: str
    """What reports call it."""
    model: str
    """How it serves, for reports: "event loop per process, non-blocking I/O"."""
    build: Build | None = None
    """How it is built; left out where it needs no building."""
    run: Run
    limits: dict[str, Limit] = Field(default_factory=dict)
    """Settings that a study may vary, by names of your choice: `workers`, `threads`, `pool`."""
    services: dict[str, Needed] = Field(default_factory=dict)
    """What runs beside it, by the services' names (services.md)."""
    tiers: dict[str, Tier] = Field(default_factory=lambda: {"app": Tier(root=True)})
    """Left out: one tier `app`, which is all that weir starts of the stack."""
    serves: dict[str, Serves] = Field(min_length=1)
    """What it answers, by the workloads' names: `hello = {}`. At least one."""
    variants: dict[str, Variant] = Field(default_factory=dict)
    """The same stack with other settings, each named as `ID[VARIANT]` in studies and at the prompt."""

    @model_validator(mode="after")
    def _one_tier_is_the_root(self) -> "Manifest":
        roots = [name for name, tier in self.tiers.items() if tier.root]
        if len(roots) != 1:
            raise ValueError(f"tiers: found {len(roots)} with 'root = true', expected one")
        return self

    @model_validator(mode="after")
    def _services_and_fields_are_known(self) -> "Manifest":
        _check_services("services", self.services, beside={}, tiers=self.tiers)
        for text in [*self.run.command, *self.run.env.values()]:
            _check_fields(text, _fields_of(self.services))
        for name, variant in self.variants.items():
            _check_services(f"variants.{name}.services", variant.services, beside=self.services, tiers=self.tiers)
            for text in variant.env.values():
                _check_fields(text, _fields_of({**self.services, **variant.services}))
        return self

    @model_validator(mode="after")
    def _a_variant_is_built_as_the_stack_is(self) -> "Manifest":
        for name, variant in self.variants.items():
            if variant.build is not None and self.build is None:
                raise ValueError(f"variants.{name}.build: expected '[build]' of the stack beside it: it says only what differs")
        return self

    @property
    def root_tier(self) -> str:
        """The tier of the process that weir starts."""
        return next(name for name, tier in self.tiers.items() if tier.root)


@dataclass(frozen=True, slots=True)
class Stack:
    """A manifest, where it lies, and the variant of it that is meant."""

    manifest: Manifest
    folder: Path
    variant: str | None = None

    @property
    def id(self) -> str:
        """Its name, without the variant."""
        return self.manifest.id

    @property
    def label(self) -> str:
        """`id` or `id[variant]`."""
        return f"{self.manifest.id}[{self.variant}]" if self.variant else self.manifest.id

    def variants(self) -> tuple["Stack", ...]:
        """Its variants, each a stack."""
        return tuple(Stack(self.manifest, self.folder, name) for name in self.manifest.variants)

    @property
    def serves(self) -> tuple[str, ...]:
        """The workloads that it answers."""
        return tuple(self.manifest.serves)

    @property
    def services(self) -> dict[str, Needed]:
        """What it needs beside itself, for any of its workloads."""
        return {**self.manifest.services, **self._variant.services}

    def services_for(self, workload: Workload) -> dict[str, Needed]:
        """What must run beside it for a workload: its databases, and of its upstreams those that the workload is about.

        Raises:
            UsageError: the workload is about one that the stack does not ask.
        """
        needed = self.services
        for name in workload.services:
            if name not in needed:
                raise UsageError(
                    f"{self.folder / 'stack.toml'}: services: found {', '.join(needed) or 'none'}; workload {workload.id} expects {name!r}"
                )
        return {name: one for name, one in needed.items() if name in workload.services or not read_service(name).on_demand}

    def path_of(self, workload: str) -> str | None:
        """Where it serves a workload, if that is not the workload's own path."""
        return self.manifest.serves[workload].path

    @property
    def _variant(self) -> Variant:
        return self.manifest.variants[self.variant] if self.variant else Variant()

    @property
    def title(self) -> str:
        """The title for people."""
        return self._variant.title or (f"{self.manifest.title}, {self.variant}" if self.variant else self.manifest.title)

    @property
    def model(self) -> str:
        """How it serves."""
        return self._variant.model or self.manifest.model

    @property
    def build(self) -> Build | None:
        """How it is built; None where it needs no building."""
        own, other = self.manifest.build, self._variant.build
        return own.model_copy(update=other.model_dump(exclude_none=True)) if own and other else own

    @property
    def limits(self) -> dict[str, Limit]:
        """Its settings that findings compare concurrency with, by name."""
        return self.manifest.limits if self._variant.limits is None else self._variant.limits

    @property
    def needs(self) -> list[str]:
        """Tools that building and running it need."""
        return [*(self.build.needs if self.build else []), *self._variant.needs]

    def unmet(self) -> list[Unmet]:
        """What it and its services need and this machine lacks."""
        of_services = (unmet_by_machine(read_service(name)) for name in self.services)
        return [*unmet_needs(self.needs), *dict.fromkeys(found for found in of_services if found is not None)]

    @property
    def answers_wrong(self) -> bool:
        """Whether it does so on purpose, to be caught."""
        return self._variant.answers_wrong

    @property
    def runtime(self) -> Runtime | None:
        """What runs it, as far as weir knows it."""
        said = self.manifest.run.runtime
        if said is None:
            return implied_runtime(self.manifest.run.command, self.needs)
        return None if said == "none" else said

    @property
    def takes_address(self) -> bool:
        """Whether it listens where it is told to, and not on loopback alone."""
        run = self.manifest.run
        return any("{address}" in text for text in [*run.command, *run.env.values(), *self._variant.args, *self._variant.env.values()])

    def settings(self, stack_cpus: int, chosen: Mapping[str, int] | None = None) -> dict[str, str]:
        """The values of its limits: those chosen, else its own on so many CPUs."""
        own = {name: stack_cpus if limit.default == "cpus" else limit.default for name, limit in self.limits.items()}
        return {name: str(value) for name, value in (own | dict(chosen or {})).items()}

    def command(self, settings: dict[str, str], fields: dict[str, str]) -> list[str]:
        """The command that starts it."""
        command = [*self.manifest.run.command]
        for name, value in settings.items():
            argument = self.limits[name].arg
            if argument is not None:
                command.append(argument.replace("{value}", value))
        return [filled(part, fields) for part in [*command, *self._variant.args]]

    def environment(self, settings: dict[str, str], fields: dict[str, str]) -> dict[str, str]:
        """The variables that it is given beyond the lab's own."""
        environment = {**self.manifest.run.env, **self._variant.env}
        for name, value in settings.items():
            variable = self.limits[name].env
            if variable is not None:
                environment[variable] = value
        return {name: filled(value, fields) for name, value in environment.items()}


def filled(text: str, fields: dict[str, str]) -> str:
    """`text` with every `{name}` of `fields` replaced; other braces stay as they are."""
    return _FIELD.sub(lambda match: fields.get(match.group(1), match.group(0)), text)


def read_stack(label: str) -> Stack:
    """The stack named `id` or `id[variant]`.

    Raises:
        UsageError: there is no such stack or variant, or its manifest is not valid.
    """
    match = re.fullmatch(r"([^\[\]]+)(?:\[([^\[\]]+)\])?", label)
    if match is None:
        raise UsageError(f"stack: found {label!r}, expected ID or ID[VARIANT]", hint="weir stacks list")
    stack_id, variant = match.groups()
    folders = {path.parent.name: path.parent for path in manifest_files()}
    if stack_id not in folders:
        raise UsageError(f"stack: found {stack_id!r}, expected one of: {', '.join(sorted(folders))}", hint="weir stacks list")
    stack = read_manifest(folders[stack_id] / "stack.toml")
    if variant is None:
        return stack
    if variant not in stack.manifest.variants:
        known = ", ".join(stack.manifest.variants) or "none"
        raise UsageError(f"stack: found variant {variant!r} of {stack_id}, expected one of: {known}", hint="weir stacks list")
    return Stack(stack.manifest, stack.folder, variant)


def read_manifest(path: Path) -> Stack:
    """The stack that the manifest at `path` describes.

    Raises:
        UsageError: the manifest is not valid.
    """
    manifest = validate(Manifest, read_toml(path, what="a stack's manifest", hint="weir stacks list"), path=path)
    if manifest.id != path.parent.name:
        raise UsageError(f"{path}: id: found {manifest.id!r}, expected {path.parent.name!r}, the folder's name")
    return Stack(manifest, path.parent)


def all_stacks() -> list[Stack]:
    """Every stack that this weir knows, and each of its variants behind it.

    Raises:
        UsageError: a manifest is not valid.
    """
    return [one for stack in map(read_manifest, manifest_files()) for one in (stack, *stack.variants())]


def manifest_files() -> list[Path]:
    """All manifests: those that travel with this weir, and those in the folders of `WEIR_STACKS`."""
    import os

    roots = [data_folder("stacks"), *(Path(part) for part in os.environ.get(Variable.STACKS, "").split(os.pathsep) if part)]
    return [path for root in roots for path in sorted(root.glob("**/stack.toml"))]


def _check_services(key: str, services: Mapping[str, Needed], *, beside: Mapping[str, Needed], tiers: Mapping[str, Tier]) -> None:
    """Holds services that a manifest names under `key` against those that there are, and against those that run `beside` them."""
    for name, needed in services.items():
        if name not in service_ids():
            raise ValueError(f"{key}: found {name!r}, expected one of: {', '.join(service_ids())}")
        if name in beside:
            raise ValueError(f"{key}: found {name!r}, expected it once: the stack itself needs it")
        service = read_service(name)
        if isinstance(service, StandbyService) and service.of not in {**beside, **services}:
            raise ValueError(f"{key}: found {name!r} without {service.of!r}, expected both: it follows that")
        if needed.dataset is not None:
            if not service.holds_data:
                raise ValueError(f"{key}.{name}.dataset: found {needed.dataset!r}, expected none: {service.title} holds no data of its own")
            read_dataset(needed.dataset)
        try:
            service.check(needed.settings)
        except ValueError as error:
            raise ValueError(f"{key}.{name}.settings: {error}") from None
        if name in tiers:
            raise ValueError(f"tiers: found {name!r}, expected another name: the service of that name is a tier")


def _fields_of(services: Iterable[str]) -> frozenset[str]:
    """What a command or an environment may ask for beside these services."""
    return RUN_FIELDS | {f"{name}.{field}" for name in services for field in read_service(name).fields}


def _check_fields(text: str, known: frozenset[str]) -> None:
    for name in _FIELD.findall(text):
        if name not in known:
            raise ValueError(f"unknown field '{{{name}}}'; expected one of: {', '.join(sorted(known))}")
