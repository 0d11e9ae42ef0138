"""`weir compare`: compares two or more servers. A server is a command, a URL, a stack or a commit.

The command turns the options into sides and then into a study, runs the study, and prints the answer.
"""

import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Exit
from typer.core import TyperCommand

from weir.cli import compare_options as own
from weir.cli import options
from weir.cli.compare_progress import CompareProgress
from weir.cli.compare_sides import HELP, check_out_commits, collect_sides
from weir.cli.fail_condition import P99, Condition, judge_conditions, read_condition
from weir.cli.output import at_terminal, say, stdout, teller, write_json
from weir.generators.registry import get_tool
from weir.generators.scripted.script_settings import choose_k6_length
from weir.generators.scripted.tools import SCRIPT_TOOLS
from weir.lab.answer_comparison import SideCheck, check_sides, find_difference, show_body
from weir.lab.study_run import RunSetup, build_stack, determine_exit_code, start
from weir.load_spec import SETTINGS, LoadSpec, read_flags
from weir.model.errors import ExitCode, TargetError, UsageError
from weir.parsing import parse_duration
from weir.paths import find_free_folder
from weir.stacks.answer_check import check_answers
from weir.store import RUN_FILE_NAME, RunReader
from weir.study.comparison import Side, choose_path, write_study
from weir.study.load import list_request_obstacles
from weir.study.study import QUICK, Study, parse_study
from weir.toml_file import list_data_files

if TYPE_CHECKING:
    from weir.findings import RunFindings

_REQUEST_SETTINGS = {"method", "headers", "body", "seed"}
"""Settings of `weir load` that a comparison writes into another table than `[load]` and `[matrix]`."""
_SCRIPT_SETTINGS = {"connections", "users", "duration_s", "timeout_s"}
"""Settings that a script receives, or that the check of the responses needs."""
_SHORTEST_S, _DURATION_S = 1.0, 1.5
_TWO_BLOCKS_S, _START_S = 21.0, 0.25
"""Seconds that two blocks may take, so that the first interval comes within half a minute. Seconds of a trial's start
and stop."""
_MAX_USUAL_S = 15.0
_MEDIAN_REQUESTS, _P99_REQUESTS = 400, 15_000
"""Numbers of requests in a trial that are enough for a median and for p99. The usual load of a slow server is longer."""
_SCRIPT_DURATION_S = 5.0
"""Default length of a script's load. Programs such as JMeter need some seconds until they reach their full rate."""
_SECONDS_A_SIDE = 60.0


