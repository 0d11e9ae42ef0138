"""How many machines of each kind a rate takes, from what a run has measured: mean value analysis, checked by a simulation.

A machine of a tier is what that tier had in the run: so many CPUs, or a quota. What a request needs of it is the tier's service demand,
with its interval. Everything that is assumed beyond that is said in the plan.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from statistics import fmean, median
from typing import Any

import numpy as np

from weir import stats
from weir.findings.bottleneck import busy_of
from weir.findings.evidence import is_used
from weir.findings.experiment import without_doubles
from weir.findings.measured import Evidence
from weir.findings.metrics import BY_KEY, THROUGHPUT
from weir.findings.run import of_run
from weir.findings.types import Bottleneck
from weir.findings.words import amount, counted, listed, significant
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, Load, OpenLoad
from weir.model.run import WEIR, Cell, Trial
from weir.objective import Condition
from weir.stats.fleet import Fleet, mean_response_s, simulated_times_s
from weir.store import RunReader

_AGENT = "load agent"
_SIMULATIONS = 5
_MOST_MACHINES = 100_000
"""To a tier that has so many none are added: an objective that takes more is left unmet."""
_IDLE = 20
"""With so many times the machines that its work takes hardly any request of a tier meets another."""
_MOST_USERS = 5_000
"""Mean value analysis takes a step for each of them."""


@dataclass(frozen=True, slots=True)
class MachinesOf:
    """The machines of one tier."""

    tier: str
    machines: int
    low: int
    """With the demand at the lower end of its interval,"""
    high: int
    """and at the upper one."""
    servers: float
    """CPUs' worth of time of each."""
    demand_us: float
    """What a request needs of one of them."""
    demand_low_us: float | None
    demand_high_us: float | None
    busy: float
    """The utilisation of each at the rate."""


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """What a rate takes."""

    label: str
    name: str
    where: str
    rate_rps: float
    objective: str | None
    agents: MachinesOf | None
    """None where the run's load was made by another generator."""
    tiers: tuple[MachinesOf, ...]
    delay_us: float
    """What a request takes beside its work on the tiers."""
    mean_us: float
    """The response time, by mean value analysis."""
    simulated_mean_us: float
    """The same, by simulation."""
    found: float | None
    """The figure of the objective, in the objective's unit, by simulation."""
    found_low: float | None
    found_high: float | None
    met: bool
    """Whether it holds; true without an objective, as every tier has time left."""
    alone: float | None
    """The same figure where requests meet nobody, if even that misses the objective: no number of machines is enough. None: it does not."""
    assumptions: tuple[str, ...]
    evidence: Evidence
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ReplicaPrediction:
    """What a stack would answer with more processes, predicted from the fewest that were measured."""

    replicas: int
    at: str
    """The load."""
    predicted_rps: float
    low_rps: float | None
    """With every demand at the upper end of its interval; None where the run gives no intervals,"""
    high_rps: float | None
    """and at the lower one."""
    measured_rps: float | None
    """None where the run has not measured that."""
    differences: tuple[float, ...]
    """Predicted ÷ measured - 1 of each block that has measured both, from what a request needed in that block; in rising order. What
    neighbours of the machine take differs from block to block, and makes both slow."""
    caution: str | None
    """What makes its figures doubtful; None: nothing."""

    @property
    def error(self) -> float | None:
        """The median of the differences."""
        return median(self.differences) if self.differences else None


