"""A run and what it consists of: cells, trials, and what is known about the machine. These are what the run file keeps."""

from dataclasses import dataclass, field
from typing import Any, Literal

from weir.model.claim import Claim
from weir.model.load import Load
from weir.model.records import LoadSummary
from weir.model.resources import StackResources
from weir.model.tap import TapResult
from weir.model.verdict import TrialVerdict
from weir.model.window import Window
from weir.model.work import ServiceWork

Arm = Literal["main", "aa"]
"""`aa`: the second copy of a stack in every block, which shows how far identical systems differ."""
WEIR = "weir"
"""The generator that is weir's own engine."""
GENERATOR = "generator"
"""The coordinate of cells where a study varies the generator."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that a cell can answer, by arithmetic, whatever its stack takes beside."""

    of: Literal["stack", "load", "upstream"]
    """Whose limit it is."""
    throughput_rps: float
    """That most."""
    because: str
    """The arithmetic: '50 threads ÷ 0.5 s'."""
    at_once: int | None = None
    """Of a stack's: how many requests it has in hand at a time at most."""
    wait_s: float | None = None
    """Of a stack's: how long it holds each, on average."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One stack × workload × load point of a study."""

    id: int
    stack: str
    variant: str | None
    workload: str
    load: Load
    arm: Arm = "main"
    title: str = ""
    """The stack's title, for people."""
    model: str = ""
    """How the stack serves: 'thread per request, blocking I/O'."""
    settings: dict[str, str] = field(default_factory=dict)
    """The stack's limits as this cell sets them (`workers` → `1`)."""
    replicas: int = 1
    """Processes of the stack, each on a port of its own."""
    cpus: int | None = None
    """How many CPUs the stack has, where the study varies that; None: those of the run's placement."""
    started: bool = True
    """False of an external server, which runs already."""
    generator: str = WEIR
    """What produces the load: weir's own engine, or another tool by its name."""
    coordinates: dict[str, str] = field(default_factory=dict)
    """Where the cell lies besides its workload and load: limits, replicas, cpus and whatever else the study varies and this stack has.
    Cells are compared only where they agree on all coordinates that both have."""
    ceilings: tuple[Ceiling, ...] = ()
    """What it cannot exceed, the lowest first; empty where nothing can be said beforehand."""

    @property
    def stack_label(self) -> str:
        """`stack` or `stack[variant]`, with ` (A/A)` for the second copy."""
        name = f"{self.stack}[{self.variant}]" if self.variant else self.stack
        return f"{name} (A/A)" if self.arm == "aa" else name

    @property
    def point_label(self) -> str:
        """Where the cell lies, whole: 'hello, 50 connections, threads 200'."""
        return ", ".join([self.workload, self.load.label, *(coordinate_text(name, value) for name, value in self.coordinates.items())])


def coordinate_text(name: str, value: str) -> str:
    """A coordinate of a cell in words: 'threads 200', '2 replicas', '1 CPU'."""
    match name:
        case "replicas" | "cpus":
            noun = {"replicas": "replica", "cpus": "CPU"}[name]
            return f"{value} {noun}" if value == "1" else f"{value} {noun}s"
        case "scenario":
            # Behind the name stands a digest of what users do.
            return f"scenario {value.split()[0]}"
    # Of a service's setting, `delay.delay`, the service is known from what is measured.
    return f"{name.rpartition('.')[2]} {value}"


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a process may use, with everything below it."""

    cpus: float | None = None
    """CPUs' worth of time; None: all of those that it is bound to."""
    period_ms: float = 100.0
    """How often that is renewed."""
    memory_bytes: int | None = None
    """None: all that the machine has. Nothing is swapped out where this is set."""

    @property
    def words(self) -> str:
        """For people: `quota 0.5 CPUs, renewed every 100 ms; memory 512 MB`."""
        quota = [] if self.cpus is None else [f"quota {self.cpus:g} CPUs, renewed every {self.period_ms:g} ms"]
        memory = [] if self.memory_bytes is None else [f"memory {self.memory_bytes / 1e6:,.0f} MB"]
        return "; ".join([*quota, *memory])


@dataclass(frozen=True, slots=True)
class Network:
    """A network of a stack's own, behind a veth pair."""

    port: int
    """What the stack listens on inside."""
    published_port: int
    """What clients connect to; where it is another one the namespace translates it."""
    delay_ms: float = 0.0
    """Added to a round trip, half of it in each direction."""
    loss: float = 0.0
    """Share of packets that are lost, in each direction."""

    @property
    def words(self) -> str:
        """For people: `of its own; port 8000, published as 1234; 20 ms more a round trip; 1 % of packets lost`."""
        published = f", published as {self.published_port}" if self.published_port != self.port else ""
        delay = [f"{self.delay_ms:g} ms more a round trip"] if self.delay_ms else []
        loss = [f"{self.loss:.2%} of packets lost"] if self.loss else []
        return "; ".join([f"of its own; port {self.port}{published}", *delay, *loss])