class Command(TyperCommand):
    """A parser that separates the words after `--`. With `--git` or `--env`, these words start each server."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args = [*args[:at], *(f"{own.COMMAND_WORD}={word}" for word in args[at + 1 :])]
        return super().parse_args(ctx, args)


@options.with_load_settings(
    *(name for name, one in SETTINGS.items() if one.key or name in _REQUEST_SETTINGS),
    duration_s="Length of the load in each trial. Default: the profile's length, or 1.5s (a slow server: up to 15s).",
)
def compare(
    given: dict[str, Any],
    sides: own.Sides = None,
    git: own.Git = False,
    build: own.Build = None,
    env: own.Env = None,
    workload: own.Workload = None,
    path: own.RequestPath = None,
    https: own.Https = False,
    watch: own.Watch = None,
    ready: own.ReadyPath = "/",
    ready_timeout: own.ReadyTimeout = "30s",
    script: own.Script = None,
    warmup: own.Warmup = None,
    precision: own.Precision = "5%",
    budget: own.Budget = None,
    any_answer: own.AnyAnswer = False,
    fail_if: own.FailIf = None,
    save: own.Save = None,
    out: own.Out = None,
    json_: options.JsonFile = None,
    md: own.Markdown = None,
    html: own.Html = None,
    quiet: options.Quiet = False,
    words: own.Words = None,
) -> None:
    """Compare servers: put the same load on each server, repeat in random order, and report confidence intervals.

    Example: weir compare 'gunicorn -b {host}:{port} app:app' 'uvicorn --host {host} --port {port} asgi:app'
    """
    tell = teller(quiet=quiet)
    conditions = [read_condition(text) for text in fail_if or ()]
    warmup_s = None if warmup is None else options.read_flag("--warmup", parse_duration, warmup)
    _check_writable({"--save": save, "--json": json_, "--md": md, "--html": html})
    folder = out or find_free_folder(Path("runs"), "compare")
    file = folder / RUN_FILE_NAME
    if file.exists():
        raise UsageError(f"--out: found a run in {folder}, expected none", hint=f"weir report {folder}")

    named = collect_sides(sides or [], words, git=git, build=build, env=env or [], watch=watch)
    _check_workload(workload, named, path)
    for flag, value in (("--path", path), ("--ready", ready)):
        if value is not None and not value.startswith("/"):
            raise UsageError(f"{flag}: found {value!r}, expected a path that begins with /", hint=f"{flag} /{value}")

    is_https = https or any(side.text.startswith("https://") for side in named)
    spec = _choose_load(given, f"{'https' if is_https else 'http'}://server{choose_path(named, path)}")
    budget_s = options.read_flag("--budget", parse_duration, budget or f"{_SECONDS_A_SIDE * len(named):g}s")
    write_text = partial(
        write_study,
        workload=workload,
        precision=options.read_flag("--precision", options.parse_percent, precision),
        budget_s=budget_s,
        ready={"path": ready, "timeout_s": options.read_flag("--ready-timeout", parse_duration, ready_timeout)},
        scheme="https" if https else "http",
        script=script and _prepare_script(*script, given, spec, tell),
    )
    named = check_out_commits(named, build, tell)

    def write(answer: Mapping[str, Any], warmups_s: Mapping[str, float], usual_s: float) -> Study:
        load = replace(spec, duration_s=spec.duration_s or usual_s)
        text = write_text(named, load, answer=answer, warmups_s=warmups_s)
        study_file = Path(f"{folder.name}.toml").absolute()
        return parse_study(study_file, text, tomllib.loads(text), QUICK, is_written_by_weir=True)

    with closing(CompareProgress(file, budget_s, tell, live=at_terminal() and not quiet)) as progress:
        checks = check_sides(
            write({}, {side.name: 0.0 for side in named}, _DURATION_S),
            lambda host, stack: build_stack(host, stack, progress.on_step),
            warmup_s=warmup_s,
            on_step=progress.on_step,
            # A built-in workload knows the correct response. Otherwise weir compares the sides' responses.
            check=check_answers if workload else lambda *_, **__: None,
        )
        _tell_checks(checks, progress.tell, is_watched=watch is not None)
        study = write(
            {} if workload else _choose_answer(checks, spec, any_answer=any_answer),
            {label: check.warmup_s for label, check in checks.items()},
            _SCRIPT_DURATION_S if script else choose_duration(checks, conditions, spec.requests),
        )
        _check_budget(study, budget_s)
        if save is not None:
            save.write_text(study.text)
        is_interrupted = False
        try:
            start(study, folder, RunSetup(progress, checked=checks), command=shlex.join(["weir", *sys.argv[1:]]))
        except KeyboardInterrupt:
            is_interrupted = True

    if is_interrupted and not _has_trials(file):
        tell("weir: no trial has ended, so there is no result")
        raise KeyboardInterrupt
    findings = _print_answer(file, json_=json_, md=md, html=html)
    if save is not None:
        tell(f"to run this comparison again: weir run {save} --scale evidence")
    tell(f"to print the result again: weir report {folder}")
    if is_interrupted:
        raise KeyboardInterrupt
    code = judge_conditions(findings, conditions)
    if not code and (code := determine_exit_code(file)):
        say(f"weir: a side {'failed in all its trials' if code is ExitCode.TARGET else 'has no valid trial'}")
    if code:
        raise Exit(code)


# --- Options


def _check_writable(files: Mapping[str, Path | str | None]) -> None:
    """Raises UsageError now, and not after the comparison, if weir cannot write one of these files."""
    for flag, file in files.items():
        if file is None or str(file) == "-":
            continue
        if Path(file).is_dir():
            raise UsageError(f"{flag}: found the folder {file}, expected a file", hint=f"{flag} {Path(file, 'NAME')}")
        if not os.access(Path(file).absolute().parent, os.W_OK):
            raise UsageError(f"{flag}: found {file}, expected a file in a folder that exists and that weir may write")
    if files["--json"] == files["--md"] == "-":
        raise UsageError("--md: found - together with --json -, expected a file for one of them", hint=HELP)


def _check_workload(workload: str | None, sides: Sequence[Side], path: str | None) -> None:
    """Raises UsageError if weir has no such workload, if a stack has no `--workload`, or if the user gave `--path` too."""
    if workload is not None and workload not in (known := list_data_files("workloads")):
        raise UsageError(f"--workload: found {workload!r}, expected one of {', '.join(sorted(known))}", hint=HELP)
    stacks = [side.text for side in sides if side.kind == "stack"]
    if stacks and workload is None:
        raise UsageError(f"--workload: missing, expected a workload that {stacks[0]} serves", hint="weir stacks list")
    if workload is not None and path is not None:
        raise UsageError(
            "--path: found together with --workload, expected only one of them: the workload defines the path"
        )


# --- The load


def _choose_load(given: Mapping[str, Any], url: str) -> LoadSpec:
    """Returns the load of each trial, without a duration if the user gave none. Raises UsageError if a comparison does
    not support an option."""
    spec = read_flags((url,), given)
    tls = [SETTINGS[name].flags for name, value in given.items() if name.startswith("tls_") and value]
    if tls and url.startswith("http:"):
        raise UsageError(f"{tls[0]}: found without HTTPS, expected --https, or URLs with https://", hint=HELP)
    try:
        spec.to_plan()
    except UsageError as error:
        raise UsageError(error.message, hint=HELP) from None
    for problem in list_request_obstacles(spec):
        raise UsageError(problem, hint="describe such requests in a file for --scenario FILE")
    profile = spec.users if spec.rate_rps is None else spec.rate_rps
    length_s = profile[-1][0] if isinstance(profile, tuple) else None
    return replace(spec, duration_s=spec.duration_s or length_s)


def _prepare_script(
    name: str, text: str, given: Mapping[str, Any], spec: LoadSpec, tell: Callable[[str], None]
) -> tuple[str, str]:
    """Returns the tool, and the script with an absolute path and its arguments. Installs the tool if it is missing.
    Raises UsageError if the tool or the script does not exist, or if an option has no effect on a script."""
    if name not in SCRIPT_TOOLS:
        raise UsageError(f"--with: found {name!r}, expected one of {', '.join(SCRIPT_TOOLS)}", hint=HELP)
    path, space, arguments = text.partition(" ")
    if not Path(path).is_file():
        raise UsageError(f"--with: {path}: found no such file, expected a JMeter plan, k6 script or locustfile")
    try:
        options_of_tool = shlex.split(arguments)
    except ValueError as error:
        raise UsageError(f"--with: found {text!r}, expected a script and its arguments: {error}", hint=HELP) from None
    for setting, value in given.items():
        if value and setting not in _SCRIPT_SETTINGS | _REQUEST_SETTINGS:
            problem = f"{SETTINGS[setting].flags}: found together with --with, expected this setting in {path}"
            raise UsageError(problem, hint="-c, --users and -d work with a script")
    program = str(get_tool(name).install(tell))
    if name == "k6":
        users = f"{spec.to_plan().load.connections}"
        duration_s = spec.duration_s or _SCRIPT_DURATION_S
        if length := choose_k6_length(program, path, options_of_tool, users=users, duration_s=duration_s):
            tell(f"weir: {path} sets no duration, so k6 gets {' '.join(length)}")
    return name, shlex.quote(str(Path(path).absolute())) + space + arguments


def choose_duration(checks: Mapping[str, SideCheck], conditions: Sequence[Condition], requests: int | None) -> float:
    """Returns the length of a load in seconds, from 1.5 to 15. The slowest side then has enough responses for the
    percentiles. If long warm-ups would delay the first interval, the minimum is 1 instead of 1.5. With a number of
    requests, returns twice the time of these requests on the slowest side."""
    needed = _P99_REQUESTS if any(one.metric == P99 for one in conditions) else _MEDIAN_REQUESTS
    slowest_rps = max(1.0, min(check.throughput_rps for check in checks.values()))
    if requests is not None:
        return max(_DURATION_S, round(2 * requests / slowest_rps, 1))
    # The first side runs twice in each block.
    block = [next(iter(checks.values())), *checks.values()]
    left_s = _TWO_BLOCKS_S / 2 - sum(check.warmup_s + _START_S for check in block)
    usual_s = min(max(_SHORTEST_S, left_s / len(block)), _DURATION_S)
    return round(min(max(usual_s, needed / slowest_rps), _MAX_USUAL_S), 1)


# --- The study


def _tell_checks(checks: Mapping[str, SideCheck], tell: Callable[[str], None], *, is_watched: bool) -> None:
    for check in checks.values():
        started = "" if check.ready_s is None else f"ready after {check.ready_s:.2f} s, "
        tell(f"weir: {check.answer.title}: {started}warm-up of {check.warmup_s:.1f} s in each trial")
        if check.ready_s is None and not is_watched:
            tell(f"weir: {check.answer.title}: add --watch PID,PID to measure CPU time and memory")
        for problem in check.problems:
            tell(f"weir: {check.answer.title}: {problem}")


def _choose_answer(checks: Mapping[str, SideCheck], spec: LoadSpec, *, any_answer: bool) -> dict[str, Any]:
    """Returns the expected response. Raises TargetError if responses differ or have an error status."""
    answers = [check.answer for check in checks.values()]
    difference = find_difference(answers)
    if difference is not None and not any_answer:
        raise TargetError(f"the servers respond differently: {difference}", hint="to compare anyway, add --any-answer")
    first = answers[0]
    if first.status >= 400 and not any_answer:
        found = f"found status {first.status} {show_body(first.body)}, expected a status below 400"
        hint = "choose another path with --path PATH; to compare anyway, add --any-answer"
        raise TargetError(f"{first.title}: {found}", hint=hint)
    # The engine compares bodies without decompressing them.
    is_plain = all(name.lower() != "accept-encoding" for name, _ in spec.headers)
    is_constant = difference is None and all(one.is_constant for one in answers)
    if is_constant and is_plain and not isinstance(first.value, bytes):
        return {"status": first.status, "json": first.value}
    return {"status": first.status}


def _check_budget(study: Study, budget_s: float) -> None:
    """Raises UsageError if one block takes longer than the budget."""
    block_s = sum(planned.trial_s for planned in study.cells(1))
    if block_s > budget_s:
        found = f"--budget: found {budget_s:g} s, expected at least {block_s:.0f} s, the length of a block"
        raise UsageError(found, hint="use a larger --budget, or a shorter --duration or --warmup")


# --- The answer


def _has_trials(file: Path) -> bool:
    """Returns whether a run file exists and has a finished trial."""
    if not file.is_file():
        return False
    with RunReader(file) as reader:
        return bool(reader.trials())


def _print_answer(file: Path, *, json_: str | None, md: str | None, html: Path | None) -> "RunFindings":
    """Prints the result of the comparison, and writes the files of --json, --md and --html."""
    from weir.findings import RunFindings, of_run
    from weir.report import begin_charts, write_html
    from weir.report.comparison import format_markdown, render_comparison

    with RunReader(file) as reader:
        charts = begin_charts(reader) if html is not None else None
        findings = of_run(reader)
        assert isinstance(findings, RunFindings)
        if html is not None:
            write_html(reader, findings, html, None, charts=charts)
    if "-" not in (json_, md):
        stdout.print(render_comparison(findings))
    if json_ is not None:
        write_json(findings.to_json(), json_)
    if md == "-":
        print(format_markdown(findings), end="")
    elif md is not None:
        Path(md).write_text(format_markdown(findings))
    return findings
