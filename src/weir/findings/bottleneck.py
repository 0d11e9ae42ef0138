"""Finds the limit of a stack's throughput: a full resource, a limit of the software, or the load itself.

A resource is a set of CPUs or a quota. The demands of tiers that share a resource add up. If a resource is full, the
resource with the highest utilisation is the bottleneck. If throughput stops growing and no resource is full, the
software is the limit: threads, a pool, or waiting.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from weir import stats
from weir.findings.compare import CLAIM_BLOCKS
from weir.findings.evidence import CellTrials
from weir.findings.experiment import describe_experiment, propose_experiment
from weir.findings.formatting import basis_text, counted, listed, significant
from weir.findings.metrics import BY_KEY, THROUGHPUT
from weir.findings.point_types import Evidence
from weir.findings.points import PointCells
from weir.findings.types import Bottleneck, BottleneckKind, ResourceKind, ResourceUse, TierDemand
from weir.model.load import ClosedLoad
from weir.model.load_records import BUSY_FRACTION
from weir.model.observer_records import THREAD_STATE_WORDS
from weir.model.resources import TierResources
from weir.model.run_types import WEIR, Placement, Trial
from weir.store import RunReader

_AT_BOUND = 0.85
"""A bound limits a stack if the stack reaches at least this share of the bound."""
_GENERATOR = "generator"
_BLOCKED = 0.6
"""An event loop counts as blocked if blocking calls take at least this share of the loop's time."""
_LISTENS = 0.25
"""An event loop never counts as blocked if waits for events take more than this share of the loop's time."""
_FLAT = 0.05
"""Maximum relative difference between throughputs that count as equal."""
_FEWEST_LOOPS = 4
"""Minimum number of event loops in Netty, Vert.x and similar servers, which start one event loop per CPU."""
_BLOCKING_WAITS = ("sleep", "lock", "socket_io", "disk")
_JVMS_OWN = re.compile(
    "C1 Compiler|C2 Compiler|G1 |GC Thread|VM |Reference Handl|Finalizer|Signal Dispatch|Service Thread|"
    "Monitor Deflati|Sweeper|Common-Cleaner|Notification T|Attach Listener"
)
"""Matches the names of HotSpot's own threads, which serve no requests."""
_KIND_OF: dict[str, BottleneckKind] = {"stack": "software limit", "load": "load", "upstream": "upstream"}


@dataclass(frozen=True, slots=True)
class ServiceNode:
    """A machine that runs only services."""

    name: str
    cpus: int
    """Number of the machine's CPUs; 0 if the run file lacks the number."""
    tiers: frozenset[str]
    """The tiers on this machine. A proxy in front of the stack is not among these tiers."""


def service_node(reader: RunReader) -> ServiceNode | None:
    """Returns the machine that ran only services. Returns None if the services and stacks shared a machine."""
    node = reader.info.placement.services_on
    if node is None:
        return None
    facts = reader.info.environment.get("services_on", {}).get(node, {})
    return ServiceNode(node, len(facts.get("cpus", ())), reader.tiers_on(node))


def _mean_throughput_rps(loaded: CellTrials) -> float:
    rates = [rate for trial in loaded.trials if (rate := BY_KEY[THROUGHPUT].of(trial)) is not None]
    return fmean(rates) if rates else 0.0


def find_bottlenecks(
    groups: Sequence[PointCells], names: Mapping[int, str], placement: Placement, node: ServiceNode | None = None
) -> tuple[Bottleneck, ...]:
    """Finds each stack's bottleneck for each workload and setting, at the load with the highest throughput. `names`: a
    dict from cell id to the stack's short name. `node`: the services' own machine; None without one."""
    places: dict[tuple[str, str], dict[int, CellTrials]] = {}
    for group in groups:
        for member in group.members:
            trials = tuple(trial for trial in member.used if trial.result.resources is not None)
            if member.cell.arm == "main" and trials:
                loaded = places.setdefault((group.where, member.cell.stack_label), {})
                loaded[member.cell.id] = CellTrials(member.cell, trials)
    return tuple(
        _find_bottleneck(where, list(loaded.values()), names, placement, node) for (where, _), loaded in places.items()
    )


