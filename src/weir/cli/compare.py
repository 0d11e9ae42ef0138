"""`weir compare`: compares two or more servers. A server is a command, a URL, a stack or a commit."""

import itertools
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option
from typer.core import TyperCommand

from weir.cli import options
from weir.cli.compare_progress import CompareProgress
from weir.cli.output import at_terminal, say, stdout, teller, write_json
from weir.generators.registry import get_tool
from weir.generators.scripted.tools import SCRIPT_TOOLS
from weir.host import Host
from weir.lab.answer_comparison import SideCheck, check_sides, find_difference
from weir.lab.study_run import RunSetup, build_stack, determine_exit_code, run_build_command, start
from weir.load_spec import SETTINGS, LoadSpec, read_flags
from weir.model.errors import ExitCode, TargetError, UsageError
from weir.parsing import parse_duration
from weir.paths import find_free_folder
from weir.stacks.answer_check import check_answers
from weir.stacks.checkout import WORKING_TREE, check_out
from weir.store import RUN_FILE_NAME, RunReader
from weir.study.comparison import Side, choose_path, name_sides, parse_side, write_study
from weir.study.load import list_request_obstacles
from weir.study.study import QUICK, Study, parse_study
from weir.toml_file import list_data_files

if TYPE_CHECKING:
    from weir.findings import RunFindings

_COMMAND_WORD = "--command-word"
_REQUEST_SETTINGS = {"method", "headers", "body", "seed"}
"""Settings of `weir load` that a comparison writes into another table than `[load]` and `[matrix]`."""
_SCRIPT_SETTINGS = {"connections", "users", "duration_s", "timeout_s"}
"""Settings that a script receives, or that the check of the responses needs."""
_DURATION_S = 1.5
_MAX_USUAL_S = 15.0
_MEDIAN_REQUESTS, _P99_REQUESTS = 400, 15_000
"""Numbers of requests in a trial that are enough for a median and for p99. The usual load of a slow server is longer."""
_SCRIPT_DURATION_S = 5.0
"""Longest load of a script. Programs such as JMeter need some seconds until they reach their full rate."""
_SECONDS_A_SIDE = 60.0
_READY_TIMEOUT_S = 30.0
_METRICS = {
    "throughput": "throughput_rps", "p50": "response_time_us.p50", "p99": "response_time_us.p99",
    "cpu": "cpu_us_per_request", "memory": "pss_bytes", "start": "ready_s",
}  # fmt: skip
"""A dict from the name of each metric in `--fail-if` to the metric's key in findings."""
_HELP = "weir compare --help"
_PLAIN = re.compile(r"[\w@%+=:,./{}-]+")


