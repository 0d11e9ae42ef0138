"""Reads a stack's manifest, `stack.toml`: build, start, settings, services and workloads of the stack.

The commands in a manifest may contain fields such as `{port}` and `{python}`. `fill_fields` replaces them with values.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from weir.model.errors import UsageError
from weir.model.requirements import UnmetRequirement
from weir.model.variables import Variable
from weir.paths import find_data_folder
from weir.services.dataset import read_dataset
from weir.services.manifest import DatabaseService, StandbyService, UpstreamService, read_service
from weir.services.service_needs import find_unmet_need
from weir.stacks.runtime import Runtime, infer_runtime
from weir.stacks.toolchain import NEED, find_unmet_needs
from weir.stacks.workload import Workload
from weir.toml_file import Table, list_data_files, read_toml, validate

_FIELD = re.compile(r"\{([a-z0-9_.-]+)\}")
RUN_FIELDS = frozenset({"host", "port", "artifact", "cpus", "python"})
"""Fields in the run command and in its environment variables: the server's address and port, the built artifact, the
number of CPUs, and the path of weir's Python. Services add fields such as `{postgres.url}`."""
BUILD_FIELDS = frozenset({"python", "npm"})
"""Fields in the build command: path of weir's Python, and the command `npm`."""


def _check_needs(needs: list[str]) -> list[str]:
    for need in needs:
        if NEED.fullmatch(need) is None:
            raise ValueError(f"{need!r}: expected a tool such as 'mvn', or a minimum version such as 'java>=17'")
    return needs


Needs = Annotated[list[str], AfterValidator(_check_needs)]
"""Required tools, some with a minimum version. Examples: `mvn`, `java>=17`."""


def find_unknown_field(text: str, known: frozenset[str]) -> str | None:
    """Returns the first field `{name}` in `text` with a name that `known` lacks; None if all names are known."""
    return next((f"{{{name}}}" for name in _FIELD.findall(text) if name not in known), None)


def _check_fields(text: str, known: frozenset[str]) -> str:
    if (field := find_unknown_field(text, known)) is not None:
        raise ValueError(f"found the unknown field '{field}', expected one of: {', '.join(sorted(known))}")
    return text


BuildCommand = Annotated[str, AfterValidator(lambda command: _check_fields(command, BUILD_FIELDS))]


