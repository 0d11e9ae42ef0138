"""The worker processes of `weir locust`, from the parent's side: started, followed, and ended with whatever happens to the parent."""

import contextlib
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from weir.compat.locust import channel
from weir.compat.locust.figures import Figures
from weir.compat.locust.gathered import Gathered
from weir.model.errors import ExitCode, TargetError, UsageError, WeirError
from weir.model.records import Interval

# gevent's patches come before whatever might hold on to what they replace.
_START = """
import sys
from gevent import monkey
monkey.patch_all()
from weir.compat.locust.worker import main
main(*map(int, sys.argv[1:4]), sys.argv[4:])
"""
_START_DELAY_NS = 50_000_000
"""So long before the load's start every worker is told of it."""
_READ_BYTES = 1 << 20
_KILL_AFTER_S = 10.0
_GRACE_S = 30.0
"""So long users' `on_stop` and the file's listeners may take at the end. What takes longer is stuck."""
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Ready:
    """What every worker says of the file, when its `test_start` is done."""

    classes: list[str]
    tasks: list[tuple[str, int]]
    """Names, and how often each is chosen beside the others."""
    hosts: list[str]
    has_shape: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """What workers are told."""

    users: int
    spawn_rate: float
    run_time_s: float
    interval_s: float


class Workers:
    """Processes that execute the locustfile. A context manager that leaves none of them.

    Args:
        count: how many.
        arguments: the command line behind `weir locust`.
        stop_timeout_s: how long users may take to finish their tasks at the end.

    Raises:
        OSError: a process cannot be started.
    """

    def __init__(self, count: int, arguments: Sequence[str], stop_timeout_s: float = 0.0) -> None:
        self._selector = selectors.DefaultSelector()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._sockets: list[socket.socket] = []
        self._incoming = [channel.Incoming() for _ in range(count)]
        self._lost: set[int] = set()
        self._grace_ns = int((stop_timeout_s + _GRACE_S) * _SECOND_NS)
        self._deadline_ns: int | None = None
        self._is_stopping = False
        self._is_unwanted = False
        for index in range(count):
            ours, theirs = socket.socketpair()
            with theirs:
                command = [sys.executable, "-P", "-c", _START, str(theirs.fileno()), str(index), str(count), *arguments]
                # A session of its own: Ctrl-C at the terminal reaches weir alone, which ends the load in order.
                self._processes.append(
                    subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)
                )
            ours.setblocking(False)
            self._sockets.append(ours)
            self._selector.register(ours, selectors.EVENT_READ, index)

    def ready(self) -> Ready:
        """Waits until all workers have executed the file.

        Raises:
            UsageError: the file is wrong.
            TargetError: a worker died.
        """
        told = {index: content for index, word, content in self._until("ready")}
        return Ready(*told[0])

    def listed(self) -> list[str]:
        """The user classes of the file, of workers that were started with `--list`.

        Raises:
            UsageError: the file is wrong.
        """
        return next(iter([content[0] for _, _, content in self._until("listed")]))

    def begin(self, begin: Begin) -> int:
        """Starts the load in all workers. Gives its start, CLOCK_MONOTONIC."""
        start_ns = time.monotonic_ns() + _START_DELAY_NS
        end_ns = start_ns + int(begin.run_time_s * _SECOND_NS)
        self._deadline_ns = end_ns + self._grace_ns
        self._tell("start", start_ns, end_ns, int(begin.interval_s * _SECOND_NS), begin.users, begin.spawn_rate)
        return start_ns

    def follow(self, gathered: Gathered, on_interval: Callable[[Interval], None], on_lost: Callable[[str], None]) -> bool:
        """Follows the load until it is over. Ctrl-C, SIGTERM and a closed terminal end it in order, a second one at once.

        Args:
            gathered: takes what workers report.
            on_interval: is told of each interval.
            on_lost: is told why a worker died.

        Returns:
            Whether it was ended so.
        """
        with _Interruptions() as interruptions:
            self._selector.register(interruptions.socket, selectors.EVENT_READ, interruptions)
            if self._is_unwanted:
                self.stop()
            while unfinished := [index for index, use in enumerate(gathered.workers) if use.ended_ns is None and not use.is_lost]:
                if self._deadline_ns is not None and time.monotonic_ns() > self._deadline_ns:
                    self._deadline_ns = None
                    for index in unfinished:
                        self._processes[index].kill()
                for index, word, content in self._read():
                    for interval in self._heard(gathered, index, word, content, on_lost):
                        on_interval(interval)
                if interruptions.count:
                    self.stop()
                if interruptions.count > 1:
                    raise KeyboardInterrupt
            self._selector.unregister(interruptions.socket)
            self._deadline_ns = None
            return interruptions.count > 0

    def _heard(self, gathered: Gathered, index: int, word: str, content: Any, on_lost: Callable[[str], None]) -> Iterable[Interval]:
        use = gathered.workers[index]
        match word:
            case "news":
                return gathered.take(index, content[0])
            case "done":
                use.ended_ns, use.peak_rss_bytes = content
            case "aim":
                self._tell("aim", *content, time.monotonic_ns())
            case "quit":
                self.stop()
            case "error":
                on_lost(content[0])
            case "gone" if use.ended_ns is None:
                on_lost(f"worker {index + 1} of {len(self._processes)} {self._how_ended(index)}")
                return gathered.lose(index)
        return ()

    def stop(self) -> None:
        """Ends the load. A second time does nothing."""
        if not self._is_stopping:
            self._is_stopping = True
            self._deadline_ns = time.monotonic_ns() + self._grace_ns
            self._tell("stop")

    def quit(self, figures: Figures) -> int | None:
        """Lets the file's listeners of `quitting` have their say. Gives the exit code that they want, if they want one."""
        alive = [index for index in range(len(self._sockets)) if index not in self._lost]
        for index in alive:
            self._send(index, "quit", figures.to_message() if index == alive[0] else None)
        wanted: int | None = None
        with contextlib.suppress(TargetError):
            for _, _, content in self._until("bye", of=alive[:1]):
                wanted = content[0]
        return wanted

    def close(self) -> None:
        """Ends what is still there: a worker ends with its socket, or is killed."""
        for one in self._sockets:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(one)
            one.close()
        for process in self._processes:
            try:
                process.wait(_KILL_AFTER_S)
            except BaseException as error:
                process.kill()
                process.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
        self._selector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            for process in self._processes:
                process.kill()
        self.close()

    def _until(self, wanted: str, of: Sequence[int] | None = None) -> Iterator[tuple[int, str, Any]]:
        """Waits until all, or some, have said a word.

        Raises:
            WeirError: one of them says that something is wrong, or dies.
        """
        missing = set(range(len(self._sockets)) if of is None else of)
        while missing:
            for index, word, content in self._read():
                if word == "error":
                    message, hint, code = content
                    raise _error(message, hint, code)
                if word == "quit":
                    self._is_unwanted = True
                if word == "gone" and index in missing:
                    raise TargetError(f"worker {index + 1} of {len(self._processes)} {self._how_ended(index)} before the load began")
                if word == wanted and index in missing:
                    missing.discard(index)
                    yield index, word, content

    def _read(self) -> Iterator[tuple[int, str, Any]]:
        for key, _ in self._selector.select(
            None if self._deadline_ns is None else max(0, self._deadline_ns - time.monotonic_ns()) / _SECOND_NS
        ):
            if not isinstance(key.data, int):
                # A signal came: its handler has counted it.
                key.data.socket.recv(_READ_BYTES)
                continue
            index = key.data
            try:
                data = self._sockets[index].recv(_READ_BYTES)
            except ConnectionError:
                data = b""
            if data:
                for word, *content in self._incoming[index].take(data):
                    yield index, str(word), content
            else:
                self._selector.unregister(self._sockets[index])
                self._lost.add(index)
                yield index, "gone", ()

    def _tell(self, *message: Any) -> None:
        for index in range(len(self._sockets)):
            self._send(index, *message)

    def _send(self, index: int, *message: Any) -> None:
        with contextlib.suppress(OSError):
            self._sockets[index].setblocking(True)
            channel.send(self._sockets[index], *message)
        self._sockets[index].setblocking(False)

    def _how_ended(self, index: int) -> str:
        status = self._processes[index].wait()
        return f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"


def _error(message: str, hint: str, code: int) -> WeirError:
    if code == ExitCode.USAGE:
        return UsageError(message, hint=hint)
    found = TargetError(message, hint=hint)
    found.exit_code = ExitCode(code)
    return found


class _Interruptions:
    """Signals that end the load, counted and not raised: what a worker has just said would be lost in the middle."""

    def __init__(self) -> None:
        self.count = 0
        self.socket, self._written = socket.socketpair()

    def __enter__(self) -> Self:
        self._written.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._written.fileno(), warn_on_full_buffer=False)
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self._before = {number: signal.getsignal(number) for number in numbers if signal.getsignal(number) is not signal.SIG_IGN}
        for number in self._before:
            signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        self.socket.close()
        self._written.close()

    def _take(self, *_: object) -> None:
        self.count += 1
