"""`weir compare`: servers against each other, by their commands, URLs or names."""

import os
import shlex
import sys
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import tomllib
from typer import Argument, Option

from weir.cli import options
from weir.cli.output import at_terminal, say, stdout
from weir.cli.report import REPORT_NAME
from weir.lab.answer_comparison import SideCheck, check_sides, find_difference
from weir.lab.observer import RunControls, RunObserver, RunObservers
from weir.lab.study_run import build_stack, start
from weir.load_spec import LoadSpec, read_flags
from weir.model.errors import TargetError, UsageError
from weir.parsing import parse_duration
from weir.paths import find_free_folder
from weir.store import RUN_FILE_NAME, RunReader
from weir.study.comparison import Side, choose_path, name_sides, parse_side, write_study
from weir.study.study import Study, parse_study

_DURATION_S = 1.5
_TIMEOUT_S = 5.0


@options.with_load_settings()
def compare(
    sides: Annotated[
        list[str] | None,
        Argument(
            metavar="SIDE...",
            help="A command with {host} and {port} where it takes them, the URL of a running server, or a stack of weir.",
        ),
    ],
    given: dict[str, Any],
    path: Annotated[str | None, Option("--path", help="Path and query of the request. Default: that of the URLs, or /.")] = None,
    precision: Annotated[
        str, Option("--precision", help="End when the throughput ratio is known to this precision.")
    ] = "5%",
    budget: Annotated[str | None, Option("--budget", help="Measure at most this long. Default: 1m for each side.")] = None,
    any_answer: Annotated[bool, Option("--any-answer", help="Compare sides whose answers differ, too.")] = False,
    out: Annotated[Path | None, Option("--out", help="Folder of the run. Default: a new one in runs/.")] = None,
    save: Annotated[Path | None, Option("--save", metavar="FILE", help="Write the study that this comparison is.")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare servers: start each, put the same load on each in turn, and answer with an interval.

    Example: weir compare 'gunicorn -b {host}:{port} app:app' 'uvicorn --host {host} --port {port} asgi:app'
    """
    named = name_sides([replace(parse_side(text), folder=os.getcwd()) for text in sides or ()])
    if len(named) < 2:
        raise UsageError(f"SIDE: found {len(named)}, expected at least two servers to compare", hint="weir compare --help")
    spec = read_flags((f"http://server{choose_path(named, path)}",), given)
    spec = replace(spec, duration_s=spec.duration_s or _DURATION_S)
    width = options.read_flag("--precision", options.parse_percent, precision)
    budget_s = 60.0 * len(named) if budget is None else options.read_flag("--budget", parse_duration, budget)
    folder = out or find_free_folder(Path("runs"), "compare")

    def write(answer: dict[str, Any], warmups_s: dict[str, float]) -> Study:
        text = write_study(
            named, spec, workload=None, answer=answer, warmups_s=warmups_s, precision=width, budget_s=budget_s,
            failures="reject", ready={},
        )  # fmt: skip
        return parse_study(Path(f"{folder.name}.toml"), text, tomllib.loads(text), "quick")

    tell = (lambda _: None) if quiet else lambda text: say(f"weir: {text}")
    first = write({}, {side.name: 0.0 for side in named})
    checks = check_sides(first, lambda host, stack: build_stack(host, stack, tell), warmup_s=None, on_step=tell)
    answer = _choose_answer(checks, any_answer=any_answer)
    study = write(answer, {label: check.warmup_s for label, check in checks.items()})
    if save is not None:
        save.write_text(study.text)
    file = folder / RUN_FILE_NAME
    from weir.cli.run_progress import ProgressLines, RunView

    with ExitStack() as stack:
        observers: list[RunObserver] = [] if quiet else [ProgressLines(file)]
        if at_terminal() and not quiet:
            observers.append(stack.enter_context(closing(RunView())))
        start(study, folder, command=shlex.join(["weir", *sys.argv[1:]]), observer=RunObservers(*observers), checked=checks)
    from weir.cli.report import show

    show(file, html=folder / REPORT_NAME)


def _choose_answer(checks: dict[str, SideCheck], *, any_answer: bool) -> dict[str, Any]:
    """Returns the right answer: that of all sides."""
    answers = [check.answer for check in checks.values()]
    if (difference := find_difference(answers)) is not None and not any_answer:
        raise TargetError(f"the sides answer differently: {difference}", hint="--any-answer, if that is right")
    return {"status": answers[0].status}
