"""A run and its parts in the run file: cells, placement, trials and their results."""

from dataclasses import dataclass, field
from typing import Any, Literal

from weir.model.load import Load
from weir.model.load_records import LoadSummary, Quantiles
from weir.model.records import Record
from weir.model.reported_result import ReportedResult
from weir.model.resources import StackResources
from weir.model.service_work import ServiceWork
from weir.model.verdict import TrialVerdict

Arm = Literal["main", "aa"]
"""`main`: a stack of the study. `aa`: a second copy of a stack. Differences between the two copies are only noise."""
WEIR = "weir"
"""The name of weir's own engine as a generator."""
IMPORTED = "imported"
"""The scale of a run with trials from another tool."""
GENERATOR = "generator"
"""Key of the generator in `Cell.coordinates`, if a study varies the generator."""


@dataclass(frozen=True, slots=True)
class UpperBound:
    """A computed upper bound of a cell's throughput."""

    of: Literal["stack", "load", "upstream"]
    """The part of the system that causes the bound."""
    throughput_rps: float
    """Upper bound of the throughput."""
    because: str
    """The computation of the bound. Example: '50 threads ÷ 0.5 s'."""
    at_once: int | None = None
    """Only for a bound of the stack: the maximum number of requests that the stack processes at a time."""
    wait_s: float | None = None
    """Only for a bound of the stack: the mean time that the stack spends on a request."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of stack, workload and load in a study."""

    id: int
    stack: str
    variant: str | None
    workload: str
    load: Load
    arm: Arm = "main"
    title: str = ""
    model: str = ""
    """How the stack serves requests. Example: 'thread per request, blocking I/O'."""
    settings: dict[str, str] = field(default_factory=dict)
    """The stack's limits in this cell. Example: `workers` → `1`."""
    replicas: int = 1
    """Number of processes of the stack, each on its own port."""
    cpus: int | None = None
    """Number of the stack's CPUs, if the study varies it. None: the number in the run's placement."""
    started: bool = True
    """Whether weir starts the server. False for an external server, which already runs."""
    generator: str = WEIR
    """The program that generates the load: `weir`, or the name of another tool."""
    coordinates: dict[str, str] = field(default_factory=dict)
    """Settings that the study varies, in addition to workload and load: limits, replicas, cpus. weir compares two cells
    only if their common settings are equal."""
    upper_bounds: tuple[UpperBound, ...] = ()
    """Upper bounds of the cell's throughput, the lowest first. Empty if no bound is known in advance."""

    @property
    def stack_label(self) -> str:
        """The label `stack` or `stack[variant]`. The second copy of a stack also has ` (A/A)`."""
        name = f"{self.stack}[{self.variant}]" if self.variant else self.stack
        return f"{name} (A/A)" if self.arm == "aa" else name

    @property
    def point_label(self) -> str:
        """A label of workload, load and coordinates. Example: 'hello, 50 connections, threads 200'."""
        coordinates = [coordinate_text(name, value) for name, value in self.coordinates.items()]
        return ", ".join([self.workload, self.load.label, *coordinates])


def coordinate_text(name: str, value: str) -> str:
    """Returns a coordinate of a cell in words. Examples: 'threads 200', '2 replicas', '1 CPU'."""
    match name:
        case "replicas" | "cpus":
            noun = {"replicas": "replica", "cpus": "CPU"}[name]
            return f"{value} {noun}" if value == "1" else f"{value} {noun}s"
        case "scenario":
            # The value is the scenario's name and a digest. Users need only the name.
            return f"scenario {value.split()[0]}"
    # A name such as `delay.delay` begins with the service. The study shows the service, so the text omits it.
    return f"{name.rpartition('.')[2]} {value}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum CPU time and memory of a process and all its descendants."""

    cpus: float | None = None
    """Maximum CPU time per second of real time, in seconds. None: no maximum."""
    period_ms: float = 100.0
    """Period in milliseconds. The process gets new CPU time at the start of each period."""
    memory_bytes: int | None = None
    """Maximum memory. None: all memory of the machine. With a limit, the kernel does not swap out this memory."""

    @property
    def words(self) -> str:
        """The limits in words. Example: `quota 0.5 CPUs, renewed every 100 ms; memory 512 MB`."""
        quota = [] if self.cpus is None else [f"quota {self.cpus:g} CPUs, renewed every {self.period_ms:g} ms"]
        memory = [] if self.memory_bytes is None else [f"memory {self.memory_bytes / 1e6:,.0f} MB"]
        return "; ".join([*quota, *memory])


