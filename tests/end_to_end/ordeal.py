"""A run whose processes are killed at random moments, and the conditions that must hold after each kill.

The same ordeal is short in `make test` and long in `make soak`; `Tally` has its counts.
"""

import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.end_to_end.conftest import StartWeir, lives, servers_of
from tests.support.kept import kept_rows
from weir.paths import find_engine_binary

VICTIMS = ("lab", "host", "generator", "stack", "init")
"""Kinds of processes to kill, also `database` if there is one. The observer is a thread of the host. An init is the
first process of a namespace."""
DATABASES = ("postgres", "mariadbd")
ENDS_THE_RUN = ("lab", "host")
LONGEST_WAIT_S = 1.0
DEADLINE_S = 70.0
"""Time for the processes of a killed host to end: seconds on a busy machine."""
LONGEST_RUN_S = 300.0
"""This long timeout only ends failed tests: on a busy machine a run of seconds takes minutes."""
EARLY_SHARE = 0.25
"""Share of kills at any moment, also before the first trial. The other kills wait until trials continue."""

Accepted = dict[tuple[int, int], int]
"""Position of every trial that counts, by cell and block."""


@dataclass
class Tally:
    """The counts of an ordeal."""

    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    resumed: int = 0
    """Number of times that a run continued, or began again because it had no file yet."""
    survived: int = 0
    """Number of finished trials that were complete after the end of their weir, summed over all ends."""
    rejected: int = 0
    """Number of trials that a kill spoiled and weir tried again."""
    leftovers: int = 0

    def __str__(self) -> str:
        by_victim = ", ".join(f"{victim} {count}" for victim, count in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} kills ({by_victim}) in {self.runs} runs: {self.survived} finished trials looked for and found, "
            f"{self.rejected} spoiled ones rejected and tried again, {self.resumed} times resumed, {self.leftovers} leftovers"
        )