def plan_machines(
    reader: RunReader,
    *,
    rate_rps: float,
    objective: Condition | None = None,
    stack: str | None = None,
    cpus: Mapping[str, float] | None = None,
) -> MachinePlan:
    """How many machines of each tier, and how many load agents, a rate takes.

    Args:
        reader: the run.
        rate_rps: requests a second.
        objective: what must hold of the response time; None: no tier is to be busier than `stats.BUSY`.
        stack: its label; None: the only one.
        cpus: CPUs of a machine, by tier, in place of what the run had.

    Raises:
        UsageError: the run does not say what a request of that stack needs.
    """
    if objective is not None and objective.quantile is None and objective.metric != "mean":
        raise UsageError(f"--objective: found {objective.text!r}, expected one of response times, as 'p99<=50ms': that is what is planned")
    found, cell = _measured(reader, stack)
    trials = [trial for trial in reader.trials() if trial.id in set(found.evidence.used) and is_used(trial)]
    servers = _servers(found, cell)
    unknown = set(cpus or {}) - set(servers)
    if unknown:
        raise UsageError(f"--cpus: found {', '.join(sorted(unknown))}, expected tiers of the run: {', '.join(servers)}")
    of_machine = {**servers, **(cpus or {})}
    demands = {tier.tier: tier.demand.per_request_s for tier in found.tiers if tier.tier in servers}
    lightest, load = _lightest(trials)
    delay_s = max(0.0, lightest - _queueing_s(found, load, trials))

    def fleets(demand: Callable[[stats.Estimate], float]) -> dict[str, Fleet]:
        return _enough(
            {tier: stats.Station(demand(estimate), of_machine[tier]) for tier, estimate in demands.items()}, rate_rps, delay_s, objective
        )

    planned = fleets(_value)
    fewest = fleets(_low)
    most = fleets(_high)
    tiers = tuple(
        MachinesOf(
            tier=tier,
            machines=fleet.machines,
            low=fewest[tier].machines,
            high=most[tier].machines,
            servers=of_machine[tier],
            demand_us=demands[tier].value * 1e6,
            demand_low_us=_micro(demands[tier].low),
            demand_high_us=_micro(demands[tier].high),
            busy=fleet.busy(rate_rps),
        )
        for tier, fleet in planned.items()
    )
    machines = list(planned.values())
    mean = _figures(machines, rate_rps, delay_s, None)
    figure = _figures(machines, rate_rps, delay_s, objective)
    met = objective is None or _holds(objective, figure)
    plan = MachinePlan(
        label=found.label,
        name=found.name,
        where=found.where,
        rate_rps=rate_rps,
        objective=None if objective is None else objective.text,
        # At light loads a generator does more for each request.
        agents=_agents([trial for trial in trials if trial.cell.id == cell.id], rate_rps),
        tiers=tiers,
        delay_us=delay_s * 1e6,
        mean_us=mean_response_s(machines, rate_rps, delay_s) * 1e6,
        simulated_mean_us=mean.value,
        found=None if objective is None else figure.value,
        found_low=None if objective is None else figure.low,
        found_high=None if objective is None else figure.high,
        met=met,
        alone=None if met or objective is None else _alone(planned, rate_rps, delay_s, objective),
        assumptions=tuple(_assumptions(found, tiers, delay_s, trials)),
        evidence=found.evidence,
        sentence="",
    )
    return replace(plan, sentence=_sentence(plan))


def predict_replicas(reader: RunReader, *, stack: str | None = None, replicas: Sequence[int] = ()) -> tuple[ReplicaPrediction, ...]:
    """What a stack answers with more processes than the fewest that the run has measured, and what it did where it was measured.

    Args:
        reader: the run.
        stack: its label; None: the only one.
        replicas: numbers of processes; those that the run has measured are predicted as well.

    Raises:
        UsageError: the run does not say what a request of that stack needs.
    """
    found, cell = _measured(reader, stack)
    cells, trials = reader.cells(), [trial for trial in reader.trials() if is_used(trial)]
    alike = {
        one.replicas: one
        for one in cells
        if (one.stack_label, one.workload, one.load, one.arm) == (cell.stack_label, cell.workload, cell.load, cell.arm)
        and {**one.coordinates, "replicas": ""} == {**cell.coordinates, "replicas": ""}
    }
    wanted = sorted({*replicas, *alike} - {cell.replicas})
    value, low, high = ({tier.tier: end(tier.demand.per_request_s) for tier in found.tiers} for end in (_value, _low, _high))
    # An interval that reaches 0 gives no upper end.
    has_interval = all(tier.demand.per_request_s.low is not None and low[tier.tier] > 0 for tier in found.tiers)
    predictions = []
    base = [trial for trial in trials if trial.cell.id == cell.id]
    for count in wanted:
        held_against = [trial for trial in trials if count in alike and trial.cell.id == alike[count].id]
        rates = [rate for trial in held_against if (rate := BY_KEY[THROUGHPUT].of(trial))]
        predictions.append(
            ReplicaPrediction(
                replicas=count,
                at=cell.load.label,
                predicted_rps=_with_replicas(found, value, cell, count),
                low_rps=_with_replicas(found, high, cell, count) if has_interval else None,
                high_rps=_with_replicas(found, low, cell, count) if has_interval else None,
                measured_rps=fmean(rates) if rates else None,
                differences=tuple(sorted(_differences(found, cell, count, base, held_against))),
                caution=_not_steady([*base, *held_against]),
            )
        )
    return tuple(predictions)


