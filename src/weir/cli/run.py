"""`weir run`: runs a study, prints its answer and writes its report."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from weir.cli.cluster_load import (
    AGENTS_OPTION,
    CLUSTER_OPTION,
    SERVICES_HERE_OPTION,
    SHARE_NODES_OPTION,
    SHARES_OPTION,
    STACKS_HERE_OPTION,
    ClusterFlags,
    load_and_services,
    run_elsewhere,
)
from weir.cli.completion import studies
from weir.cli.driven import RunThere, driven_run, live_there
from weir.cli.live import LISTEN_OPTION, LIVE_OPTION, require_live
from weir.cli.live_run import Shown, live_run
from weir.cli.load_text import microseconds
from weir.cli.output import QUIET_OPTION, at_terminal, say
from weir.cli.report import REPORT_NAME, interim_answer, show
from weir.cli.run_view import RunView
from weir.host import HostGoneError
from weir.lab.blocks import Progress
from weir.lab.placement import placement_lines
from weir.lab.run import outcome, placement_of, resume, start
from weir.model.errors import ExitCode, NoAgentLeftError, NotWrittenError, TargetError, UsageError, WeirError
from weir.model.run import Placement, TrialResult
from weir.store import RUN_FILE_NAME, RunReader, find_run
from weir.study.forecast import forecast, plan_lines, span_text
from weir.study.study import PlannedCell, Study, read_study


def run(
    study: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="A study's name, or a file NAME.toml.", autocompletion=studies)
    ] = None,
    scale: Annotated[
        str | None, typer.Option("--scale", help="quick (minutes, an indication), evidence (a claim) or article (its own settings).")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Run folder to make. Default: runs/STUDY-N.", show_default=False)] = None,
    resume_: Annotated[
        Path | None, typer.Option("--resume", metavar="RUN", help="Go on with an interrupted run.", show_default=False)
    ] = None,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out stacks whose needs this machine does not meet, with a line each.")
    ] = False,
    fast: Annotated[bool, typer.Option("--fast", help="End after the first answer of a quick run; --resume measures the rest.")] = False,
    cluster: Annotated[str | None, CLUSTER_OPTION] = None,
    agents: Annotated[int | None, AGENTS_OPTION] = None,
    shares: Annotated[str | None, SHARES_OPTION] = None,
    share_nodes: Annotated[bool, SHARE_NODES_OPTION] = False,
    stacks_here: Annotated[bool, STACKS_HERE_OPTION] = False,
    services_here: Annotated[bool, SERVICES_HERE_OPTION] = False,
    live: Annotated[bool, LIVE_OPTION] = False,
    listen: Annotated[str | None, LISTEN_OPTION] = None,
    quiet: Annotated[bool, QUIET_OPTION] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON in place of the answer.")] = False,
    driven: Annotated[bool, typer.Option("--driven", hidden=True, help="The weir of another machine drives this run.")] = False,
    typed: Annotated[str | None, typer.Option("--typed", hidden=True, help="What was typed there, for the run file.")] = None,
) -> None:
    """Run a study: build and check its stacks, measure them in random order on fresh processes, and answer its question.

    Example: weir run sync-vs-async --scale quick
    """
    require_live(live, listen)
    flags = ClusterFlags(cluster, agents, shares, share_nodes, stacks_here, services_here)
    chosen: Study | None = None
    if resume_ is not None:
        if study is not None or scale is not None or out is not None or skip_missing or fast:
            raise UsageError(
                "--resume: found a study, --scale, --out, --skip-missing or --fast beside it; expected none: the run file knows them"
            )
        path = find_run(resume_)
        with RunReader(path) as reader:
            shown = Shown(reader.info.title, reader.info.question, reader.info.placement.control)
    else:
        if study is None:
            raise UsageError("STUDY: missing; expected a study's name or file", hint="weir run sync-vs-async --scale quick")
        chosen = read_study(study, scale=scale)
        if fast and not chosen.has_interim_answers:
            raise UsageError(f"--fast: found the scale {chosen.scale}, expected the scale quick: other scales have no interim answer")
        chosen = replace(chosen, ends_with_first_answer=fast)
        path = (out or free_folder(chosen.name)) / RUN_FILE_NAME
        shown = Shown(chosen.file.title, chosen.file.question, last_block=chosen.file.method.last_block)
    report = path.with_name(REPORT_NAME)
    command = typed or shlex.join(["weir", *sys.argv[1:]])
    words = [
        *(["--scale", scale] if scale else []),
        *(["--skip-missing"] if skip_missing else []),
        *(["--fast"] if fast else []),
        *(["--quiet"] if quiet else []),
    ]
    with run_elsewhere(flags) as elsewhere:
        if elsewhere is not None:
            with live_there(shown, listen=listen, report=report) if live else nullcontext(RunThere()) as there:
                code = elsewhere(chosen, ["--typed", command, *words, *(["--live"] if live else [])], path, there)
                if path.is_file():
                    show(path, html=report, json=json_)
                if code == ExitCode.INTERRUPTED or not path.is_file():
                    # In here, so that the page says that it ended early.
                    raise typer.Exit(code)
            raise typer.Exit(code)
    with ExitStack() as stack:
        loads, services_on = stack.enter_context(load_and_services(flags))
        if chosen is not None:
            if skip_missing:
                chosen, said = chosen.without_unmet()
                for line in said:
                    say(f"weir: {line}")
            placement = placement_of(chosen, services_on)
            if not quiet:
                _say_budget(chosen, placement)
            shown = replace(shown, control=placement.control)
        progress = run_progress(quiet=quiet)
        if not quiet and not json_:
            progress = replace(progress, on_answer=partial(_say_answer, path))
        if at_terminal() and not quiet:
            progress = stack.enter_context(RunView()).told(progress)
        if driven:
            progress = stack.enter_context(driven_run(progress, live=live, last_block=shown.last_block))
        elif live:
            progress = stack.enter_context(live_run(progress, shown, listen=listen, report=report))
        try:
            if chosen is None:
                resume(path, progress=progress, load_from=loads, services_on=services_on)
            else:
                start(chosen, path.parent, command=command, progress=progress, load_from=loads, services_on=services_on)
        except (KeyboardInterrupt, HostGoneError, NoAgentLeftError, NotWrittenError, TargetError):
            if path.is_file():
                say("weir: ended early; what was finished is kept")
                # What ended the run is what matters; a full disk or a closed terminal takes no report either.
                with suppress(WeirError, OSError):
                    show(path, html=report, json=json_)
                # Whoever drives this run goes on with it from where they are, which is not here.
                again = replace(flags, stacks_here=flags.stacks_here and not driven)
                say(f"weir: {shlex.join(['weir', 'run', '--resume', str(path), *again.words])} goes on with it")
            raise
        show(path, html=report, json=json_)
    code = outcome(path)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def run_progress(*, quiet: bool = False) -> Progress:
    """A run's progress on standard error; nothing where it is to be quiet."""
    return Progress() if quiet else Progress(on_step=lambda step: say(f"weir: {step}"), on_trial=_say_trial, on_result=_say_result)


