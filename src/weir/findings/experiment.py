"""Proposes an experiment that would confirm a bottleneck, predicts the outcome, and evaluates the result.

If a resource is full, the experiment adds capacity, and mean value analysis predicts the throughput from the measured
service demands. If the software or the load is the limit, the experiment doubles the limit or the load.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from weir import stats
from weir.findings.compare import CLAIM_BLOCKS
from weir.findings.evidence import CellTrials, pair_by_block
from weir.findings.formatting import basis_text, counted, ratio_text, significant
from weir.findings.metrics import BY_KEY, THROUGHPUT
from weir.findings.types import Bottleneck, Experiment, Proof, ResourceUse
from weir.model.load import ClosedLoad, Load
from weir.model.run_types import Cell

TOLERANCE = 0.10
"""Maximum relative difference between a prediction and an outcome that confirms the prediction."""
_MOST_USERS = 5_000
"""Maximum number of users for mean value analysis, because the analysis takes one step per user."""
_CHANGES = {
    "software limit": "Double the limit: throughput should grow until a resource or the load is the limit.",
    "load": "Raise the rate: throughput should grow by the same factor.",
    "upstream": "Shorten the upstream's delay: throughput should grow by the same factor.",
    "generator": "Give the generator more CPUs: throughput should grow.",
    "unknown": "Raise the load: the first resource that is full is the bottleneck.",
}
"""A dict from kind of bottleneck to an experiment whose outcome weir does not compute."""
_DOUBLE = 2
"""The factor by which an experiment raises a limit or a load. A larger factor may reach another limit first."""


def propose_experiment(found: Bottleneck, cell: Cell) -> Experiment | None:
    """Returns the cell's change that would test the bottleneck. None if a study file cannot express the change."""
    lowest = cell.upper_bounds[0] if cell.upper_bounds else None
    others = [bound.throughput_rps for bound in cell.upper_bounds[1:]]
    match found.kind:
        case "resource" if cell.started:
            fullest = found.resources[0]
            if fullest.kind == "quota":
                more = cell.replicas + 1
                gain = _predict_gain(found, cell, fullest.servers * more / cell.replicas)
                return Experiment("replicas", "replicas", cell.replicas, more, gain)
            if fullest.kind == "cpus":
                cpus = round(fullest.servers)
                return Experiment("cpus", "cpus", cpus, cpus + 1, _predict_gain(found, cell, cpus + 1.0))
        case "software limit" if lowest is not None and lowest.of == "stack":
            for name, text in cell.settings.items():
                if text.isdigit() and re.match(rf"{text} {re.escape(name.removesuffix('s'))}s?\b", lowest.because):
                    return Experiment("limit", name, int(text), _DOUBLE * int(text), _predict_double(found, others))
        case "load" if lowest is not None and isinstance(cell.load, ClosedLoad):
            name = "connections" if cell.load.is_plain else "users"
            users = cell.load.connections
            return Experiment("users", name, users, _DOUBLE * users, _predict_double(found, others))
    return None


def describe_experiment(found: Bottleneck, experiment: Experiment | None) -> str:
    """Describes the experiment with its predicted outcome."""
    if experiment is not None:
        change, expected = _change_text(experiment), experiment.predicted_ratio
        if expected is None:
            return f"{change}."
        return (
            f"{change}: expect {significant(expected * found.throughput_rps)} req/s, {significant(expected)}× as many."
        )
    match found.kind:
        case "resource":
            others = _widths(found.resources[1:])
            limit = f": up to about {significant(min(others))} req/s, the limit of the next resource" if others else ""
            return f"Add capacity to {found.what}{limit}."
        case "blocked event loop":
            widths = _widths(found.resources)
            until = f": the CPUs allow about {significant(min(widths))} req/s" if widths else ""
            return f"Use calls that do not block in the handler, or a thread pool for blocking calls{until}."
    return _CHANGES[found.kind]


def find_proofs(found: Sequence[Bottleneck], cells: Sequence[CellTrials]) -> tuple[Proof, ...]:
    """Returns the outcomes of proposed experiments that the run already contains: cells before and after the change."""
    by_id = {of.cell.id: of for of in cells}
    proofs = [
        evaluate_experiment(one, by_id[one.cell], after)
        for one in found
        if one.experiment is not None
        for after in [of for of in cells if _is_changed(by_id[one.cell].cell, of.cell, one.experiment)][:1]
    ]
    return tuple(proof for proof in proofs if proof is not None)


