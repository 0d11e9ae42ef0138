"""Builds the study of one experiment: compares a cell of another study with the same cell after one change."""

from pathlib import Path
from typing import Any

import tomli_w

from weir.load_spec import KEY_NAMES
from weir.model.errors import UsageError
from weir.study.study import PlannedCell, Study, parse_study


def make_experiment_study(
    study: Study, planned: PlannedCell, *, of: str, name: str, before: int, after: int, blocks: int
) -> Study:
    """Returns a study of one setting of a cell, with the values `before` and `after`. `of`: the kind of setting
    (`replicas`, `cpus`, `users` or `limit`). `name`: the limit's name, `connections` or `users`. Raises UsageError if
    the setting is a profile over time."""
    cell, file, table = planned.cell, study.file, planned.table
    assert table is not None
    both = [before, after]
    # The cell's amount of load, as in the study file.
    amounts = file.matrix.amounts()
    amount = next(amount for amount in amounts if table.to_spec(amount).to_load(KEY_NAMES) == cell.load)
    limits = [limit for limit in file.matrix.limits if limit in cell.coordinates]
    matrix: dict[str, Any] = {
        "stacks": [planned.stack.label],
        "workloads": [cell.workload],
        "generators": [cell.generator],
        "replicas": [cell.replicas],
        **{key: [value] for key, value in amount.items()},
        "limits": {limit: [int(cell.coordinates[limit])] for limit in limits},
        **({} if cell.cpus is None else {"cpus": [cell.cpus]}),
    }
    if of == "users" and not isinstance(amount.get(name), int | float):
        expected = "expected a number: weir cannot change a profile"
        raise UsageError(f"matrix.{name}: found {amount.get(name)!r}, {expected}")
    if of == "limit":
        matrix["limits"][name] = both
    else:
        matrix[name if of == "users" else of] = both
    whole_run = {"aa", "width", "most_blocks", "budget_s", "refine", "most_points"}
    method = planned.method.model_dump(exclude_unset=True, exclude=whole_run)
    external, own = file.external.get(planned.stack.label), file.workload.get(cell.workload)
    content: dict[str, Any] = {
        "schema": 1,
        "title": f"{file.title}: an experiment",
        "question": f"Does {name} limit {planned.stack.label} on {cell.workload}: {after} instead of {before}?",
        "matrix": matrix,
        "load": table.model_dump(exclude_unset=True),
        "method": method | {"blocks": blocks, "baseline": planned.stack.label},
        "cpus": file.cpus.model_dump(exclude_unset=True),
        "network": file.network.model_dump(exclude_unset=True),
        "services": {name: dict(needed.settings) for name, needed in planned.services.items()},
        "external": {planned.stack.label: external.model_dump(exclude_unset=True)} if external else {},
        "workload": {cell.workload: own.model_dump(by_alias=True, exclude_unset=True)} if own else {},
    }
    path = Path(study.path.parent, f"{study.name}-experiment.toml")
    return parse_study(path, tomli_w.dumps(content), content, None)
