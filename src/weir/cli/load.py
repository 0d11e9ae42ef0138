"""`weir load`: a quick load at the prompt."""

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from weir.asked_load import FLAGS, pipelining
from weir.cli.cluster_load import AGENTS_OPTION, CLUSTER_OPTION, SHARE_NODES_OPTION, SHARES_OPTION, ClusterFlags, load_from
from weir.cli.limit import may_be_the_limit, with_ceiling
from weir.cli.live import LISTEN_OPTION, LIVE_OPTION, live_load, require_live
from weir.cli.live_view import LiveView
from weir.cli.load_file import KeptLoad, file_of, with_kept_intervals
from weir.cli.load_model import LoadFlags, chosen_load, default_duration_s
from weir.cli.load_text import summary_text
from weir.cli.output import QUIET_OPTION, at_terminal, print_lines, say, teller, write_json
from weir.cli.transport import TlsFlags, connect_to, kernel_timestamps, local_addresses, several_targets, tls
from weir.cli.values import cpu_list, request
from weir.generators.engine import LoadListener
from weir.load_values import duration_s
from weir.model.errors import ExitCode, UsageError
from weir.model.load import LoadPlan
from weir.model.records import LOST_AGENT, Interval, LoadEvent, LoadStarted, Sample
from weir.objective import AbortWatch, Judged, abort_condition, judge, objective
from weir.observe.figures import stack_resources
from weir.observe.watch import Watch
from weir.scenario import read_scenario
from weir.store.histogram_log import HistogramLog


