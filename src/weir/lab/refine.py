"""Further points of a run, where a stack and the baseline change sides: placed when the blocks are through, measured as the others were."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from weir.lab.blocks import Progress
from weir.model.errors import UsageError
from weir.store import RunReader, RunWriter
from weir.study.refined import cells_at, chosen, numbered_from, place_of
from weir.study.study import PlannedCell, Study


def extra_cells(study: Study, cells: Sequence[PlannedCell], writer: RunWriter, stack_cpus: int) -> list[PlannedCell]:
    """The further points that a run which goes on has already.

    Raises:
        UsageError: they are none that this study, this weir and this machine would place.
    """
    found = []
    for cell in writer.cells[len(cells) :]:
        matching = [one for one in cells_at(study, place_of(cell), stack_cpus) if replace(one.cell, id=cell.id) == cell]
        if not matching:
            raise UsageError(
                f"{writer.path}: this machine or its stacks differ from those of the run, so that its trials could not stand together",
                hint=f"weir run {study.name}",
            )
        found.append(replace(matching[0], cell=cell))
    return found


def refine(
    study: Study,
    cells: Sequence[PlannedCell],
    writer: RunWriter,
    stack_cpus: int,
    run_cells: Callable[[Sequence[PlannedCell]], None],
    progress: Progress,
) -> None:
    """Measures further points until every crossing is known well enough, or there are as many as the study allows.

    Args:
        study: the study.
        cells: its own cells, all blocks of which are done.
        writer: the run file.
        stack_cpus: the number of CPUs that a stack gets where the study does not say.
        run_cells: measures all blocks of such cells.
        progress: what is told meanwhile.
    """
    # statistics take a while to load: only runs that are refined need it here.
    from weir.findings import wanted_points_in

    measured = extra_cells(study, cells, writer, stack_cpus)
    if measured:
        run_cells(measured)
    while (left := study.file.method.most_points - len({place_of(one.cell) for one in measured})) > 0:
        with RunReader(writer.path) as reader:
            wanted = wanted_points_in(reader)
        new: list[PlannedCell] = []
        for point in wanted[:left]:
            found = chosen(
                cells_at(study, point.place, stack_cpus), workload=point.workload, coordinates=point.coordinates, labels=point.labels
            )
            known = [replace(one.cell, id=0) for one in (*measured, *new)]
            new += [one for one in found if replace(one.cell, id=0) not in known]
            progress.on_step(f"a further point at {point.place:g}, where {' and '.join(point.labels)} change sides")
        if not new:
            return
        new = numbered_from(new, 1 + max(cell.id for cell in writer.cells))
        writer.add_cells([one.cell for one in new])
        measured += new
        run_cells(new)
