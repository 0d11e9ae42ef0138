"""The agent, an actor on a node of a cluster: starts `weir-engine` and forwards the engine's input and output.

Ray sends this module by value, and the module imports only the standard library. So a node needs only Ray.

The weir process that created the agent polls the agent all the time and so renews a lease. If no poll arrives within
the lease, this process is gone. Then the agent ends its engines and itself.
"""

import _thread
import contextlib
import hashlib
import io
import os
import platform
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

Output = tuple[int, Literal["line", "end"], Any]
"""An engine's number, the kind, and the content: a line of output, or the exit status and standard error."""

_WAITING_LINES = 8192
"""Maximum number of output lines that the agent keeps until the next poll. If this queue is full, the engine blocks,
and intervals are missing."""
LINES_AT_A_TIME = 512
HELD_S = 0.5
"""Maximum time for which the agent collects lines before a reply. Each reply costs weir and the agent milliseconds of
CPU time, which a saturating load on the same machine needs."""
_GRACE_S = 20.0
"""Maximum time for an engine to end its processes after the agent has closed the engine's input."""
_LOOK_EVERY_S = 0.25
NAP, _NAP_S = signal.SIGUSR2, 0.2
"""Signal that the agent sends to itself, and the nap's length in seconds. The main thread sleeps during a nap."""
_JOINING = (
    "RAY_USE_TLS RAY_TLS_SERVER_CERT RAY_TLS_SERVER_KEY RAY_TLS_CA_CERT "
    "RAY_AUTH_MODE RAY_AUTH_TOKEN RAY_AUTH_TOKEN_PATH"
)
"""Names of Ray's environment variables for TLS and tokens."""


def get_machine_id() -> str:
    """Returns the boot id of this machine. Nodes on one machine share the boot id, but not names and addresses."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def read_clock(read: Callable[[], int], count: int) -> list[tuple[int, int, int]]:
    """Reads another clock `count` times. Returns tuples: own clock before, other clock, own clock after."""
    return [(time.monotonic_ns(), read(), time.monotonic_ns()) for _ in range(count)]


# --- Functions that `Agent.apply` calls


def find_free_port(address: str) -> int:
    """Returns a free port of `address`, an address of the node."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def write_file(path: str, content: bytes) -> None:
    """Writes a file and creates its folder."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content)


def take_file(path: str) -> bytes:
    """Returns the content of a file and deletes it."""
    content = Path(path).read_bytes()
    Path(path).unlink()
    return content


def archive_folder(folder: str) -> bytes:
    """Returns a compressed tar archive of a folder."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
        tar.add(folder, ".")
    return archive.getvalue()


def copy_database(path: str, most_bytes: int) -> bytes | None:
    """Returns a consistent copy of an SQLite database, even during writes; None for more than `most_bytes`."""
    import sqlite3

    if os.path.getsize(path) > most_bytes:
        return None
    with (
        contextlib.closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)) as source,
        contextlib.closing(sqlite3.connect(":memory:")) as copy,
    ):
        source.backup(copy)
        return copy.serialize()


def find_weir() -> str | None:
    """Returns the path of the command `weir` of this node's Python; None if weir is not installed."""
    path = Path(sys.executable).with_name("weir")
    return str(path) if path.is_file() else None


def get_ray_variables() -> dict[str, str]:
    """Returns this node's environment variables that a Ray client needs for TLS and tokens."""
    return {name: os.environ[name] for name in _JOINING.split() if name in os.environ}


