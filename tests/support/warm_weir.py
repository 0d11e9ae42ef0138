"""Runs `weir` without the half second of imports: a process that has imported weir's modules forks for each command.

Each command still has its own process, arguments, environment, folder, streams and signals. Only the imports are
shared. `tests/cli/test_start.py` tests the imports' time and completeness with fresh processes.

The server is this file as a script: `python warm_weir.py FD`, where FD is its end of a socket. The server ends when the
other end is closed.
"""

import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

# Not `weir.cli`: at import its consoles read the terminal and NO_COLOR.
_IMPORTED = (
    "jinja2", "rich.console", "rich.progress", "rich.table", "ruptures", "scipy.special", "typer", "weir.load_spec",
    "weir.audit", "weir.compat.jmx", "weir.findings", "weir.generators.engine", "weir.lab.study_run", "weir.objective", "weir.report",
    "weir.scenario", "weir.stats.steady", "weir.store",
)  # fmt: skip
# Times that matter for a user but not for tests: additional loads that find or prove something.
_SHORTENED = {
    "weir.lab.trial_generator._NULL_SERVER_S": 0.15,
    "weir.lab.capacity_probe._PROBE_S": 0.5,
    "weir.lab.conformance.LOAD_S": 1.0,
    "weir.stacks.answer_check._MANY_S": 0.2,
}
_MAX_REQUEST = 256 * 1024


class WarmServer:
    """The process that forks, with the connection to it. A context manager."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._socket, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_REQUEST)
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            # Each request carries the test's own environment.
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )

    def start(
        self, words: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int]
    ) -> tuple[int, socket.socket]:
        """Starts `weir WORDS…`; returns its process id, and a socket on which its status comes at its end.

        Args:
            words: the command line without `weir`.
            folder: the working directory.
            environment: the complete environment.
            streams: file descriptors of standard input, output and error.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            request = json.dumps({"words": list(words), "folder": folder, "environment": dict(environment)}).encode()
            socket.send_fds(self._socket, [request], [*streams, theirs.fileno()])
        return int(ours.recv(64)), ours

    def __enter__(self) -> "WarmServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.wait()


class WarmWeir(subprocess.Popen[str]):
    """`weir WORDS…`, forked by the server. Works like `subprocess.Popen`, but is not a child of this process."""

    _told: socket.socket
    _server: WarmServer

    def __init__(self, server: WarmServer, words: Sequence[str], folder: Path) -> None:
        self._server = server
        pipe = subprocess.PIPE
        super().__init__(words, cwd=folder, stdout=pipe, stderr=pipe, text=True, env=dict(os.environ))

    # These three methods of Popen handle the child.

    def _execute_child(self, words: Sequence[str], *rest: Any) -> None:
        (folder, environment), pipes = rest[4:6], rest[9:15]
        input_read, _, _, output_write, _, error_write = pipes
        streams = (0 if input_read == -1 else input_read, output_write, error_write)
        self.pid, self._told = self._server.start(words, os.fspath(folder), environment, streams)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        try:
            status = self._told.recv(64, socket.MSG_DONTWAIT if wait_flags & os.WNOHANG else 0)
        except BlockingIOError:
            return 0, 0
        self._told.close()
        # Without a status the server is gone, and its children too.
        return self.pid, int(status or signal.SIGKILL)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid == self.pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def main() -> None:
    """Serves until the other end of the socket is closed; a forked process runs `weir`."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in _IMPORTED:
        importlib.import_module(name)
    for name, value in _SHORTENED.items():
        module, _, constant = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), constant), float), f"{name} is gone"
        setattr(sys.modules[module], constant, value)
    # Later collections skip the existing objects. Otherwise a fork would copy all of their pages.
    gc.freeze()
    # By a child's descriptor: its process id, and the socket that gets its status at its end.
    running: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd in running:
                    selector.unregister(key.fd)
                    _tell_end(key.fd, *running.pop(key.fd))
                    continue
                request, descriptors, *_ = socket.recv_fds(control, _MAX_REQUEST, 4)
                if not request:
                    return
                pid = os.fork()
                if pid == 0:
                    selector.close()
                    control.close()
                    _become_weir(json.loads(request), descriptors)
                    return
                *streams, told = descriptors
                for descriptor in streams:
                    os.close(descriptor)
                process, where = os.pidfd_open(pid), socket.socket(fileno=told)
                where.send(str(pid).encode())
                running[process] = pid, where
                selector.register(process, selectors.EVENT_READ)


def _tell_end(process: int, pid: int, where: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    os.close(process)
    with where:
        where.send(str(status).encode())


def _become_weir(request: dict[str, Any], descriptors: Sequence[int]) -> None:
    """Does in this process the work of `weir WORDS…` in a new process."""
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    # Python opens the streams in the same way. Standard error keeps no text that it could not write.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1 if os.isatty(1) else -1, closefd=False)  # noqa: SIM115
    unbuffered = cast(BinaryIO, open(2, "wb", buffering=0, closefd=False))  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(unbuffered, errors="backslashreplace", line_buffering=True, write_through=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["weir", *request["words"]]
    from weir.cli import main as weir

    weir()


if __name__ == "__main__":
    main()
