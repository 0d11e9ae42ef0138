"""A run whose parts are killed at random moments, and what must hold after each kill.

The same ordeal is short in `make test` and long in `make soak`; `Tally` says what it came to.
"""

import os
import random
import signal
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.end_to_end.conftest import StartWeir, lives, servers_of

VICTIMS = ("lab", "host", "generator", "stack", "init")
"""What may be killed, and `database` where there is one. The observer is a thread of the host; an init is the first of
a namespace."""
DATABASES = ("postgres", "mariadbd")
ENDS_THE_RUN = ("lab", "host")
LONGEST_WAIT_S = 1.0
# The keeper of control groups gives the processes of a killed host 60 s to be gone.
DEADLINE_S = 70.0
LONGEST_RUN_S = 300.0
"""Only ends a test that has failed: on a crowded machine a run of seconds takes minutes."""
EARLY_SHARE = 0.25
"""Of the kills that come at any moment, the steps before the first trial included; the others wait until trials go
on."""

Accepted = dict[tuple[int, int], int]
"""Position by cell and block of every trial that counts."""


@dataclass
class Tally:
    """What an ordeal came to."""

    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    resumed: int = 0
    """Times that a run was gone on with, or begun again where it had no file yet."""
    survived: int = 0
    """Finished trials found whole after the end of their weir, all times together."""
    rejected: int = 0
    """Trials that a kill spoiled and that were tried again."""
    leftovers: int = 0

    def __str__(self) -> str:
        by_victim = ", ".join(f"{victim} {count}" for victim, count in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} kills ({by_victim}) in {self.runs} runs: {self.survived} finished trials looked for and found, "
            f"{self.rejected} spoiled ones rejected and tried again, {self.resumed} times resumed, {self.leftovers} leftovers"
        )