def _find_bottleneck(
    where: str, loaded: Sequence[CellTrials], names: Mapping[int, str], placement: Placement, node: ServiceNode | None
) -> Bottleneck:
    heaviest = max(loaded, key=_mean_throughput_rps)
    cell, reached = heaviest.cell, _mean_throughput_rps(heaviest)
    demands = _estimate_demands(loaded)
    resources = _resources(heaviest, demands, placement, node)
    fullest = resources[0] if resources else None
    loops = _blocked_loops(heaviest, len(placement.stack) if cell.cpus is None else cell.cpus)
    lowest = cell.upper_bounds[0] if cell.upper_bounds else None
    kind: BottleneckKind = "unknown"
    what, most = "no resource that weir observed is full", None
    if fullest is not None and fullest.utilisation >= BUSY_FRACTION:
        kind = "generator" if fullest.kind == "generator" else "resource"
        what, most = fullest.name, fullest.width_rps
    elif loops is not None:
        kind, what = "blocked event loop", loops
        most = lowest.throughput_rps if lowest is not None and lowest.of == "stack" else None
    elif lowest is not None and reached >= _AT_BOUND * lowest.throughput_rps:
        kind = _KIND_OF[lowest.of]
        what, most = lowest.because, lowest.throughput_rps
    else:
        limit = _full_limit(heaviest) or _full_listen_queue(heaviest) or _plateau(loaded, heaviest)
        if limit:
            kind, what = "software limit", limit
    blocks = len({trial.block for trial in heaviest.trials})
    found = Bottleneck(
        where=where,
        label=cell.stack_label,
        name=names[cell.id],
        kind=kind,
        what=what,
        throughput_rps=reached,
        at=cell.load.label,
        most_rps=most,
        tiers=_compare_tiers(demands, resources),
        resources=tuple(resources),
        indicative=blocks < CLAIM_BLOCKS,
        evidence=Evidence(tuple(sorted(trial.id for one in loaded for trial in one.trials))),
        sentence="",
        would_prove="",
        cell=cell.id,
        experiment=None,
    )
    experiment = propose_experiment(found, cell)
    would_prove = describe_experiment(found, experiment)
    return replace(found, sentence=_sentence(found, blocks), would_prove=would_prove, experiment=experiment)


def _estimate_demands(loaded: Sequence[CellTrials]) -> dict[str, stats.Demand]:
    """Estimates each tier's service demand from the trials at all loads."""
    busy: dict[str, list[tuple[float, float, int]]] = {}
    for number, one in enumerate(loaded):
        for rate, of_tiers in filter(None, map(compute_busy_cpus, one.trials)):
            for tier, used in of_tiers.items():
                busy.setdefault(tier, []).append((used, rate, number))
    demands = {}
    for tier, found in busy.items():
        used_s, rates, loads = zip(*found, strict=True)
        if (demand := stats.estimate_service_demand(used_s, rates, loads)) is not None:
            demands[tier] = demand
    return demands


def compute_busy_cpus(trial: Trial) -> tuple[float, dict[str, float]] | None:
    """Returns a trial's throughput and each tier's mean number of busy CPUs; None if the trial lacks these figures."""
    rate, summary = BY_KEY[THROUGHPUT].of(trial), trial.result.summary
    if rate is None or rate <= 0 or summary is None or summary.duration_s <= 0 or trial.result.resources is None:
        return None
    return rate, {tier: used.cpu_s / summary.duration_s for tier, used in _tiers_of(trial).items()}


def _tiers_of(trial: Trial) -> Mapping[str, TierResources]:
    resources = trial.result.resources
    assert resources is not None
    return resources.tiers or {"app": resources}


def _find_services(trial: Trial) -> set[str]:
    """Returns the tiers that are services. A service has work counters, or a log not named `app…`."""
    logs = {name for name in trial.result.logs if name.partition("-")[0] != "app"}
    return logs | {work.service for work in trial.result.work}


