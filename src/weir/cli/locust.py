"""`weir locust`: runs the real Locust, and records its load."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer import Argument, Option
from typer.core import TyperCommand, TyperOption

from weir import __version__
from weir.cli import options
from weir.cli.load_page import live_load
from weir.cli.load_recording import LoadRecording, choose_file, choose_interval
from weir.cli.output import say, write_json
from weir.compat.locust.lines import Restarted, Started
from weir.compat.locust.locust_version import find_python
from weir.compat.locust.process import LocustProcess
from weir.compat.locust.recording import Recording
from weir.compat.locust.summary import summarize
from weir.model.errors import ExitCode
from weir.model.load import LONGEST_S, ClosedLoad, LoadPlan, Request
from weir.model.load_observer import LoadObservers
from weir.model.records import LoadEnd, LoadStarted

_ENDLESS_S = 86_400.0
"""Planned length of a load without --run-time. Only Ctrl-C ends such a load."""


class Command(TyperCommand):
    """A parser of weir's options. The first argument that is no option of weir, and all later ones, go to Locust."""

    needs_value: ClassVar[dict[str, bool]] = {}
    """For the name of each weir option: whether the option needs a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = [option for option in self.params if isinstance(option, TyperOption)]
        self.needs_value.update({name: not option.is_flag for option in options for name in option.opts})
        own = 0
        while own < len(args) and (name := args[own].partition("=")[0]) in {*self.needs_value, "--help", "-h"}:
            own += 2 if self.needs_value.get(name) and "=" not in args[own] else 1
        rest = args[own + 1 :] if args[own : own + 1] == ["--"] else args[own:]
        return super().parse_args(ctx, [*args[:own], "--", *rest])


def locust(
    arguments: Annotated[
        list[str] | None,
        Argument(metavar="LOCUST-ARGUMENT", help="Arguments for Locust. weir locust -- --help lists them."),
    ] = None,
    python: Annotated[
        str | None,
        Option(
            "--python", metavar="PATH", help="Python with Locust and the locustfile's modules. Default: weir's Python."
        ),
    ] = None,
    out: options.KeepLoad = None,
    weir_json: Annotated[
        str | None,
        Option("--weir-json", metavar="FILE", help="Write weir's result as JSON to FILE (- is standard output)."),
    ] = None,
    live: options.Live = False,
    listen: options.Listen = None,
    strict: options.Strict = False,
) -> None:
    """Run Locust and record its load. Write weir's options first, then Locust's arguments.

    Flags, tables, files, page and exit codes are the same as in Locust. weir counts a response time from the end of the
    user's pause. Install Locust with: pip install 'weirbench[locust]'.

    Example: weir locust --out load.weir -f locustfile.py --host http://127.0.0.1:8000 --headless -u 20 -r 5 -t 30s
    """
    options.check_listen(live, listen)
    file = None if out is None else choose_file(out)
    with LocustProcess(find_python(python), arguments or []) as process:
        end = _record(process, file, live=live, listen=listen)
        code = process.exit_code
    if code < 0:
        say(f"weir: signal {-code} ended Locust")
        code = 128 - code
    if end is None:
        misplaced = [word for word in arguments or [] if word.partition("=")[0] in Command.needs_value]
        if code and misplaced:
            say(f"weir: {misplaced[0]}: found after Locust's arguments, expected before them: it is an option of weir")
        elif file is not None or weir_json is not None:
            say("weir: nothing was recorded: Locust started no test")
        raise typer.Exit(code)
    for text in end.summary.verdict.lines:
        say(f"weir: {text}")
    if weir_json is not None:
        write_json(end.summary.model_dump(by_alias=True), weir_json, "--weir-json")
    if file is not None:
        say(f"kept: weir report {file}")
    if code == ExitCode.DONE and strict and end.summary.verdict.validity != "valid":
        code = ExitCode.NOT_VALID
    raise typer.Exit(code)


def _record(process: LocustProcess, file: Path | None, *, live: bool, listen: str | None) -> LoadEnd | None:
    """Records Locust's first test, and waits until Locust ends. Returns None if Locust started no test."""
    recording, observers = Recording(), LoadObservers()
    test: Started | None = None
    kept: LoadRecording | None = None
    has_restarted = False
    with ExitStack() as stack:
        for number, line in process.lines():
            if isinstance(line, Started) and test is None:
                test, plan = line, _plan(line)
                recording.begin(line.at_ns, plan.interval_s)
                if file is not None:
                    kept = stack.enter_context(LoadRecording(file, plan, sys.argv[1:]))
                    observers.add(kept.recorder)
                if live:
                    observers.add(stack.enter_context(live_load(plan, listen=listen)))
                observers.on_start(
                    LoadStarted(
                        version=__version__,
                        pid=line.pid,
                        backend="python",
                        wait="gevent",
                        threads=line.processes,
                        cpus=[],
                        connected=0,
                        start_monotonic_ns=line.at_ns,
                        start_unix_ns=line.unix_ns,
                    )
                )
            elif isinstance(line, Restarted) and not has_restarted:
                has_restarted = True
                say("weir: Locust has started another test: weir records only the first test")
            for interval in recording.take(number, line):
                observers.on_interval(interval)
        if test is None:
            return None
        for interval in recording.finish():
            observers.on_interval(interval)
        is_whole = recording.duration_s >= plan.duration_s
        stopped = "signal" if process.is_interrupted else "duration" if is_whole else "complete"
        end = summarize(
            recording, target=plan.title, stopped=stopped, version=test.locust, measures_lag=test.measures_lag
        )
        observers.on_end(end)
        if kept is not None:
            kept.finish(end, end.summary, None, interrupted=process.is_interrupted)
    return end


def _plan(test: Started) -> LoadPlan:
    hosts, users = test.hosts or test.files, float(max(test.users, 1))
    ramp_s = users / test.spawn_rate
    has_ramp = ramp_s > 1 and not test.has_shape
    run_time_s = min(test.run_time_s or _ENDLESS_S, LONGEST_S)
    requests = [{"name": name, "weight": weight} for name, weight in test.tasks]
    plan = LoadPlan(
        request=Request("GET", hosts[0]),
        targets=tuple(hosts) if len(hosts) > 1 else (),
        load=ClosedLoad(((0.0, 0.0), (ramp_s, users)) if has_ramp else users),
        duration_s=run_time_s,
        # The clients in the locustfile have their own timeouts, or no timeout.
        timeout_s=run_time_s,
        threads=test.processes,
        scenario={"locustfile": ", ".join(test.files), "requests": requests},
    )
    return choose_interval(plan)