def _differences(found: Bottleneck, cell: Cell, count: int, base: Sequence[Trial], held_against: Sequence[Trial]) -> Iterator[float]:
    of_block = {trial.block: told for trial in base if (told := busy_of(trial)) is not None}
    for trial in held_against:
        if (rate := BY_KEY[THROUGHPUT].of(trial)) and trial.block in of_block:
            base_rate, busy = of_block[trial.block]
            yield _with_replicas(found, {tier: used / base_rate for tier, used in busy.items()}, cell, count) / rate - 1


def _with_replicas(found: Bottleneck, demands_s: Mapping[str, float], cell: Cell, count: int) -> float:
    """Throughput with `count` processes, where a request needs so much of each tier: a quota's worth of time for each process, while CPUs
    that are shared stay as they are.
    """
    more = count / cell.replicas
    needed = [replace(use, demand_s=sum(demands_s.get(tier, 0.0) for tier in use.tiers)) for use in found.resources]
    uses = [use for use in needed if use.demand_s > 0]
    stations = []
    for use in without_doubles([replace(use, servers=use.servers * more) if use.kind == "quota" else use for use in uses]):
        if use.kind == "quota":
            # A queue for each process, which gets its part of the requests.
            stations += [stats.Station(use.demand_s / count, use.servers / count)] * count
        else:
            stations.append(stats.Station(use.demand_s, use.servers))
    # What is left out above still cannot pass more than it can.
    widths = [use.servers * (more if use.kind == "quota" else 1) / use.demand_s for use in uses]
    load = cell.load
    if not isinstance(load, ClosedLoad) or load.connections > _MOST_USERS:
        asked = load.rate_rps if isinstance(load, OpenLoad) and not isinstance(load.rate_rps, tuple) else math.inf
        return min([asked, *widths])
    think_s = load.think.mean_s if load.think is not None else 0.0
    return min([stats.closed_system(stations, load.connections, think_s)[-1].throughput_rps, *widths])


def _measured(reader: RunReader, stack: str | None) -> tuple[Bottleneck, Cell]:
    """What the run says of a stack: where it has several places, the one with the fewest processes and then the most answers."""
    found = [one for one in of_run(reader).bottlenecks if one.tiers]
    labels = sorted({one.label for one in found})
    if not labels:
        raise UsageError(
            f"{reader.path}: found no trial with CPU time by tier, expected a run of stacks that weir starts", hint="weir run api-capacity"
        )
    if stack is None and len(labels) > 1:
        raise UsageError(f"--stack: found none, expected one of {', '.join(labels)}")
    if stack is not None and stack not in labels:
        raise UsageError(f"--stack: found {stack!r}, expected one of {', '.join(labels)}")
    cells = {cell.id: cell for cell in reader.cells()}
    of_stack = [one for one in found if stack in (None, one.label)]
    best = min(of_stack, key=lambda one: (cells[one.cell].replicas, -one.throughput_rps))
    _check_whole(reader, best)
    return best, cells[best.cell]


def _check_whole(reader: RunReader, found: Bottleneck) -> None:
    """Holds the tiers whose machines are known against those that worked.

    Raises:
        UsageError: some are missing.
    """
    used = [trial.result.resources for trial in reader.trials() if trial.id in set(found.evidence.used)]
    worked = {tier for resources in used if resources is not None for tier, use in resources.tiers.items() if use.cpu_s > 0}
    if missing := worked - {tier.tier for tier in found.tiers}:
        raise UsageError(
            f"{reader.path}: found no CPUs of {reader.info.placement.services_on} (environment.services_on), where "
            f"{listed(sorted(missing))} ran, expected how many they are: what a machine of it can do is not known",
            hint=f"weir run {reader.info.study} --services-here",
        )


def _servers(found: Bottleneck, cell: Cell) -> dict[str, float]:
    """What a machine of each tier has: the narrowest of what it worked with in the run; of a quota one process's."""
    servers: dict[str, float] = {}
    for use in sorted(found.resources, key=lambda use: use.servers):
        for tier in use.tiers:
            servers.setdefault(tier, use.servers / (cell.replicas if use.kind == "quota" else 1))
    return servers


def _lightest(trials: Sequence[Trial]) -> tuple[float, Load]:
    """The mean response time under the load with the fewest requests in hand, and that load."""
    means: dict[Load, list[float]] = {}
    for trial in trials:
        if trial.result.summary is not None and trial.result.summary.response_time_us.mean is not None:
            means.setdefault(trial.cell.load, []).append(trial.result.summary.response_time_us.mean / 1e6)
    lightest = min(means, key=lambda load: fmean(means[load]))
    return fmean(means[lightest]), lightest