class Command(TyperCommand):
    """A parser that separates the words after `--`. With `--git` or `--env`, these words start each server."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args = [*args[:at], *(f"{_COMMAND_WORD}={word}" for word in args[at + 1 :])]
        return super().parse_args(ctx, args)


@options.with_load_settings(
    *(name for name, one in SETTINGS.items() if one.key or name in _REQUEST_SETTINGS),
    duration_s="Length of the load in each trial. Default: the profile's length; 1.5s, or up to 15s for a slow server.",
)
def compare(
    given: dict[str, Any],
    sides: Annotated[
        list[str] | None,
        Argument(
            metavar="SIDE...",
            help="Server to compare: a URL, a stack of weir, or a command. A command may contain {host} and {port}. "
            "With --git: a commit to compare. The command then follows --.",
        ),
    ] = None,
    git: Annotated[
        bool,
        Option(
            "--git",
            help="Compare commits. A dot means the working tree. Example: --git main HEAD -- ./run.sh {port}.",
        ),
    ] = False,
    build: Annotated[
        str | None, Option("--build", help="With --git: shell command that weir runs once to build each commit.")
    ] = None,
    env: Annotated[
        list[str] | None,
        Option(
            "--env",
            metavar="NAME=A,B",
            help="Compare values of an environment variable. A command follows --. The value replaces {NAME}.",
        ),
    ] = None,
    workload: Annotated[
        str | None,
        Option("--workload", help="Send the requests of this workload of weir. Required with stacks. Example: echo."),
    ] = None,
    path: Annotated[
        str | None, Option("--path", help="Path and query of the request. Default: the path of the URLs, or /.")
    ] = None,
    https: Annotated[
        bool, Option("--https", help="The servers of the commands speak HTTPS. See also --cacert and --insecure.")
    ] = False,
    watch: Annotated[
        str | None,
        Option("--watch", metavar="PID,PID", help="Process id of the server of each URL, to measure CPU and memory."),
    ] = None,
    ready: Annotated[
        str, Option("--ready", metavar="PATH", help="Path that weir requests until the server of a command responds.")
    ] = "/",
    ready_timeout: Annotated[
        str, Option("--ready-timeout", metavar="TIME", help="Maximum time until a command's server responds.")
    ] = "30s",
    script: Annotated[
        tuple[str, str] | None,
        Option(
            "--with",
            metavar="TOOL SCRIPT",
            help="Load with jmeter, k6 or locust, and with this script. SCRIPT may have arguments, and fields such as "
            "{host}, {port} and {users}. Example: --with jmeter 'plan.jmx -Jloops=50'.",
        ),
    ] = None,
    warmup: Annotated[
        str | None,
        Option("--warmup", metavar="TIME", help="Warm-up of each trial. Default: until steady, but 1 s to 10 s."),
    ] = None,
    precision: Annotated[
        str, Option("--precision", help="End when the ratio of the sides is known to ± this share.")
    ] = "5%",
    budget: Annotated[
        str | None,
        Option("--budget", metavar="TIME", help="Maximum time of all trials together. Default: 1m for each server."),
    ] = None,
    any_answer: Annotated[bool, Option("--any-answer", help="Compare even if responses differ or are errors.")] = False,
    fail_if: Annotated[
        list[str] | None,
        Option(
            "--fail-if",
            metavar="CONDITION",
            help="Exit with 1 if a server's ratio to the first server meets this condition, such as 'throughput<0.95'. "
            "Exit with 4 if the ratio is inconclusive. Metrics: throughput, p50, p99, cpu, memory, start.",
        ),
    ] = None,
    save: Annotated[
        Path | None, Option("--save", metavar="FILE", help="Write this comparison to FILE as a study for weir run.")
    ] = None,
    out: Annotated[
        Path | None, Option("--out", metavar="DIR", help="New folder for the run. Default: runs/compare-N.")
    ] = None,
    json_: options.JsonFile = None,
    md: Annotated[
        str | None, Option("--md", metavar="FILE", help="Write the result as Markdown to FILE (- is standard output).")
    ] = None,
    html: Annotated[Path | None, Option("--html", metavar="FILE", help="Write the HTML report to FILE.")] = None,
    quiet: options.Quiet = False,
    words: Annotated[list[str] | None, Option(_COMMAND_WORD, hidden=True, help="Internal: a word after --.")] = None,
) -> None:
    """Compare servers: put the same load on each server, repeat in random order, and report confidence intervals.

    Example: weir compare 'gunicorn -b {host}:{port} app:app' 'uvicorn --host {host} --port {port} asgi:app'
    """
    conditions = [read_condition(text) for text in fail_if or ()]
    _check_writable({"--save": save, "--json": json_, "--md": md, "--html": html})
    if json_ == md == "-":
        raise UsageError("--md: found - together with --json -, expected a file for one of them", hint=_HELP)
    tell = teller(quiet=quiet)
    given_sides = _collect_sides(sides or [], words, git=git, build=build, env=env or [], tell=tell)
    named = name_sides(_add_pids(given_sides, watch))
    if len(named) < 2:
        raise UsageError(f"SIDE: found {len(named)}, expected two or more servers to compare", hint=_HELP)
    _check_workload(workload, named, path)
    is_https = https or any(side.text.startswith("https://") for side in named)
    url = f"{'https' if is_https else 'http'}://server{choose_path(named, path)}"
    spec = _choose_load(given, url)
    settings: dict[str, Any] = {
        "precision": options.read_flag("--precision", options.parse_percent, precision),
        "budget_s": _SECONDS_A_SIDE * len(named) if budget is None else options.read_flag("--budget", parse_duration, budget),
        "ready": {"path": ready, "timeout_s": options.read_flag("--ready-timeout", parse_duration, ready_timeout)},
        "workload": workload,
        "scheme": "https" if https else "http",
        "script": script and _prepare_script(*script, given, tell),
    }  # fmt: skip
    warmup_s = None if warmup is None else options.read_flag("--warmup", parse_duration, warmup)
    folder = out or find_free_folder(Path("runs"), "compare")
    file = folder / RUN_FILE_NAME
    if file.exists():
        raise UsageError(f"--out: found a run in {folder}, expected none", hint=f"weir report {folder}")
    study_file = Path(f"{folder.name}.toml").absolute()

    def write(answer: Mapping[str, Any], warmups_s: Mapping[str, float], usual_s: float) -> Study:
        load = replace(spec, duration_s=spec.duration_s or usual_s)
        text = write_study(named, load, answer=answer, warmups_s=warmups_s, **settings)
        return parse_study(study_file, text, tomllib.loads(text), QUICK)

    try:
        with closing(CompareProgress(file, settings["budget_s"], tell, live=at_terminal() and not quiet)) as progress:
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
            _check_budget(study, settings["budget_s"])
            if save is not None:
                save.write_text(study.text)
            try:
                start(study, folder, RunSetup(progress, checked=checks), command=shlex.join(["weir", *sys.argv[1:]]))
            except KeyboardInterrupt:
                progress.close()
                if file.is_file():
                    _print_answer(file, json_=json_, md=md, html=html)
                    tell(f"kept: weir report {folder}")
                raise
    except UsageError as error:
        # The user did not write the study that these messages name.
        raise UsageError(error.message.replace(f"{study_file}: ", ""), hint=error.hint) from None
    findings = _print_answer(file, json_=json_, md=md, html=html)
    if save is not None:
        tell(f"saved: weir run {save} --scale evidence")
    tell(f"kept: weir report {folder}")
    code = _judge(findings, conditions)
    if not code and (code := determine_exit_code(file)):
        say(f"weir: a side {'failed in all its trials' if code is ExitCode.TARGET else 'has no valid trial'}")
    if code:
        raise Exit(code)


def _check_writable(files: Mapping[str, Path | str | None]) -> None:
    """Raises UsageError now, and not after the comparison, if weir cannot write one of these files."""
    for flag, file in files.items():
        if file is not None and str(file) != "-" and not os.access(Path(file).absolute().parent, os.W_OK):
            raise UsageError(f"{flag}: found {file}, expected a file in a folder that exists and that weir may write")


def _check_budget(study: Study, budget_s: float) -> None:
    """Raises UsageError if one block takes longer than the budget."""
    block_s = sum(planned.trial_s for planned in study.cells(1))
    if block_s > budget_s:
        found = f"--budget: found {budget_s:g} s, expected at least {block_s:.0f} s, the length of a block"
        raise UsageError(found, hint="use a larger --budget, or a shorter --duration or --warmup")


def _collect_sides(
    texts: Sequence[str], words: Sequence[str] | None, *, git: bool, build: str | None, env: Sequence[str], tell: Any
) -> list[Side]:
    """Returns the sides (servers) from the command line, still without names."""
    here = os.getcwd()
    if build is not None and not git:
        raise UsageError("--build: found without --git, expected both", hint=_HELP)
    if not git and not env:
        if words is not None:
            hint = "quote each command: weir compare 'COMMAND' 'COMMAND'"
            raise UsageError("--: found without --git or --env, expected one of these flags", hint=hint)
        return [replace(parse_side(text), folder=here) for text in texts]
    if not words:
        option = "--git" if git else "--env"
        raise UsageError(f"{option}: found no command, expected -- COMMAND after the options", hint=_HELP)
    # Fields such as {port} need no quotes.
    command = (
        words[0] if len(words) == 1 else " ".join(one if _PLAIN.fullmatch(one) else shlex.quote(one) for one in words)
    )
    places = _check_out_all(texts, build, tell) if git else [("", here)]
    if not git and texts:
        raise UsageError(
            f"SIDE: found {texts[0]!r} together with --env, expected only the command after --", hint=_HELP
        )
    found = []
    for title, folder in places:
        for values in itertools.product(*(_read_values(text) for text in env)):
            text = command
            for name, value in values:
                text = text.replace(f"{{{name}}}", value)
            titles = [*([title] if title else []), *(f"{name}={value}" for name, value in values)]
            found.append(Side(text, "command", " ".join(titles), folder=folder, env=dict(values)))
    return found


def _check_out_all(references: Sequence[str], build: str | None, tell: Any) -> list[tuple[str, str]]:
    """Checks out and builds each commit. Returns the commits' names and folders."""
    if len(references) < 2:
        raise UsageError(
            f"--git: found {len(references)} commits, expected two or more", hint="name two: --git main HEAD -- COMMAND"
        )
    with Host() as host:

        def run(command: str, folder: Path, log: Path) -> int:
            tell(f"weir: building in {folder} (log: {log})")
            return run_build_command(host, ["/bin/sh", "-c", command], folder, dict(os.environ), log)

        return [
            ("working tree" if one == WORKING_TREE else one, str(check_out(Path.cwd(), one, build, run)))
            for one in references
        ]


