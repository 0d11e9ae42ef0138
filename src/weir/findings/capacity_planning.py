"""Plans the number of machines that each tier needs for a rate. A simulation then checks the objective.

A machine of a tier has the CPUs or the quota that the tier had in the run. A request needs the same CPU time in each
tier as in the run. The plan lists all other assumptions.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from statistics import fmean, median

import numpy as np

from weir import stats
from weir.findings.bottleneck import compute_busy_cpus
from weir.findings.evidence import is_used
from weir.findings.experiment import drop_doubles, make_stations, solve_closed_load
from weir.findings.formatting import amount, counted, listed, significant
from weir.findings.metrics import BY_KEY, THROUGHPUT
from weir.findings.point_types import Evidence
from weir.findings.run_findings import of_run
from weir.findings.types import Bottleneck
from weir.model.errors import UsageError
from weir.model.load import Load, OpenLoad
from weir.model.load_records import BUSY_FRACTION
from weir.model.run_types import WEIR, Cell, Trial
from weir.objective import Condition
from weir.stats.queue_network import Fleet, mean_response_s, simulate_response_times
from weir.store import RunReader

_AGENT = "load agent"
_SIMULATIONS = 5
_MOST_MACHINES = 100_000
"""Maximum number of machines of a tier. An objective that needs more machines counts as not met."""
_IDLE = 20
"""With this many times the needed machines, simulated requests hardly queue."""


@dataclass(frozen=True, slots=True)
class TierMachines:
    """The planned machines of one tier. `low`, `high`: machines at the lower and upper end of its demand's interval."""

    tier: str
    machines: int
    low: int
    high: int
    servers: float
    """Number of CPUs of each machine; a quota may be a fraction."""
    demand_us: float
    """CPU time of one request on a machine of this tier, in microseconds."""
    demand_low_us: float | None
    demand_high_us: float | None
    busy: float
    """Utilisation of each machine at the planned rate, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """The machines that each tier needs for a rate."""

    label: str
    name: str
    where: str
    rate_rps: float
    objective: str | None
    agents: TierMachines | None
    """The load agents; None if a generator other than weir made the run's load."""
    tiers: tuple[TierMachines, ...]
    delay_us: float
    """Part of the response time outside all tiers, in microseconds."""
    mean_us: float
    """Mean response time in microseconds, computed with queueing theory."""
    simulated_mean_us: float
    found: float | None
    """Simulated value of the objective's metric in microseconds; None without an objective."""
    found_low: float | None
    found_high: float | None
    met: bool
    """Whether the simulated value meets the objective; true without an objective."""
    alone: float | None
    """Value of the objective's metric without queueing, in microseconds. None if this value meets the objective."""
    assumptions: tuple[str, ...]
    evidence: Evidence
    sentence: str


@dataclass(frozen=True, slots=True)
class ReplicaPrediction:
    """Predicted throughput with more processes. The prediction uses the measurement with the fewest processes."""

    replicas: int
    at: str
    """The load, as a text."""
    predicted_rps: float
    low_rps: float | None
    """Predicted throughput with every demand at the upper end of its interval; None without intervals."""
    high_rps: float | None
    """Predicted throughput with every demand at the lower end of its interval; None without intervals."""
    measured_rps: float | None
    differences: tuple[float, ...]
    """Predicted ÷ measured - 1 for each block with both values, in ascending order. The prediction for a block uses
    demands from the same block: so other work on the machine affects both values."""
    caution: str | None
    """A reason to doubt the prediction; None without a reason."""

    @property
    def error(self) -> float | None:
        """The median of `differences`; None without differences."""
        return median(self.differences) if self.differences else None


def _ends(estimate: stats.Estimate) -> tuple[float, float, float]:
    """Returns (value, low, high) of an estimate. Without an interval, `low` and `high` equal the value."""
    value, low, high = estimate.value, estimate.low, estimate.high
    return value, value if low is None else low, value if high is None else high


