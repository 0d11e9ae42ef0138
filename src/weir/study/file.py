"""Defines the tables of study files. The modules `matrix` and `load` define the largest tables. The modules `study` and
`cells` read studies and plan their cells."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator

from weir.model.errors import UsageError
from weir.objective import parse_objective
from weir.stacks.manifest import RUN_FIELDS, Manifest, Ready, Stack, find_unknown_field
from weir.stacks.workload import Answer, PlainAnswer, RequestTemplate, Workload
from weir.study.load import LoadTable
from weir.study.matrix import Matrix
from weir.toml_file import Table

Failures = Literal["reject", "measure"]
Invariant = Literal["reject", "report"]
MainMetric = Literal[
    "throughput_rps", "response_time_us.p50", "response_time_us.p99", "cpu_us_per_request", "pss_bytes", "ready_s"
]
"""Metrics that `width_of` accepts."""
METHOD_KEYS = ("warmup_s", "pause_s", "extension_s")
"""Keys of `[method]` for single trials. The other keys apply to the whole run."""
CpuRequest = int | list[int] | Literal["auto"]
"""A number of CPUs, a list of CPU numbers, or `auto` for a share of the free CPUs."""
_UNITS_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_MIN_TIME_MS = 1.0
"""Minimum CPU time per period, in milliseconds. The kernel accepts no smaller quota."""
_MIN_MEMORY_BYTES = 2**20

Value = str | int | float


class Method(Table):
    """Repetitions, order, baseline, and validity of trials."""

    blocks: int = Field(ge=1)
    """Number of blocks. A block runs every cell once, in random order. With `width`: the minimum number of blocks."""
    most_blocks: int | None = Field(default=None, ge=1)
    """With `width`: maximum number of blocks. Default: only `budget_s` limits the run."""
    width: float | None = Field(default=None, gt=0, lt=1)
    """Relative half width of confidence intervals at which the run ends. Example: 0.05 is ±5 %. After each block, weir
    checks the intervals of all comparisons with the baseline. Default: the run ends after `blocks`."""
    width_of: MainMetric = "throughput_rps"
    """Metric for `width`: the interval of its ratio to the baseline must become that narrow. With fixed rates, choose
    a metric other than throughput, because throughput equals the rate."""
    budget_s: float | None = Field(default=None, gt=0)
    """Maximum time of all trials together. The run ends before a block that would exceed this time. Builds and checks
    of stacks do not count. A resumed run uses the remaining time."""
    seed: int = 1
    """Seed for the random order of cells in each block, and for the random inputs of checks."""
    baseline: str
    """The stack with which weir compares the other stacks."""
    aa: str | None = None
    """A stack that runs twice in every block. The differences between both copies are noise."""
    warmup_s: float = Field(default=2, ge=0)
    """Duration of the warm-up: the same load without measurement. weir then waits for the remaining responses, at most
    `load.timeout_s`. As root, weir raises the priority of JVM compiler threads during the warm-up."""
    pause_s: float = Field(default=1, ge=0)
    """Pause between the warm-up and the measured load."""
    extension_s: float | None = Field(default=None, ge=0)
    """Additional time for a load that has not reached a steady state at its end. Default: `load.duration_s`. 0: no
    additional time. weir looks for a steady state only if the load stays constant for at least 30 intervals after its
    ramp. 30 intervals take 3 s, or 30 s in loads of more than a minute."""
    retries: int = Field(default=2, ge=0)
    """Maximum number of retries of a rejected trial. The retries run in later blocks."""
    refine: bool = False
    """Whether weir looks for the load at which a stack and the baseline have equal throughput. After the last block,
    weir measures additional points. Each point halves the gap around that load. weir stops if the load is known within
    10 %, if more points would not help, or after `most_points`. Only for connections, users and rates."""
    most_points: int = Field(default=6, ge=1)
    """With `refine`: maximum number of additional points in the whole run."""
    failures: Failures = "reject"
    """Effect of failed requests on a trial. `reject`: the trial does not count and runs again. `measure` (for studies
    of overload): the trial counts. Throughput includes only correct responses, and reports show the share of failed
    requests."""
    tap: bool = False
    """Whether weir captures packets at the stack's port during the load. The packets' kernel timestamps give response
    times without queueing in the generator. weir captures about eight connections, with the CPUs of `control`. The
    capture needs root and a stack on loopback."""
    invariant: Invariant = "reject"
    """Effect on a trial if the load broke the workload's invariant. `reject`: the trial does not count. `report`: the
    trial counts."""

    @model_validator(mode="after")
    def _rules_for_stopping_go_together(self) -> "Method":
        if self.width is None:
            if self.most_blocks is not None:
                raise ValueError(
                    "most_blocks: expected also width, such as width = 0.05; for a fixed number, set only blocks"
                )
            return self
        if self.most_blocks is not None and self.most_blocks < self.blocks:
            raise ValueError(f"most_blocks: found {self.most_blocks}, expected at least blocks = {self.blocks}")
        if self.refine:
            raise ValueError(
                "refine: found together with width, expected only one: points need equal numbers of blocks"
            )
        if self.most_blocks is None and self.budget_s is None:
            raise ValueError("width: expected most_blocks or budget_s, too: otherwise a noisy run may never end")
        return self

    @property
    def last_block(self) -> int | None:
        """Number of the last block of a run. None if only `width` and `budget_s` end the run."""
        return self.blocks if self.width is None else self.most_blocks


class Cpus(Table):
    """CPUs of each role, and the limits of CPU time and memory of each tier."""

    load: CpuRequest = "auto"
    """CPUs of the generator, with one thread on each CPU."""
    stack: CpuRequest = "auto"
    """CPUs of the stack, for all its processes together."""
    services: CpuRequest | Literal["stack", "load"] = "auto"
    """CPUs of the services. `stack` or `load`: the CPUs of this role. `auto`: own CPUs if the machine has enough,
    otherwise the CPUs of the stack."""
    control: CpuRequest = "auto"
    """CPUs of weir's own processes (lab, host and observer). These processes run at nice 19."""
    quota: dict[str, float] = Field(default_factory=dict)
    """Maximum CPUs of a process with its descendants. Keys: tiers. Example: `{ app = 0.5, postgres = 0.3 }`."""
    quota_period_ms: float = Field(default=100, ge=1, le=1000)
    """Period of the quota. Container runtimes also use 100 ms."""
    memory: dict[str, str] = Field(default_factory=dict)
    """Maximum memory of a process with its descendants, without swap. Keys: tiers. Example: `{ app = "512 MB" }`."""

    @field_validator("load", "stack", "services", "control", mode="before")
    @classmethod
    def _is_a_wish(cls, value: object, info: ValidationInfo) -> object:
        words = ("auto", "stack", "load") if info.field_name == "services" else ("auto",)
        match value:
            case str(word) if word in words:
                return value
            case int(count) if count >= 1 and count is not True:
                return value
            case [_, *_] as cpus if all(type(cpu) is int and cpu >= 0 for cpu in cpus) and _is_unique(cpus):
                return value
        expected = f"{', '.join(map(repr, words))}, a number of CPUs from 1 on, or a list of CPUs, each once"
        raise ValueError(f"expected {expected}")

    @model_validator(mode="after")
    def _quotas_can_be_kept(self) -> "Cpus":
        least = _MIN_TIME_MS / self.quota_period_ms
        for tier, cpus in self.quota.items():
            if not least <= cpus <= 10_000:
                raise ValueError(f"quota.{tier}: found {cpus:g}, expected at least {least:g} CPUs (1 ms per period)")
        return self

    @field_validator("memory")
    @classmethod
    def _sizes_can_be_read(cls, memory: dict[str, str]) -> dict[str, str]:
        for tier, size in memory.items():
            if parse_size(size) < _MIN_MEMORY_BYTES:
                raise ValueError(f"{tier}: expected 1 MiB or more")
        return memory


