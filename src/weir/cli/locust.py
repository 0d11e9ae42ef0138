"""`weir locust`: a locustfile, run by weir's worker processes. Prints; what it prints is made in `weir.compat.locust`."""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import join
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from weir import __version__
from weir.cli.live import live_load
from weir.cli.load_file import KeptLoad, file_of, with_kept_intervals
from weir.cli.output import say
from weir.compat import locustfile
from weir.compat.locust import options, tables
from weir.compat.locust.gathered import Gathered
from weir.compat.locust.summary import load_end
from weir.compat.locust.workers import Begin, Ready, Workers
from weir.model.errors import ExitCode, UsageError
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.model.records import Interval, LoadEnd, LoadStarted

_TABLE_EVERY_S = 2.0
_CSV_EVERY_S = 1.0
_ENDLESS_S = 86_400.0
"""A load whose time nobody has said ends with Ctrl-C, or after a day."""


def locust(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LOCUST ARGUMENT]...", help="Locust's flags and user classes, and weir's own --out, --live and --strict."),
    ] = None,
) -> None:
    """Run a locustfile with weir's recording: Locust's flags, tables and CSV files, and weir's verdict.

    Response times count from the moment a user wanted to ask. weir locust --help lists the flags; docs/guides/locust.md says what a file
    may use.

    Example: weir locust -f locustfile.py --host http://127.0.0.1:8000 --headless -u 20 -r 5 -t 30s
    """
    given = arguments or []
    asked = options.read(given)
    if asked.help:
        print(_help())
    elif asked.version:
        print(f"weir {__version__} (files and flags of Locust 2)")
    elif asked.list_commands:
        options.locustfiles(asked.locustfile, Path.cwd())
        with Workers(1, given) as workers:
            print("Available Users:", *(f"    {name}" for name in workers.listed()), sep="\n")
    else:
        raise typer.Exit(_Load(asked, given).run())


def _help() -> str:
    text = options.parser().format_help()
    return f"Usage: weir locust [OPTION]... [UserClass]...\n\n{text}"


