"""`--live`: what goes on, on a page in the browser. Connects a load with `weir.live`, which knows nothing of who measures.

`weir.live` is imported where a page is wanted, and not before: no other command needs a web server. Runs are in `weir.cli.live_run`.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from weir.cli.output import say
from weir.generators.engine import LoadListener
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, LoadPlan
from weir.model.records import LoadSummary
from weir.model.verdict import TrialVerdict

if TYPE_CHECKING:
    from weir.live import Board, RunFolder, TrialEnded

LIVE_OPTION = typer.Option("--live", help="Show it in a browser while it goes on: prints the page's address, and opens nothing.")
LISTEN_OPTION = typer.Option(
    "--listen",
    metavar="ADDRESS",
    help="Where the page listens: ADDRESS or ADDRESS:PORT. Default: loopback, a free port.",
    show_default=False,
)


def require_live(live: bool, listen: str | None) -> None:
    """Checks that `--listen` has a page to listen for.

    Raises:
        UsageError: it has none.
    """
    if listen is not None and not live:
        raise UsageError(
            f"--listen: found {listen!r} without --live, expected both: it says where the page of --live listens", hint="add --live"
        )


@contextmanager
def live_load(plan: LoadPlan, *, listen: str | None) -> Iterator["Board"]:
    """A page of a load while what is inside goes on; gives the board that is to be told."""
    from weir.live import About, Board, Controls

    board = Board(About(plan.title, has_trials=False), Controls(stop=stop_button()))
    begin_load(board, plan, 1)
    with page(board, listen), told_the_end(board, "The load is over: its result is at the prompt."):
        yield board


@contextmanager
def page(
    board: "Board", listen: str | None, *, cpus: Sequence[int] = (), runs: "RunFolder | None" = None, is_busy: bool = True
) -> Iterator[None]:
    """Serves a page while what is inside goes on, and says where.

    Args:
        board: what goes on.
        listen: `--listen`.
        cpus: those of weir's control; empty: wherever weir is.
        runs: the folder of runs that can be browsed.
        is_busy: whether something is measured on this machine.
    """
    from weir.live import LiveServer, address_of

    with LiveServer(board, address_of(listen), cpus=cpus, runs=runs) as server:
        say(f"weir: live: {server.url}")
        if server.address.is_any:
            say(f"weir: live as well at every other address of this machine, port {server.address.port}")
        if server.address.is_loopback and is_busy:
            say("weir: a browser on this machine takes CPU from what is measured; --listen lets one on another machine look")
        elif not server.address.is_loopback:
            say("weir: whoever has this address sees everything and may stop it, and nothing of it is encrypted")
        yield


@contextmanager
def told_the_end(board: "Board", text: str) -> Iterator[None]:
    """Tells a board when what is inside is over, and whether it came to its end."""
    try:
        yield
    except BaseException:
        board.end("Ended early: what was finished is kept, and the prompt says more.")
        raise
    board.end(text)


def begin_load(board: "Board", plan: LoadPlan, number: int) -> None:
    """Tells a board that a load without a study begins."""
    from weir.live import TrialBegun

    has_loops = isinstance(plan.load, ClosedLoad) and plan.load.loops is not None
    ends_by_itself = plan.requests is not None or plan.until_first_failure or has_loops
    board.begin_trial(
        TrialBegun(
            number=number,
            name=plan.title,
            point=plan.load.label,
            duration_s=None if ends_by_itself else plan.duration_s,
            requests=plan.requests,
        )
    )


def listener_of(board: "Board") -> LoadListener:
    """What a load tells a board."""
    return LoadListener(on_start=board.begin_load, on_interval=board.take_interval, on_event=board.take_event)


def came_to(verdict: TrialVerdict, summary: LoadSummary | None, run: str | None = None) -> "TrialEnded":
    """What a trial or a load came to, for a board; `run` is its name in the folder of runs."""
    from weir.live import TrialEnded

    if summary is None:
        return TrialEnded(validity=verdict.validity, reasons=verdict.texts, run=run)
    times = summary.response_time_us
    return TrialEnded(
        validity=verdict.validity,
        reasons=verdict.texts,
        throughput_rps=summary.throughput_rps,
        p50_us=times.p50,
        p99_us=times.p99,
        failed=summary.requests.failed,
        run=run,
    )


def stop_button() -> Callable[[], bool]:
    """A button that ends what goes on as Ctrl-C does. Once: a second interruption would disturb the ending.

    It sends SIGTERM, which means the same to weir, and which no shell has had it ignore.
    """
    unpressed = threading.Semaphore()

    def press() -> bool:
        if not unpressed.acquire(blocking=False):
            return False
        identity = threading.main_thread().ident
        assert identity is not None
        signal.pthread_kill(identity, signal.SIGTERM)
        return True

    return press