class Agent:
    """The Ray actor on a node. The actor ends after `lease_s` seconds without a poll. With `naps`, the main thread
    sleeps most of the time while output may wait: Ray's frequent signal checks on this thread take nearly 1 % of a CPU.
    Only the main thread may create an agent with `naps`."""

    def __init__(self, lease_s: float, *, naps: bool = False) -> None:
        self._output: queue.Queue[Output] = queue.Queue(_WAITING_LINES)
        self._engines: dict[int, subprocess.Popen[bytes]] = {}
        self._made: list[Any] = []
        self._patient: tuple[bytes, ...] = ()
        self._urgent = threading.Event()
        self._asked_at = self._told_at = time.monotonic()
        self._files = Path(os.environ.get("WEIR_CACHE") or Path.home() / ".cache" / "weir").expanduser() / "from-driver"
        self._naps = naps
        self.is_steady = False
        """Whether the last line of output may wait for a later reply."""
        if naps:
            signal.signal(NAP, lambda *_: time.sleep(_NAP_S))
        threading.Thread(target=self._end_without_lease, args=(lease_s,), daemon=True).start()

    def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function on this node, and returns the result. Ray sends functions of this module by value."""
        return function(*arguments)

    def facts(self) -> dict[str, Any]:
        """Returns facts about the node: its machine, Ray and Python."""
        import ray

        return {
            "ray": ray.__version__,
            "host": socket.gethostname(),
            "machine": get_machine_id(),
            "cpus": sorted(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "architecture": platform.machine(),
            "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver()),
            "python": platform.python_version(),
            "cache": str(self._files.parent),
            "pid": os.getpid(),
        }

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def readings(self, other: Any, count: int, within_s: float) -> list[tuple[int, int, int]]:
        """Reads another agent's clock; see `read_clock`. Fails if a reading takes longer than `within_s` seconds."""
        import ray

        return read_clock(lambda: ray.get(other.now_ns.remote(), timeout=within_s), count)

    def find(self, digest: str, name: str = "") -> str | None:
        """Returns the path of a stored file, or of an unpacked folder, with this digest. None if there is none."""
        path = self._files / digest / name
        return str(path) if path.exists() else None

    def keep(self, content: bytes, name: str) -> str:
        """Stores an executable file and returns the path. Only the owner may read the file: it may be a private key."""
        folder = self._files / hashlib.sha256(content).hexdigest()
        path, unfinished = folder / name, folder / f".{name}-{os.getpid()}"
        # Parent folders stay accessible: databases run as another user, and start programs from these folders.
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        unfinished.write_bytes(content)
        unfinished.chmod(0o700)
        # Another agent on the node may store the same file at this moment.
        unfinished.replace(path)
        return str(path)

    def unpack(self, archive: bytes, path: str | None = None) -> str:
        """Unpacks an archive into a folder that does not exist yet. Returns the folder: `path`, or a folder with the
        archive's digest as name. With `path`, also unpacks unsafe links: the sender may run any program anyway."""
        folder = Path(path or self._files / hashlib.sha256(archive).hexdigest())
        if folder.is_dir():
            return str(folder)
        unfinished = folder.with_name(f".{folder.name}-{os.getpid()}")
        try:
            with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
                packed.extractall(unfinished, filter="fully_trusted" if path else "data")
            unfinished.rename(folder)
        except OSError:
            # Another agent on the node may already have created the folder.
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return str(folder)

    def make(self, kind: Callable[[Path], Any]) -> tuple[int, dict[str, Any]]:
        """Creates an object of a class that Ray sent by value. The object lives as long as this agent. Returns the
        object's number and public attributes."""
        self._made.append(kind(self._files.parent / "services"))
        attributes = vars(self._made[-1]).items()
        return len(self._made) - 1, {name: value for name, value in attributes if not name.startswith("_")}

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Calls a method of an object from `make`, and returns the result."""
        return getattr(self._made[number], method)(*arguments)

    def run_command(self, argv: Sequence[str]) -> tuple[str, int]:
        """Runs a short command. Returns the command's output (including standard error) and exit status."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(argv, timeout=10, text=True, errors="replace", **streams)  # type: ignore[call-overload]
        return done.stdout, done.returncode

    def start(self, engine: int, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Starts an engine, with additional environment variables and the number `engine`. Returns the process id."""
        # Ray's variables for its own workers must not reach the engine.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, env={**inherited, **(environment or {})}
        )
        self._engines[engine] = process
        threading.Thread(target=self._forward, args=(engine, process), daemon=True).start()
        return process.pid

    def write(self, engine: int, data: bytes) -> None:
        """Writes to the engine's standard input, if the engine still runs."""
        # The engine may be ending.
        with contextlib.suppress(KeyError, BrokenPipeError, ValueError):
            stdin = self._engines[engine].stdin
            assert stdin is not None
            stdin.write(data)
            stdin.flush()

    def close_input(self, engine: int) -> None:
        """Closes the engine's standard input, so that the engine ends."""
        with contextlib.suppress(KeyError):
            _close(self._engines[engine].stdin)

    def signal(self, engine: int, number: int) -> None:
        """Sends a signal to the engine, if the engine still runs."""
        with contextlib.suppress(KeyError):
            self._engines[engine].send_signal(number)

    def output(self, wait_s: float, patient: tuple[bytes, ...] = (), most: int = LINES_AT_A_TIME) -> list[Output]:
        """Returns up to `most` lines of output after at most `wait_s` seconds. With `most` = 0, only renews the lease.
        Lines with a prefix in `patient` may wait for other lines."""
        self._asked_at = time.monotonic()
        if not most:
            time.sleep(wait_s)
            return []
        found: list[Output] = []
        self._patient = patient
        with contextlib.suppress(queue.Empty):
            found.append(self._output.get(timeout=wait_s))
            if self._output.qsize() < most - 1:
                # Waits only once: waking up for each line would double the cost.
                self._urgent.wait(max(0.0, self._told_at + HELD_S - time.monotonic()))
            self._urgent.clear()
            while len(found) < most:
                found.append(self._output.get_nowait())
        self._asked_at = time.monotonic()
        if found:
            self._told_at = self._asked_at
        return found

    def _forward(self, engine: int, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        errors: list[bytes] = []
        stderr = threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True)  # type: ignore[union-attr]
        stderr.start()
        for line in process.stdout:
            self.is_steady = line.startswith(self._patient)
            self._output.put((engine, "line", line))
            if not self.is_steady:
                self._urgent.set()
        status = process.wait()
        stderr.join()
        # An agent starts an engine for every load, so ended engines would accumulate.
        del self._engines[engine]
        for stream in (process.stdin, process.stdout, process.stderr):
            _close(stream)
        self.is_steady = False
        self._output.put((engine, "end", (status, b"".join(errors))))
        self._urgent.set()

    def _end_without_lease(self, lease_s: float) -> None:
        while time.monotonic() - self._asked_at < lease_s:
            time.sleep(_LOOK_EVERY_S)
            if self._naps and self.is_steady:
                # Simulates the signal: the handler runs at the main thread's next check for signals.
                _thread.interrupt_main(NAP)
        running = list(self._engines.values())
        for process in running:
            # A process cannot end before someone has read the output.
            threading.Thread(target=self._drain, daemon=True).start()
            _close(process.stdin)
        until = time.monotonic() + _GRACE_S
        for process in running:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
        os._exit(1)

    def _drain(self) -> None:
        while True:
            self._output.get()


def _close(stream: IO[bytes] | None) -> None:
    assert stream is not None
    # The reader of earlier output may have ended.
    with contextlib.suppress(OSError):
        stream.close()
