"""The physics audit of a run: every trial that measured something, held against the laws of `weir.audit.physics`."""

from collections.abc import Sequence

from weir.audit.own import claims_of
from weir.audit.physics import examine
from weir.findings.types import Audit, BrokenLaw
from weir.findings.words import counted
from weir.model.run import Cell, Placement, Trial


def audit_trials(trials: Sequence[Trial], placement: Placement) -> Audit:
    """Hold every trial that measured something against every law that its figures say enough for."""
    checks = measured = 0
    broken: list[BrokenLaw] = []
    for trial in trials:
        result = trial.result
        if result.summary is None:
            continue
        measured += 1
        # The laws are of a load with its beginning and its end, also where only a part of it counts.
        whole, used_s = result.whole_load or result.summary, result.summary.duration_s
        cpus = _cpus(trial.cell, placement)
        for claim in claims_of(whole, trial.cell.load, result.resources, cpus=cpus, used_s=used_s, said=result.claim):
            examined = examine(claim)
            checks += examined.laws
            broken += [BrokenLaw(trial.id, found.law, found.found) for found in examined.breaches if found.kind == "impossible"]
    if not measured:
        sentence = "No trial measured anything that could be audited."
    elif not broken:
        sentence = f"All {counted(checks, 'check')} of the physics audit hold on {counted(measured, 'trial')}."
    else:
        trial_ids = sorted({law.trial for law in broken})
        sentence = f"{counted(len(broken), 'check')} of {checks:,} of the physics audit fail, in trials {', '.join(map(str, trial_ids))}."
    return Audit(checks, measured, tuple(broken), sentence)


def _cpus(cell: Cell, placement: Placement) -> int | None:
    """How many CPUs the stack and its services had together; None of a server that weir did not start, and so did not bind."""
    if not cell.started:
        return None
    stack = placement.stack if cell.cpus is None else placement.stack[-cell.cpus :]
    return len({*stack, *placement.services})
