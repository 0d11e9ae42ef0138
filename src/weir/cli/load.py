"""`weir load`: puts a load on a running server."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from weir.cli import options
from weir.cli.load_source import ClusterFlags, load_and_services
from weir.cli.load_summary import summary_text
from weir.cli.output import at_terminal, print_lines, say, teller, write_json
from weir.cli.terminal_progress import LiveView
from weir.generators.handle import LoadSource, StopSwitch
from weir.generators.null_server import measure_on_null_server
from weir.load_spec import read_flags
from weir.model.errors import ExitCode, UsageError, WeirError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver, LoadObservers
from weir.model.load_records import BUSY_FRACTION, LOST_AGENT, LoadEvent, LoadStarted, LoadSummary
from weir.model.resources import StackResources
from weir.objective import AbortWatch, Condition, judge, parse_abort_condition, parse_objective
from weir.observe.watch import Watch

_NULL_SERVER_S = 1.0


@options.with_load_settings()
def load(
    urls: Annotated[
        list[str],
        Argument(
            metavar="URL...",
            help="http://HOST[:PORT]/PATH, https://... or unix:/SOCKET[:/PATH]. Connections use several URLs in turn.",
        ),
    ],
    given: dict[str, Any],
    json_: options.JsonFile = None,
    watch: Annotated[
        list[int] | None,
        Option("--watch", help="Process id of the server on this machine, to report CPU, memory and threads."),
    ] = None,
    objectives: Annotated[
        list[str] | None,
        Option(
            "--objective",
            help="Exit with 1 if the load misses this objective. Examples: 'p99<50ms', 'errors<1%', 'throughput>1000'.",
        ),
    ] = None,
    abort_on: Annotated[
        list[str] | None,
        Option(
            "--abort-on",
            help="Stop and exit with 1 if one second's figures meet this condition. Examples: 'errors>5%', 'p99>1s'.",
        ),
    ] = None,
    hdr: Annotated[
        str | None,
        Option("--hdr", help="Write the response times of each interval to this file, as an HdrHistogram log."),
    ] = None,
    strict: options.Strict = False,
    no_generator_limit: Annotated[
        bool,
        Option(
            "--no-generator-limit",
            help="Do not measure the generator's highest rate. Default: measure it for 1 s if the generator was busy.",
        ),
    ] = False,
    out: options.KeepLoad = None,
    cluster: options.Cluster = None,
    agents: options.Agents = None,
    shares: options.AgentThreads = None,
    share_nodes: options.ShareNodes = False,
    live: options.Live = False,
    listen: options.Listen = None,
    quiet: options.Quiet = False,
) -> None:
    """Put a load on a running server and report its response times and throughput.

    A response time begins when the request is due, even if weir sends it later. So the time includes server stalls.

    Example: weir load http://127.0.0.1:8000/ -c 64 -d 10s
    """
    options.check_listen(live, listen)
    if given["bind"] and cluster is not None:
        problem = f"found {','.join(given['bind'])} and --cluster, expected only one: agents have other addresses"
        raise UsageError(f"--bind: {problem}", hint="leave out --bind: an agent connects from its node's address")
    plan = read_flags(tuple(urls), given).to_plan()
    file = None
    if out is not None:
        # Late imports here and below: most loads need no file, no watch and no page, and these imports are slow.
        from weir.cli.load_recording import choose_file, choose_interval

        file, plan = choose_file(out), choose_interval(plan)
    request = _Request(
        plan,
        file,
        hdr,
        watch or [],
        [parse_objective(text) for text in objectives or []],
        [parse_abort_condition(text) for text in abort_on or []],
        # The null server would measure this machine instead of the agents' nodes.
        checks_generator=not no_generator_limit and cluster is None,
        live=live,
        listen=listen,
        quiet=quiet,
    )
    # A load without a study has no services.
    flags = ClusterFlags(cluster, agents, shares, share_nodes, services_here=cluster is not None)
    with load_and_services(flags) as (source, _):
        summary, resources, code = _measure(request, source)
    if json_ != "-":
        print_lines(summary_text(summary, plan.load, resources, plan.pipeline))
    if json_ is not None:
        server = {} if resources is None else {"server": {"pids": watch, **asdict(resources)}}
        write_json({**summary.to_json(), **server}, json_)
    if file is not None:
        say(f"to print the result again: weir report {file}")
    is_doubtful = strict and summary.verdict.validity != "valid"
    raise typer.Exit(ExitCode.NOT_VALID if code == ExitCode.DONE and is_doubtful else code)


@dataclass(frozen=True, slots=True)
class _Request:
    """The plan of one load, and the options of `weir load`."""

    plan: LoadPlan
    file: Path | None
    """The run file for the load. None: weir does not keep the load."""
    hdr: str | None
    watched_pids: Sequence[int]
    objectives: Sequence[Condition]
    abort_conditions: Sequence[Condition]
    checks_generator: bool
    """Whether to measure a busy generator's highest rate after the load. The target is then a server without work."""
    live: bool
    listen: str | None
    quiet: bool


