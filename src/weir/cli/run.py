"""`weir run`: runs a study, prints the result and writes the report."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from weir.cli import options
from weir.cli.load_source import ClusterFlags, join_stack_cluster, load_and_services
from weir.cli.output import at_terminal, say
from weir.cli.remote_control import RunThere, driven_run, live_there
from weir.cli.report import REPORT_NAME, show
from weir.cli.run_page import BoardObserver, Shown, run_page
from weir.cli.run_progress import ProgressLines, RunView
from weir.host import HostGoneError
from weir.lab.observer import RunControls, RunObserver, RunObservers
from weir.lab.placement import describe_placement
from weir.lab.study_run import RunSetup, determine_exit_code, plan_placement, resume, start
from weir.model.errors import ExitCode, NoAgentLeftError, NotWrittenError, TargetError, UsageError, WeirError
from weir.model.run_types import Placement
from weir.paths import find_free_folder
from weir.store import RUN_FILE_NAME, RunReader, find_run
from weir.study.study import Study, read_study
from weir.study.time_estimate import describe_plan, estimate_time

if TYPE_CHECKING:
    from weir.cluster.ray_cluster import RayCluster


def run(
    study: Annotated[str | None, options.STUDY] = None,
    scale: options.Scale = None,
    out: Annotated[Path | None, Option("--out", help="New folder for the run. Default: runs/STUDY-N.")] = None,
    resume_: Annotated[Path | None, Option("--resume", metavar="RUN", help="Continue an interrupted run.")] = None,
    skip_missing: Annotated[
        bool,
        Option("--skip-missing", help="Leave out stacks that this machine cannot run. Print a line for each of them."),
    ] = False,
    fast: Annotated[
        bool, Option("--fast", help="With --scale quick: end after the first result. --resume measures the rest.")
    ] = False,
    cluster: options.Cluster = None,
    agents: options.Agents = None,
    shares: options.AgentThreads = None,
    share_nodes: options.ShareNodes = False,
    stacks_here: Annotated[
        bool,
        Option("--stacks-here", help="With --cluster: run stacks on this machine, even if a node offers weir_stack."),
    ] = False,
    services_here: Annotated[
        bool,
        Option("--services-here", help="With --cluster: run services beside their stacks, not on a weir_service node."),
    ] = False,
    live: options.Live = False,
    listen: options.Listen = None,
    quiet: options.Quiet = False,
    json_: options.Json = False,
    driven: Annotated[
        bool, Option("--driven", hidden=True, help="Internal: let another machine control this run.")
    ] = False,
    typed: Annotated[
        str | None, Option("--typed", hidden=True, help="Internal: the user's command line, for the run file.")
    ] = None,
) -> None:
    """Run a study: build and check its stacks, measure fresh processes in random order, and print the result.

    Example: weir run sync-vs-async --scale quick
    """
    options.check_listen(live, listen)
    if resume_ is None:
        chosen, path, shown = _begin_study(study, scale, out, fast=fast)
    else:
        if study is not None or scale is not None or out is not None or skip_missing or fast:
            problem = "found together with a study, --scale, --out, --skip-missing or --fast, expected none of them"
            raise UsageError(
                f"--resume: {problem}: the run file has these settings", hint=f"weir run --resume {resume_}"
            )
        chosen, path = None, find_run(resume_)
        with RunReader(path) as reader:
            shown = Shown(reader.info.title, reader.info.question, reader.info.placement.control)
    flags = ClusterFlags(cluster, agents, shares, share_nodes, stacks_here, services_here)
    command = typed or shlex.join(["weir", *sys.argv[1:]])
    request = _Request(chosen, path, shown, flags, command, skip_missing, live, listen, quiet, json_, driven)
    with join_stack_cluster(flags) as cluster_for_stacks:
        if cluster_for_stacks is not None:
            switches = {"--skip-missing": skip_missing, "--fast": fast, "--quiet": quiet, "--live": live}
            words = ["--typed", command, *(["--scale", scale] if scale else [])]
            words += [option for option, is_given in switches.items() if is_given]
            raise typer.Exit(_run_elsewhere(request, cluster_for_stacks, words))
    _run_here(request)
    if code := determine_exit_code(path):
        raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class _Request:
    """The study or run file of a run, and the options of `weir run`."""

    study: Study | None
    """The study to run. None: weir resumes the run at `path`."""
    path: Path
    shown: Shown
    flags: ClusterFlags
    command: str
    skip_missing: bool
    live: bool
    listen: str | None
    quiet: bool
    json: bool
    driven: bool

    @property
    def report(self) -> Path:
        return self.path.with_name(REPORT_NAME)


def _begin_study(name: str | None, scale: str | None, out: Path | None, *, fast: bool) -> tuple[Study, Path, Shown]:
    """Returns the study, the path of the new run file, and the facts for the page."""
    if name is None:
        raise UsageError("STUDY: missing, expected a study's name or file", hint="weir run sync-vs-async --scale quick")
    study = read_study(name, scale=scale)
    if fast and not study.has_interim_answers:
        problem = f"found the scale {study.scale}, expected the scale quick: other scales have no interim answer"
        raise UsageError(f"--fast: {problem}", hint=f"weir run {name} --scale quick --fast")
    path = (out or find_free_folder(Path("runs"), study.name)) / RUN_FILE_NAME
    shown = Shown(study.file.title, study.file.question, last_block=study.file.method.last_block)
    return replace(study, ends_with_first_answer=fast), path, shown


def _run_elsewhere(request: _Request, cluster: "RayCluster", words: Sequence[str]) -> int:
    """Runs `weir run` on the cluster's node for stacks. Shows the result here, and returns the exit code."""
    from weir.cluster.remote_run import resume_remotely, run_remotely
    from weir.study.remote_files import collect_study_files

    path, report = request.path, request.report
    page = live_there(request.shown, listen=request.listen, report=report) if request.live else nullcontext(RunThere())
    with page as there:
        flags = replace(request.flags, cluster=None).words
        calls: Any = {"flags": flags, "on_line": there.hear, "on_begin": there.begin}
        if request.study is None:
            code = resume_remotely(cluster, path, words, **calls)
        else:
            sent = collect_study_files(request.study)
            code = run_remotely(cluster, sent.study, words, path.parent, files=sent.files, built=sent.built, **calls)
        if path.is_file():
            show(path, html=report, json=request.json)
        if code == ExitCode.INTERRUPTED or not path.is_file():
            # weir exits inside the `with` block, so that the page shows the end.
            raise typer.Exit(code)
    return code