def _read_values(text: str) -> list[tuple[str, str]]:
    name, equals, values = text.partition("=")
    if not equals or re.fullmatch(r"[A-Za-z_]\w*", name) is None or not values:
        raise UsageError(f"--env: found {text!r}, expected NAME=A,B: a name and its values", hint=_HELP)
    return [(name, value) for value in values.split(",")]


def _add_pids(sides: Sequence[Side], watch: str | None) -> list[Side]:
    """Returns the same sides. A side with a URL also has the process id from `--watch`."""
    if watch is None:
        return list(sides)
    urls = [side for side in sides if side.kind == "url"]
    pids = watch.split(",")
    if len(pids) != len(urls) or not all(pid.isdecimal() for pid in pids):
        found = f"--watch: found {watch!r}, expected a process id for each URL ({len(urls)})"
        raise UsageError(found, hint="run ss -ltnp to list the processes that listen")
    left = iter(pids)
    return [replace(side, pids=(int(next(left)),)) if side.kind == "url" else side for side in sides]


def _check_workload(workload: str | None, sides: Sequence[Side], path: str | None) -> None:
    """Raises UsageError if weir has no such workload, if a stack has no `--workload`, or if the user gave `--path` too."""
    if workload is not None and workload not in (known := list_data_files("workloads")):
        raise UsageError(f"--workload: found {workload!r}, expected one of {', '.join(sorted(known))}", hint=_HELP)
    stacks = [side.text for side in sides if side.kind == "stack"]
    if stacks and workload is None:
        raise UsageError(f"--workload: missing, expected a workload that {stacks[0]} serves", hint="weir stacks list")
    if workload is not None and path is not None:
        raise UsageError(
            "--path: found together with --workload, expected only one of them: the workload defines the path"
        )