def _queueing_s(found: Bottleneck, load: Load, trials: Sequence[Trial]) -> float:
    """What the tiers' work and queues make of the response time under a load of the run."""
    stations = [stats.Station(use.demand_s, use.servers) for use in without_doubles([use for use in found.resources if use.tiers])]
    if isinstance(load, ClosedLoad) and load.connections <= _MOST_USERS:
        think_s = load.think.mean_s if load.think is not None else 0.0
        return stats.closed_system(stations, load.connections, think_s)[-1].response_s
    rates = [rate for trial in trials if trial.cell.load == load and (rate := BY_KEY[THROUGHPUT].of(trial))]
    return mean_response_s([Fleet(station, 1) for station in stations], fmean(rates) if rates else 0.0)


def _enough(stations: Mapping[str, stats.Station], rate_rps: float, delay_s: float, objective: Condition | None) -> dict[str, Fleet]:
    """Machines with which no tier is full and the objective holds, if any number is enough for it: the fewest, within 2 % of a tier's."""
    fleets = {
        tier: Fleet(station, max(1, math.ceil(rate_rps * station.demand_s / (stats.BUSY * station.servers))))
        for tier, station in stations.items()
    }
    if objective is None or _alone(fleets, rate_rps, delay_s, objective) is not None:
        return fleets

    def holds(step: Mapping[str, Fleet]) -> bool:
        return _holds(objective, _figures(list(step.values()), rate_rps, delay_s, objective))

    # Twice as far each time, then back by halves: a simulation takes much longer than a step.
    wider, missed = _wider(fleets, rate_rps), 0
    steps = list(islice(wider, 1))
    while not holds(steps[-1]) and (more := list(islice(wider, len(steps)))):
        missed = len(steps)
        steps += more
    return steps[bisect_left(steps, True, missed, len(steps) - 1, key=holds)]