def _say_answer(path: Path, blocks: int, labels: Sequence[str]) -> None:
    say(f"weir: interim answer, after {blocks} block{'s' if blocks > 1 else ''} of {', '.join(labels)}:")
    say(interim_answer(path))


def free_folder(name: str) -> Path:
    """The first of `runs/NAME-1`, `runs/NAME-2`, … that does not exist."""
    number = 1
    while (folder := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return folder


def _say_budget(study: Study, placement: Placement) -> None:
    """Says what will run, for how long and where."""
    cells = study.cells(len(placement.stack))
    say(f"weir: {study.file.question}")
    for line in (*plan_lines(study, forecast(study, cells), len(cells)), *placement_lines(placement)):
        say(f"weir: {line}")


def _say_trial(number: int, total: int | None, planned: PlannedCell, block: int, left_s: float | None) -> None:
    """Says which trial begins, and how long it and those after it will take."""
    of = "" if total is None else f" of {total}"
    left = "" if left_s is None else f", about {span_text(left_s)} left"
    say(f"weir: trial {number + 1}{of}, block {block}: {planned.cell.stack_label}, {planned.cell.point_label}{left}")


def _say_result(_: PlannedCell, result: TrialResult) -> None:
    if result.summary is not None:
        if result.window is not None and not result.window.is_whole:
            extended = ", extended for it" if result.window.extended else ""
            say(f"      steady from {result.window.start_s:.1f} s of {result.window.end_s:.1f} s{extended}; what came before is warm-up")
        times = result.summary.response_time_us
        say(f"      {result.summary.throughput_rps:,.0f} req/s, p50 {microseconds(times.p50)}, p99 {microseconds(times.p99)}")
    for reason in result.verdict.reasons:
        say(f"      {'note' if reason.validity == 'valid' else reason.validity}: {reason.text}")