class _Load:
    """One load, from the command line to the exit code."""

    def __init__(self, asked: Namespace, arguments: Sequence[str]) -> None:
        self._asked = asked
        self._arguments = arguments
        self._files = options.locustfiles(asked.locustfile, Path.cwd())
        self._users: int = asked.num_users or 1
        self._spawn_rate: float = asked.spawn_rate or 1.0
        self._run_time_s: float = asked.run_time or _ENDLESS_S
        self._count = _processes(asked.processes, self._users)
        self._width = tables.name_width(_columns())
        self._problems: list[str] = []

    def run(self) -> int:
        """Runs it, and gives its exit code."""
        asked = self._asked
        file = None if asked.out is None else file_of(asked.out)
        with ExitStack() as stack:
            if asked.html_file and file is None:
                file = Path(stack.enter_context(TemporaryDirectory(prefix="weir-")), "locust.weir")
            workers = stack.enter_context(Workers(self._count, self._arguments, asked.stop_timeout))
            ready = workers.ready()
            plan = with_kept_intervals(self._plan(ready))
            gathered = Gathered(self._count, plan.interval_s)
            csv_files = (
                stack.enter_context(tables.CsvFiles(asked.csv_prefix, gathered, full_history=asked.stats_history_enabled))
                if asked.csv_prefix
                else None
            )
            kept = None if file is None else stack.enter_context(KeptLoad(file, plan, ["locust", *self._arguments]))
            has_page = asked.live or not asked.headless
            board = stack.enter_context(live_load(plan, listen=self._listen())) if has_page else None
            listeners: list[Callable[[Interval], None]] = []
            if kept is not None:
                listeners.append(kept.recorder.take_interval)
            if board is not None:
                listeners.append(board.take_interval)
            if not asked.only_summary and (asked.headless or asked.print_stats):
                listeners.append(_every(_TABLE_EVERY_S, lambda at_s: self._print_table(gathered, at_s)))
            if csv_files is not None:
                listeners.append(_every(_CSV_EVERY_S, csv_files.write))

            def take(interval: Interval) -> None:
                for listener in listeners:
                    listener(interval)

            start_ns = workers.begin(Begin(self._users, self._spawn_rate, self._run_time_s, plan.interval_s))
            started = self._started(start_ns)
            if kept is not None:
                kept.start(started)
            if board is not None:
                board.begin_load(started)
            interrupted = workers.follow(gathered, take, self._lost)
            duration_s = _duration_s(gathered, start_ns)
            for interval in gathered.rest(duration_s):
                take(interval)
            figures = gathered.figures(duration_s)
            stopped = "signal" if interrupted else "duration" if duration_s >= self._run_time_s else "complete"
            end = load_end(gathered, target=plan.title, duration_s=duration_s, stopped=stopped)
            wanted = workers.quit(figures)
            if csv_files is not None:
                csv_files.write_totals(duration_s)
            if kept is not None:
                kept.finish(end, end.summary, None, interrupted=interrupted)
            _print(tables.last_tables(figures, self._width))
            self._say_result(end, ready)
            if asked.html_file:
                assert file is not None
                _write_html(file, Path(asked.html_file))
        if asked.out is not None:
            say(f"kept: weir report {file}")
        return self._exit_code(end, interrupted=interrupted, raised=bool(figures.exceptions), wanted=wanted)

    def _print_table(self, gathered: Gathered, at_s: float) -> None:
        _print(tables.stats_table(gathered.figures(at_s), gathered.current(), self._width))

    def _plan(self, ready: Ready) -> LoadPlan:
        ramp_s = self._users / self._spawn_rate
        ramps = ramp_s > 1 and not ready.has_shape
        hosts = list(dict.fromkeys(ready.hosts)) or [str(self._files[0])]
        return LoadPlan(
            request=Request("GET", hosts[0]),
            targets=tuple(hosts) if len(hosts) > 1 else (),
            load=ClosedLoad(((0.0, 0.0), (ramp_s, float(self._users))) if ramps else float(self._users)),
            duration_s=self._run_time_s,
            # The file's clients have timeouts of their own, or none.
            timeout_s=self._run_time_s,
            threads=self._count,
            scenario={
                "locustfile": ", ".join(path.name for path in self._files),
                "requests": [{"name": name, "weight": weight} for name, weight in ready.tasks],
            },
        )

    def _listen(self) -> str | None:
        host, port = self._asked.web_host, self._asked.web_port
        if port is None:
            return host or None
        return f"{host or '127.0.0.1'}:{port}"

    def _started(self, start_ns: int) -> LoadStarted:
        return LoadStarted(
            version=__version__,
            pid=os.getpid(),
            backend="python",
            wait="gevent",
            threads=self._count,
            cpus=[],
            connected=0,
            start_monotonic_ns=start_ns,
            start_unix_ns=time.time_ns() + start_ns - time.monotonic_ns(),
        )

    def _lost(self, why: str) -> None:
        self._problems.append(why)
        say(f"weir: {why}")

    def _say_result(self, end: LoadEnd, ready: Ready) -> None:
        summary = end.summary
        busy = summary.generator.busy_fraction or 0.0
        for line in summary.verdict.lines:
            say(f"weir: {line}")
        answered = f"{summary.throughput_rps / self._count:,.0f} requests/s"
        plural = "" if self._count == 1 else "s"
        say(f"weir: {self._count} Python worker{plural}: {answered} each, the busiest {busy:.0%} busy")
        say(f"weir: the same users as a native scenario take a fraction of this CPU: {self._native(ready)}")

    def _native(self, ready: Ready) -> str:
        """The command that makes it of the file, or where it is told how one is written."""
        guide = "docs/guides/scenarios.md"
        if len(self._files) != 1 or not ready.hosts or ready.has_shape:
            return guide
        users = ("-u", str(self._users), "-r", f"{self._spawn_rate:g}", "-t", f"{min(self._run_time_s, 3600.0):g}s")
        words = ("-f", str(self._files[0]), "--host", ready.hosts[0], *users)
        try:
            is_whole = not locustfile.read(words).gaps
        except UsageError:
            return guide
        return join(("weir", "convert", "locust", *words)) if is_whole else guide

    def _exit_code(self, end: LoadEnd, *, interrupted: bool, raised: bool, wanted: int | None) -> int:
        if interrupted:
            return ExitCode.INTERRUPTED
        if self._problems:
            return ExitCode.TARGET
        if wanted is not None:
            return wanted
        if end.summary.requests.failed or raised:
            return int(self._asked.exit_code_on_error)
        return ExitCode.NOT_VALID if self._asked.strict and end.summary.verdict.validity != "valid" else ExitCode.DONE


def _every(period_s: float, does: Callable[[float], None]) -> Callable[[Interval], None]:
    """Has something done with the first interval, and with each that ends so much later."""
    due_s = 0.0

    def take(interval: Interval) -> None:
        nonlocal due_s
        if interval.end_s >= due_s:
            due_s = interval.end_s + period_s
            does(interval.end_s)

    return take


def _duration_s(gathered: Gathered, start_ns: int) -> float:
    ended = [use.ended_ns for use in gathered.workers if use.ended_ns is not None]
    return max(((max(ended) if ended else time.monotonic_ns()) - start_ns) / 1e9, 1e-3)


def _print(lines: Sequence[str]) -> None:
    # Where Locust has them: what reads its tables reads standard error.
    print("\n".join(lines), file=sys.stderr, flush=True)


def _processes(asked: int | None, users: int) -> int:
    """How many workers: one CPU stays free for weir, and for a server on this machine. More than users would have nothing to do."""
    cpus = len(os.sched_getaffinity(0))
    if asked is not None and (asked == 0 or asked < -1):
        raise UsageError(f"--processes: found {asked}, expected a number from 1 on, or -1 for as many as CPUs", hint=options.HINT)
    wanted = max(1, cpus - 1) if asked is None else cpus if asked == -1 else asked
    return max(1, min(wanted, users))


def _columns() -> int | None:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return None


def _write_html(file: Path, html: Path) -> None:
    # Here and not above: findings take as long to import as all else.
    from weir.findings import of_load
    from weir.report import write_load_html
    from weir.store import RunReader

    with RunReader(file) as reader:
        write_load_html(reader, of_load(reader), html)
    say(f"report: {html.resolve()}")