def evaluate_experiment(found: Bottleneck, before: CellTrials, after: CellTrials) -> Proof | None:
    """Returns the outcome of an experiment from the cells before and after the change; None without a common block."""
    assert found.experiment is not None
    pairs = pair_by_block(after, before, BY_KEY[THROUGHPUT])
    ratio = pairs.ratio
    if ratio is None:
        return None
    expected = found.experiment.predicted_ratio
    agrees = None
    if expected is not None and ratio.low is not None and ratio.high is not None:
        is_near = 1 / (1 + TOLERANCE) <= ratio.value / expected <= 1 + TOLERANCE
        # If the interval contains a distant prediction, the outcome neither confirms nor refutes the prediction.
        agrees = True if is_near else None if ratio.low <= expected <= ratio.high else False
    proof = Proof(
        where=found.where,
        label=found.label,
        name=found.name,
        experiment=found.experiment,
        ratio=ratio.value,
        low=ratio.low,
        high=ratio.high,
        blocks=len(pairs.blocks),
        agrees=agrees,
        indicative=len(pairs.blocks) < CLAIM_BLOCKS,
        evidence=pairs.evidence,
        sentence="",
    )
    return replace(proof, sentence=_sentence(proof, found))


def _is_changed(cell: Cell, other: Cell, experiment: Experiment) -> bool:
    """Returns whether `other` differs from `cell` only in the value that the experiment changes."""
    load, coordinates = cell.load, dict(cell.coordinates)
    if experiment.of != "users":
        coordinates[experiment.name] = str(experiment.after)
    elif isinstance(load, ClosedLoad):
        load = replace(load, users=float(experiment.after))
    return _identity(other) == _identity(replace(cell, load=load, coordinates=coordinates))


def _identity(cell: Cell) -> tuple[object, ...]:
    return cell.stack_label, cell.workload, cell.arm, cell.load, cell.coordinates


def _predict_gain(found: Bottleneck, cell: Cell, servers: float) -> float | None:
    """Predicts the factor by which throughput grows if the fullest resource has `servers` CPUs. None if unknown."""
    limited = [use for use in found.resources if use.tiers and use.width_rps is not None]
    if not limited:
        return None
    wider = [replace(use, servers=servers) if use.name == found.resources[0].name else use for use in limited]
    before, after = (_predict_throughput(cell.load, uses) for uses in (limited, wider))
    return after / before if before > 0 else None


def _predict_throughput(load: Load, uses: Sequence[ResourceUse]) -> float:
    stations = make_stations(uses)
    solved = solve_closed_load(load, stations)
    return min(station.width_rps for station in stations) if solved is None else solved.throughput_rps


def solve_closed_load(load: Load, stations: Sequence[stats.Station]) -> stats.ClosedPrediction | None:
    """Solves a closed load by mean value analysis. Returns None for an open load, or above `_MOST_USERS` users."""
    if not isinstance(load, ClosedLoad) or load.connections > _MOST_USERS:
        return None
    think_s = load.think.mean_s if load.think is not None else 0.0
    return stats.solve_closed_system(stations, load.connections, think_s)[-1]


def make_stations(uses: Sequence[ResourceUse]) -> list[stats.Station]:
    """Returns one queueing station for each resource that `drop_doubles` keeps."""
    return [stats.Station(use.demand_s, use.servers) for use in drop_doubles(uses)]


def drop_doubles(uses: Sequence[ResourceUse]) -> list[ResourceUse]:
    """Drops each resource if all its tiers have a narrower resource. Example: drops the CPUs if a quota is narrower."""
    kept: list[ResourceUse] = []
    for use in sorted(uses, key=lambda use: use.servers / use.demand_s if use.demand_s > 0 else math.inf):
        if not set(use.tiers) <= {tier for one in kept for tier in one.tiers}:
            kept.append(use)
    return kept


def _widths(uses: Sequence[ResourceUse]) -> list[float]:
    return [use.width_rps for use in uses if use.tiers and use.width_rps is not None]


def _predict_double(found: Bottleneck, bounds: Sequence[float]) -> float | None:
    """Predicts the factor by which throughput grows if a limit doubles: 2, or less if another bound comes first."""
    if found.throughput_rps <= 0:
        return None
    return min([_DOUBLE, *(most / found.throughput_rps for most in (*bounds, *_widths(found.resources)))])


def _change_text(experiment: Experiment) -> str:
    noun = "CPU" if experiment.of == "cpus" else experiment.name.removesuffix("s")
    return f"{counted(experiment.after, noun)} instead of {counted(experiment.before, noun)}"


def _sentence(proof: Proof, found: Bottleneck) -> str:
    value, interval = ratio_text(proof.ratio, proof.low, proof.high)
    text = (
        f"{proof.name} on {proof.where}: {_change_text(proof.experiment)} gave {value}× as many requests a second "
        f"({f'95 % interval {interval}' if interval else 'no interval'}, {basis_text(proof.blocks, proof.indicative)})"
    )
    expected = proof.experiment.predicted_ratio
    if expected is None:
        return f"{text}."
    conclusion = "there is a second bottleneck"
    if proof.agrees is None:
        conclusion = "more blocks are needed to confirm the bottleneck"
    elif proof.agrees:
        conclusion = f"{found.what} is confirmed as the bottleneck"
    elif proof.ratio >= expected:
        conclusion = "the bottleneck cost more than its service demand explains"
    return f"{text}; the prediction was {significant(expected)}×: {conclusion}."