def _resources(
    heaviest: CellTrials, demands: Mapping[str, stats.Demand], placement: Placement, node: ServiceNode | None
) -> list[ResourceUse]:
    """Returns the resources of the tiers, sorted by utilisation: the highest first."""

    def use(name: str, kind: ResourceKind, servers: float, tiers: Sequence[str]) -> ResourceUse:
        utilisations = []
        for trial in heaviest.trials:
            summary = trial.result.summary
            if summary is not None and summary.duration_s > 0:
                of_tiers = _tiers_of(trial)
                cpu_s = sum(of_tiers[tier].cpu_s for tier in tiers if tier in of_tiers)
                utilisations.append(cpu_s / summary.duration_s / servers)
        utilisation = fmean(utilisations) if utilisations else 0.0
        demand_s = sum(demands[tier].per_request_s.value for tier in tiers)
        width_rps = servers / demand_s if demand_s > 0 else None
        return ResourceUse(name, kind, servers, demand_s, tuple(tiers), utilisation, width_rps)

    services = set().union(*map(_find_services, heaviest.trials))
    stack_cpus = placement.stack if heaviest.cell.cpus is None else placement.stack[-heaviest.cell.cpus :]
    shared: dict[tuple[int, ...], list[str]] = {}
    there = [tier for tier in demands if node is not None and tier in node.tiers]
    uses = []
    for tier in demands:
        is_service = tier in services
        cpus = (placement.services or stack_cpus) if is_service else stack_cpus
        if cpus and tier not in there:
            shared.setdefault(tuple(cpus), []).append(tier)
        limits = placement.limits.get(tier)
        if limits is not None and limits.cpus is not None:
            processes = 1 if is_service else heaviest.cell.replicas
            name = f"{tier}'s quota of {limits.cpus:g} CPUs" + (f" × {processes}" if processes > 1 else "")
            uses.append(use(name, "service quota" if is_service else "quota", limits.cpus * processes, [tier]))
    for cpus, tiers in shared.items():
        noun = "CPU" if len(cpus) == 1 else "CPUs"
        name = f"{noun} {', '.join(map(str, cpus))} ({listed(tiers)})"
        uses.append(use(name, "cpus" if cpus == tuple(stack_cpus) else "service cpus", float(len(cpus)), tiers))
    if node is not None and node.cpus and there:
        name = f"{counted(node.cpus, 'CPU')} of {node.name} ({listed(there)})"
        uses.append(use(name, "service cpus", float(node.cpus), there))
    busy = [fraction for trial in heaviest.trials if (fraction := _generator_busy(trial)) is not None]
    if busy:
        uses.append(ResourceUse(_GENERATOR, "generator", float(len(placement.load) or 1), 0.0, (), fmean(busy), None))
    return sorted(uses, key=lambda use: -use.utilisation)


def _generator_busy(trial: Trial) -> float | None:
    if trial.result.summary is None:
        return None
    use = trial.result.summary.generator
    # Other generators report no busy fraction. For them, the CPU fraction is equivalent, because they do not spin.
    return use.busy_fraction if trial.cell.generator == WEIR else use.cpu_fraction


def _compare_tiers(demands: Mapping[str, stats.Demand], resources: Sequence[ResourceUse]) -> tuple[TierDemand, ...]:
    found = []
    for tier, demand in demands.items():
        mine = [use for use in resources if tier in use.tiers]
        if mine and demand.per_request_s.value > 0:
            narrowest = min(mine, key=lambda use: use.servers)
            width_rps = narrowest.servers / demand.per_request_s.value
            found.append(TierDemand(tier, demand, narrowest.name, width_rps, relative_width=1.0))
    least = min((one.width_rps for one in found), default=1.0)
    return tuple(replace(one, relative_width=one.width_rps / least) for one in found)


def _full_limit(heaviest: CellTrials) -> str:
    """Describes the limit on threads or connections that the requests in flight have reached. Returns '' without such a
    limit. A limit from the manifest has priority over a setting named `threads`, `pool` or `workers`."""
    in_hand = fmean(
        (BY_KEY[THROUGHPUT].of(trial) or 0.0) * (summary.response_time_us.mean or 0.0) / 1e6
        for trial in heaviest.trials
        if (summary := trial.result.summary) is not None
    )
    cell = heaviest.cell
    for bound in cell.upper_bounds:
        if bound.of == "stack" and bound.at_once is not None and in_hand >= _AT_BOUND * bound.at_once:
            return f"{bound.because}, with {significant(in_hand)} requests in flight,"
    # A worker with an event loop serves any number of requests at the same time.
    limiting = ("threads", "pool") if "event loop" in cell.model else ("threads", "pool", "workers")
    found = [
        (int(text) * cell.replicas, name, text)
        for name, text in cell.settings.items()
        if name in limiting and text.isdigit() and 0 < int(text) * cell.replicas <= in_hand
    ]
    if not found:
        return ""
    _, name, text = min(found)
    times = f" × {cell.replicas} processes" if cell.replicas > 1 else ""
    return (
        f"{name} {text}{times}, with {significant(in_hand)} requests in flight and every CPU below {BUSY_FRACTION:.0%}"
    )


