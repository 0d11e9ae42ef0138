"""The physics audit: checks whether the figures of a run's trials obey the laws in `weir.audit.laws`."""

from collections.abc import Sequence
from dataclasses import replace

from weir.audit.laws import PHYSICS, check_laws
from weir.audit.trial_results import build_reported_results
from weir.findings.formatting import counted, trial_numbers
from weir.findings.types import Answer, Audit, BrokenLaw
from weir.model.run_types import Cell, Placement, Trial
from weir.model.verdict import worst


def audit_trials(trials: Sequence[Trial], placement: Placement) -> Audit:
    """Checks each trial against every law that applies to the trial's figures."""
    checks = measured = 0
    broken: list[BrokenLaw] = []
    for trial in trials:
        result = trial.result
        if result.summary is None:
            continue
        measured += 1
        # The laws hold for the whole load. Averages may use only a part of the load.
        whole, used_s = result.whole_load or result.summary, result.summary.duration_s
        cpus = _cpus(trial.cell, placement)
        results = build_reported_results(
            whole,
            trial.cell.load,
            result.resources,
            cpus=cpus,
            used_s=used_s,
            reported=result.reported_result,
            tool=trial.cell.generator,
            pipeline=int(trial.cell.coordinates.get("pipeline", 1)),
        )
        in_verdict = PHYSICS in {reason.kind for reason in result.verdict.reasons}
        for violations in check_laws(*results):
            checks += 1
            impossible = [found for found in violations if found.kind == "impossible"]
            broken += [BrokenLaw(trial.id, found.law, found.found, in_verdict) for found in impossible]
    if not measured:
        sentence = "No trial measured anything that could be audited."
    elif not broken:
        sentence = f"All {counted(checks, 'check')} of the physics audit hold on {counted(measured, 'trial')}."
    else:
        trials_by_law: dict[str, set[int]] = {}
        for law in broken:
            trials_by_law.setdefault(law.law, set()).add(law.trial)
        where = "; ".join(
            f"“{law}” in {'trial' if len(ids) == 1 else 'trials'} {trial_numbers(ids)}"
            for law, ids in trials_by_law.items()
        )
        sentence = (
            f"The physics audit found {counted(len(broken), 'violation')} in {counted(checks, 'check')}: {where}."
        )
    return Audit(checks, measured, tuple(broken), sentence)


def limit_validity(answer: Answer, audit: Audit) -> Answer:
    """Returns the answer. A worse validity of the audit replaces the answer's, and the audit's sentence is a reason."""
    if worst((answer.validity, audit.validity)) == answer.validity:
        return answer
    return replace(answer, validity=audit.validity, reasons=(*answer.reasons, audit.sentence))


def _cpus(cell: Cell, placement: Placement) -> int | None:
    """Returns the number of CPUs of the stack and its services; None if weir did not start the server."""
    if not cell.started:
        return None
    stack = placement.stack if cell.cpus is None else placement.stack[-cell.cpus :]
    return len({*stack, *placement.services})
