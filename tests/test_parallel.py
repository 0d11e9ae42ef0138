"""Tests work on a run file in several processes."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.synthetic_run import SyntheticStudy, write_run
from weir.parallel import start_parallel, without_gc
from weir.store import RunReader

# Runs in a separate process that has no other thread.
PROGRAM = """
import os, sys
from pathlib import Path
from weir import parallel
from weir.model.errors import TargetError
from weir.store import RunReader

def one(reader, part):
    if part == "wrong":
        raise TargetError("found wrong", hint="right")
    return part, len(reader.trials()), os.getpid()

parallel.MIN_TRIALS = int(sys.argv[2])
with RunReader(Path(sys.argv[1])) as reader:
    found = parallel.start_parallel(reader, list("abcdefgh"), one)()
    assert [part for part, _, _ in found] == list("abcdefgh")
    assert {trials for _, trials, _ in found} == {len(reader.trials())}
    print(len({process for _, _, process in found} - {os.getpid()}))
    try:
        parallel.start_parallel(reader, ["a", "wrong"], one)()
    except TargetError as error:
        print(error.message, error.hint)
"""
MEANWHILE = """
import os, sys
from pathlib import Path
from weir import parallel
from weir.store import RunReader

parallel.MIN_TRIALS = 1
reading, writing = os.pipe()
with RunReader(Path(sys.argv[1])) as reader:
    results = parallel.start_parallel(reader, [b"a", b"b"], lambda _, part: os.write(writing, part))
    # Nothing has requested results yet; this returns after both parts were worked on.
    print("".join(sorted((os.read(reading, 1) + os.read(reading, 1)).decode())))
    print(results())
"""
MANY = """
import os, sys
from pathlib import Path
from weir import parallel
from weir.store import RunReader

parallel.MIN_TRIALS = 1
calls = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
with RunReader(Path(sys.argv[1])) as reader:
    parallel.start_parallel(reader, range(100_000), lambda _, part: os.write(calls, b"."))()
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from weir import parallel
from weir.model.errors import WeirError
from weir.store import RunReader

parallel.MIN_TRIALS = 1
with RunReader(Path(sys.argv[1])) as reader:
    try:
        parallel.start_parallel(reader, [1, 2, 3], lambda _, part: os.kill(os.getpid(), signal.SIGKILL))()
    except WeirError as error:
        print(error.message, "|", error.hint)
"""
several_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")


def printed(program: str, *arguments: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def said(path: Path, fewest: int) -> list[str]:
    return printed(PROGRAM, path, fewest)


@several_cpus
def test_much_work_is_done_by_other_processes_and_comes_back_in_order_and_with_its_errors(tmp_path: Path) -> None:
    others, error = said(write_run(tmp_path / "run.weir", SyntheticStudy()), fewest=1)
    assert int(others) >= 1
    assert error == "found wrong right"


@several_cpus
def test_the_work_goes_on_before_anybody_asks_for_it(tmp_path: Path) -> None:
    assert printed(MEANWHILE, write_run(tmp_path / "run.weir", SyntheticStudy())) == ["ab", "[1, 1]"]


@several_cpus
def test_every_part_is_worked_on_once(tmp_path: Path) -> None:
    printed(MANY, write_run(tmp_path / "run.weir", SyntheticStudy()), tmp_path / "calls")
    assert (tmp_path / "calls").stat().st_size == 100_000


@several_cpus
def test_a_worker_that_was_killed_is_told_with_what_to_look_at(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run.weir", SyntheticStudy())
    (told,) = printed(KILLED, path)
    assert told.startswith(f"{path}: found a killed worker process")
    assert "memory" in told


def test_little_work_is_done_here(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run.weir", SyntheticStudy())
    assert said(path, fewest=10**9) == ["0", "found wrong right"]
    with RunReader(path) as reader:
        assert start_parallel(reader, [1, 2], lambda _, part: 2 * part)() == [2, 4]


def test_a_function_without_collection_leaves_it_as_it_was() -> None:
    @without_gc
    def fails() -> None:
        assert not gc.isenabled()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert gc.isenabled()