def _full_listen_queue(heaviest: CellTrials) -> str:
    """Describes the listen queue if it was full in at least half of the trials. Returns '' otherwise."""
    resources = [trial.result.resources for trial in heaviest.trials]
    overflows = [sum(network.listen_overflows for network in one.networks) for one in resources if one is not None]
    full = len(overflows) - overflows.count(0)
    if full == 0 or 2 * full < len(overflows):
        return ""
    return f"a full listen queue ({counted(sum(overflows), 'connection')} in {full} of {len(overflows)} trials)"


def _blocked_loops(heaviest: CellTrials, stack_cpus: int) -> str | None:
    """Describes the waits of a stack's blocked event loops. Returns None if no event loop is blocked.

    Event loops are the threads with the most CPU time, because these threads serve the requests. A stack has only a few
    event loops per CPU; a larger group of threads is a pool.
    """
    if "event loop" not in heaviest.cell.model:
        return None
    processes = max(trial.result.resources.peak_processes for trial in heaviest.trials if trial.result.resources)
    states: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    threads: dict[str, int] = {}
    for trial in heaviest.trials:
        services = _find_services(trial)
        for name, tier in _tiers_of(trial).items():
            for pool in tier.pools if name not in services else ():
                if not _JVMS_OWN.match(pool.pool):
                    threads[pool.pool] = pool.threads
                    for state, mean in pool.in_state.items():
                        states[pool.pool][state] += mean
    if not states:
        return None
    name = max(states, key=lambda pool: states[pool]["on_cpu"])
    total = sum(states[name].values()) or 1.0
    shares = {state: states[name][state] / total for state in (*_BLOCKING_WAITS, "event_wait")}
    blocked, listens = sum(shares[state] for state in _BLOCKING_WAITS), shares["event_wait"]
    most_threads = max(_FEWEST_LOOPS, 2 * stack_cpus) * processes
    if threads[name] > most_threads or blocked < _BLOCKED or listens > _LISTENS:
        return None
    where = max(_BLOCKING_WAITS, key=shares.__getitem__)
    return (
        f"the event loop is blocked: in {counted(threads[name], 'thread')} named {name}, blocking calls take "
        f"{blocked:.0%} of the time, most of it {THREAD_STATE_WORDS[where]}, and waits for events take {listens:.0%}"
    )


def _plateau(loaded: Sequence[CellTrials], heaviest: CellTrials) -> str:
    """Describes a plateau: the same throughput with at least twice as many users. Returns '' without a plateau."""
    if not isinstance(heaviest.cell.load, ClosedLoad):
        return ""
    least = (1 - _FLAT) * _mean_throughput_rps(heaviest)
    closed = [one for one in loaded if isinstance(one.cell.load, ClosedLoad)]
    flat = sorted(one.cell.load.connections for one in closed if _mean_throughput_rps(one) >= least)
    if len(flat) < 2 or flat[-1] < 2 * flat[0]:
        return ""
    return (
        f"a number of threads, a pool or a lock (throughput is the same from {flat[0]:,} to {flat[-1]:,} connections, "
        "and every CPU has time left)"
    )


def _sentence(found: Bottleneck, blocks: int) -> str:
    fullest = found.resources[0] if found.resources else None
    full = "" if fullest is None else f" {fullest.utilisation:.0%} of the fullest resource, {fullest.name}, is used."
    match found.kind:
        case "resource":
            assert fullest is not None
            verb = "are" if fullest.kind.endswith("cpus") and fullest.servers > 1 else "is"
            limit = f"{found.what} {verb} full ({fullest.utilisation:.0%})."
        case "generator":
            limit = "the generator is the limit, not the stack."
        case "load":
            limit = f"the load is the limit ({found.what})."
        case "upstream":
            limit = f"the upstream is the limit ({found.what})."
        case "software limit":
            limit = f"{found.what} is the limit.{full}"
        case "blocked event loop" if found.most_rps is not None:
            limit = f"{found.what}; the event loop allows {significant(found.most_rps)} req/s.{full}"
        case _:
            limit = f"{found.what}.{full}"
    reached, basis = f"{significant(found.throughput_rps)} req/s", basis_text(blocks, found.indicative)
    text = f"{found.name} on {found.where} answers at most {reached} (at {found.at}, {basis}): {limit}"
    if len(found.tiers) > 1:
        names = " : ".join(tier.tier for tier in found.tiers)
        widths = " : ".join(significant(tier.relative_width, 2) for tier in found.tiers)
        text += f" The throughputs that {names} allow have the ratio {widths}."
    return text