def _wider(fleets: dict[str, Fleet], rate_rps: float) -> Iterator[dict[str, Fleet]]:
    """These, and step by step more machines of the tier where most of the waiting is."""
    yield fleets
    while all(fleet.machines < _MOST_MACHINES for fleet in fleets.values()):
        worst = max(fleets, key=lambda tier: _waiting_s(fleets[tier], rate_rps))
        machines = fleets[worst].machines
        fleets = {**fleets, worst: replace(fleets[worst], machines=machines + max(1, machines // 50))}
        yield fleets


def _alone(fleets: Mapping[str, Fleet], rate_rps: float, delay_s: float, objective: Condition) -> float | None:
    """The objective's figure where requests meet nobody, if it misses the objective; else None."""
    idle = [replace(fleet, machines=fleet.machines * _IDLE) for fleet in fleets.values()]
    figure = _figures(idle, rate_rps, delay_s, objective)
    return None if _holds(objective, figure) else figure.value


def _figures(fleets: Sequence[Fleet], rate_rps: float, delay_s: float, objective: Condition | None) -> stats.Estimate:
    """The objective's figure over several simulations; the mean response time without one. In microseconds."""
    return stats.mean_interval([_simulated_us(fleets, rate_rps, delay_s, objective, seed) for seed in range(_SIMULATIONS)])


def _holds(objective: Condition, figure: stats.Estimate) -> bool:
    """Whether it does at the far end of the interval."""
    return objective.holds(_high(figure))


def _waiting_s(fleet: Fleet, rate_rps: float) -> float:
    return mean_response_s([fleet], rate_rps) - mean_response_s([fleet], rate_rps * 1e-6)


def _simulated_us(fleets: Sequence[Fleet], rate_rps: float, delay_s: float, objective: Condition | None, seed: int) -> float:
    """The objective's figure in one simulation; the mean response time without one."""
    times_us = simulated_times_s(fleets, rate_rps, delay_s, seed=seed) * 1e6
    quantile = None if objective is None else objective.quantile
    return float(times_us.mean()) if quantile is None else float(np.quantile(times_us, quantile))


def _agents(trials: Sequence[Trial], rate_rps: float) -> MachinesOf | None:
    """Load agents like those that made the load of these trials."""
    needed = [one for trial in trials if trial.cell.generator == WEIR and (one := _agent_of(trial)) is not None]
    if not needed:
        return None
    demand = stats.mean_interval([station.demand_s for station in needed])
    threads = min(station.servers for station in needed)

    def count(demand_s: float) -> int:
        return max(1, math.ceil(rate_rps * demand_s / (stats.BUSY * threads)))

    fleet = Fleet(stats.Station(demand.value, threads), count(demand.value))
    return MachinesOf(
        _AGENT, fleet.machines, count(_low(demand)), count(_high(demand)), threads, demand.value * 1e6, _micro(demand.low),
        _micro(demand.high), fleet.busy(rate_rps),
    )  # fmt: skip


def _agent_of(trial: Trial) -> stats.Station | None:
    """What a request needed of the trial's generator, and the threads of one agent: of several the fewest that one had.

    Their summary as one has the threads of all and the share of the busiest, which together are the work of neither.
    """
    summary = trial.result.summary
    if summary is None:
        return None
    made_by = [(one.generator, one.throughput_rps) for one in summary.agents or ()] or [(summary.generator, summary.throughput_rps)]
    busy = [use.busy_fraction * use.threads for use, _ in made_by if use.busy_fraction is not None]
    answered_rps = sum(rate for _, rate in made_by)
    if len(busy) < len(made_by) or answered_rps <= 0:
        return None
    return stats.Station(sum(busy) / answered_rps, float(min(use.threads for use, _ in made_by)))


def _not_steady(trials: Sequence[Trial]) -> str | None:
    """Servers that were still warming up need more for a request than later; a quota makes that last longer."""
    drifting = [trial for trial in trials if trial.result.window is not None and trial.result.window.steady is False]
    if not drifting:
        return None
    return (
        f"{len(drifting)} of {counted(len(trials), 'trial')} behind it found no steady state: what a request needs may be that of a server "
        "that is not warm yet, above all under a quota. A longer prime_s."
    )


def _assumptions(found: Bottleneck, tiers: Sequence[MachinesOf], delay_s: float, trials: Sequence[Trial]) -> list[str]:
    said = [
        "A request needs of each tier what it needed in the run, however many machines there are: no lock, cache or connection that they "
        "share.",
        "Machines of a tier take turns, requests reach each tier independently of one another, and the time that one works is exponential.",
        f"No machine is to be busier than {stats.BUSY:.0%}.",
    ]
    if delay_s > 0:
        said.append(
            f"Beside its work a request takes {significant(delay_s * 1e3)} ms, as under the lightest load of the run; networks of more "
            "machines add theirs."
        )
    databases = [one.tier for one in tiers if one.machines > 1 and one.tier.startswith(("postgres", "mariadb", "mysql"))]
    if databases:
        said.append(f"More than one {databases[0]} helps only where its work can be split: reads onto standbys, or rows onto shards.")
    if found.kind in ("software limit", "blocked event loop", "upstream"):
        said.append(f"In the run something else than a machine held it back: {found.what}. That has to be widened too.")
    if caution := _not_steady(trials):
        said.append(caution)
    if found.indicative:
        said.append("The run has too few blocks for a claim: its demands are indicative.")
    return said


def _sentence(plan: MachinePlan) -> str:
    machines = [f"{_range(one)} {one.tier} of {significant(one.servers, 2)} {'CPU' if one.servers == 1 else 'CPUs'}" for one in plan.tiers]
    agents = "" if plan.agents is None else f", and {_range(plan.agents)} {counted(plan.agents.machines, _AGENT).partition(' ')[2]}"
    held = ""
    if plan.objective is not None and plan.found is not None:
        held = f" with {plan.objective}"
        if plan.alone is not None:
            return (
                f"{plan.name} on {plan.where}: no number of machines answers {amount(plan.rate_rps)} req/s{held}: a request takes longer "
                f"even where it meets nobody ({significant(plan.alone / 1e3)} ms)."
            )
        if not plan.met:
            largest = max(plan.tiers, key=lambda one: one.machines)
            return (
                f"{plan.name} on {plan.where}: {amount(plan.rate_rps)} req/s{held} take more than {largest.machines:,} machines of "
                f"{largest.tier}, beyond which none were added: with these it is {significant(plan.found / 1e3)} ms."
            )
    return f"{plan.name} on {plan.where}: {amount(plan.rate_rps)} req/s{held} take {', '.join(machines)}{agents}."


def _range(one: MachinesOf) -> str:
    return f"{one.machines:,}" if one.low == one.high else f"{one.machines:,} ({one.low:,}–{one.high:,})"


def _value(estimate: stats.Estimate) -> float:
    return estimate.value


def _low(estimate: stats.Estimate) -> float:
    return estimate.value if estimate.low is None else estimate.low


def _high(estimate: stats.Estimate) -> float:
    return estimate.value if estimate.high is None else estimate.high


def _micro(value_s: float | None) -> float | None:
    return None if value_s is None else value_s * 1e6