@dataclass(frozen=True, slots=True)
class Placement:
    """CPUs of each role, and what the stack and its services may use beyond that. Roles may share CPUs; `shared` says in sentences what
    is shared, and is printed."""

    load: tuple[int, ...]
    stack: tuple[int, ...]
    services: tuple[int, ...]
    control: tuple[int, ...]
    shared: tuple[str, ...] = ()
    limits: dict[str, Limits] = field(default_factory=dict)
    """By tier; each process of the tier that weir starts has them for itself."""
    network: Network | None = None
    """None: the stack is on loopback."""
    left_out: tuple[str, ...] = ()
    """What the study asks for and this machine cannot do, in sentences, where the study allows to go on without."""
    reached_at: str | None = None
    """The address of this machine that loads from others come to; None: loads come from this machine."""
    agent_threads: tuple[int, ...] = ()
    """Load threads of each of the others, and with that its share of a load."""
    services_on: str | None = None
    """The machine of the services, by the name of its node; None: they are on this one, with `services` for CPUs."""


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure that a published study printed for a stack, to stand beside ours. Never a target."""

    stack: str
    metric: str
    """A key of the summary in dotted form (`throughput_rps`, `response_time_us.p99`)."""
    value: float
    source: str
    note: str = ""
    where: dict[str, str] = field(default_factory=dict)
    """The points that it stands beside, by what a point has: workload, connections, rates_rps, coordinates. Empty: all."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What was asked, and of which machine."""

    study: str
    title: str
    question: str
    scale: str
    seed: int
    blocks: int
    indicative: bool
    """True where the scale has fewer blocks than a claim needs."""
    baseline: str | None
    """The stack that the others are compared with."""
    study_text: str
    command: str
    """What reproduces this run."""
    weir_version: str
    started_unix_ns: int
    environment: dict[str, Any]
    placement: Placement
    published: tuple[PublishedFigure, ...] = ()
    source: str = ""
    """Where the published figures come from."""
    claims: tuple[str, ...] = ()
    """What the published study claimed, in our words."""
    study_folder: str = ""
    """Where the study's file lay: its scenarios are relative to it when the run is resumed."""

    @property
    def is_load(self) -> bool:
        """True of a load without a study (`weir load --out`): one trial of one cell, whose plan stands in `study_text`."""
        return not self.study


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What one trial came to. `summary` is None where nothing was measured."""

    verdict: TrialVerdict
    summary: LoadSummary | None = None
    """Of the window that counts."""
    window: Window | None = None
    whole_load: LoadSummary | None = None
    """The generator's summary of all of the load, where only a part of it counts; failures outside that part are in here."""
    resources: StackResources | None = None
    histograms: dict[str, bytes] = field(default_factory=dict)
    """HdrHistogram V2 by clock, `response_time_ns` and so on. Where a part of the load counts `response_time_ns` is of that part, and
    those of the whole load are `whole_load_response_time_ns` and so on."""
    load_started_monotonic_ns: int | None = None
    ready_s: float | None = None
    """From the start of the process to the first right answer."""
    artifact_bytes: int | None = None
    """The size of what the stack was built into; None where its manifest names nothing."""
    runtime: str = ""
    """What ran the stack, in its own words: `openjdk 17.0.15 2025-04-15`. Empty of a program that runs by itself."""
    isolation: str = ""
    logs: dict[str, str] = field(default_factory=dict)
    """Log files by process name, relative to the run folder."""
    work: tuple[ServiceWork, ...] = ()
    """What the stack's services did over the whole load, by their own counters."""
    discrepancies: tuple[str, ...] = ()
    """Invariants of the workload that did not hold after the load, in words."""
    claim: Claim | None = None
    """What a generator other than weir's said of the load, with how far it rounded each figure."""
    tap: TapResult | None = None
    """What the kernel saw of the requests, where the study asked for it (`method.tap`)."""
    phases_s: dict[str, float] = field(default_factory=dict)
    """How long its parts took (`findings.times.PHASES`), and the `total`."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One cell, run once, on a fresh process."""

    id: int
    cell: Cell
    block: int
    """From 1. A rejected trial is tried again later and keeps its block."""
    position: int
    """Place in the block's random order, from 0."""
    attempt: int
    """From 1."""
    started_unix_ns: int
    result: TrialResult


@dataclass(frozen=True, slots=True)
class TrialEvent:
    """Something that happened at a moment of a trial, in seconds since the load's start."""

    t_s: float
    kind: str
    detail: str
    duration_s: float | None = None
    """How long it went on; None of a moment."""