def _is_unique(values: Sequence[object]) -> bool:
    return len(set(values)) == len(values)


def parse_size(text: str) -> int:
    """Returns the bytes of a size such as `512 MB` (decimal) or `512 MiB` (binary). Raises ValueError for other texts.

    >>> parse_size("512 MB"), parse_size("0.5GiB")
    (512000000, 536870912)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-zA-Z]+)", text)
    if match is None or match.group(2) not in _UNITS_BYTES:
        raise ValueError(f"found {text!r}, expected a size such as '512 MB'; units: {', '.join(_UNITS_BYTES)}")
    return round(float(match.group(1)) * _UNITS_BYTES[match.group(2)])


class Network(Table):
    """Network of the stack. `isolation = "netns"`: a separate namespace behind a veth pair, as in a container."""

    isolation: Literal["none", "netns"] = "none"
    """`netns`: the stack has its own network namespace. The other keys need `netns`."""
    port: int = Field(default=8000, ge=1, le=65535)
    """Port of the stack inside the namespace."""
    publish: int | None = Field(default=None, ge=1, le=65535)
    """Port to which clients connect. As in containers, the namespace translates it to `port`. Default: `port`."""
    delay_ms: float = Field(default=0, ge=0, le=10_000)
    """Additional delay of each round trip. Each direction has half of the delay."""
    loss: float = Field(default=0, ge=0, lt=1)
    """Share of packets that are lost, in each direction."""
    fallback: bool = False
    """Whether weir continues if this machine lacks a feature (namespaces, netem, nft). Default: an error."""

    @model_validator(mode="after")
    def _nothing_without_a_namespace(self) -> "Network":
        given = self.model_fields_set - {"isolation"}
        if self.isolation == "none" and given:
            keys = ", ".join(sorted(given))
            raise ValueError(f'{keys}: found without isolation = "netns", expected both: these keys need isolation')
        return self


class External(Table):
    """A running server. weir checks the server and sends loads to it, but neither starts nor stops it."""

    url: str
    """URL of the server: `http://HOST[:PORT]` or `https://HOST[:PORT]`. weir appends the workload's path."""
    pids: list[int] = Field(default_factory=list)
    """Process ids of the server on this machine. weir measures the CPU, memory and threads of these process trees."""
    serves: list[str] = Field(min_length=1)
    """Names of the workloads that the server serves."""
    title: str = ""
    """Title in reports. Default: the name of the table."""
    model: str = ""
    """Concurrency model for reports. Example: "event loop per process, non-blocking I/O"."""

    @field_validator("url")
    @classmethod
    def _is_a_base(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            well_formed = (
                parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
            )
        except ValueError:
            well_formed = False
        if not well_formed or parts.query or parts.fragment or parts.path.strip("/"):
            raise ValueError("expected http://HOST[:PORT] without a path: weir adds the workload's path")
        return url.rstrip("/")

    @field_validator("pids")
    @classmethod
    def _are_processes(cls, pids: list[int]) -> list[int]:
        if any(pid < 1 for pid in pids) or not _is_unique(pids):
            raise ValueError("expected process ids above 0, each once")
        return pids


class Server(Table):
    """A server without a manifest. weir starts its command in your folder, with your environment variables."""

    command: str
    """Command that starts the server. The server must listen on `{host}` and `{port}`, which weir fills in. weir also
    sets the environment variable `PORT`. `sh` runs a command with shell syntax."""
    folder: str = "."
    """Working directory of the command, relative to the folder of the study file."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of the command, in addition to your environment."""
    ready: Ready = Field(default_factory=Ready)
    scheme: Literal["http", "https"] = "http"
    """Scheme of the server's URLs."""
    serves: list[str] = Field(min_length=1)
    """Names of the workloads that the server serves."""
    title: str = ""
    """Title in reports. Default: the command."""
    model: str = ""
    """Concurrency model for reports. Example: "event loop per process, non-blocking I/O"."""

    @field_validator("command")
    @classmethod
    def _can_be_split(cls, command: str) -> str:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"found {command!r}, expected a valid shell command: {error}") from None
        if not words:
            raise ValueError("expected a command")
        if (field := find_unknown_field(command, RUN_FIELDS)) is not None:
            raise ValueError(f"found the unknown field {field}, expected {{host}} or {{port}}")
        return command

    def to_stack(self, name: str, base: Path) -> Stack:
        """Returns the server as a stack with the id `name`. `base` is the folder of the study file."""
        is_shell = re.search(r"[|&;<>()$`*?~#\n]|^\w+=", self.command) is not None
        words = ["/bin/sh", "-c", self.command] if is_shell else shlex.split(self.command)
        manifest = Manifest.model_validate(
            {
                "schema": 1, "id": name, "title": self.title or self.command, "model": self.model,
                "run": {
                    "command": words, "env": {"PORT": "{port}", **self.env}, "ready": self.ready.model_dump(),
                    "runtime": "none",
                },
                "serves": {workload: {} for workload in self.serves},
            }
        )  # fmt: skip
        return Stack(manifest, (base / self.folder).resolve(), in_place=True, scheme=self.scheme)