class Disturbed:
    """A weir that goes on, with what it has said so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._changed = threading.Condition()
        self._said: list[str] = []
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def said(self) -> str:
        """Its progress and errors."""
        return "".join(self._said)

    @property
    def begun(self) -> int:
        """Trials that it has announced."""
        return sum("weir: trial " in line for line in self._said)

    def wait_begun(self, trials: int) -> None:
        """Waits until it has begun so many trials, or ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self.begun >= trials, LONGEST_RUN_S)

    def wait(self, timeout_s: float) -> bool:
        """Waits for its end; False when that took longer."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout_s)
        return self.process.poll() is not None

    def finish(self) -> int:
        """Waits for its end and for the last that it says; gives its exit status."""
        assert self.wait(LONGEST_RUN_S), self.said
        self._reader.join(LONGEST_RUN_S)
        return self.process.returncode

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self._said.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Ordeal:
    """Runs of one study, disturbed.

    Args:
        folder: the test's, with the cache in it.
        start_weir: starts `weir ARGUMENTS…` there.
        study: the study, with enough retries for every kill of a generator and a stack.
        seed: of the moments and the order of the victims.
    """

    def __init__(self, folder: Path, start_weir: StartWeir, study: Path, *, seed: int) -> None:
        self.tally = Tally()
        self._folder = folder
        self._start_weir = start_weir
        self._study = study
        self._random = random.Random(seed)
        self._last = ""
        """The last kill, for whoever has to find out what it broke."""
        self._hosts: set[int] = set()
        self._networks: set[str] = set()
        """Network namespaces of stacks, as the kernel names them."""

    def undisturbed(self) -> Accepted:
        """What a run comes to when it is left alone."""
        process = self._start_weir("run", self._study, "--out", "undisturbed")
        _, err = process.communicate(timeout=LONGEST_RUN_S)
        assert process.returncode == 0, err
        return accepted(self._folder / "undisturbed" / "run.weir")

    def endure(self, out: str, victims: Sequence[str]) -> Accepted:
        """Kills the victims one after the other in a run, goes on with it as often as it takes, and gives what it came
        to."""
        self.tally.runs += 1
        run = self._folder / out / "run.weir"
        known: dict[int, tuple[object, ...]] = {}
        weir = self._begin(run)
        for victim in victims:
            while not self._kill(weir, victim):
                # It ended before there was such a process: by what an earlier kill did to it, or well.
                known = self._after_end(weir, run, known)
                if weir.process.returncode == 0:
                    return accepted(run)
                weir = self._begin(run)
            self.tally.kills[victim] += 1
            if victim in ENDS_THE_RUN:
                known = self._after_end(weir, run, known)
                weir = self._begin(run)
        while True:
            known = self._after_end(weir, run, known)
            if weir.process.returncode == 0:
                return accepted(run)
            weir = self._begin(run)

    def _begin(self, run: Path) -> Disturbed:
        if run.exists():
            self.tally.resumed += 1
            return Disturbed(self._start_weir("run", "--resume", run))
        return Disturbed(self._start_weir("run", self._study, "--out", run.parent))

    def _kill(self, weir: Disturbed, victim: str) -> bool:
        """Kills a victim at some moment; False where the run ended before there was one."""
        if self._random.random() > EARLY_SHARE:
            weir.wait_begun(weir.begun + self._random.randint(1, 2))
        weir.wait(self._random.uniform(0, LONGEST_WAIT_S))
        while weir.process.poll() is None:
            self._note_what_may_stay(weir)
            found = pids_of(victim, weir.process.pid)
            if found:
                pid = self._random.choice(found)
                self._last = f"{victim} {pid} ({' '.join(command_line(pid)[:3])})"
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    return True
            # Another random moment, and not the first: a generator is to be killed at its end as often as at its start.
            weir.wait(self._random.uniform(0, LONGEST_WAIT_S / 3))
        return False

    def _after_end(
        self, weir: Disturbed, run: Path, known: dict[int, tuple[object, ...]]
    ) -> dict[int, tuple[object, ...]]:
        """Waits for the end of weir and looks at what it left; gives the trials that are finished by now."""
        below = [(pid, started_at(pid)) for pid, _ in roles(weir.process.pid)]
        self._note_what_may_stay(weir)
        weir.finish()
        assert "Traceback" not in weir.said, weir.said
        assert "defect" not in weir.said, weir.said
        self._nothing_left(weir, below)
        if not run.exists():
            return known
        now = finished_rows(run)
        assert now.items() >= known.items(), "a finished trial was lost or changed"
        # A trial is announced when the one before it is finished.
        assert len(now) - len(known) >= weir.begun - 1, (
            f"{weir.begun} trials were begun, and {len(known)} → {len(now)} are finished"
        )
        self.tally.survived += len(known)
        self.tally.rejected += sum(row[3] == "invalid" for trial_id, row in now.items() if trial_id not in known)
        return now

    def _note_what_may_stay(self, weir: Disturbed) -> None:
        """Remembers what the kernel does not take away with a process by itself: control groups, by their host, and
        networks."""
        for pid, role in roles(weir.process.pid):
            if role == "host":
                self._hosts.add(pid)
            elif role in ("init", "stack"):
                network = network_of(pid)
                if network not in ("", network_of(os.getpid())):
                    self._networks.add(network)

    def _nothing_left(self, weir: Disturbed, below: Sequence[tuple[int, str]]) -> None:
        def left() -> list[str]:
            # A number may be another process's by now.
            processes = [pid for pid, started in below if lives(pid) and started_at(pid) == started]
            groups = [
                path
                for path, _, _ in os.walk("/sys/fs/cgroup")
                if any(f"/weir-{host}-" in path for host in self._hosts)
            ]
            everybody = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
            inside = [pid for pid in everybody if self._networks and network_of(pid) in self._networks]
            pinned = [name for name in self._networks if name in Path("/proc/self/mountinfo").read_text()]
            return [*map(str, [*servers_of(self._folder), *processes, *inside]), *groups, *pinned]

        try:
            wait_until(lambda: not left(), "")
        except AssertionError:
            self.tally.leftovers += len(left())
            raise AssertionError(
                f"left behind after the end of {self._last}: {left()}; {self.tally}; {weir.said}"
            ) from None


def pids_of(role: str, weir: int) -> list[int]:
    """The processes of a running weir that are this."""
    return [pid for pid, found in roles(weir) if found == role]


def roles(weir: int) -> Iterator[tuple[int, str]]:
    """The processes of a running weir, and what each of them is."""
    if lives(weir):
        yield weir, "lab"
    for pid in children(weir):
        words = command_line(pid)
        role = {"host": "host", "load": "generator"}.get(
            words[1] if len(words) > 1 and "weir-engine" in words[0] else "", "other"
        )
        yield pid, role
        if role == "host":
            for below in descendants(pid):
                words = command_line(below)
                if words:
                    # An init, or the keeper that removes the groups of a killed host.
                    is_database = Path(words[0]).name.partition(":")[0] in DATABASES
                    yield below, words[1] if "weir-engine" in words[0] else "database" if is_database else "stack"


def children(pid: int) -> list[int]:
    """The processes that any thread of a process started."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """All processes below a process."""
    below = children(pid)
    return below + [deeper for child in below for deeper in descendants(child)]


def command_line(pid: int) -> list[str]:
    """Command and arguments of a process; nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def read_until(stream: IO[str], text: str) -> str:
    """What a process says up to the first line that holds `text`."""
    said = ""
    for line in stream:
        said += line
        if text in line:
            return said
    raise AssertionError(f"the stream ended without {text!r}: {said}")