def _prepare_script(name: str, text: str, given: Mapping[str, Any], tell: Any) -> tuple[str, str]:
    """Returns the tool, and the script with an absolute path and its arguments. Installs the tool if it is missing.
    Raises UsageError if the tool or the script does not exist, or if an option has no effect on a script."""
    if name not in SCRIPT_TOOLS:
        raise UsageError(f"--with: found {name!r}, expected one of {', '.join(SCRIPT_TOOLS)}", hint=_HELP)
    path, space, arguments = text.partition(" ")
    if not Path(path).is_file():
        raise UsageError(f"--with: {path}: found no such file, expected a JMeter plan, k6 script or locustfile")
    for setting, value in given.items():
        if value and setting not in _SCRIPT_SETTINGS | _REQUEST_SETTINGS:
            problem = f"{SETTINGS[setting].flags}: found together with --with, expected this setting in {path}"
            raise UsageError(problem, hint="-c, --users and -d work with a script")
    get_tool(name).install(tell)
    return name, shlex.quote(str(Path(path).absolute())) + space + arguments


def _choose_load(given: Mapping[str, Any], url: str) -> LoadSpec:
    """Returns the load of each trial, without a duration if the user gave none. Raises UsageError if a comparison does
    not support an option."""
    spec = read_flags((url,), given)
    tls = [SETTINGS[name].flags for name, value in given.items() if name.startswith("tls_") and value]
    if tls and url.startswith("http:"):
        raise UsageError(f"{tls[0]}: found without HTTPS, expected --https, or URLs with https://", hint=_HELP)
    try:
        spec.to_plan()
    except UsageError as error:
        raise UsageError(error.message, hint=_HELP) from None
    for problem in list_request_obstacles(spec):
        raise UsageError(problem, hint="describe such requests in a file for --scenario FILE")
    profile = spec.users if spec.rate_rps is None else spec.rate_rps
    length_s = profile[-1][0] if isinstance(profile, tuple) else None
    return replace(spec, duration_s=spec.duration_s or length_s)