class OwnWorkload(Table):
    """A workload that the study defines for its `external` and `server` tables: a request and its correct response."""

    title: str = ""
    """Title in reports. Default: the name of the table."""
    request: RequestTemplate
    """Request of the workload. Path and body may contain `{{int LOW HIGH}}` and `{{word LENGTH}}`. Every check draws
    new random values. In the load, `method.seed` determines the values."""
    answer: PlainAnswer = Field(default_factory=PlainAnswer)
    """Conditions of a correct response. weir checks them before and after a trial. The load checks only the status."""

    def to_workload(self, name: str) -> Workload:
        answer = Answer.model_validate(self.answer.model_dump(by_alias=True))
        return Workload(schema=1, id=name, title=self.title or name, request=self.request, answer=answer)


class Override(Table):
    """Different settings for the cells that match `where`. If overrides set the same key, the last override applies."""

    where: dict[str, Value | list[Value]] = Field(min_length=1)
    """Cells to change. Keys: `stack`, `variant`, `workload`, `connections`, `users`, `rate_rps`, `replicas`, `cpus`,
    `generator`, and names of limits. Each key has a value or a list of values."""
    load: dict[str, Any] = Field(default_factory=dict)
    """Keys of `[load]` with their values for these cells."""
    method: dict[str, Any] = Field(default_factory=dict)
    """Keys of `[method]` with their values for these cells: `warmup_s`, `pause_s` and `extension_s`."""

    @model_validator(mode="after")
    def _changes_something(self) -> "Override":
        if not self.load and not self.method:
            raise ValueError("expected keys under 'load' or 'method'")
        for key in self.method:
            if key not in METHOD_KEYS:
                known = ", ".join(METHOD_KEYS)
                raise ValueError(f"method.{key}: expected one of: {known}; all other keys apply only to the whole run")
        return self

    def matches(self, coordinates: Mapping[str, frozenset[Any]]) -> bool:
        """Returns whether the override changes a cell with these coordinates."""
        return all(
            not coordinates.get(key, frozenset()).isdisjoint(wanted if isinstance(wanted, list) else [wanted])
            for key, wanted in self.where.items()
        )


