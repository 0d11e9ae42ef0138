"""Runs inside Locust: records requests from Locust's events and sends them to weir.

`python locust_plugin.py SOCKET ARGUMENT…` runs Locust like `python -m locust ARGUMENT…`. Each Locust process connects
to the Unix socket SOCKET and sends ten records a second. `weir.generators.scripted.lines` has the types of the records.

The listener, `watch` and `time_pauses` run for each request, and take CPU time from the load. Their costs in
instructions are in decision 0023.

The Python that runs Locust may not have weir. So this file imports only the standard library, and inside functions also
gevent and Locust.
"""

from __future__ import annotations

import atexit
import functools
import json
import math
import os
import resource
import struct
import sys
from array import array
from collections import Counter
from time import monotonic_ns, process_time, time_ns
from typing import Any

REPORT_MS = 100
TIMER_NS = 1_000_000
"""gevent's timers end on whole milliseconds: a pause of 13.3 ms lasts 14.2 ms. This delay is not schedule lag."""
_RESET = {"BrokenPipeError", "ConnectionAbortedError", "ConnectionResetError", "HTTPConnectionClosed", "IncompleteRead"}
_PROTOCOL = {"ContentDecodingError", "HTTPException", "HTTPParseError", "InvalidHeader"}
_FAILURES = (("reset", _RESET), ("protocol", _PROTOCOL), ("connect", {"OSError"}))
"""Each kind of failure with the names of its exceptions or their base classes. The first match counts."""
_pack_request = struct.Struct("=qqdqd").pack
"""Packs a request as `lines.REQUEST`."""
_pack_sizes = struct.Struct("=3I").pack
"""Packs the sizes of the three parts of a record (`locust_socket`): JSON, requests, and starts of requests."""


