"""`weir confirm`: tests each predicted bottleneck of a run with an experiment."""

import shlex
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from weir.cli import options
from weir.cli.output import print_text, say, teller
from weir.cli.report import open_study_run
from weir.cli.run_progress import ProgressLines
from weir.lab.observer import RunObserver
from weir.model.errors import ExitCode, UsageError
from weir.paths import find_free_folder
from weir.store import RunReader

if TYPE_CHECKING:
    from weir.findings.types import Bottleneck, Proof
    from weir.study.study import PlannedCell, Study


def confirm(
    run: options.Run,
    stack: Annotated[
        str | None, Option("--stack", metavar="ID[VARIANT]", help="Test only this stack's bottleneck. Default: all.")
    ] = None,
    blocks: Annotated[int, Option("--blocks", min=2, help="Blocks per experiment. A claim needs at least ten.")] = 3,
    out: Annotated[Path | None, Option("--out", help="Folder for the runs. Default: runs/STUDY-experiment-N.")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Test each predicted bottleneck: enlarge the resource, measure again, and compare the results.

    Example: weir confirm runs/api-capacity-1 --stack nest-typeorm-nginx
    """
    from weir.findings import of_run
    from weir.lab.study_run import plan_placement
    from weir.study.study import parse_study

    with open_study_run(run) as reader:
        path, info, bottlenecks = reader.path, reader.info, of_run(reader).bottlenecks
    if not info.study_text:
        problem = "found trials from another tool, expected a run of weir: weir cannot repeat those trials"
        raise UsageError(f"{path}: {problem}")
    possible = _choose_bottlenecks(bottlenecks, stack, path, run)
    file = Path(info.study_folder, f"{info.study}.toml")
    study = parse_study(file, info.study_text, tomllib.loads(info.study_text), info.scale)
    cells = {planned.cell.id: planned for planned in study.cells(len(plan_placement(study).stack))}
    failed = False
    for number, one in enumerate(possible, start=1):
        teller(quiet=quiet)(
            f"weir: experiment {number} of {len(possible)}: {one.name} on {one.where}: {one.would_prove}"
        )
        if one.cell not in cells:
            problem = "found another machine or other stacks, expected the run's machine and stacks"
            raise UsageError(f"{path}: {problem}", hint=f"weir run {info.study}")
        proof = _test(one, study, cells[one.cell], blocks, None if out is None else out / f"{number}", quiet=quiet)
        failed |= proof is None or proof.agrees is False
        unknown = "inconclusive, because no block has a usable trial both before and after the change."
        print_text(f"{one.name} on {one.where}: {unknown}" if proof is None else proof.sentence)
    if failed:
        raise typer.Exit(ExitCode.MISSED)


def _choose_bottlenecks(
    bottlenecks: "Sequence[Bottleneck]", stack: str | None, path: Path, run: Path
) -> "list[Bottleneck]":
    """Returns the testable bottlenecks of `stack` (None: all stacks). Prints a line for each other bottleneck."""
    labels = list(dict.fromkeys(one.label for one in bottlenecks))
    if stack is not None and stack not in labels:
        expected = f"expected one of {', '.join(labels) or 'none'}"
        raise UsageError(f"--stack: found {stack}, {expected}", hint=f"weir report {run}")
    chosen = [one for one in bottlenecks if stack in (None, one.label)]
    for one in chosen:
        if one.experiment is None:
            say(f"weir: {one.sentence} No study file can express the experiment: {one.would_prove}")
    possible = [one for one in chosen if one.experiment is not None]
    if not possible:
        problem = "found no bottleneck that weir can test with an experiment, expected one"
        raise UsageError(f"{path}: {problem}", hint=f"weir findings {run}")
    return possible


def _test(
    one: "Bottleneck", study: "Study", planned: "PlannedCell", blocks: int, folder: Path | None, *, quiet: bool
) -> "Proof | None":
    """Measures a stack before and after the change. Returns None without a block with usable trials of both."""
    from weir.findings.evidence import group_by_cell
    from weir.findings.experiment import evaluate_experiment
    from weir.lab.study_run import RunSetup, start
    from weir.study.experiment_study import make_experiment_study

    change = one.experiment
    assert change is not None
    experiment = make_experiment_study(
        study, planned, of=change.of, name=change.name, before=change.before, after=change.after, blocks=blocks
    )
    folder = folder or find_free_folder(Path("runs"), experiment.name)
    setup = RunSetup(RunObserver() if quiet else ProgressLines())
    start(experiment, folder, setup, command=shlex.join(["weir", *sys.argv[1:]]))
    with RunReader(folder) as tested:
        before, after = group_by_cell(tested.cells(), tested.trials())
    return evaluate_experiment(replace(one, cell=before.cell.id), before, after)
