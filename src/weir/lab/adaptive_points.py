"""Measures further points near each crossing: a load at which a stack and the baseline have equal throughput."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from weir.lab.context import RunContext
from weir.model.errors import UsageError
from weir.store import RunReader, RunWriter
from weir.study.cells import number_cells
from weir.study.further_points import plan_cells_at, read_amount, select_cells
from weir.study.study import PlannedCell, Study


def restore_further_cells(
    study: Study, cells: Sequence[PlannedCell], writer: RunWriter, stack_cpus: int
) -> list[PlannedCell]:
    """Returns the cells of further points in the run file. Raises UsageError if the machine or a stack has changed."""
    found = []
    for cell in writer.cells[len(cells) :]:
        at_point = plan_cells_at(study, read_amount(cell), stack_cpus)
        matching = [one for one in at_point if replace(one.cell, id=cell.id) == cell]
        if not matching:
            differs = f"{writer.path}: found another machine or other stacks, expected the run's machine and stacks"
            raise UsageError(f"{differs}: new and old trials would not be comparable", hint=f"weir run {study.name}")
        found.append(replace(matching[0], cell=cell))
    return found


def refine_crossings(
    run: RunContext, cells: Sequence[PlannedCell], writer: RunWriter, run_cells: Callable[[Sequence[PlannedCell]], None]
) -> None:
    """Measures further points until each crossing is precise, or until the run has `most_points` of these points.
    `cells` are the study's own cells, already measured. `run_cells` measures all blocks of some cells."""
    study, stack_cpus = run.study, len(writer.info.placement.stack)
    # This import is slow, and only runs with further points need it.
    from weir.findings.run_findings import wanted_points_in

    measured = restore_further_cells(study, cells, writer, stack_cpus)
    if measured:
        run_cells(measured)
    while (left := study.file.method.most_points - len({read_amount(one.cell) for one in measured})) > 0:
        with RunReader(writer.path) as reader:
            wanted = wanted_points_in(reader)
        new: list[PlannedCell] = []
        for point in wanted[:left]:
            at_point = plan_cells_at(study, point.place, stack_cpus)
            found = select_cells(at_point, workload=point.workload, coordinates=point.coordinates, labels=point.labels)
            known = [replace(one.cell, id=0) for one in (*measured, *new)]
            new += [one for one in found if replace(one.cell, id=0) not in known]
            run.observer.on_step(f"a further point at {point.place:g}, near a crossing of {' and '.join(point.labels)}")
        if not new:
            return
        new = number_cells(new, 1 + max(cell.id for cell in writer.cells))
        writer.add_cells([one.cell for one in new])
        measured += new
        run_cells(new)