class Recorder:
    """Records the requests of one process of Locust. A separate thread sends these records to weir's socket.

    `responses` are the response classes of Locust's HTTP clients. `measures_lag`: pauses of users record schedule lag.
    """

    def __init__(self, path: str, responses: tuple[type, ...], *, measures_lag: bool) -> None:
        self._path = path
        self._responses = responses
        self._measures_lag = measures_lag
        self._socket: Any = None
        self._environment: Any = None
        self._users = 0
        self._sending: Any = None
        self._has_started = self._is_recording = False
        # Users append to these queues and the thread takes from them: neither waits for the other.
        self._requests = bytearray()
        self._begun: list[int] = []
        self._new_outcomes: list[tuple[Any, ...]] = []
        self._outcomes: dict[tuple[Any, ...], int] = {}
        """A dict from each outcome to its index."""
        self._in_flight: set[int] = set()
        """The start times of requests. Requests of one process start one after another."""
        self._unanswered = 0
        self._cpu_before_s = 0.0

    def connect(self, environment: Any, **_: Any) -> None:
        """Connects this process to weir and starts the thread. Runs at Locust's event `init`, after all forks."""
        from gevent import getcurrent, monkey

        self._environment = environment
        # gevent's versions would wait while a user computes, and would run users during a send.
        self._socket = monkey.get_original("socket", "socket")(1, 1)
        self._sending = monkey.get_original("_thread", "allocate_lock")()
        try:
            self._socket.connect(self._path)
        except OSError as error:
            sys.exit(f"weir locust: cannot connect to weir: {error}")
        # This listener comes directly after Locust's own listener, and so gets the same requests.
        environment.events.request.add_listener(self.build_listener(getcurrent))
        poll = monkey.get_original("select", "poll")()
        poll.register(self._socket, 1)
        monkey.get_original("_thread", "start_new_thread")(self._report_until_weir_ends, (poll,))

    def start(self, environment: Any, **_: Any) -> None:
        """Starts the recording and drops earlier requests, as Locust does. A second test ends the recording."""
        if self._has_started:
            self.report()
            self._is_recording = False
            self._send(record="restarted")
            return
        with self._sending:
            _take(self._requests)
            _take(self._begun)
        self._has_started = self._is_recording = True
        self._cpu_before_s = process_time()
        facts = describe(environment)
        self._users = facts["users"]
        self._send(
            record="started",
            at_ns=monotonic_ns(),
            unix_ns=time_ns(),
            pid=os.getpid(),
            measures_lag=self._measures_lag,
            **facts,
        )

    def stop(self, **_: Any) -> None:
        self.report()
        self._send(record="stopped", at_ns=monotonic_ns())

    def close(self) -> None:
        """Sends the last requests and Locust's own figures before the process exits."""
        if self._socket is not None:
            self.report()
            runner = self._environment.runner
            if self._has_started and runner is not None and "Worker" not in type(runner).__name__:
                total = runner.stats.total
                self._send(
                    record="claims",
                    requests=total.num_requests,
                    failed=total.num_failures,
                    users=0 if self._environment.shape_class else self._users,
                    mean_ms=total.avg_response_time,
                    min_ms=total.min_response_time or 0,
                    max_ms=total.max_response_time or 0,
                    throughput_rps=total.total_rps,
                )
            self._send(record="ended")

    def build_listener(self, get_current: Any) -> Any:
        """Returns the listener that records a request at its end. `get_current` returns the running greenlet."""
        known, queue, responses = self._outcomes, self._requests, self._responses

        # Locust passes nine arguments by name. To collect them in a dict would cost as much as half of the listener.
        def record(
            request_type: Any,
            name: Any,
            response_time: Any,
            response_length: Any,
            response: Any = None,
            exception: Any = None,
            context: Any = None,
            start_time: Any = None,
            url: Any = None,
            **_: Any,
        ) -> None:
            nonlocal queue
            if not self._is_recording:
                return
            is_http = isinstance(response, responses)
            status = response.status_code or 0 if is_http else 0
            kind = None
            if exception:
                kind = "check" if status else failure_kind((is_http and getattr(response, "error", None)) or exception)
            outcome = request_type, name, status, kind, is_http
            number = known.get(outcome)
            if number is None:
                number = known[outcome] = len(known)
                self._new_outcomes.append((_text(request_type), _text(name), *outcome[2:]))
            if response_time is None:
                response_time = math.nan
            # The first request after a pause gets the lag of the pause.
            lag_ns = get_current().__dict__.pop("weir_lag_ns", 0)
            queue += _pack_request(monotonic_ns(), number, response_time, lag_ns, response_length or 0)

        return record

    def watch(self, client: Any) -> None:
        """Wraps the method `request` of a client class to record the start and the end of each request."""
        from gevent import GreenletExit

        request, begun, in_flight = client.request, self._begun, self._in_flight

        @functools.wraps(request)
        def watched(*arguments: Any, **options: Any) -> Any:
            began_ns = monotonic_ns()
            begun.append(began_ns)
            in_flight.add(began_ns)
            try:
                return request(*arguments, **options)
            except GreenletExit:
                # Locust stopped the user and does not report this request.
                self._unanswered += self._is_recording
                raise
            finally:
                in_flight.discard(began_ns)

        client.request = watched

    def report(self) -> None:
        """Sends the requests that began or ended since the previous report."""
        with self._sending:
            # Reads the clock before the requests: requests that end later belong to the next report.
            now_ns = monotonic_ns()
            requests, begun, in_flight = _take(self._requests), _take(self._begun), list(self._in_flight)
            self._write(
                requests,
                array("q", begun).tobytes(),
                record="news",
                at_ns=now_ns,
                outcomes=_take(self._new_outcomes),
                in_flight=len(in_flight),
                oldest_ns=max(0, now_ns - min(in_flight, default=now_ns)),
                unanswered=self._unanswered,
                cpu_s=process_time() - self._cpu_before_s,
                peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            )

    def _report_until_weir_ends(self, poll: Any) -> None:
        while not poll.poll(REPORT_MS):
            self.report()
        # weir never sends data, so this event means that weir has closed the socket.
        os._exit(1)

    def _send(self, **line: Any) -> None:
        with self._sending:
            self._write(**line)

    def _write(self, requests: bytes = b"", begun: bytes = b"", /, **line: Any) -> None:
        parts = json.dumps(line).encode(), requests, begun
        try:
            self._socket.sendall(b"".join((_pack_sizes(*map(len, parts)), *parts)))
        except OSError:
            os._exit(1)