def _run_here(request: _Request) -> None:
    """Runs or resumes the study on this machine, and shows the result."""
    study, path, shown, flags, quiet = request.study, request.path, request.shown, request.flags, request.quiet
    with ExitStack() as stack:
        loads, services_on = stack.enter_context(load_and_services(flags))
        if study is not None:
            if request.skip_missing:
                study, left_out = study.without_unmet()
                for line in left_out:
                    say(f"weir: {line}")
            placement = plan_placement(study, services_on)
            if not quiet:
                _print_plan(study, placement)
            shown = replace(shown, control=placement.control)
        controls = RunControls()
        observers: list[RunObserver] = [] if quiet else [ProgressLines(None if request.json else path)]
        if at_terminal() and not quiet:
            observers.append(stack.enter_context(closing(RunView())))
        if request.driven:
            driver = driven_run(controls, live=request.live, last_block=shown.last_block)
            observers.append(stack.enter_context(driver))
        elif request.live:
            buttons = controls.skip.request, controls.extra_blocks.request
            page = run_page(shown, *buttons, listen=request.listen, report=request.report)
            observers.append(BoardObserver(stack.enter_context(page), controls, shown.last_block))
        setup = RunSetup(RunObservers(*observers), controls, loads, services_on)
        try:
            if study is None:
                resume(path, setup)
            else:
                start(study, path.parent, setup, command=request.command)
        except (KeyboardInterrupt, HostGoneError, NoAgentLeftError, NotWrittenError, TargetError):
            if path.is_file():
                say("weir: the run ended early; weir has kept all finished work")
                # weir reports why the run ended early, even if the report cannot be written or printed.
                with suppress(WeirError, OSError):
                    show(path, html=request.report, json=request.json)
                # The user resumes a driven run on the driver's machine. That machine must not run the stacks.
                again = replace(flags, stacks_here=flags.stacks_here and not request.driven)
                say(f"weir: {shlex.join(['weir', 'run', '--resume', str(path), *again.words])} continues the run")
            raise
        show(path, html=request.report, json=request.json)


def _print_plan(study: Study, placement: Placement) -> None:
    """Prints the question, the planned trials with their duration, and the placement on CPUs."""
    cells = study.cells(len(placement.stack))
    say(f"weir: {study.file.question}")
    for line in (*describe_plan(study, estimate_time(study, cells), len(cells)), *describe_placement(placement)):
        say(f"weir: {line}")