@dataclass(frozen=True, slots=True)
class Network:
    """A separate network for a stack, behind a veth pair."""

    port: int
    """Port on which the stack listens inside its network."""
    published_port: int
    """Port to which clients connect. If `port` differs, the network namespace translates this port to `port`."""
    delay_ms: float = 0.0
    """Additional time of each round trip. The network delays each direction by half of this time."""
    loss: float = 0.0
    """Share of packets that the network drops, in each direction."""

    @property
    def words(self) -> str:
        """The network in words. Example:
        `separate; port 8000, published as 1234; 20 ms more per round trip; 1 % of packets lost`."""
        published = f", published as {self.published_port}" if self.published_port != self.port else ""
        delay = [f"{self.delay_ms:g} ms more per round trip"] if self.delay_ms else []
        loss = [f"{self.loss:.2%} of packets lost"] if self.loss else []
        return "; ".join([f"separate; port {self.port}{published}", *delay, *loss])


@dataclass(frozen=True, slots=True)
class Placement:
    """CPUs of each role (load, stack, services, control), and limits. `shared`: sentences on CPUs of several roles."""

    load: tuple[int, ...]
    stack: tuple[int, ...]
    services: tuple[int, ...]
    control: tuple[int, ...]
    shared: tuple[str, ...] = ()
    limits: dict[str, Limits] = field(default_factory=dict)
    """A dict from tier to limits. The limits apply to each process of the tier, not to the sum of the processes."""
    network: Network | None = None
    """The stack's separate network. None if the stack is on loopback."""
    omitted_features: tuple[str, ...] = ()
    """Sentences about omitted features: this machine lacks the feature, and the study allows its omission."""
    advertised_address: str | None = None
    """Address at which agents reach this machine. None if this machine generates the loads."""
    agent_threads: tuple[int, ...] = ()
    """Number of load threads of each agent. An agent's share of a load is proportional to this number."""
    services_on: str | None = None
    """Node that runs the services. None if this machine runs the services, on the CPUs `services`."""


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure of a stack from a published study. Reports show this figure with the measured one, not as a target."""

    stack: str
    metric: str
    """A key of the summary in dotted form (`throughput_rps`, `response_time_us.p99`)."""
    value: float
    source: str
    note: str = ""
    where: dict[str, str] = field(default_factory=dict)
    """Points to which the figure applies: workload, connections, rate_rps and coordinates. Empty: all points."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The question and the settings of a run, and the machine of the run."""

    study: str
    title: str
    question: str
    scale: str
    seed: int
    blocks: int
    indicative: bool
    """Whether the run has too few blocks to support a claim."""
    baseline: str | None
    """The stack with which weir compares the other stacks."""
    study_text: str
    command: str
    """Command line that reproduces this run."""
    weir_version: str
    started_unix_ns: int
    environment: dict[str, Any]
    placement: Placement
    published: tuple[PublishedFigure, ...] = ()
    source: str = ""
    """Source of the published figures."""
    claims: tuple[str, ...] = ()
    """Claims of the published study, in weir's words."""
    study_folder: str = ""
    """Folder of the study file. If a user resumes the run, weir reads scenarios from this folder."""

    @property
    def first_look(self) -> int | None:
        """The first block after which narrow confidence intervals may end the run. None without such a rule."""
        look: int | None = self.environment.get("first_look")
        return look

    @property
    def is_load(self) -> bool:
        """Whether the run is a single load (`weir load --out`): one trial of one cell. `study_text` is the plan."""
        return not self.study


Rule = Literal["blocks", "width", "most_blocks", "budget", "first_answer", "no_valid_trial"]


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a run ended: number of blocks, width of confidence intervals, budget, or the first findings (`--fast`)."""

    rule: Rule
    """Name of the rule."""
    blocks: int
    """Number of blocks that ran."""
    text: str
    """A text that describes the reason."""
    added: int = 0
    """Number of blocks, among `blocks`, that users of the live page requested during the run."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the load with constant throughput and constant response times."""

    start_s: float
    end_s: float
    throughput_rps: float
    p50_us: float | None


