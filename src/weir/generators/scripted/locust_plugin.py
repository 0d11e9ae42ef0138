"""Runs inside Locust: records requests from Locust's events and sends them to weir.

`python locust_plugin.py RECORDER SOCKET ARGUMENT…` runs Locust like `python -m locust ARGUMENT…`. RECORDER is the
library `weir_locust_recorder`, which runs for each request (`locust-recorder/src/lib.rs`). Each Locust process connects
to the Unix socket SOCKET and sends ten records a second. `weir.generators.scripted.lines` has the types of the records.

The Python that runs Locust may not have weir. So this file imports only the standard library, and inside functions also
gevent and Locust.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import struct
import sys
from collections import Counter
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from time import monotonic_ns, process_time, time_ns
from typing import Any

REPORT_MS = 100
_RESET = {"BrokenPipeError", "ConnectionAbortedError", "ConnectionResetError", "HTTPConnectionClosed", "IncompleteRead"}
_PROTOCOL = {"ContentDecodingError", "HTTPException", "HTTPParseError", "InvalidHeader"}
_FAILURES = (("reset", _RESET), ("protocol", _PROTOCOL), ("connect", {"OSError"}))
"""Each kind of failure with the names of its exceptions or their base classes. The first match counts."""
_pack_sizes = struct.Struct("=3I").pack
"""Packs the sizes of the three parts of a record (`locust_socket`): JSON, requests, and starts of requests."""


class Reporter:
    """Sends the records of one process of Locust to weir's socket, from a separate thread.

    `recorder` is a `weir_locust_recorder.Recorder`. `measures_lag`: it records the schedule lag of users' pauses.
    """

    def __init__(self, path: str, recorder: Any, *, measures_lag: bool) -> None:
        self._path = path
        self._recorder = recorder
        self._measures_lag = measures_lag
        self._socket: Any = None
        self._environment: Any = None
        self._users = 0
        self._sending: Any = None
        self._has_started = False
        self._cpu_before_s = 0.0

    def connect(self, environment: Any, **_: Any) -> None:
        """Connects this process to weir and starts the thread. Runs at Locust's event `init`, after all forks."""
        from gevent import monkey

        self._environment = environment
        # gevent's versions would wait while a user computes, and would run users during a send.
        self._socket = monkey.get_original("socket", "socket")(1, 1)
        self._sending = monkey.get_original("_thread", "allocate_lock")()
        try:
            self._socket.connect(self._path)
        except OSError as error:
            sys.exit(f"weir locust: cannot connect to weir: {error}")
        event = environment.events.request
        event.fire = self._recorder.record_before(event.fire)
        poll = monkey.get_original("select", "poll")()
        poll.register(self._socket, 1)
        monkey.get_original("_thread", "start_new_thread")(self._report_until_weir_ends, (poll,))

    def start(self, environment: Any, **_: Any) -> None:
        """Starts the recording and drops earlier requests, as Locust does. A second test ends the recording."""
        if self._has_started:
            self.report()
            self._recorder.is_recording = False
            self._send(record="restarted")
            return
        with self._sending:
            self._recorder.take()
        self._has_started = self._recorder.is_recording = True
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

    def report(self) -> None:
        """Sends the requests that began or ended since the previous report."""
        with self._sending:
            # Reads the clock before the requests: requests that end later belong to the next report.
            now_ns = monotonic_ns()
            requests, begun, outcomes = self._recorder.take()
            in_flight, oldest_ns = self._recorder.in_flight()
            self._write(
                requests,
                begun,
                record="news",
                at_ns=now_ns,
                outcomes=[(_text(kind), _text(name), *facts) for kind, name, *facts in outcomes],
                in_flight=in_flight,
                oldest_ns=0 if oldest_ns is None else max(0, now_ns - oldest_ns),
                unanswered=self._recorder.unanswered,
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


def load_recorder(path: str) -> Any:
    """Returns the module `weir_locust_recorder` from its library, also in a Python that does not have weir."""
    loader = ExtensionFileLoader("weir_locust_recorder", path)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    try:
        module = module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        sys.exit(f"weir locust: {sys.executable}: cannot load weir's recorder, expected CPython 3.10 or later: {error}")
    return module


def failure_kind(response: Any, status: int, exception: BaseException) -> str:
    """Returns the kind of failure (a key of `ErrorCounts`) of a request. `response` is None if it is not of HTTP."""
    if status:
        return "check"
    # The innermost known cause decides. Locust's clients keep it in the response.
    error = getattr(response, "error", None) or exception
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
    library, path = sys.argv[1:3]
    sys.argv[:] = ["locust", *sys.argv[3:]]
    if not getattr(sys.flags, "safe_path", False):
        # As with `python -m`, imports must not come from the folder of this file.
        sys.path[0] = os.getcwd()

    import locust
    import locust.main
    import requests
    from locust.clients import HttpSession
    from locust.contrib.fasthttp import ErrorResponse, FastHttpSession, FastResponse

    responses = (FastResponse, ErrorResponse, requests.Response)
    recorder = load_recorder(library).Recorder(responses, failure_kind)
    recorder.watch(HttpSession)
    recorder.watch(FastHttpSession)
    reporter = Reporter(path, recorder, measures_lag=recorder.time_pauses(locust.TaskSet))
    # These listeners come before the listeners of the locustfile.
    events: Any = locust.events
    events.init.add_listener(reporter.connect)
    events.test_start.add_listener(reporter.start)
    events.test_stop.add_listener(reporter.stop)
    atexit.register(reporter.close)
    run: Any = locust.main.main
    run()


if __name__ == "__main__":
    main()