def load(
    urls: Annotated[
        list[str],
        typer.Argument(
            metavar="URL...",
            help="Where to: http://HOST[:PORT]/PATH, https://..., or unix:/SOCKET[:/PATH]. Connections take several in turn.",
        ),
    ],
    connections: Annotated[
        int | None,
        typer.Option(
            "-c", "--connections", min=1, help="Connections; without --rate as many users who ask again when answered. Default: 64."
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "-d",
            "--duration",
            help="How long: 10s, 500ms, 2m. Default: 10s, or a profile's length; at most 1h with -n, --loops or --until-failure.",
        ),
    ] = None,
    requests: Annotated[
        int | None, typer.Option("-n", "--requests", min=1, help="End when so many requests were answered or failed.")
    ] = None,
    threads: Annotated[
        int, typer.Option("-t", "--threads", min=1, help="Threads of the generator. One carries more than most servers answer.")
    ] = 1,
    cpus: Annotated[str | None, typer.Option("--cpus", help="CPUs to bind the threads to, as 0 or 0,2-3.")] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            "-R",
            "--rate",
            help="Requests per second, due whether answers come or not: 100, or over time 0s:100,30s:1000 (linear between points).",
        ),
    ] = None,
    poisson: Annotated[
        bool, typer.Option("--poisson", help="With --rate: arrivals independent of one another, not at even distances.")
    ] = False,
    users: Annotated[
        str | None,
        typer.Option("--users", help="Users who ask again when answered, a connection each: 200, or over time 0s:0,50s:2000,60s:2000."),
    ] = None,
    ramp: Annotated[str | None, typer.Option("--ramp", help="With --users N: they come one by one over this time.")] = None,
    loops: Annotated[
        int | None, typer.Option("--loops", min=1, help="Requests of each user, who leaves then; with --rate each arrival is such a user.")
    ] = None,
    think: Annotated[
        str | None, typer.Option("--think", help="Pause of a user between an answer and the next request: 1s, uniform:1s..3s or exp:2s.")
    ] = None,
    pace: Annotated[str | None, typer.Option("--pace", help="A user starts a request at most once in this time.")] = None,
    until_failure: Annotated[
        bool, typer.Option("--until-failure", help="End at the first failed request, and say what was reached until then.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same pauses and Poisson arrivals.")] = 0,
    method: Annotated[str | None, typer.Option("-m", "--method", help="HTTP method. Default: GET, or POST with a body.")] = None,
    headers: Annotated[list[str] | None, typer.Option("-H", "--header", help="'Name: value'; may be repeated.")] = None,
    body_: Annotated[str | None, typer.Option("-b", "--body", help="The request's body, or @FILE.")] = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", help="What users do, from this TOML file; see docs/guides/scenarios.md.")
    ] = None,
    timeout: Annotated[str, typer.Option("--timeout", help="How long an answer may take.")] = "2s",
    no_keepalive: Annotated[
        bool, typer.Option("--no-keepalive", help="A new connection for each request; making it is part of its response time.")
    ] = False,
    pipeline: Annotated[
        int, typer.Option("--pipeline", help="Requests that a connection carries unanswered (HTTP/1.1 pipelining), 1 to 1024.")
    ] = 1,
    connect: Annotated[
        str | None, typer.Option("--connect-to", metavar="HOST:PORT", help="Connect there, instead of to the URL's host.")
    ] = None,
    bind: Annotated[
        list[str] | None,
        typer.Option("--bind", help="Address of this machine to connect from, or several: 127.0.0.2,127.0.0.3. For more than 28,000."),
    ] = None,
    cacert: Annotated[str | None, typer.Option("--cacert", help="TLS: file of the authorities to trust, instead of the system's.")] = None,
    cert: Annotated[str | None, typer.Option("--cert", help="TLS: file of the certificate to show to the server, with --key.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="TLS: file of its private key.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="TLS: trust any certificate.")] = False,
    sni: Annotated[str | None, typer.Option("--sni", help="TLS: the server's name, where it is not the URL's host.")] = None,
    no_tls_resumption: Annotated[
        bool, typer.Option("--no-tls-resumption", help="TLS: a whole handshake for each connection, no session resumed.")
    ] = False,
    kernel_stamps: Annotated[
        bool,
        typer.Option(
            "--kernel-timestamps",
            help="An answer came when the kernel received it, not when it was read: the generator's own queue does not count.",
        ),
    ] = False,
    json_: Annotated[str | None, typer.Option("--json", help="Write the result as JSON to this file, - for standard output.")] = None,
    watch: Annotated[
        list[int] | None, typer.Option("--watch", help="PID of the server on this machine: adds its CPU, memory and threads.")
    ] = None,
    objectives: Annotated[
        list[str] | None,
        typer.Option("--objective", help="What must hold, as 'p99<50ms', 'errors<0.1%' or 'throughput>1000': exit with 1 when missed."),
    ] = None,
    abort_on: Annotated[
        list[str] | None,
        typer.Option("--abort-on", help="When to stop early, as 'errors>5%' or 'p99>1s' over the last second: exit with 1."),
    ] = None,
    hdr: Annotated[
        str | None, typer.Option("--hdr", help="Write the response times of each interval to this file, as an HdrHistogram log.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 4 when the result is not valid.")] = False,
    no_ceiling: Annotated[
        bool, typer.Option("--no-ceiling", help="Where the generator may be the limit: do not measure what it reaches on a null server.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="PATH", help="Keep the load in this new file NAME.weir, or in a folder, for weir report."),
    ] = None,
    cluster: Annotated[str | None, CLUSTER_OPTION] = None,
    agents: Annotated[int | None, AGENTS_OPTION] = None,
    shares: Annotated[str | None, SHARES_OPTION] = None,
    share_nodes: Annotated[bool, SHARE_NODES_OPTION] = False,
    live: Annotated[bool, LIVE_OPTION] = False,
    listen: Annotated[str | None, LISTEN_OPTION] = None,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Put a load on a running server and say how it answered.

    Response times count from the moment a request was meant to start, so that a stall of the server is not hidden.

    Example: weir load http://127.0.0.1:8000/ -c 64 -d 10s
    """
    require_live(live, listen)
    chosen = chosen_load(
        LoadFlags(connections=connections, rate=rate, poisson=poisson, users=users, ramp=ramp, loops=loops, think=think, pace=pace)
    )
    if bind and cluster is not None:
        raise UsageError(
            f"--bind: found {','.join(bind)} beside --cluster, expected no addresses of this machine for loads of others",
            hint="leave --bind out: each agent connects from its own node's address",
        )
    plan = LoadPlan(
        targets=several_targets(urls, chosen.connections, has_scenario=scenario is not None),
        pipeline=pipelining(pipeline, chosen, FLAGS, keep_alive=not no_keepalive, has_scenario=scenario is not None),
        request=request(urls[0], method, headers or [], body_),
        load=chosen,
        duration_s=default_duration_s(chosen, ramp, requests, until_failure) if duration is None else duration_s(duration, "-d/--duration"),
        timeout_s=duration_s(timeout, "--timeout"),
        threads=threads,
        cpus=() if cpus is None else cpu_list(cpus),
        requests=requests,
        until_first_failure=until_failure,
        seed=seed,
        scenario=None if scenario is None else _scenario(scenario, method, headers, body_),
        address=None if connect is None else connect_to(connect),
        keep_alive=not no_keepalive,
        local_addresses=local_addresses(bind or []),
        tls=tls(urls, TlsFlags(cacert, cert, key, insecure, sni, no_tls_resumption)),
        kernel_timestamps=kernel_timestamps(urls, kernel_stamps),
    )
    file = None if out is None else file_of(out)
    if file is not None:
        plan = with_kept_intervals(plan)
    wanted = [objective(text) for text in objectives or []]
    abort = AbortWatch([abort_condition(text) for text in abort_on or []])
    aborted: list[Judged] = []
    with ExitStack() as stack:
        made_by = stack.enter_context(load_from(ClusterFlags(cluster, agents, shares, share_nodes)))
        log = stack.enter_context(HistogramLog(hdr)) if hdr else None
        kept = None if file is None else stack.enter_context(KeptLoad(file, plan, sys.argv[1:]))
        shown = stack.enter_context(ExitStack())
        board = shown.enter_context(live_load(plan, listen=listen)) if live else None

        def take_sample(sample: Sample) -> None:
            if kept is not None:
                kept.recorder.take_sample(sample)
            if board is not None:
                board.take_sample(sample)

        watched = stack.enter_context(Watch(watch, take_sample)) if watch else None
        started: list[LoadStarted] = []
        tell = teller(quiet=quiet)
        view = stack.enter_context(LiveView(plan)) if at_terminal() and not quiet else None

        def start(record: LoadStarted) -> None:
            started.append(record)
            if view is not None:
                view.start(record)
            if kept is not None:
                kept.start(record)
            if board is not None:
                board.begin_load(record)
            if log is not None:
                log.start(record.start_unix_ns / 1e9)

        def take(interval: Interval) -> None:
            if view is not None:
                view.take(interval)
            if kept is not None:
                kept.recorder.take_interval(interval)
            if board is not None:
                board.take_interval(interval)
            if log is not None:
                log.append(interval.start_s, interval.end_s, interval.response_time_us.max or 0.0, interval.histogram)
            if not aborted and (reason := abort.take(interval)) is not None:
                aborted.append(reason)
                running.stop()

        def happened(event: LoadEvent) -> None:
            if kept is not None:
                kept.recorder.take_event(event)
            if board is not None:
                board.take_event(event)
            if view is None:
                tell(f"at {event.t_s:.1f} s: {event.kind}: {event.detail}")

        listener = LoadListener(on_start=start, on_interval=take, on_event=happened)
        running = stack.enter_context(made_by.begin(plan, listener))
        try:
            end = running.result()
        except KeyboardInterrupt:
            running.stop()
            end = running.result()
        if watched is not None:
            watched.close()
        resources = None
        if watched is not None and started:
            start_ns = started[0].start_monotonic_ns
            end_ns = start_ns + int(end.summary.duration_s * 1e9)
            resources = stack_resources(watched.samples, start_ns=start_ns, end_ns=end_ns, stack_cpus=())
        judged = [judge(condition, end) for condition in wanted]
        summary = end.summary.model_copy(
            update={
                "slowest": end.slowest,
                "objectives": [one.to_json() for one in judged] or None,
                "aborted": aborted[0].to_json() if aborted else None,
            }
        )
        interrupted = end.stopped == "signal" and not aborted
        if view is not None:
            view.close()
        # Before anything else is measured.
        shown.close()
        # An agent's ceiling is not this machine's.
        if not no_ceiling and cluster is None and end.stopped in ("duration", "complete") and may_be_the_limit(summary):
            summary = with_ceiling(summary, plan)
        if kept is not None:
            kept.finish(end, summary, resources, interrupted=interrupted)
    if json_ != "-":
        print_lines(summary_text(summary, plan.load, resources, plan.pipeline))
    if json_ is not None:
        value = summary.model_dump(by_alias=True)
        if resources is not None:
            value["server"] = {"pids": watch, **asdict(resources)}
        write_json(value, json_)
    if file is not None:
        say(f"kept: weir report {file}")
    if interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    # A load that lost an agent is none that anybody asked for, whatever it came to.
    if LOST_AGENT in summary.verdict.kinds:
        raise typer.Exit(ExitCode.NOT_VALID)
    if aborted or not all(one.met for one in judged):
        raise typer.Exit(ExitCode.MISSED)
    if strict and summary.verdict.validity != "valid":
        raise typer.Exit(ExitCode.NOT_VALID)


def _scenario(file: str, method: str | None, headers: list[str] | None, body_: str | None) -> dict[str, Any]:
    for flag, value in (("-m/--method", method), ("-H/--header", headers), ("-b/--body", body_)):
        if value:
            raise UsageError(f"{flag}: found {value!r} beside --scenario, expected it in the steps of {file}")
    return read_scenario(Path(file))