class Disturbed:
    """A running weir, with its output so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._changed = threading.Condition()
        self._said: list[str] = []
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def said(self) -> str:
        """The progress and errors of this weir."""
        return "".join(self._said)

    @property
    def begun(self) -> int:
        """Number of trials that this weir has announced."""
        return sum("weir: trial " in line for line in self._said)

    def wait_begun(self, trials: int) -> None:
        """Waits until this weir has announced `trials` trials or has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self.begun >= trials, LONGEST_RUN_S)

    def wait(self, timeout_s: float) -> bool:
        """Waits for the end; returns False if it takes too long."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout_s)
        return self.process.poll() is not None

    def finish(self) -> int:
        """Waits for the end and for the last output; returns the exit status."""
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
    """Disturbed runs of one study.

    Args:
        folder: the test's folder, with the cache in it.
        start_weir: starts `weir ARGUMENTS…` in the folder.
        study: the study; it allows enough retries for every kill of a generator or a stack.
        seed: seed for the moments of the kills and the order of the victims.
    """

    def __init__(self, folder: Path, start_weir: StartWeir, study: Path, *, seed: int) -> None:
        self.tally = Tally()
        self._folder = folder
        self._start_weir = start_weir
        self._study = study
        self._random = random.Random(seed)
        self._last = ""
        """The last kill, to find the cause of a failure."""
        self._hosts: set[int] = set()
        self._networks: set[str] = set()
        """Network namespaces of stacks, by the kernel's names."""

    def undisturbed(self) -> Accepted:
        """Returns the trials that count in an undisturbed run."""
        process = self._start_weir("run", self._study, "--out", "undisturbed")
        _, err = process.communicate(timeout=LONGEST_RUN_S)
        assert process.returncode == 0, err
        return accepted(self._folder / "undisturbed" / "run.weir")

    def endure(self, out: str, victims: Sequence[str]) -> Accepted:
        """Kills the victims one after the other, resumes the run as often as necessary, and returns the trials that
        count."""
        self.tally.runs += 1
        run = self._folder / out / "run.weir"
        known: dict[int, tuple[object, ...]] = {}
        weir = self._begin(run)
        for victim in victims:
            while not self._kill(weir, victim):
                # weir ended before such a process existed: after an earlier kill, or normally.
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
        """Kills a victim at a random moment; returns False if the run ends before the victim exists."""
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
            # Waits for another random moment, so that a generator is killed at its end as often as at its start.
            weir.wait(self._random.uniform(0, LONGEST_WAIT_S / 3))
        return False

    def _after_end(
        self, weir: Disturbed, run: Path, known: dict[int, tuple[object, ...]]
    ) -> dict[int, tuple[object, ...]]:
        """Waits for the end of weir, checks what is left, and returns the trials finished by now."""
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
        # weir announces a trial when the trial before it is finished.
        assert len(now) - len(known) >= weir.begun - 1, (
            f"{weir.begun} trials were begun, and {len(known)} → {len(now)} are finished"
        )
        self.tally.survived += len(known)
        self.tally.rejected += sum(row[3] == "invalid" for trial_id, row in now.items() if trial_id not in known)
        return now

    def _note_what_may_stay(self, weir: Disturbed) -> None:
        """Remembers objects that may outlive their process: control groups, by their host, and networks."""
        for pid, role in roles(weir.process.pid):
            if role == "host":
                self._hosts.add(pid)
            elif role in ("init", "stack"):
                network = network_of(pid)
                if network not in ("", network_of(os.getpid())):
                    self._networks.add(network)

    def _nothing_left(self, weir: Disturbed, below: Sequence[tuple[int, str]]) -> None:
        def left() -> list[str]:
            # Another process may have this number by now.
            processes = [pid for pid, started in below if lives(pid) and started_at(pid) == started]
            groups = [
                path
                for path, _, _ in os.walk("/sys/fs/cgroup")
                if any(f"/weir-{host}-" in path for host in self._hosts)
            ]
            if groups:
                # The next host removes the empty groups of a killed one.
                subprocess.run(
                    [find_engine_binary(), "host"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True
                )
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
    """Returns the processes of a running weir that have this role."""
    return [pid for pid, found in roles(weir) if found == role]


def roles(weir: int) -> Iterator[tuple[int, str]]:
    """Yields the processes of a running weir with their roles."""
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
                    is_database = Path(words[0]).name.partition(":")[0] in DATABASES
                    yield below, words[1] if "weir-engine" in words[0] else "database" if is_database else "stack"


def children(pid: int) -> list[int]:
    """Returns the processes that any thread of a process started."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """Returns all descendants of a process."""
    below = children(pid)
    return below + [deeper for child in below for deeper in descendants(child)]


def command_line(pid: int) -> list[str]:
    """Returns command and arguments of a process; an empty list if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def read_until(stream: IO[str], text: str) -> str:
    """Reads lines until one contains `text`; returns all of them."""
    said = ""
    for line in stream:
        said += line
        if text in line:
            return said
    raise AssertionError(f"the stream ended without {text!r}: {said}")


def network_of(pid: int) -> str:
    """Returns a process's network namespace, such as `net:[4026531840]`; an empty string if the process has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        return ""


def started_at(pid: int) -> str:
    """Returns a process's start time in ticks since boot; an empty string if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def is_connected(generator: int) -> bool:
    """Returns whether a generator has opened its connections."""
    try:
        return sum(os.readlink(file).startswith("socket:") for file in Path(f"/proc/{generator}/fd").iterdir()) >= 2
    except OSError:
        return False


def wait_for_load(run: Path) -> None:
    """Waits until the load of the first trial is under way. weir writes intervals to the run file once a second."""
    wait_until(lambda: kept_rows(run, "interval") > 0, "no load began")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Waits until a condition holds. The timeout only ends a failed test. Leaves the CPU to the processes that the test
    waits for."""
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.005)


@contextmanager
def opened(run: Path) -> Iterator[sqlite3.Connection]:
    """Opens a run file, also during or after a write by another process."""
    with closing(sqlite3.connect(f"file:{run}?mode=ro", uri=True)) as connection:
        yield connection


def finished_rows(run: Path) -> dict[int, tuple[object, ...]]:
    """Returns the finished trials by id, after a check of the whole file."""
    with opened(run) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        rows = connection.execute(
            "SELECT id, cell_id, block, position, validity, attempt, summary FROM trial WHERE finished = 1"
        ).fetchall()
        # A trial that counts must be complete.
        halves = connection.execute(
            "SELECT id FROM trial WHERE finished = 1 AND validity != 'invalid'"
            " AND json_extract(coalesce(whole_load, summary), '$.requests.completed') !="
            " (SELECT sum(completed) FROM interval WHERE trial_id = trial.id)"
        ).fetchall()
        assert halves == [], "half a trial is counted"
    return {row[0]: tuple(row[1:]) for row in rows}


def accepted(run: Path) -> Accepted:
    """Returns the trials that count in a finished run."""
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