def network_of(pid: int) -> str:
    """The network namespace of a process, such as `net:[4026531840]`; nothing where it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        return ""


def started_at(pid: int) -> str:
    """When a process started, in ticks since boot; nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def is_connected(generator: int) -> bool:
    """Whether a generator has opened its connections."""
    try:
        return sum(os.readlink(file).startswith("socket:") for file in Path(f"/proc/{generator}/fd").iterdir()) >= 2
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Asks the kernel until a condition holds; the deadline only ends a test that has failed."""
    deadline = threading.Event()
    timer = threading.Timer(DEADLINE_S, deadline.set)
    timer.start()
    try:
        while not condition():
            assert not deadline.is_set(), what
    finally:
        timer.cancel()


@contextmanager
def opened(run: Path) -> Iterator[sqlite3.Connection]:
    """A run file that somebody may still be writing, or has left."""
    with closing(sqlite3.connect(f"file:{run}?mode=ro", uri=True)) as connection:
        yield connection


def finished_rows(run: Path) -> dict[int, tuple[object, ...]]:
    """Finished trials by id, after a look at the file as a whole."""
    with opened(run) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        rows = connection.execute(
            "SELECT id, cell_id, block, position, validity, attempt, summary FROM trial WHERE finished = 1"
        ).fetchall()
        # Of a trial that counts everything is there.
        halves = connection.execute(
            "SELECT id FROM trial WHERE finished = 1 AND validity != 'invalid'"
            " AND json_extract(coalesce(whole_load, summary), '$.requests.completed') !="
            " (SELECT sum(completed) FROM interval WHERE trial_id = trial.id)"
        ).fetchall()
        assert halves == [], "half a trial is counted"
    return {row[0]: tuple(row[1:]) for row in rows}


def accepted(run: Path) -> Accepted:
    """The trials of a whole run that count."""
    with opened(run) as connection:
        assert connection.execute("SELECT ended FROM run").fetchone() == ("complete",)
        assert connection.execute("SELECT count(*) FROM trial WHERE finished = 0").fetchone() == (0,)
        rows = connection.execute(
            "SELECT cell_id, block, position FROM trial WHERE validity != 'invalid' ORDER BY id"
        ).fetchall()
        first_tries = connection.execute("SELECT block, position FROM trial WHERE attempt = 1 ORDER BY id").fetchall()
    assert len({row[:2] for row in rows}) == len(rows), "a cell counts twice in a block"
    assert first_tries == sorted(set(first_tries)), "trials were not run in the order of their blocks and positions"
    return {(cell, block): position for cell, block, position in rows}
