"""`weir prove`: makes the experiments that would show whether what seems to hold a stack back does."""

import shlex
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from weir.cli.output import QUIET_OPTION, say, stdout, teller
from weir.cli.run import free_folder, run_progress
from weir.model.errors import ExitCode, UsageError
from weir.model.text import printable
from weir.store import RunReader, find_run


def prove(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder or a run file.", show_default=False)],
    stack: Annotated[
        str | None, typer.Option("--stack", metavar="ID[VARIANT]", help="Only the bottleneck of this stack.", show_default=False)
    ] = None,
    blocks: Annotated[int, typer.Option("--blocks", min=2, help="How often both are measured; ten make a claim.")] = 3,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the runs. Default: runs/STUDY-experiment-N.", show_default=False)
    ] = None,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Measure each stack once more with more of what holds it back, and print the prediction beside the outcome.

    Example: weir prove runs/api-capacity-1 --stack nest-typeorm-nginx
    """
    # Here and not above: findings take as long to import as all else, and a missing file does not need it.
    from weir.findings import of_run
    from weir.findings.evidence import by_cell
    from weir.findings.experiment import proof_of
    from weir.lab.run import placement_of, start
    from weir.study.experiment import experiment_study
    from weir.study.study import study_from

    path = find_run(run)
    with RunReader(path) as reader:
        if reader.info.is_load:
            raise UsageError(f"{path}: found a single load, expected a run of a study", hint=f"weir report {path}")
        info, found = reader.info, of_run(reader)
    if not info.study_text:
        raise UsageError(f"{path}: found trials that weir did not measure, expected a run of a study: nothing can be measured once more")
    labels = list(dict.fromkeys(one.label for one in found.bottlenecks))
    if stack is not None and stack not in labels:
        raise UsageError(f"--stack: found {stack}, expected one of {', '.join(labels) or 'none'}", hint=f"weir report {run}")
    wanted = [one for one in found.bottlenecks if stack in (None, one.label)]
    possible = [one for one in wanted if one.experiment is not None]
    for one in wanted:
        if one.experiment is None:
            say(f"weir: {one.sentence} No study file can ask for the experiment: {one.would_prove}")
    if not possible:
        raise UsageError(f"{path}: found no bottleneck that an experiment of weir's can prove, expected one", hint=f"weir findings {run}")
    study = study_from(Path(info.study_folder, f"{info.study}.toml"), info.study_text, tomllib.loads(info.study_text), info.scale)
    cells = study.cells(len(placement_of(study).stack))
    failed = False
    for number, one in enumerate(possible, start=1):
        experiment = one.experiment
        assert experiment is not None
        teller(quiet=quiet)(f"weir: experiment {number} of {len(possible)}: {one.name} on {one.where}: {one.would_prove}")
        planned = next((planned for planned in cells if planned.cell.id == one.cell), None)
        if planned is None:
            raise UsageError(f"{path}: this machine or its stacks differ from those of the run", hint=f"weir run {info.study}")
        asked = experiment_study(
            study, planned, of=experiment.of, name=experiment.name, before=experiment.before, after=experiment.after, blocks=blocks
        )
        folder = free_folder(asked.name) if out is None else out / f"{number}"
        start(asked, folder, command=shlex.join(["weir", *sys.argv[1:]]), progress=run_progress(quiet=quiet))
        with RunReader(folder) as proved:
            before, after = by_cell(proved.cells(), proved.trials())
        proof = proof_of(replace(one, cell=before.cell.id), before, after)
        if proof is None:
            failed = True
            text = f"{one.name} on {one.where}: cannot say, because no block has a usable trial before and after the change."
        else:
            failed |= proof.agrees is False
            text = proof.sentence
        stdout.print(printable(text), highlight=False, markup=False)
    if failed:
        raise typer.Exit(ExitCode.MISSED)