class Objective(Table):
    """Conditions for every trial. `weir run` exits with 1 if a trial does not meet a condition."""

    hold: list[str] = Field(min_length=1)
    """Conditions in the form of `weir load --objective` (objectives.md). Example: `["p99<50ms", "errors<0.1%"]`."""

    @field_validator("hold")
    @classmethod
    def _are_objectives(cls, texts: list[str]) -> list[str]:
        for text in texts:
            try:
                parse_objective(text)
            except UsageError as error:
                raise ValueError(error.message.removeprefix("--objective: ")) from None
        if not _is_unique(texts):
            raise ValueError("expected every condition only once")
        return texts


class Published(Table):
    """A figure from the published study. Reports show the figure beside the measured figure, for information only."""

    stack: str
    """A stack of the matrix."""
    metric: str
    """Metric of the figure: a key in the JSON of a load. Examples: `throughput_rps`, `response_time_us.p99`."""
    value: float
    """The published value, in the metric's unit."""
    note: str = ""
    """Conditions of the published measurement."""
    where: dict[str, str | int | float] = Field(default_factory=dict)
    """Points to which the figure applies. Keys: `workload`, `connections`, `rate_rps`, and coordinates such as limits.
    Default: all points."""


class StudyFile(Table):
    """Content of a study file `studies/NAME.toml` at one of its scales."""

    schema_number: Literal[1] = Field(alias="schema")
    """Version of the study format: 1."""
    title: str
    """Title of the report."""
    question: str
    """Question of the study, in one sentence."""
    source: str = ""
    """Source of the published figures."""
    claims: list[str] = Field(default_factory=list)
    """Claims of the published study, in your words."""
    matrix: Matrix
    load: LoadTable
    method: Method
    objective: Objective | None = None
    cpus: Cpus = Field(default_factory=Cpus)
    services: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Settings of the stacks' services (services.md). They replace settings in manifests. Example: `services.delay = {
    delay = "2s" }`."""
    network: Network = Field(default_factory=Network)
    external: dict[str, External] = Field(default_factory=dict)
    """Servers that weir does not start. The keys are names for `matrix.stacks`."""
    server: dict[str, Server] = Field(default_factory=dict)
    """Servers that weir starts with a command. The keys are names for `matrix.stacks`."""
    workload: dict[str, OwnWorkload] = Field(default_factory=dict)
    """Workloads that the study defines. The keys are names for `matrix.workloads`."""
    override: list[Override] = Field(default_factory=list)
    published: list[Published] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_agree(self) -> "StudyFile":
        stacks = self.matrix.stacks
        for key, label in (("method.baseline", self.method.baseline), ("method.aa", self.method.aa)):
            if label is not None and label not in stacks and label.partition("[")[0] not in stacks:
                raise ValueError(f"{key}: found {label!r}, expected one of matrix.stacks: {', '.join(stacks)}")
        for table in ("external", "server"):
            for name in getattr(self, table):
                if name not in stacks:
                    raise ValueError(f"{table}.{name}: expected one of matrix.stacks: {', '.join(stacks)}")
        if both := self.external.keys() & self.server.keys():
            raise ValueError(f"server.{min(both)}: found together with external.{min(both)}, expected only one")
        for name in self.workload:
            if name not in (workloads := self.matrix.workloads):
                raise ValueError(f"workload.{name}: expected one of matrix.workloads: {', '.join(workloads)}")
        if self.method.tap and self.network.isolation != "none":
            raise ValueError(
                "method.tap: found together with network.isolation, expected only one: the tap needs loopback"
            )
        if self.load.scenario_source is not None and len(self.matrix.workloads) > 1:
            expected = "expected one workload: a scenario defines its own requests"
            raise ValueError(f"load.scenario: found together with several matrix.workloads, {expected}")
        return self
