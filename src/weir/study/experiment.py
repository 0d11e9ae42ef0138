"""The study that makes one experiment: a single cell of another study, and the same with more of one thing. Starts nothing."""

from pathlib import Path
from typing import Any

import tomli_w

from weir.model.errors import UsageError
from weir.study.study import PlannedCell, Study, study_from


def experiment_study(study: Study, planned: PlannedCell, *, of: str, name: str, before: int, after: int, blocks: int) -> Study:
    """One cell as it was measured, beside the same with `after` in place of `before`.

    Args:
        study: what the cell belongs to.
        planned: the cell.
        of: what is changed: `replicas`, `cpus`, `users`, or a `limit`.
        name: a limit's name, or `connections` or `users`.
        before: how much of it there is.
        after: how much there is to be.
        blocks: how often both are measured.

    Raises:
        UsageError: the study cannot be asked for that.
    """
    cell, file = planned.cell, study.file
    both = [before, after]
    matrix: dict[str, Any] = {
        "stacks": [planned.stack.label],
        "workloads": [cell.workload],
        "generators": [cell.generator],
        "replicas": [cell.replicas],
    }
    # The cell's own amount of load, as the study file has it.
    (amount,) = [amount for amount in file.matrix.amounts() if planned.load.of(amount) == cell.load][:1]
    matrix |= {key: [value] for key, value in amount.items()}
    matrix["limits"] = {limit: [int(cell.coordinates[limit])] for limit in file.matrix.limits if limit in cell.coordinates}
    if cell.cpus is not None:
        matrix["cpus"] = [cell.cpus]
    match of:
        case "limit":
            matrix["limits"][name] = both
        case "users":
            if not isinstance(amount.get(name), int | float):
                raise UsageError(f"matrix.{name}: found {amount.get(name)!r}, expected a number: a profile cannot be doubled by itself")
            matrix[name] = both
        case _:
            matrix[of] = both
    method = planned.method.model_dump(exclude_unset=True, exclude={"aa", "width", "most_blocks", "budget_s", "refine", "most_points"})
    content: dict[str, Any] = {
        "schema": 1,
        "title": f"{file.title}: an experiment",
        "question": f"Does {name} hold {planned.stack.label} back on {cell.workload}: {after} instead of {before}?",
        "matrix": matrix,
        "load": planned.load.model_dump(exclude_unset=True),
        "method": method | {"blocks": blocks, "baseline": planned.stack.label},
        "cpus": file.cpus.model_dump(exclude_unset=True),
        "network": file.network.model_dump(exclude_unset=True),
        "services": {name: dict(needed.settings) for name, needed in planned.services.items()},
        "external": {
            label: external.model_dump(exclude_unset=True) for label, external in file.external.items() if label == planned.stack.label
        },
        "workload": {
            name: own.model_dump(by_alias=True, exclude_unset=True) for name, own in file.workload.items() if name == cell.workload
        },
    }
    path = Path(study.path.parent, f"{study.name}-experiment.toml")
    text = tomli_w.dumps(content)
    return study_from(path, text, content, None)