def _measure(request: _Request, source: LoadSource) -> tuple[LoadSummary, StackResources | None, ExitCode]:
    """Runs, records, shows and judges a load. Returns the summary, the server's resource usage and the exit code."""
    plan, stop = request.plan, StopSwitch()
    abort = AbortWatch(request.abort_conditions, stop.stop)
    with ExitStack() as stack:
        log = recording = board = None
        if request.hdr:
            from weir.store.histogram_log import HistogramLog

            log = stack.enter_context(HistogramLog(request.hdr))
        if request.file is not None:
            from weir.cli.load_recording import LoadRecording

            recording = stack.enter_context(LoadRecording(request.file, plan, sys.argv[1:]))
        shown = stack.enter_context(ExitStack())
        if request.live:
            from weir.cli.load_page import live_load

            plan = replace(plan, shares_cpu=True)
            board = shown.enter_context(live_load(plan, listen=request.listen))
        view = shown.enter_context(LiveView(plan)) if at_terminal() and not request.quiet else None
        first = _StartAndEvents(teller(quiet=request.quiet or view is not None))
        recorder = None if recording is None else recording.recorder
        observer = LoadObservers(first, view, recorder, board, log, abort)
        pids = request.watched_pids
        watch = stack.enter_context(Watch(pids, observer.on_sample)) if pids else None
        running = stack.enter_context(source.start(plan, observer))
        stack.enter_context(stop.connected(running))
        end = running.result_or_stop()
        resources = None
        if watch is not None:
            watch.close()
            if first.started is not None:
                from weir.observe.resource_usage import compute_stack_resources

                start_ns = first.started.start_monotonic_ns
                end_ns = start_ns + int(end.summary.duration_s * 1e9)
                resources = compute_stack_resources(watch.samples, start_ns=start_ns, end_ns=end_ns, stack_cpus=())
        judged = [judge(condition, end) for condition in request.objectives]
        update: dict[str, Any] = {"slowest": end.slowest, "objectives": [one.to_json() for one in judged] or None}
        update["aborted"] = abort.reason and abort.reason.to_json()
        summary = replace(end.summary, **update)
        # The page and the view must end before the generator loads the null server.
        shown.close()
        is_busy = (summary.generator.busy_fraction or 0.0) >= BUSY_FRACTION and summary.requests.completed > 0
        if request.checks_generator and end.stopped in ("duration", "complete") and is_busy:
            summary = _add_generator_limit(summary, plan)
        was_interrupted = end.stopped == "signal" and abort.reason is None
        if recording is not None:
            recording.finish(end, summary, resources, interrupted=was_interrupted)
    if was_interrupted:
        return summary, resources, ExitCode.INTERRUPTED
    # With a lost agent, the load differs from the requested load.
    if LOST_AGENT in summary.verdict.kinds:
        return summary, resources, ExitCode.NOT_VALID
    missed = abort.reason is not None or not all(one.met for one in judged)
    return summary, resources, ExitCode.MISSED if missed else ExitCode.DONE


class _StartAndEvents(LoadObserver):
    def __init__(self, tell: Callable[[str], None]) -> None:
        self.started: LoadStarted | None = None
        self._tell = tell

    def on_start(self, started: LoadStarted) -> None:
        self.started = started

    def on_event(self, event: LoadEvent) -> None:
        self._tell(f"at {event.t_s:.1f} s: {event.kind}: {event.detail}")


def _add_generator_limit(summary: LoadSummary, plan: LoadPlan) -> LoadSummary:
    """Measures the generator's highest rate, and adds the rate to the summary. Adds nothing on failure or Ctrl-C."""
    if at_terminal():
        say("weir: the generator was busy: weir measures the generator's highest rate for 1 s")
    others = sorted(os.sched_getaffinity(0) - set(plan.cpus)) if plan.cpus else []
    try:
        max_rate_rps = measure_on_null_server(plan, duration_s=_NULL_SERVER_S, server_cpus=others)
    except KeyboardInterrupt:
        return summary
    except WeirError as error:
        say(f"weir: the generator's highest rate is unknown: {error.message}")
        return summary
    generator = replace(summary.generator, max_rate_rps=round(max_rate_rps, 1))
    return replace(summary, generator=generator)
