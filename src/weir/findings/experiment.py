"""The experiment that would prove a bottleneck, what it should come to, and what it came to.

More of what is full brings as much as the next fullest allows: mean value analysis of the resources with the service demands that were
measured, users and all. A limit of the software, and a load that asks for no more, are doubled.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from weir import stats
from weir.findings.compare import CLAIM_BLOCKS
from weir.findings.evidence import CellTrials, pair_by_block
from weir.findings.metrics import BY_KEY, THROUGHPUT
from weir.findings.types import Bottleneck, Experiment, Proof, ResourceUse
from weir.findings.words import counted, ratio_text, significant
from weir.model.load import ClosedLoad
from weir.model.run import Cell

TOLERANCE = 0.10
"""A prediction that is this near came true: demands are known no better."""
_MOST_USERS = 2_000
"""Beyond so many users the analysis takes long, and the widths say the same."""
_DOUBLE = 2
"""More of it than that may meet something else first."""


def experiment_on(found: Bottleneck, cell: Cell) -> Experiment | None:
    """What to change where a stack is held back; None where a study file cannot change it.

    Args:
        found: what holds it back.
        cell: the cell at the load where it answered most.
    """
    lowest = cell.ceilings[0] if cell.ceilings else None
    others = [ceiling.throughput_rps for ceiling in cell.ceilings[1:]]
    match found.kind:
        case "resource" if cell.started:
            fullest = found.resources[0]
            more = cell.replicas + 1
            if fullest.kind == "quota":
                wider = replace(fullest, servers=fullest.servers * more / cell.replicas)
                return Experiment("replicas", "replicas", cell.replicas, more, _gain(found, cell, wider))
            if fullest.kind == "cpus":
                cpus = round(fullest.servers)
                return Experiment("cpus", "cpus", cpus, cpus + 1, _gain(found, cell, replace(fullest, servers=cpus + 1.0)))
        case "software limit" if lowest is not None and lowest.of == "stack":
            for name, text in cell.settings.items():
                if text.isdigit() and re.match(rf"{text} {re.escape(name.removesuffix('s'))}s?\b", lowest.because):
                    return Experiment("limit", name, int(text), _DOUBLE * int(text), _doubled(found, others))
        case "load" if lowest is not None and isinstance(cell.load, ClosedLoad):
            name = "connections" if cell.load.is_plain else "users"
            users = cell.load.connections
            return Experiment("users", name, users, _DOUBLE * users, _doubled(found, others))
    return None


def would_prove(found: Bottleneck, experiment: Experiment | None) -> str:
    """The experiment in words, with what it should come to."""
    if experiment is not None:
        expected = experiment.predicted_ratio
        outcome = (
            "" if expected is None else f": about {significant(expected * found.throughput_rps)} req/s, {significant(expected)}× as many"
        )
        return f"{_words(experiment)}{outcome}."
    match found.kind:
        case "resource":
            others = _widths(found.resources[1:])
            least = f": up to about {significant(min(others))} req/s, what the next narrowest allows" if others else ""
            return f"More of {found.what}{least}."
        case "software limit":
            return "Twice the limit: throughput should grow until a resource is full or the load asks for no more."
        case "blocked event loop":
            wide = _widths(found.resources)
            until = f": the CPUs allow about {significant(min(wide))} req/s" if wide else ""
            return f"The same handler with calls that do not block, or with a pool of threads for those that do{until}."
        case "load":
            return "A higher rate: throughput should grow with it."
        case "upstream":
            return "An upstream that waits for less: throughput should grow as much."
        case "generator":
            return "More CPUs for the generator."
    return "A heavier load: what is full then is the bottleneck."


def proofs(found: Sequence[Bottleneck], cells: Sequence[CellTrials]) -> tuple[Proof, ...]:
    """The experiments that the cells of a run are, for the bottlenecks of that run."""
    by_id = {of.cell.id: of for of in cells}
    proved = []
    for one in found:
        changed = None if one.experiment is None else _changed(by_id[one.cell].cell, one.experiment, [of.cell for of in cells])
        proof = None if changed is None else proof_of(one, by_id[one.cell], by_id[changed.id])
        if proof is not None:
            proved.append(proof)
    return tuple(proved)


def proof_of(found: Bottleneck, before: CellTrials, after: CellTrials) -> Proof | None:
    """What an experiment came to, from the cells before and after the change; None where no block has both."""
    assert found.experiment is not None
    pairs = pair_by_block(after, before, BY_KEY[THROUGHPUT].of)
    if not pairs.blocks:
        return None
    ratio = stats.paired_ratio(pairs.values, pairs.against)
    expected = found.experiment.predicted_ratio
    agrees = None
    if expected is not None and ratio.low is not None and ratio.high is not None:
        is_near = 1 / (1 + TOLERANCE) <= ratio.value / expected <= 1 + TOLERANCE
        # Where the interval holds the prediction and the ratio is far from it, the measurement leaves both open.
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


def _changed(cell: Cell, experiment: Experiment, cells: Sequence[Cell]) -> Cell | None:
    """The cell that differs from `cell` by the experiment alone."""
    for other in cells:
        if (other.stack_label, other.workload, other.arm) != (cell.stack_label, cell.workload, cell.arm):
            continue
        coordinates = dict(cell.coordinates)
        load = cell.load
        match experiment.of:
            case "users":
                if not isinstance(load, ClosedLoad) or isinstance(load.users, tuple):
                    continue
                load = replace(load, users=float(experiment.after))
            case "limit" | "replicas" | "cpus":
                coordinates[experiment.name] = str(experiment.after)
        if other.load == load and other.coordinates == coordinates:
            return other
    return None


def _gain(found: Bottleneck, cell: Cell, wider: ResourceUse) -> float | None:
    """Throughput with a wider resource ÷ throughput as it is."""
    users = cell.load.connections
    limited = [use for use in found.resources if use.tiers and use.width_rps is not None]
    if not limited:
        return None
    think_s = cell.load.think.mean_s if isinstance(cell.load, ClosedLoad) and cell.load.think is not None else 0.0

    def most(uses: Sequence[ResourceUse]) -> float:
        stations = [stats.Station(use.demand_s, use.servers) for use in without_doubles(uses)]
        if not isinstance(cell.load, ClosedLoad) or users > _MOST_USERS:
            return min(station.width_rps for station in stations)
        return stats.closed_system(stations, users, think_s)[-1].throughput_rps

    before = most(limited)
    changed = [wider if use.name == wider.name else use for use in limited]
    return most(changed) / before if before > 0 else None


def without_doubles(uses: Sequence[ResourceUse]) -> list[ResourceUse]:
    """What tiers work with, each once: of those that lie within two resources, a quota and the CPUs below it, the narrower counts."""
    kept: list[ResourceUse] = []
    for use in sorted(uses, key=lambda use: use.servers / use.demand_s if use.demand_s > 0 else math.inf):
        taken = {tier for one in kept for tier in one.tiers}
        if not set(use.tiers) <= taken:
            kept.append(use)
    return kept


def _widths(uses: Sequence[ResourceUse]) -> list[float]:
    return [use.width_rps for use in uses if use.tiers and use.width_rps is not None]


def _doubled(found: Bottleneck, ceilings: Sequence[float]) -> float | None:
    """Throughput with twice of what holds a stack back ÷ throughput as it is: twice as much, or up to the next thing that does."""
    if found.throughput_rps <= 0:
        return None
    return min([_DOUBLE, *(most / found.throughput_rps for most in (*ceilings, *_widths(found.resources)))])


def _words(experiment: Experiment) -> str:
    noun = "CPU" if experiment.of == "cpus" else experiment.name.removesuffix("s")
    before, after = (counted(count, noun) for count in (experiment.before, experiment.after))
    return f"{after} instead of {before}"


def _sentence(proof: Proof, found: Bottleneck) -> str:
    value, interval = ratio_text(proof.ratio, proof.low, proof.high)
    basis = counted(proof.blocks, "block") + (": indicative" if proof.indicative else "")
    text = (
        f"{proof.name} on {proof.where}: {_words(proof.experiment)} gave {value}× as many requests a second "
        f"({f'95 % interval {interval}, ' if interval else 'no interval, '}{basis})"
    )
    expected = proof.experiment.predicted_ratio
    if expected is None:
        return f"{text}."
    said = f"{text}; predicted were {significant(expected)}×"
    if proof.agrees is None:
        return f"{said}: cannot say whether that is what held it back; more blocks would."
    if proof.agrees:
        return f"{said}: {found.what} is what held it back."
    return f"{said}: {'something else holds it back as well' if proof.ratio < expected else 'it held it back more than its demand says'}."