@dataclass(frozen=True, slots=True)
class MeasurementWindow:
    """The part of a load from which weir takes the figures. Times are seconds since the load's start."""

    start_s: float
    end_s: float
    steady: bool | None
    """Whether the load reached a steady state. None if unknown."""
    why: str
    extended: bool = False
    """Whether weir extended the load to reach a steady state."""
    segments: tuple[Segment, ...] = ()
    """The segments in the order of time. Empty if unknown."""

    @property
    def is_whole(self) -> bool:
        """Whether the window is the whole load."""
        return self.start_s == 0.0


class CaptureResult(Record):
    """The record `end` of a packet capture: the captured requests. See `docs/reference/engine.md`."""

    requests: int
    connections: int
    packets: int
    dropped_packets: int
    ignored_packets: int = 0
    first_t_ns: int | None = None
    last_t_ns: int | None = None
    response_time_us: Quantiles
    histogram: str


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of one trial. `summary` is None if weir did not measure anything."""

    verdict: TrialVerdict
    summary: LoadSummary | None = None
    """Figures of the measurement window."""
    resources: StackResources | None = None
    load_started_monotonic_ns: int | None = None
    ready_s: float | None = None
    """Time from the start of the process to its first correct response."""
    artifact_bytes: int | None = None
    """Size of the stack's build artifact. None if the manifest does not name an artifact."""
    runtime: str = ""
    """Version of the stack's runtime, such as `openjdk 17.0.15 2025-04-15`. Empty if the program needs no runtime."""
    isolation: str = ""
    logs: dict[str, str] = field(default_factory=dict)
    """A dict from process name to the path of the process's log file, relative to the run folder."""
    window: MeasurementWindow | None = None
    whole_load: LoadSummary | None = None
    """The generator's summary of the whole load, including all failures. None if the window is the whole load."""
    phases_s: dict[str, float] = field(default_factory=dict)
    """Duration of each phase (`findings.trial_phases.PHASES`), and the `total`."""
    work: tuple[ServiceWork, ...] = ()
    """Work of the stack's services over the whole load, from the services' own counters."""
    discrepancies: tuple[str, ...] = ()
    """Sentences about violated invariants of the workload."""
    reported_result: ReportedResult | None = None
    """The report of a generator other than weir's engine, with the rounding of each figure."""
    tap: CaptureResult | None = None
    """Requests in the captured packets. None if the study does not capture packets (`method.tap`)."""
    histograms: dict[str, bytes] = field(default_factory=dict)
    """A dict from measured time (`response_time_ns` and others) to HdrHistogram V2. If the window is only a part of the
    load, `response_time_ns` covers the window. `whole_load_response_time_ns` and others cover the whole load."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement of a cell, with a new process of the stack."""

    id: int
    cell: Cell
    block: int
    """Number of the block, from 1. A retry has the block of the rejected trial."""
    position: int
    """Position of the trial in the random order of the block, from 0."""
    attempt: int
    started_unix_ns: int
    result: TrialResult


@dataclass(frozen=True, slots=True)
class TrialEvent:
    """An event of a trial. Times are seconds since the load's start."""

    t_s: float
    kind: str
    detail: str
    duration_s: float | None = None
    """Duration of the event. None for an event without duration."""


_MACHINE = (
    "kernel", "architecture", "cpu_model", "cpus", "cpus_available", "governor", "memory_bytes", "libc", "isolation",
    "compilers_first",
)  # fmt: skip
"""Keys of `RunInfo.environment` that weir compares between two runs. Other keys may differ."""


def compare_environments(base: RunInfo, head: RunInfo) -> list[str]:
    """Returns a text for each difference in machine, weir or placement that may change a run's figures."""
    values = [(key, base.environment.get(key), head.environment.get(key)) for key in _MACHINE]
    found = [f"{key}: {mine} and {theirs}" for key, mine, theirs in values if mine != theirs]
    if base.weir_version != head.weir_version:
        found.append(f"weir: {base.weir_version} and {head.weir_version}")
    for role in ("load", "stack", "services", "control"):
        mine, theirs = getattr(base.placement, role), getattr(head.placement, role)
        if mine != theirs:
            found.append(f"CPUs of {role}: {list(mine)} and {list(theirs)}")
    if base.placement.limits != head.placement.limits:
        found.append("limits of CPU and memory")
    if base.placement.network != head.placement.network:
        found.append("the stacks' network")
    return found