class Build(Table):
    """Build of the stack. weir builds each version of the sources once, in a copy of the stack's folder."""

    command: BuildCommand
    """Shell command (`sh`) that builds the stack. The working directory is the copy of the stack's folder."""
    artifact: str | None = None
    """File or folder that the build creates, relative to the copy of the stack's folder. Reports show its size."""
    beside: list[str] = Field(default_factory=list)
    """Patterns of sources next to the stack's folder. Examples: `pom.xml` of a Maven parent, a folder of shared code.
    weir copies these sources next to the copy of the stack's folder. A change in these sources causes a new build."""
    needs: Needs = Field(default_factory=list)
    """Tools that the build and the stack need. `weir doctor` checks these tools. Example: `["mvn", "java>=17"]`."""

    @field_validator("beside")
    @classmethod
    def _patterns_stay_beside(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            parts = PurePath(pattern).parts
            if not parts or pattern.startswith("/") or ".." in parts or "**" in parts:
                expected = "expected a file or folder beside the stack's folder, or a pattern such as '*/pom.xml'"
                raise ValueError(f"{pattern!r}: {expected}")
        return patterns


class VariantBuild(Table):
    """Build of a variant: keys that replace keys of `[build]`."""

    command: BuildCommand
    """Build command of the variant."""
    artifact: str | None = None
    """Artifact of the variant's build. Default: the stack's artifact."""


class Ready(Table):
    """Readiness of the stack. weir sends requests to `path` until a response has a status below 500."""

    path: str = "/"
    """Path of the requests."""
    timeout_s: float = Field(default=60, gt=0)
    """Maximum time from the start until the stack is ready."""


class Run(Table):
    """Start of the stack. The working directory is the built copy of the stack's folder."""

    command: list[str] = Field(min_length=1)
    """Program and arguments. Relative paths begin at the built copy. `command` or `env` must contain `{port}`."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables, in addition to the variables that weir sets for every stack (environment.md)."""
    ready: Ready = Field(default_factory=Ready)
    runtime: Runtime | Literal["none"] | None = None
    """Runtime that gets the number of CPUs from weir. `none`: no runtime. Default: weir infers the runtime from
    `command` and `needs`."""

    @model_validator(mode="after")
    def _port_is_passed(self) -> "Run":
        if not any("{port}" in text for text in [*self.command, *self.env.values()]):
            raise ValueError("expected '{port}' in 'command' or 'env': weir chooses the port")
        return self


class Limit(Table):
    """A setting that limits concurrency, such as a number of threads. weir passes the value to the stack."""

    default: int | Literal["cpus"]
    """Default value. `cpus`: the stack's number of CPUs."""
    arg: str | None = None
    """Command-line argument that passes the value. Example: `--workers={value}`."""
    env: str | None = None
    """Name of the environment variable that passes the value."""
    requests_each: int | None = Field(default=None, ge=1)
    """Maximum number of concurrent requests for each unit, such as a thread. This number includes requests that wait
    for an upstream. Reports then show the upper bound of throughput. Default: the setting does not limit requests."""

    @model_validator(mode="after")
    def _is_passed_somehow(self) -> "Limit":
        if (self.arg is None) == (self.env is None):
            raise ValueError("expected either 'arg' or 'env'")
        if self.arg is not None and "{value}" not in self.arg:
            raise ValueError("arg: expected '{value}' in the argument, such as '--workers={value}'")
        return self


class Needed(Table):
    """A service that the stack needs."""

    dataset: str | None = None
    """Dataset that weir loads into the service before the stack starts. Default: no dataset."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Settings of the service, in addition to the settings in its manifest. Example: `max_connections = "200"`."""


class Tier(Table):
    """A tier of processes."""

    root: bool = False
    """Whether this tier contains the process that weir starts, and all descendants of that process."""


class Serves(Table):
    """A workload that the stack serves."""

    path: str | None = None
    """Path to which weir sends the workload's requests. Default: the workload's own path."""


class Variant(Table):
    """The same stack with other settings."""

    title: str | None = None
    """Title in reports. Default: the stack's title and the variant's name."""
    model: str | None = None
    """Concurrency model for reports. Default: the stack's model."""
    args: list[str] = Field(default_factory=list)
    """Arguments that weir appends to the stack's command."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables. They replace the stack's variables with the same names."""
    needs: Needs = Field(default_factory=list)
    """Tools that the variant needs in addition to the stack's tools."""
    services: dict[str, Needed] = Field(default_factory=dict)
    """Services that the variant needs in addition to the stack's services."""
    build: VariantBuild | None = None
    """Keys of `[build]` that the variant replaces."""
    limits: dict[str, Limit] | None = None
    """Limits of the variant, which replace all limits of the stack. Default: the stack's limits."""
    answers_wrong: bool = False
    """Whether the variant sends wrong responses on purpose, to test weir's checks. `weir stacks check --all` then
    expects a wrong response. `weir stacks check ID[VARIANT]` fails, and shows the wrong response."""


class Manifest(Table):
    """The file `stacks/LANGUAGE/NAME/stack.toml`."""

    schema_number: Literal[1] = Field(alias="schema")
    """Version of the manifest format: 1."""
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """Name of the stack and of its folder: lower-case letters, digits and hyphens."""
    title: str
    """Title in reports."""
    model: str
    """Concurrency model for reports. Example: "event loop per process, non-blocking I/O"."""
    build: Build | None = None
    """Build of the stack. Default: no build."""
    run: Run
    limits: dict[str, Limit] = Field(default_factory=dict)
    """Settings that limit concurrency and that a study may vary. The keys are names of your choice, such as
    `workers`."""
    services: dict[str, Needed] = Field(default_factory=dict)
    """Services that run with the stack. The keys are names of services (services.md)."""
    tiers: dict[str, Tier] = Field(default_factory=lambda: {"app": Tier(root=True)})
    """Tiers of the stack's processes. Default: one tier `app`."""
    serves: dict[str, Serves] = Field(min_length=1)
    """Workloads that the stack serves. The keys are names of workloads, at least one. Example: `hello = {}`."""
    variants: dict[str, Variant] = Field(default_factory=dict)
    """Variants: the same stack with other settings. Studies and commands name a variant `ID[VARIANT]`."""

    @model_validator(mode="after")
    def _is_consistent(self) -> "Manifest":
        roots = [name for name, tier in self.tiers.items() if tier.root]
        if len(roots) != 1:
            raise ValueError(f"tiers: found {len(roots)} tiers with 'root = true', expected one tier")
        _check_services("services", self.services, beside={}, tiers=self.tiers)
        for text in [*self.run.command, *self.run.env.values()]:
            _check_fields(text, _list_fields(self.services))
        for name, variant in self.variants.items():
            _check_services(f"variants.{name}.services", variant.services, beside=self.services, tiers=self.tiers)
            for text in variant.env.values():
                _check_fields(text, _list_fields({**self.services, **variant.services}))
            if variant.build is not None and self.build is None:
                raise ValueError(f"variants.{name}.build: found without '[build]' of the stack, expected both")
        return self

    @property
    def root_tier(self) -> str:
        """Name of the tier with the process that weir starts."""
        return next(name for name, tier in self.tiers.items() if tier.root)


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack: its manifest, folder and variant."""

    manifest: Manifest
    folder: Path
    variant: str | None = None
    in_place: bool = False
    """Whether the stack starts in `folder` itself: no build, no copy, and the user's environment."""
    scheme: str = "http"

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def label(self) -> str:
        """Label of the stack: `id` or `id[variant]`."""
        return f"{self.manifest.id}[{self.variant}]" if self.variant else self.manifest.id

    def variants(self) -> tuple["Stack", ...]:
        return tuple(Stack(self.manifest, self.folder, name) for name in self.manifest.variants)

    @property
    def serves(self) -> tuple[str, ...]:
        return tuple(self.manifest.serves)

    @property
    def services(self) -> dict[str, Needed]:
        """Services that the stack needs, for all workloads together."""
        return {**self.manifest.services, **self._variant.services}

    def services_for(self, workload: Workload) -> dict[str, Needed]:
        """Returns the stack's services for a workload. Leaves out upstreams that the workload does not name."""
        needed = self.services
        for name in workload.services:
            if name not in needed:
                key, found = f"{self.folder / 'stack.toml'}: services", ", ".join(needed) or "none"
                raise UsageError(f"{key}: found {found}, expected also {name!r}, which workload {workload.id} needs")
        on_demand = [name for name in needed if isinstance(read_service(name), UpstreamService)]
        wanted = [name for name in needed if name in workload.services or name not in on_demand]
        return {name: needed[name] for name in wanted}

    def find_path(self, workload: str) -> str | None:
        """Returns the stack's own path for a workload; None if the stack uses the workload's path."""
        return self.manifest.serves[workload].path

    @property
    def _variant(self) -> Variant:
        return self.manifest.variants[self.variant] if self.variant else Variant()

    @property
    def title(self) -> str:
        title = self.manifest.title
        return self._variant.title or (f"{title}, {self.variant}" if self.variant else title)

    @property
    def model(self) -> str:
        return self._variant.model or self.manifest.model

    @property
    def build(self) -> Build | None:
        own, other = self.manifest.build, self._variant.build
        return own.model_copy(update=other.model_dump(exclude_none=True)) if own and other else own

    @property
    def limits(self) -> dict[str, Limit]:
        return self.manifest.limits if self._variant.limits is None else self._variant.limits

    @property
    def needs(self) -> list[str]:
        """Tools that the build and the start of the stack need."""
        return [*(self.build.needs if self.build else []), *self._variant.needs]

    def unmet(self) -> list[UnmetRequirement]:
        """Returns the unmet needs of the stack and of its services on this machine."""
        of_services = (find_unmet_need(read_service(name)) for name in self.services)
        return [*find_unmet_needs(self.needs), *dict.fromkeys(found for found in of_services if found is not None)]

    @property
    def answers_wrong(self) -> bool:
        return self._variant.answers_wrong

    @property
    def runtime(self) -> Runtime | None:
        runtime = self.manifest.run.runtime
        if runtime is None:
            return infer_runtime(self.manifest.run.command, self.needs)
        return None if runtime == "none" else runtime

    @property
    def takes_address(self) -> bool:
        """Whether weir chooses the address on which the stack listens. If not, the stack listens on loopback."""
        run, variant = self.manifest.run, self._variant
        texts = [*run.command, *run.env.values(), *variant.args, *variant.env.values()]
        return any("{host}" in text for text in texts)

    def settings(self, stack_cpus: int, chosen: Mapping[str, int] | None = None) -> dict[str, str]:
        """Returns the values of the stack's limits: `chosen` values, or default values for `stack_cpus` CPUs."""
        own = {name: stack_cpus if limit.default == "cpus" else limit.default for name, limit in self.limits.items()}
        return {name: str(value) for name, value in (own | dict(chosen or {})).items()}

    def command(self, settings: dict[str, str], fields: dict[str, str]) -> list[str]:
        limits = [arg.replace("{value}", value) for name, value in settings.items() if (arg := self.limits[name].arg)]
        return [fill_fields(part, fields) for part in (*self.manifest.run.command, *limits, *self._variant.args)]

    def environment(self, settings: dict[str, str], fields: dict[str, str]) -> dict[str, str]:
        limits = {env: value for name, value in settings.items() if (env := self.limits[name].env)}
        environment = {**self.manifest.run.env, **self._variant.env, **limits}
        return {name: fill_fields(value, fields) for name, value in environment.items()}


def fill_fields(text: str, fields: dict[str, str]) -> str:
    """Replaces each `{name}` in a text by the value of `name` in `fields`. Other braces stay unchanged."""
    return _FIELD.sub(lambda match: fields.get(match.group(1), match.group(0)), text)


def read_stack(label: str) -> Stack:
    """Reads a stack by its label. Raises UsageError if the stack does not exist or its manifest is not valid."""
    hint = "weir stacks list"
    match = re.fullmatch(r"([^\[\]]+)(?:\[([^\[\]]+)\])?", label)
    if match is None:
        raise UsageError(f"stack: found {label!r}, expected ID or ID[VARIANT]", hint=hint)
    stack_id, variant = match.groups()
    paths = {path.parent.name: path for path in list_manifest_files()}
    if stack_id not in paths:
        raise UsageError(f"stack: found {stack_id!r}, expected one of: {', '.join(sorted(paths))}", hint=hint)
    stack = read_manifest(paths[stack_id])
    if variant and variant not in stack.manifest.variants:
        known = ", ".join(stack.manifest.variants) or "none"
        raise UsageError(f"stack: found variant {variant!r} of {stack_id}, expected one of: {known}", hint=hint)
    return replace(stack, variant=variant)


def read_manifest(path: Path) -> Stack:
    """Reads the manifest at `path`. Raises UsageError if the manifest is not valid."""
    manifest = validate(Manifest, read_toml(path, what="a stack's manifest", hint="weir stacks list"), path=path)
    if manifest.id != path.parent.name:
        raise UsageError(f"{path}: id: found {manifest.id!r}, expected {path.parent.name!r}, the folder's name")
    return Stack(manifest, path.parent)


def read_all_stacks() -> list[Stack]:
    """Returns all known stacks. Each stack is followed by its variants."""
    return [one for stack in map(read_manifest, list_manifest_files()) for one in (stack, *stack.variants())]


def list_manifest_files() -> list[Path]:
    """Returns the paths of all manifests: weir's own manifests, and the manifests in the folders of `WEIR_STACKS`."""
    more = os.environ.get(Variable.STACKS, "").split(os.pathsep)
    roots = [find_data_folder("stacks"), *(Path(part) for part in more if part)]
    return [path for root in roots for path in sorted(root.glob("**/stack.toml"))]


def _check_services(
    key: str, services: Mapping[str, Needed], *, beside: Mapping[str, Needed], tiers: Mapping[str, Tier]
) -> None:
    """Raises ValueError if a service is unknown or not valid, or if `beside` or `tiers` contains its name."""
    for name, needed in services.items():
        if name not in (known := sorted(list_data_files("services"))):
            raise ValueError(f"{key}: found {name!r}, expected one of: {', '.join(known)}")
        if name in beside:
            raise ValueError(f"{key}: found {name!r}, expected other services: the stack already needs {name!r}")
        service = read_service(name)
        if isinstance(service, StandbyService) and service.of not in {**beside, **services}:
            raise ValueError(f"{key}: found {name!r} without {service.of!r}, expected both: a standby needs a primary")
        if needed.dataset is not None:
            if not isinstance(service, DatabaseService):
                expected = f"expected none, because {service.title} stores no data"
                raise ValueError(f"{key}.{name}.dataset: found {needed.dataset!r}, {expected}")
            read_dataset(needed.dataset)
        try:
            service.check(needed.settings)
        except ValueError as error:
            raise ValueError(f"{key}.{name}.settings: {error}") from None
        if name in tiers:
            raise ValueError(f"tiers: found {name!r}, expected a name that no service has: a service is also a tier")


def _list_fields(services: Iterable[str]) -> frozenset[str]:
    """Returns the names of the fields that a run command with these services may contain."""
    return RUN_FIELDS | {f"{name}.{field}" for name in services for field in read_service(name).fields}
