"""Shows a load on a page in the browser (`--live`). `weir.cli.run_page` shows a run. Functions here import `weir.live`
only when they serve a page, because no other function needs a web server."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from weir.cli.output import say
from weir.model.load import LoadPlan
from weir.model.load_records import LoadSummary
from weir.model.verdict import TrialVerdict

if TYPE_CHECKING:
    from weir.live import EventQueue, RunFolder, TrialEnded


@contextmanager
def live_load(plan: LoadPlan, *, listen: str | None) -> Iterator["EventQueue"]:
    """Serves a page of a load until the context ends. Yields the event queue that observes the load."""
    from weir.live import Controls, EventQueue, PageInfo

    board = EventQueue(PageInfo(plan.title, has_trials=False), Controls(stop=make_stop_button()))
    announce_load(board, plan, 1)
    with page(board, listen, "The load has ended. The terminal shows the result."):
        yield board


@contextmanager
def page(
    board: "EventQueue",
    listen: str | None,
    last_text: str,
    *,
    cpus: Sequence[int] = (),
    runs: "RunFolder | None" = None,
    is_busy: bool = True,
) -> Iterator[None]:
    """Serves a page of the board's events until the context ends. Prints the page's address.

    At the end, the page shows `last_text`. After an exception, the page says that the measurement ended early. `cpus`:
    CPUs for the web server; empty: any CPU. `runs`: past runs to show. `is_busy`: whether this machine runs the load.
    """
    from weir.live import LiveServer, parse_address

    with LiveServer(board, parse_address(listen), cpus=cpus, runs=runs) as server:
        say(f"weir: live: {server.url}")
        if server.address.is_any:
            say(f"weir: live: also at every other address of this machine, port {server.address.port}")
        if server.address.is_loopback and is_busy:
            say("weir: a browser on this machine takes CPU from the load; --listen opens the page to other machines")
        elif not server.address.is_loopback:
            say("weir: anyone who knows this address can see and stop the measurement; the connection is not encrypted")
        try:
            yield
        except BaseException:
            board.end("Ended early: weir has kept all finished work. The terminal shows details.")
            raise
        board.end(last_text)


def announce_load(board: "EventQueue", plan: LoadPlan, number: int) -> None:
    """Shows on the page that a load without a study has started."""
    from weir.live import TrialStarted

    duration_s = None if plan.ends_by_itself else plan.duration_s
    point, requests = plan.load.label, plan.requests
    board.begin_trial(
        TrialStarted(number=number, name=plan.title, point=point, duration_s=duration_s, requests=requests)
    )


def summarize_end(verdict: TrialVerdict, summary: LoadSummary | None, run: str | None = None) -> "TrialEnded":
    """Returns the page's result of a trial or load. `run`: name of the result's folder in the folder of runs."""
    from weir.live import TrialEnded

    ended = TrialEnded(validity=verdict.validity, reasons=verdict.texts, run=run)
    if summary is None:
        return ended
    rate_rps, times, failed = summary.throughput_rps, summary.response_time_us, summary.requests.failed
    return replace(ended, throughput_rps=rate_rps, p50_us=times.p50, p99_us=times.p99, failed=failed)


def make_stop_button() -> Callable[[], bool]:
    """Returns a function that interrupts weir like Ctrl-C. Later calls do nothing, so that the end is undisturbed."""
    unpressed = threading.Semaphore()

    def press() -> bool:
        is_first = unpressed.acquire(blocking=False)
        if is_first:
            interrupt_weir()
        return is_first

    return press


def interrupt_weir() -> None:
    """Interrupts the main thread like Ctrl-C. Sends SIGTERM, because background processes may ignore SIGINT."""
    identity = threading.main_thread().ident
    assert identity is not None
    signal.pthread_kill(identity, signal.SIGTERM)
