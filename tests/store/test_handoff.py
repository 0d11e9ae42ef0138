"""Tests a run file that another machine continues: the transferred file is complete, and the returned file replaces it
completely or not at all."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.test_run_file import CELLS, INFO, VALID, begin
from weir.model.errors import WeirError
from weir.store import RunReader, RunWriter, away


def finish(writer: RunWriter, *blocks: int) -> None:
    for block in blocks:
        writer.finish_trial(begin(writer, block), VALID)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A run of two trials that a killed writer left. A part of it is still in the log beside the file, because a reader
    was active."""
    living = tmp_path / "living"
    killed = tmp_path / "here"
    with (
        RunWriter.create(living / "run.weir", INFO, CELLS) as writer,
        closing(sqlite3.connect(living / "run.weir", isolation_level=None)) as reader,
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM trial").fetchone()
        finish(writer, 1, 2)
        begin(writer, 3)
        shutil.copytree(living, killed)
        reader.execute("COMMIT")
    assert (killed / "run.weir-wal").stat().st_size > 0
    return killed / "run.weir"


def gone_on(content: bytes, folder: Path, *blocks: int) -> Path:
    """Continues a run file as another machine does, and returns its path."""
    folder.mkdir()
    (folder / "run.weir").write_bytes(content)
    with RunWriter.resume(folder / "run.weir") as writer:
        finish(writer, *blocks)
    return folder / "run.weir"


def trials(path: Path) -> list[int]:
    with RunReader(path) as reader:
        return [trial.block for trial in reader.trials()]


def test_what_travels_has_every_trial_that_a_killed_writer_had_finished(here: Path, tmp_path: Path) -> None:
    with away(here) as run:
        (tmp_path / "there.weir").write_bytes(run.content)
    assert trials(tmp_path / "there.weir") == [1, 2]


def test_what_came_back_is_seen_by_those_who_read_the_run_meanwhile(here: Path, tmp_path: Path) -> None:
    with away(here) as run, RunReader(here) as reader:
        returned = gone_on(run.content, tmp_path / "there", 3, 4)
        assert len(reader.trials()) == 2
        run.take_back(returned)
        assert [trial.block for trial in reader.trials()] == [1, 2, 3, 4]
    assert trials(here) == [1, 2, 3, 4]
    with RunWriter.resume(here) as writer:
        finish(writer, 5)
    assert trials(here) == [1, 2, 3, 4, 5]


def test_what_lacks_a_finished_trial_is_not_taken_back(here: Path, tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "other" / "run.weir", INFO, CELLS) as writer:
        finish(writer, 1)
    before = {path: path.read_bytes() for path in here.parent.iterdir()}
    with away(here) as run, pytest.raises(WeirError, match="without 1 of the finished trials"):
        run.take_back(tmp_path / "other" / "run.weir")
    assert trials(here) == [1, 2]
    assert here.read_bytes() == before[here]


def test_what_came_back_damaged_is_not_taken_back(here: Path, tmp_path: Path) -> None:
    with away(here) as run:
        returned = gone_on(run.content, tmp_path / "there", 3)
        returned.write_bytes(returned.read_bytes()[:5000])
        with pytest.raises(WeirError, match="damaged or truncated"):
            run.take_back(returned)
    assert trials(here) == [1, 2]


def test_nobody_else_writes_it_meanwhile(here: Path) -> None:
    with away(here), pytest.raises(WeirError, match="another weir that writes this run"):
        RunWriter.resume(here)