@dataclass(frozen=True, slots=True)
class _Goal:
    """The planned rate, a request's time outside the tiers, and the objective."""

    rate_rps: float
    delay_s: float
    objective: Condition | None

    def simulate_us(self, fleets: Mapping[str, Fleet], *, mean: bool = False) -> stats.Estimate:
        """Returns the objective's metric (with `mean`: the mean response time) in microseconds, from simulations."""
        quantile = None if self.objective is None or mean else self.objective.quantile
        found = []
        for seed in range(_SIMULATIONS):
            times = simulate_response_times(list(fleets.values()), self.rate_rps, self.delay_s, seed=seed) * 1e6
            found.append(float(times.mean() if quantile is None else np.quantile(times, quantile)))
        return stats.mean_interval(found)

    def is_met(self, figure: stats.Estimate) -> bool:
        """Returns whether the figure meets the objective, even at the upper end of its interval."""
        return self.objective is None or self.objective.holds(_ends(figure)[2])

    def find_figure_alone(self, fleets: Mapping[str, Fleet]) -> float | None:
        """Returns the objective's metric without queueing, or None if this value meets the objective."""
        idle = {tier: replace(fleet, machines=fleet.machines * _IDLE) for tier, fleet in fleets.items()}
        figure = self.simulate_us(idle)
        return None if self.is_met(figure) else figure.value

    def size_fleets(self, stations: Mapping[str, stats.Station]) -> dict[str, Fleet]:
        """Returns each tier's machines: the smallest numbers (within 2 %) that meet the objective. Without an objective
        that machines can meet: the smallest numbers with which no machine is busier than `BUSY_FRACTION`."""
        fleets = {tier: Fleet(one, _count_machines(self.rate_rps, one)) for tier, one in stations.items()}
        if self.objective is None or self.find_figure_alone(fleets) is not None:
            return fleets

        def is_enough(step: Mapping[str, Fleet]) -> bool:
            return self.is_met(self.simulate_us(step))

        # Doubling and bisection need few simulations. The search's steps are cheap, but a simulation is slow.
        wider, missed = self._iter_wider(fleets), 0
        steps = list(islice(wider, 1))
        while not is_enough(steps[-1]) and (more := list(islice(wider, len(steps)))):
            missed = len(steps)
            steps += more
        return steps[bisect_left(steps, True, missed, len(steps) - 1, key=is_enough)]

    def _iter_wider(self, fleets: dict[str, Fleet]) -> Iterator[dict[str, Fleet]]:
        """Yields the given fleets, then larger ones: each step adds machines to the tier with the longest wait."""
        yield fleets
        while all(fleet.machines < _MOST_MACHINES for fleet in fleets.values()):
            worst = max(fleets, key=lambda tier: self._waiting_s(fleets[tier]))
            machines = fleets[worst].machines
            fleets = {**fleets, worst: replace(fleets[worst], machines=machines + max(1, machines // 50))}
            yield fleets

    def _waiting_s(self, fleet: Fleet) -> float:
        return mean_response_s([fleet], self.rate_rps) - mean_response_s([fleet], self.rate_rps * 1e-6)


def _count_machines(rate_rps: float, machine: stats.Station) -> int:
    return max(1, math.ceil(rate_rps * machine.demand_s / (BUSY_FRACTION * machine.servers)))


def plan_machines(
    reader: RunReader,
    *,
    rate_rps: float,
    objective: Condition | None = None,
    stack: str | None = None,
    cpus: Mapping[str, float] | None = None,
) -> MachinePlan:
    """Plans how many machines of each tier, and how many load agents, a rate needs.

    Without an objective, only `BUSY_FRACTION` determines the number of machines. `stack`: label; None selects the only
    stack. `cpus`: a dict from tier to the CPUs of one machine, instead of the run's CPUs. Raises UsageError if the run
    lacks the stack's demands, or if an argument does not fit the run.
    """
    if objective is not None and objective.quantile is None and objective.metric != "mean":
        raise UsageError(f"--objective: found {objective.text!r}, expected a response time limit like 'p99<=50ms'")
    found, cell = _find_bottleneck(reader, stack)
    trials = [trial for trial in reader.trials() if trial.id in set(found.evidence.used) and is_used(trial)]
    servers = _size_machines(found, cell)
    if unknown := set(cpus or {}) - set(servers):
        raise UsageError(f"--cpus: found {', '.join(sorted(unknown))}, expected tiers of the run: {', '.join(servers)}")
    servers |= cpus or {}
    demands = {tier.tier: tier.demand.per_request_s for tier in found.tiers if tier.tier in servers}
    goal = _Goal(rate_rps, _measure_delay_s(found, trials), objective)
    sizes = [
        goal.size_fleets({tier: stats.Station(_ends(demand)[end], servers[tier]) for tier, demand in demands.items()})
        for end in range(3)
    ]
    planned = sizes[0]
    tiers = tuple(
        _describe_tier(tier, [size[tier].machines for size in sizes], servers[tier], demand, rate_rps)
        for tier, demand in demands.items()
    )
    figure = None if objective is None else goal.simulate_us(planned)
    met = figure is None or goal.is_met(figure)
    plan = MachinePlan(
        label=found.label,
        name=found.name,
        where=found.where,
        rate_rps=rate_rps,
        objective=None if objective is None else objective.text,
        # At light loads a generator needs more CPU time per request, so only trials at this load count.
        agents=_plan_agents([trial for trial in trials if trial.cell.id == cell.id], rate_rps),
        tiers=tiers,
        delay_us=goal.delay_s * 1e6,
        mean_us=mean_response_s(list(planned.values()), rate_rps, goal.delay_s) * 1e6,
        simulated_mean_us=goal.simulate_us(planned, mean=True).value,
        found=None if figure is None else figure.value,
        found_low=None if figure is None else figure.low,
        found_high=None if figure is None else figure.high,
        met=met,
        alone=None if met else goal.find_figure_alone(planned),
        assumptions=tuple(_list_assumptions(found, tiers, goal.delay_s, trials)),
        evidence=found.evidence,
        sentence="",
    )
    return replace(plan, sentence=_sentence(plan))


def _describe_tier(
    tier: str, machines: Sequence[int], servers: float, demand: stats.Estimate, rate_rps: float
) -> TierMachines:
    low_us, high_us = (None if end is None else end * 1e6 for end in (demand.low, demand.high))
    planned, low, high = machines
    busy = Fleet(stats.Station(demand.value, servers), planned).busy(rate_rps)
    return TierMachines(tier, planned, low, high, servers, demand.value * 1e6, low_us, high_us, busy)


def predict_replicas(
    reader: RunReader, *, stack: str | None = None, replicas: Sequence[int] = ()
) -> tuple[ReplicaPrediction, ...]:
    """Predicts a stack's throughput with other numbers of processes, from the measurement with the fewest processes.
    The numbers are all other measured numbers, as a check of the prediction, and `replicas`. `stack`: label; None
    selects the only stack. Raises UsageError if the run has no CPU times per request."""
    found, cell = _find_bottleneck(reader, stack)
    trials = [trial for trial in reader.trials() if is_used(trial)]
    alike = {
        one.replicas: one.id
        for one in reader.cells()
        if (one.stack_label, one.workload, one.load, one.arm) == (cell.stack_label, cell.workload, cell.load, cell.arm)
        and {**one.coordinates, "replicas": ""} == {**cell.coordinates, "replicas": ""}
    }
    demands = {tier.tier: tier.demand.per_request_s for tier in found.tiers}
    value, low, high = ({tier: _ends(demand)[end] for tier, demand in demands.items()} for end in range(3))
    # A demand of 0 allows infinite throughput. So an interval that includes 0 has no upper end.
    has_interval = all(demand.low is not None and demand.low > 0 for demand in demands.values())
    base = [trial for trial in trials if trial.cell.id == cell.id]
    predictions = []
    for count in sorted({*replicas, *alike} - {cell.replicas}):
        measured = [trial for trial in trials if trial.cell.id == alike.get(count)]
        prediction = ReplicaPrediction(
            replicas=count,
            at=cell.load.label,
            predicted_rps=_predict_rps(found, value, cell, count),
            low_rps=_predict_rps(found, high, cell, count) if has_interval else None,
            high_rps=_predict_rps(found, low, cell, count) if has_interval else None,
            measured_rps=_mean_rate_rps(measured),
            differences=tuple(sorted(_iter_differences(found, cell, count, base, measured))),
            caution=_describe_unsteady([*base, *measured]),
        )
        predictions.append(prediction)
    return tuple(predictions)


def _iter_differences(
    found: Bottleneck, cell: Cell, count: int, base: Sequence[Trial], measured: Sequence[Trial]
) -> Iterator[float]:
    by_block = {trial.block: use for trial in base if (use := compute_busy_cpus(trial)) is not None}
    for trial in measured:
        if (rate := BY_KEY[THROUGHPUT].of(trial)) and trial.block in by_block:
            base_rate, busy = by_block[trial.block]
            yield _predict_rps(found, {tier: used / base_rate for tier, used in busy.items()}, cell, count) / rate - 1


def _predict_rps(found: Bottleneck, demands_s: Mapping[str, float], cell: Cell, count: int) -> float:
    """Predicts throughput with `count` processes. Each process has its own quota. All processes share the CPUs."""
    more = count / cell.replicas
    uses = [
        replace(use, demand_s=demand_s, servers=use.servers * (more if use.kind == "quota" else 1))
        for use in found.resources
        if (demand_s := sum(demands_s.get(tier, 0.0) for tier in use.tiers)) > 0
    ]
    stations = []
    for use in drop_doubles(uses):
        # Each process with a quota has its own queue and an equal share of the requests.
        queues = count if use.kind == "quota" else 1
        stations += [stats.Station(use.demand_s / queues, use.servers / queues)] * queues
    # `drop_doubles` left out some resources, but they still limit the throughput.
    bounds = [use.servers / use.demand_s for use in uses]
    if (solved := solve_closed_load(cell.load, stations)) is not None:
        bounds.append(solved.throughput_rps)
    elif isinstance(cell.load, OpenLoad) and not isinstance(cell.load.rate_rps, tuple):
        bounds.append(cell.load.rate_rps)
    return min(bounds, default=math.inf)


def _find_bottleneck(reader: RunReader, stack: str | None) -> tuple[Bottleneck, Cell]:
    """Returns the bottleneck of a stack, and its cell. Of several cells, chooses the cell with the fewest processes of
    the stack, then the cell with the highest throughput."""
    found = [one for one in of_run(reader).bottlenecks if one.tiers]
    labels = sorted({one.label for one in found})
    if not labels:
        raise UsageError(
            f"{reader.path}: found no CPU time of the tiers, expected a run in which weir started the stacks",
            hint="weir run api-capacity",
        )
    if stack not in labels and (stack is not None or len(labels) > 1):
        given = "none" if stack is None else repr(stack)
        raise UsageError(f"--stack: found {given}, expected one of {', '.join(labels)}")
    cells = {cell.id: cell for cell in reader.cells()}
    of_stack = [one for one in found if stack in (None, one.label)]
    best = min(of_stack, key=lambda one: (cells[one.cell].replicas, -one.throughput_rps))
    used = [trial.result.resources for trial in reader.trials() if trial.id in set(best.evidence.used)]
    worked = {tier for resources in used if resources for tier, use in resources.tiers.items() if use.cpu_s > 0}
    if missing := worked - {tier.tier for tier in best.tiers}:
        raise UsageError(
            f"{reader.path}: environment.services_on: missing the number of CPUs of {reader.info.placement.services_on}, "
            f"on which {listed(sorted(missing))} ran",
            hint=f"weir run {reader.info.study} --services-here",
        )
    return best, cells[best.cell]


def _size_machines(found: Bottleneck, cell: Cell) -> dict[str, float]:
    """Returns the CPUs of a machine for each tier: the smallest of the tier's limits. A quota limits a single process."""
    servers: dict[str, float] = {}
    for use in sorted(found.resources, key=lambda use: use.servers):
        for tier in use.tiers:
            servers.setdefault(tier, use.servers / (cell.replicas if use.kind == "quota" else 1))
    return servers


def _measure_delay_s(found: Bottleneck, trials: Sequence[Trial]) -> float:
    """Returns a request's time outside the tiers: mean response time − CPU time − queueing at the lightest load."""
    times_s: dict[Load, list[float]] = {}
    for trial in trials:
        if trial.result.summary is not None and trial.result.summary.response_time_us.mean is not None:
            times_s.setdefault(trial.cell.load, []).append(trial.result.summary.response_time_us.mean / 1e6)
    mean_s, load = min(((fmean(times), load) for load, times in times_s.items()), key=itemgetter(0))
    stations = make_stations([use for use in found.resources if use.tiers])
    if (solved := solve_closed_load(load, stations)) is not None:
        return max(0.0, mean_s - solved.response_s)
    rate_rps = _mean_rate_rps([trial for trial in trials if trial.cell.load == load]) or 0.0
    return max(0.0, mean_s - mean_response_s([Fleet(station, 1) for station in stations], rate_rps))


def _mean_rate_rps(trials: Sequence[Trial]) -> float | None:
    rates = [rate for trial in trials if (rate := BY_KEY[THROUGHPUT].of(trial))]
    return fmean(rates) if rates else None


def _plan_agents(trials: Sequence[Trial], rate_rps: float) -> TierMachines | None:
    """Returns the load agents that the rate needs. Each has the threads of the smallest agent in `trials`. Returns None
    if weir made no load, or if the agents' busy time is unknown."""
    needed = [one for trial in trials if trial.cell.generator == WEIR and (one := _measure_agent(trial)) is not None]
    if not needed:
        return None
    demand = stats.mean_interval([station.demand_s for station in needed])
    threads = min(station.servers for station in needed)
    machines = [_count_machines(rate_rps, stats.Station(end, threads)) for end in _ends(demand)]
    return _describe_tier(_AGENT, machines, threads, demand, rate_rps)


def _measure_agent(trial: Trial) -> stats.Station | None:
    """Returns a load agent's CPU time per request, and the smallest agent's number of threads; None if unknown. Uses
    each agent's own summary, because the merged summary has only one agent's busy fraction."""
    summary = trial.result.summary
    if summary is None:
        return None
    agents = [(one.generator, one.throughput_rps) for one in summary.agents or (summary,)]
    busy = [use.busy_fraction * use.threads for use, _ in agents if use.busy_fraction is not None]
    answered_rps = sum(rate for _, rate in agents)
    if len(busy) < len(agents) or answered_rps <= 0:
        return None
    return stats.Station(sum(busy) / answered_rps, float(min(use.threads for use, _ in agents)))


def _describe_unsteady(trials: Sequence[Trial]) -> str | None:
    """Returns a caution if trials had no steady state, else None. A cold server needs more CPU time per request."""
    drifting = [trial for trial in trials if trial.result.window is not None and trial.result.window.steady is False]
    if not drifting:
        return None
    return (
        f"{len(drifting)} of {counted(len(trials), 'trial')} had no steady state: the server may still have been "
        "warming up, and then needs more CPU time per request. Set a longer warmup_s."
    )


def _list_assumptions(
    found: Bottleneck, tiers: Sequence[TierMachines], delay_s: float, trials: Sequence[Trial]
) -> Iterator[str]:
    yield "A request needs the same CPU time as in the run: additional machines share no lock, cache or connection."
    yield "Machines of a tier get requests in turn. Arrivals at a tier are independent. Service times are exponential."
    yield f"No machine may be busier than {BUSY_FRACTION:.0%}."
    if delay_s > 0:
        yield (
            f"A request takes {significant(delay_s * 1e3)} ms in addition to its CPU time, as under the run's lightest "
            "load. The network between more machines adds further time."
        )
    several = [one.tier for one in tiers if one.machines > 1]
    for database in [tier for tier in several if tier.startswith(("postgres", "mariadb", "mysql"))][:1]:
        yield f"More than one {database} helps only if its work can be split: reads onto standbys, or rows onto shards."
    if found.kind in ("software limit", "blocked event loop", "upstream"):
        yield f"The run's bottleneck was not a machine: {found.what}. Raise this limit too."
    if caution := _describe_unsteady(trials):
        yield caution
    if found.indicative:
        yield "The run has too few blocks for a claim: its demands are indicative."


def _sentence(plan: MachinePlan) -> str:
    rate = f"{plan.name} on {plan.where}: {amount(plan.rate_rps)} req/s"
    rate += "" if plan.objective is None else f" with {plan.objective}"
    if plan.alone is not None:
        return (
            f"{rate} cannot be reached with any number of machines: a request takes {significant(plan.alone / 1e3)} ms "
            "even without queueing."
        )
    if not plan.met and plan.found is not None:
        largest = max(plan.tiers, key=lambda one: one.machines)
        return (
            f"{rate} need more than {largest.machines:,} machines of {largest.tier}, the maximum in a plan. "
            f"With {largest.machines:,} machines, the response time is {significant(plan.found / 1e3)} ms."
        )
    parts = []
    for one in (*plan.tiers, *([] if plan.agents is None else [plan.agents])):
        machines = f"{one.machines:,}" if one.low == one.high else f"{one.machines:,} ({one.low:,}–{one.high:,})"
        if one is plan.agents:
            parts.append(f"and {machines} {_AGENT}{'s' * (one.machines != 1)}")
        else:
            parts.append(f"{machines} {one.tier} of {significant(one.servers, 2)} CPU{'s' * (one.servers != 1)}")
    return f"{rate} need {', '.join(parts)}."
