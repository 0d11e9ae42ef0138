"""What runs on a node of a cluster: it starts `weir-engine` there, and forwards lines in both directions.

It travels to its node by value and imports nothing but the standard library: a node needs nothing but Ray.

Whoever it works for has to ask for news all the time. If nobody has asked for the length of its lease, there is nobody any more: it ends
what it has started, and itself.
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
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

News = tuple[int, Literal["line", "end"], Any]
"""Of which engine, and what: a line that it has written, or that it has ended, with its exit status and what it wrote to standard error."""

_WAITING_LINES = 8192
"""Lines that may wait to be asked for; beyond them the engine waits, which leaves intervals out then and says so."""
LINES_AT_A_TIME = 512
HELD_S = 0.5
"""For so long after an answer lines that may wait are held back, to go together: each answer costs both ends milliseconds of CPU, which on
one machine a saturating load has not."""
_GRACE_S = 20.0
"""How long an engine may take to end what it has started, after its input has closed."""
_LOOK_EVERY_S = 0.25
NAP, _NAP_S = signal.SIGUSR2, 0.2
"""By this signal, which nobody sends from outside, the main thread is told to sleep, for so long, in which it hands on no calls."""
_JOINING = (
    "RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT",
    "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH",
)  # fmt: skip
"""What Ray reads of its TLS and its tokens."""


def machine() -> str:
    """What machine this is, whatever names and addresses nodes have on it: its kernel's boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Agent:
    """The actor.

    Args:
        lease_s: how long it stays without being asked for news.
        naps: whether the main thread, in which it is made then, sleeps most of the time while all that engines say may wait. It is Ray's
            and looks for signals a hundred times a second, which takes nearly 1 % of a CPU.
    """

    def __init__(self, lease_s: float, *, naps: bool = False) -> None:
        self._news: queue.Queue[News] = queue.Queue(_WAITING_LINES)
        self._engines: dict[int, subprocess.Popen[bytes]] = {}
        self._made: list[Any] = []
        self._patient: tuple[bytes, ...] = ()
        self._urgent = threading.Event()
        self._asked_at = self._told_at = time.monotonic()
        self._files = Path(os.environ.get("WEIR_CACHE") or Path.home() / ".cache" / "weir").expanduser() / "from-driver"
        self._naps = naps
        self.is_steady = False
        """Whether the last that an engine said may wait."""
        if naps:
            signal.signal(NAP, lambda *_: time.sleep(_NAP_S))
        threading.Thread(target=self._end_without_lease, args=(lease_s,), daemon=True).start()

    def facts(self) -> dict[str, Any]:
        """What its node is."""
        import ray

        return {
            "ray": ray.__version__,
            "host": socket.gethostname(),
            "machine": machine(),
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
        """Its monotonic clock."""
        return time.monotonic_ns()

    def readings(self, other: Any, count: int, within_s: float) -> list[tuple[int, int, int]]:
        """Another agent's clock, read so often: its own clock before, what the other says, its own after. It fails where one takes longer
        than `within_s`.
        """
        import ray

        found = []
        for _ in range(count):
            before = time.monotonic_ns()
            said = ray.get(other.now_ns.remote(), timeout=within_s)
            found.append((before, said, time.monotonic_ns()))
        return found

    def has(self, digest: str, name: str) -> str | None:
        """The path of a file that it was given once, None if it has none of that content."""
        path = self._files / digest / name
        return str(path) if path.is_file() else None

    def keep(self, content: bytes, name: str) -> str:
        """Keeps a file, which may be run, and gives its path. Nobody else on its node can read it: it may be the key of a certificate."""
        folder = self._files / hashlib.sha256(content).hexdigest()
        path, unfinished = folder / name, folder / f".{name}-{os.getpid()}"
        # Not those above it: databases that run as somebody else get to their programs through them.
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        unfinished.write_bytes(content)
        unfinished.chmod(0o700)
        # Another agent on the same node may be doing the same.
        unfinished.replace(path)
        return str(path)

    def has_folder(self, digest: str) -> str | None:
        """The path of a folder whose archive it was given once, None if it has none of that content."""
        path = self._files / digest
        return str(path) if path.is_dir() else None

    def unpack(self, archive: bytes) -> str:
        """Unpacks a folder that was archived, and gives where it lies now."""
        folder = self._files / hashlib.sha256(archive).hexdigest()
        self._unpack(archive, folder, "data")
        return str(folder)

    def unpack_to(self, archive: bytes, path: str) -> None:
        """Unpacks a folder at a path of its own, with every link that is in it: whoever sent it runs what it likes here anyway. Where
        something is there already, that stays.
        """
        self._unpack(archive, Path(path), "fully_trusted")

    def _unpack(self, archive: bytes, folder: Path, taken: Literal["data", "fully_trusted"]) -> None:
        if folder.is_dir():
            return
        unfinished = folder.with_name(f".{folder.name}-{os.getpid()}")
        try:
            with tarfile.open(fileobj=io.BytesIO(archive)) as found:
                found.extractall(unfinished, filter=taken)
            unfinished.rename(folder)
        except OSError:
            # Another agent on the same node may have been quicker.
            if not folder.is_dir():
                raise
        finally:
            self.remove(str(unfinished))

    def is_file(self, path: str) -> bool:
        """Whether there is a file at a path."""
        return os.path.isfile(path)

    def make(self, kind: Callable[[Path], Any]) -> tuple[int, dict[str, Any]]:
        """Makes something that lives here as long as this agent, of a class that came along by value, from a folder for it. Gives its
        number and what it knows of itself.
        """
        self._made.append(kind(self._files.parent / "services"))
        return len(self._made) - 1, {name: value for name, value in vars(self._made[-1]).items() if not name.startswith("_")}

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """What a method of something that it made gives."""
        return getattr(self._made[number], method)(*arguments)

    def new_folder(self) -> str:
        """An empty folder of this agent's own, which stays until somebody removes it."""
        return tempfile.mkdtemp(prefix="weir-")

    def write_file(self, path: str, content: bytes) -> None:
        """Writes a file, and makes its folder."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)

    def taken(self, path: str) -> bytes:
        """What is in a file, which is gone then."""
        content = Path(path).read_bytes()
        Path(path).unlink()
        return content

    def free_port(self, address: str) -> int:
        """A port of one of its node's addresses that nothing listens on."""
        with socket.socket() as probe:
            probe.bind((address, 0))
            return int(probe.getsockname()[1])

    def collected(self, folder: str) -> bytes:
        """An archive of what is in a folder."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as packed:
            packed.add(folder, ".")
        return archive.getvalue()

    def database(self, path: str, most_bytes: int) -> bytes | None:
        """An SQLite database as it is now, also while somebody writes to it; None where it is larger than that."""
        import sqlite3

        if os.path.getsize(path) > most_bytes:
            return None
        with (
            contextlib.closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)) as source,
            contextlib.closing(sqlite3.connect(":memory:")) as copy,
        ):
            source.backup(copy)
            return copy.serialize()

    def remove(self, folder: str) -> None:
        """Removes a folder with what is in it."""
        shutil.rmtree(folder, ignore_errors=True)

    def weir(self) -> str | None:
        """Where the command `weir` of this node's Python is; None: it is not installed."""
        path = Path(sys.executable).with_name("weir")
        return str(path) if path.is_file() else None

    def output_of(self, argv: Sequence[str]) -> tuple[str, int]:
        """What a command that ends at once prints, errors too, and its exit status."""
        done = subprocess.run(list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=10)
        return done.stdout.decode("utf-8", "replace"), done.returncode

    def joining(self) -> dict[str, str]:
        """The variables with which a program there joins a cluster that lets in only whom it knows, as far as this node has them."""
        return {name: os.environ[name] for name in _JOINING if name in os.environ}

    def start(self, engine: int, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Starts an engine, whose news have this number, with some variables beside those of its node, and gives its process id."""
        # What Ray tells its workers is no business of theirs.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**inherited, **(environment or {})},
        )
        self._engines[engine] = process
        threading.Thread(target=self._forward, args=(engine, process), daemon=True).start()
        return process.pid

    def write(self, engine: int, data: bytes) -> None:
        """Writes to its standard input, if it still runs."""
        process = self._engines.get(engine)
        if process is not None:
            assert process.stdin is not None
            # It may be ending.
            with contextlib.suppress(BrokenPipeError, ValueError):
                process.stdin.write(data)
                process.stdin.flush()

    def close_input(self, engine: int) -> None:
        """Closes its standard input, which ends it."""
        process = self._engines.get(engine)
        if process is not None:
            _close(process.stdin)

    def signal(self, engine: int, number: int) -> None:
        """Sends a signal to it, if it still runs."""
        process = self._engines.get(engine)
        if process is not None:
            process.send_signal(number)

    def news(self, wait_s: float, patient: tuple[bytes, ...] = (), most: int = LINES_AT_A_TIME) -> list[News]:
        """What has come since it was last asked, `most` of it, after `wait_s` at the latest. Lines that begin as one of `patient` may wait
        for others. Whoever takes nothing now asks for none, and so knows that this agent is there, and this agent that somebody is.
        """
        self._asked_at = time.monotonic()
        if not most:
            time.sleep(wait_s)
            return []
        found: list[News] = []
        self._patient = patient
        with contextlib.suppress(queue.Empty):
            found.append(self._news.get(timeout=wait_s))
            if self._news.qsize() < most - 1:
                # In one wait: to be woken for each of them would cost as much again.
                self._urgent.wait(max(0.0, self._told_at + HELD_S - time.monotonic()))
            self._urgent.clear()
            while len(found) < most:
                found.append(self._news.get_nowait())
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
            self._news.put((engine, "line", line))
            if not self.is_steady:
                self._urgent.set()
        status = process.wait()
        stderr.join()
        # An agent starts an engine for every load: what is left of those that have ended would add up.
        del self._engines[engine]
        for stream in (process.stdin, process.stdout, process.stderr):
            _close(stream)
        self.is_steady = False
        self._news.put((engine, "end", (status, b"".join(errors))))
        self._urgent.set()

    def _end_without_lease(self, lease_s: float) -> None:
        while time.monotonic() - self._asked_at < lease_s:
            time.sleep(_LOOK_EVERY_S)
            if self._naps and self.is_steady:
                # As if it had been sent: the handler runs when the main thread looks for signals.
                _thread.interrupt_main(NAP)
        running = list(self._engines.values())
        for process in running:
            # What is never read would keep it from ending.
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
            self._news.get()


def _close(stream: IO[bytes] | None) -> None:
    assert stream is not None
    # What was written before may have nobody left to read it.
    with contextlib.suppress(OSError):
        stream.close()
