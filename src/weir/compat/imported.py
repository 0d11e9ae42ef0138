"""Trials that somebody else measured, written as a run file."""

import time
from pathlib import Path

from weir import __version__
from weir.compat.table import ColumnMapping, Imported
from weir.model.errors import UsageError
from weir.model.run import Placement, RunInfo
from weir.store import RunWriter

_CLAIM_BLOCKS = 10


def write_imported(imported: Imported, mapping: ColumnMapping, source: Path, out: Path, *, command: str) -> None:
    """Writes the trials of a file into the run file `out`.

    Raises:
        UsageError: the mapping's baseline is no stack of the file, or there is a run file already.
    """
    cells = imported.cells
    stacks = list(dict.fromkeys(cell.stack for cell in cells))
    if mapping.baseline is not None and mapping.baseline not in stacks:
        raise UsageError(f"{source}: baseline: found {mapping.baseline!r}, expected one of {', '.join(stacks)}", hint="weir import --help")
    blocks = max(trial.block for trial in imported.trials)
    now = time.time_ns()
    info = RunInfo(
        study=source.stem,
        title=mapping.title or source.name,
        question=mapping.question,
        scale="imported",
        seed=0,
        blocks=blocks,
        indicative=blocks < _CLAIM_BLOCKS,
        baseline=mapping.baseline or stacks[0],
        study_text="",
        command=command,
        weir_version=__version__,
        started_unix_ns=now,
        environment={},
        placement=Placement(load=(), stack=tuple(range(mapping.stack_cpus or 0)), services=(), control=()),
        source=mapping.source or source.name,
    )
    by_place = {(cell.stack, cell.workload, cell.load.connections): cell for cell in cells}
    writer = RunWriter.create(out, info, cells)
    position = dict.fromkeys(range(1, blocks + 1), 0)
    for trial in sorted(imported.trials, key=lambda trial: trial.block):
        cell = by_place[trial.stack, trial.workload, trial.connections]
        identifier = writer.begin_trial(cell, block=trial.block, position=position[trial.block], attempt=1, started_unix_ns=now)
        position[trial.block] += 1
        writer.finish_trial(identifier, trial.result)
    writer.close("complete")