def describe(environment: Any) -> dict[str, Any]:
    """Returns the facts about a test at its start, as the fields of `lines.Started`."""
    options, runner = environment.parsed_options, environment.runner
    classes = environment.user_classes
    tasks = Counter(getattr(task, "__name__", str(task)) for user in classes for task in user.tasks)
    hosts = [environment.host] if environment.host else [user.host for user in classes]
    return {
        "role": type(runner).__name__.removesuffix("Runner").lower(),
        "version": f"Locust {sys.modules['locust'].__version__}",
        "hosts": list(dict.fromkeys(host for host in hosts if host)),
        "files": [os.path.basename(path) for path in environment.parsed_locustfiles or [environment.locustfile]],
        "tasks": list(tasks.items()),
        "users": runner.target_user_count or options.num_users or 0,
        "spawn_rate": options.spawn_rate or 1,
        "run_time_s": options.run_time,
        "has_shape": environment.shape_class is not None,
        "processes": options.processes or 1,
    }


def failure_kind(error: BaseException) -> str:
    """Returns the kind of failure (a key of `ErrorCounts`) for an exception, from the innermost known cause."""
    chain = [error]
    while (cause := chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    for cause in reversed(chain):
        if isinstance(cause, BlockingIOError):
            continue
        names = {base.__name__ for base in type(cause).__mro__}
        if any("timeout" in name.lower() for name in names):
            return "timeout"
        for kind, known in _FAILURES:
            if names & known:
                return kind
    return "check"


def time_pauses(task_set: Any) -> bool:
    """Wraps `_sleep`, the pause of users, to store schedule lag on the greenlet. Returns False without `_sleep`."""
    from gevent import getcurrent

    sleep = getattr(task_set, "_sleep", None)
    if sleep is None:
        return False

    @functools.wraps(sleep)
    def timed(self: Any, seconds: float) -> None:
        due_ns = monotonic_ns() + (int(seconds * 1e9) + TIMER_NS if seconds > 0 else 0)
        sleep(self, seconds)
        late_ns = monotonic_ns() - due_ns
        if late_ns > 0:
            facts = getcurrent().__dict__
            facts["weir_lag_ns"] = facts.get("weir_lag_ns", 0) + late_ns

    task_set._sleep = timed
    return True


def _take(queue: Any) -> Any:
    """Removes all items from a queue and returns them. Users may append items at the same time."""
    taken = queue[: len(queue)]
    del queue[: len(taken)]
    return taken


def _text(value: Any) -> str:
    text = str(value)
    return text if text.isascii() else text.encode(errors="replace").decode()


def report_error(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Prints an exception as Python does, and the line that installs a missing module."""
    sys.__excepthook__(kind, error, trace)
    if isinstance(error, ModuleNotFoundError) and error.name:
        print(f"weir: {sys.executable}: found no module {error.name}", file=sys.stderr)
        print(f"  try: {sys.executable} -m pip install {error.name.partition('.')[0]}", file=sys.stderr)


def main() -> None:
    """Runs Locust with a recorder."""
    sys.excepthook = report_error
    path = sys.argv[1]
    sys.argv[:] = ["locust", *sys.argv[2:]]
    if not getattr(sys.flags, "safe_path", False):
        # As with `python -m`, imports must not come from the folder of this file.
        sys.path[0] = os.getcwd()

    import locust
    import locust.main
    import requests
    from locust.clients import HttpSession
    from locust.contrib.fasthttp import ErrorResponse, FastHttpSession, FastResponse

    responses = (FastResponse, ErrorResponse, requests.Response)
    recorder = Recorder(path, responses, measures_lag=time_pauses(locust.TaskSet))
    recorder.watch(HttpSession)
    recorder.watch(FastHttpSession)
    # These listeners come before the listeners of the locustfile.
    events: Any = locust.events
    events.init.add_listener(recorder.connect)
    events.test_start.add_listener(recorder.start)
    events.test_stop.add_listener(recorder.stop)
    atexit.register(recorder.close)
    run: Any = locust.main.main
    run()


if __name__ == "__main__":
    main()