def choose_duration(checks: Mapping[str, SideCheck], conditions: Sequence["Condition"], requests: int | None) -> float:
    """Returns seconds in which the slowest side responds to enough requests for the percentiles, from 1.5 to 15. With a
    number of requests, returns twice the time of these requests on the slowest side."""
    needed = _P99_REQUESTS if any(one.metric == _METRICS["p99"] for one in conditions) else _MEDIAN_REQUESTS
    slowest_rps = max(1.0, min(check.throughput_rps for check in checks.values()))
    if requests is not None:
        return max(_DURATION_S, round(2 * requests / slowest_rps, 1))
    return min(max(_DURATION_S, round(needed / slowest_rps, 1)), _MAX_USUAL_S)


def _choose_answer(checks: Mapping[str, SideCheck], spec: LoadSpec, *, any_answer: bool) -> dict[str, Any]:
    """Returns the expected response. Raises TargetError if responses differ or have an error status."""
    answers = [check.answer for check in checks.values()]
    difference = find_difference(answers)
    if difference is not None and not any_answer:
        raise TargetError(f"the servers respond differently: {difference}", hint="to compare anyway, add --any-answer")
    first = answers[0]
    if first.status >= 400 and not any_answer:
        problem = f"found status {first.status}, expected a status below 400: choose another path with --path PATH"
        raise TargetError(f"{first.title}: {problem}", hint="to compare anyway, add --any-answer")
    # The engine compares bodies without decompressing them.
    is_plain = all(name.lower() != "accept-encoding" for name, _ in spec.headers)
    is_constant = difference is None and all(one.is_constant for one in answers)
    if is_constant and is_plain and not isinstance(first.value, bytes):
        return {"status": first.status, "json": first.value}
    return {"status": first.status}


def _tell_checks(checks: Mapping[str, SideCheck], tell: Any, *, is_watched: bool) -> None:
    for check in checks.values():
        started = "" if check.ready_s is None else f"ready after {check.ready_s:.2f} s, "
        tell(f"weir: {check.answer.title}: {started}warmed up for {check.warmup_s:.1f} s in each trial")
        if check.ready_s is None and not is_watched:
            tell(f"weir: {check.answer.title}: add --watch PID,PID to measure CPU time and memory")
        for problem in check.problems:
            tell(f"weir: {check.answer.title}: {problem}")


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


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a side's ratio to the first side. The comparison fails if the condition is true."""

    text: str
    metric: str
    is_below: bool
    bound: float


def read_condition(text: str) -> Condition:
    """Returns the condition in a value of `--fail-if`. Raises UsageError if the text has another form."""
    match = re.fullmatch(r"\s*(\w+)\s*([<>])\s*(\d+(?:\.\d+)?)\s*", text)
    if match is None or match[1] not in _METRICS:
        found = f"--fail-if: found {text!r}, expected a metric and a ratio such as 'throughput<0.95'"
        raise UsageError(found, hint=f"use one of these metrics: {', '.join(_METRICS)}")
    return Condition(text.strip(), _METRICS[match[1]], match[2] == "<", float(match[3]))


def _judge(findings: "RunFindings", conditions: Sequence[Condition]) -> ExitCode:
    """Prints for each side whether each condition is true. Returns the exit code."""
    from weir.findings.formatting import ratio_text
    from weir.findings.metrics import BY_KEY
    from weir.stats import SAMPLES_BEYOND

    codes = []
    compared = findings.points[0].comparisons if findings.points else ()
    for condition, found in itertools.product(conditions, compared):
        if found.metric != condition.metric:
            continue
        value = "not measured"
        if found.ratio is not None:
            ratio, interval = ratio_text(found.ratio, found.low, found.high)
            value = f"{ratio} ({interval or 'no interval'})"
        elif quantile := BY_KEY[found.metric].quantile:
            value += f", because a trial needs {SAMPLES_BEYOND / (1 - quantile):,.0f} requests: use a longer --duration"
        if found.low is None or found.high is None or found.low <= condition.bound <= found.high:
            verdict, code = "inconclusive", ExitCode.NOT_VALID
        elif (found.high < condition.bound) == condition.is_below:
            verdict, code = "true", ExitCode.MISSED
        else:
            verdict, code = "false", ExitCode.DONE
        say(f"{condition.text}: {verdict} for {found.name}: {value}")
        codes.append(code)
    return ExitCode.MISSED if ExitCode.MISSED in codes else max(codes, default=ExitCode.DONE)
