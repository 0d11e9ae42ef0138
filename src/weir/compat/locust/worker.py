"""One worker process of `weir locust`: executes the locustfile, has its share of the users, and reports to its parent.

Started by `workers.Workers` with gevent's patches already in place. It ends with its parent: by the end of the socket between them, and
where a task never lets go of the CPU by the kernel.
"""

import ctypes
import logging
import os
import platform
import resource
import signal
import socket
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event
from gevent.lock import Semaphore

from weir.compat.locust import api, channel, options
from weir.compat.locust.api.env import Environment
from weir.compat.locust.api.runners import STATE_RUNNING, STATE_STOPPED, STATE_STOPPING, LocalRunner, WorkerRunner
from weir.compat.locust.api.task import name_of
from weir.compat.locust.clock import Clock
from weir.compat.locust.figures import Figures
from weir.compat.locust.loading import chosen, load
from weir.compat.locust.population import Population, classes_in_order
from weir.compat.locust.recorder import Recorder
from weir.model.errors import ExitCode, UsageError, WeirError
from weir.model.variables import Variable

_PR_SET_PDEATHSIG = 1
_LOG = "[%(asctime)s] {host}/%(levelname)s/%(name)s: %(message)s"
_RECEIVED_BYTES = 65536


def main(descriptor: int, index: int, workers: int, arguments: list[str]) -> None:
    """The life of a worker.

    Args:
        descriptor: of the socket to the parent.
        index: which worker this is, from 0.
        workers: how many there are.
        arguments: the command line behind `weir locust`.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = socket.socket(fileno=descriptor)
    worker = _Worker(parent, index, workers)
    worker.spawn(worker.listen)
    try:
        worker.prepare(arguments)
    except WeirError as error:
        channel.send(parent, "error", error.message, error.hint, int(error.exit_code))
        os._exit(error.exit_code)
    worker.quit.wait()
    sys.stdout.flush()
    sys.stderr.flush()
    # Greenlets and threads of the file's own must not hold it up.
    os._exit(0)


class _Worker:
    def __init__(self, parent: socket.socket, index: int, workers: int) -> None:
        self._parent = parent
        self._index, self._workers = index, workers
        self._recorder = Recorder()
        self._clock = Clock()
        self._options = Namespace()
        self._environment: Any = None
        self._population: Any = None
        self._shape: Any = None
        self._stopping = Event()
        self._saying = Semaphore()
        self._cpu_before_s = 0.0
        self.quit = Event()

    def listen(self) -> None:
        """Does what the parent says, until it is gone."""
        incoming = channel.Incoming()
        while data := self._received():
            for word, *content in incoming.take(data):
                getattr(self, f"_on_{word}")(*content)
        os._exit(1)

    def _received(self) -> bytes:
        try:
            return self._parent.recv(_RECEIVED_BYTES)
        except ConnectionError:
            # It has left without reading everything.
            return b""

    def prepare(self, arguments: list[str]) -> None:
        """Everything before the first user, and says that it is done."""
        # What pauses a user is on time and says how late it was, in tasks as between them.
        gevent.sleep = self._clock.sleep
        time.sleep = gevent.sleep
        first = options.read(arguments)
        _set_up_logging(first)
        api.install()
        found = load(options.locustfiles(first.locustfile, Path.cwd()))
        if first.list_commands:
            channel.send(self._parent, "listed", list(found.users))
            return
        of_all = options.parser()
        api.events.init_command_line_parser.fire(parser=of_all)
        self._options = options.read(arguments, of_all, knows_all=True)
        classes = chosen(found, self._options)
        api.events.request.recorder = self._recorder
        environment = self._environment = Environment(
            events=api.events,
            recorder=self._recorder,
            clock=self._clock,
            parsed_options=self._options,
            user_classes=classes,
            shape_class=None if found.shape is None else found.shape(),
        )
        self._population = Population(self._index, self._workers, classes_in_order(classes), environment, self._clock, self._complete)
        runner = (LocalRunner if self._workers == 1 else WorkerRunner)(environment, self._users, lambda: self._say("quit"))
        environment.runner = runner
        if found.shape is not None and self._index == 0:
            self._shape = environment.shape_class
            self._shape.runner = runner
        api.events.init.fire(environment=environment, runner=runner, web_ui=None)
        api.events.test_start.fire(environment=environment)
        tasks = [(f"{one.__name__}.{name_of(task)}", one.tasks.count(task)) for one in classes for task in dict.fromkeys(one.tasks)]
        self._say("ready", [one.__name__ for one in classes], tasks, [one.host for one in classes if one.host], found.shape is not None)

    def _on_start(self, start_ns: int, end_ns: int, interval_ns: int, users: int, rate: float) -> None:
        self._recorder.start(start_ns, interval_ns)
        self._cpu_before_s = time.process_time()
        self._environment.runner.state = STATE_RUNNING
        if self._shape is not None:
            self._shape.reset_time()
            self.spawn(self._follow_shape)
        elif users:
            self._population.aim(users, rate, start_ns)
        self.spawn(self._report, start_ns, interval_ns)
        self.spawn(self._live, end_ns)

    def _on_aim(self, users: int, rate: float, at_ns: int) -> None:
        self._population.aim(users, rate, at_ns)

    def _on_stop(self) -> None:
        self._stopping.set()

    def _on_quit(self, figures: Any) -> None:
        """The load is over; of all workers the first is given what came of it."""
        environment = self._environment
        if figures is not None and environment is not None:
            environment.give_stats(Figures.from_message(*figures))
            api.events.quitting.fire(environment=environment, reverse=True)
            api.events.quit.fire(exit_code=environment.process_exit_code)
            self._say("bye", environment.process_exit_code)
        self.quit.set()

    def _live(self, end_ns: int) -> None:
        """Waits for the end of the load, whoever ends it."""
        self._stopping.wait(timeout=max(0.0, (end_ns - time.monotonic_ns()) / 1e9))
        self._stopping.set()
        api.events.test_stopping.fire(environment=self._environment)
        self._environment.runner.state = STATE_STOPPING
        stopped_ns = time.monotonic_ns()
        self._population.stop(self._options.stop_timeout)
        # Their last tasks and `on_stop` belong to the load as far as they asked something.
        ended_ns = max(stopped_ns, self._recorder.last_ns)
        used = resource.getrusage(resource.RUSAGE_SELF)
        self._environment.runner.state = STATE_STOPPED
        api.events.test_stop.fire(environment=self._environment)
        self._say("news", self._news())
        self._say("done", ended_ns, used.ru_maxrss * 1024)

    def _report(self, start_ns: int, interval_ns: int) -> None:
        due_ns = start_ns
        while not self._stopping.is_set():
            due_ns += interval_ns
            self._clock.sleep_until(due_ns)
            self._say("news", self._news())

    def _news(self) -> dict[str, Any]:
        return self._recorder.flushed() | {"users": self._population.alive, "cpu_s": time.process_time() - self._cpu_before_s}

    def _follow_shape(self) -> None:
        before: Any = None
        while not self._stopping.is_set():
            wanted = self._shape.tick()
            if wanted is None:
                self._say("quit")
                return
            if wanted != before:
                self._say("aim", int(wanted[0]), float(wanted[1]))
                before = wanted
            gevent.sleep(1)

    def _users(self) -> int:
        count: int = self._population.count if self._shape is not None else self._population.alive
        return count

    def _complete(self, users: int) -> None:
        api.events.spawning_complete.fire(user_count=users)

    def _say(self, *message: Any) -> None:
        # Several greenlets do, and sending lets others run.
        with self._saying:
            channel.send(self._parent, *message)

    def spawn(self, does: Callable[..., None], *arguments: Any) -> None:
        """In a greenlet without which the worker is of no use."""

        def run() -> None:
            try:
                does(*arguments)
            except Exception as error:
                self._say("error", f"a worker: {type(error).__name__}: {error}", "", int(ExitCode.DEFECT))
                if os.environ.get(Variable.DEBUG):
                    traceback.print_exc()
                os._exit(ExitCode.DEFECT)

        gevent.spawn(run)


def _set_up_logging(chosen_options: Namespace) -> None:
    if chosen_options.skip_log_setup:
        return
    level = logging.getLevelNamesMapping().get(chosen_options.loglevel.upper())
    if level is None:
        raise UsageError(f"-L/--loglevel: found {chosen_options.loglevel!r}, expected DEBUG, INFO, WARNING, ERROR or CRITICAL")
    try:
        logging.basicConfig(level=level, format=_LOG.format(host=platform.node()), filename=chosen_options.logfile)
    except OSError as error:
        raise UsageError(f"--logfile: {chosen_options.logfile}: cannot be written: {error.strerror}") from None
