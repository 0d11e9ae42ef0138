"""Tests the run file: reading returns the written data, a killed writer loses only the running trial, and errors name
wrong files."""

import gc
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_run import SyntheticStudy, write_run
from weir.model.errors import ExitCode, WeirError
from weir.model.hdr_batch import merge
from weir.model.load import ClosedLoad, OpenLoad
from weir.model.load_records import ErrorCounts, Interval, IntervalQuantiles, Quantiles
from weir.model.observer_records import (
    THREAD_STATES,
    GroupSample,
    NetworkSample,
    ObserverCost,
    PoolTimes,
    Pressure,
    Pressures,
    Sample,
    SocketCounts,
)
from weir.model.reported_result import Figure, ReportedResult
from weir.model.run_types import CaptureResult, Cell, Placement, PublishedFigure, RunInfo, TrialEvent, TrialResult
from weir.model.verdict import TrialVerdict
from weir.store import (
    CpuSampleRow,
    MachineSampleRow,
    NetworkSampleRow,
    RunReader,
    RunWriter,
    SampleRow,
    ThreadStateRow,
    find_run,
)
from weir.store import writer as store_writer
from weir.store.schema import SCHEMA_NUMBER

INFO = RunInfo(
    study="study", title="Title", question="Which?", scale="quick", seed=7, blocks=2, indicative=True, baseline="one",
    study_text="[matrix]\n", command="weir run study", weir_version="0.1.0", started_unix_ns=5,
    environment={"cpus": 2, "tools": {"uv": "1"}},
    placement=Placement((0,), (1,), (), (0,), ("control shares CPU 0",), agent_threads=(2, 1)),
    published=(PublishedFigure("one", "throughput_rps", 1.5, "paper"),), source="paper", claims=("faster",),
)  # fmt: skip
CELLS = [
    Cell(1, "one", None, "echo", ClosedLoad(20), title="One", model="blocking", settings={"workers": "1"}),
    Cell(2, "one", "fast", "echo", OpenLoad(100.0, 4), arm="aa"),
]
VALID = TrialResult(TrialVerdict())
REPORTED = ReportedResult(
    name="ab", tool="ab", throughput_rps=Figure(10.0, 0.005), requests=20, failed=0, mean_s=Figure(0.002, 0.001),
    quantiles_s={0.5: Figure(0.001, 0.001), 0.99: Figure(0.004, 0.001)}, statuses={"200": 20},
)  # fmt: skip
TAP = CaptureResult(
    requests=7, connections=2, packets=30, dropped_packets=0, first_t_ns=1, last_t_ns=9, response_time_us=Quantiles(p50=1.5),
    histogram="AA==",
)  # fmt: skip
SMALL = SyntheticStudy(blocks=1, duration_s=1.0)


def begin(writer: RunWriter, block: int = 0) -> int:
    return writer.begin_trial(CELLS[0], block=block, position=0, attempt=0, started_unix_ns=9)


def interval(index: int) -> Interval:
    return Interval(
        index=index, start_s=index / 10, end_s=(index + 1) / 10, due=3, sent=3, completed=3, ok=2, failed=1, errors=ErrorCounts(check=1),
        in_flight=1, queued=2, oldest_age_us=4.5, bytes_sent=10, bytes_received=20, response_time_us=IntervalQuantiles(mean=1.0, p50=1.0),
        histogram="AAEC",
    )  # fmt: skip


def rows_of(path: Path, table: str) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    connection.close()
    assert isinstance(count, int)
    return count


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run" / "run.weir", SMALL)


def test_what_is_known_about_the_run_and_its_cells_comes_back_as_it_was_written(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run.weir", INFO, CELLS):
        pass
    with RunReader(tmp_path) as reader:
        assert reader.info == INFO
        assert reader.cells() == CELLS
        assert reader.ended == "complete"
        assert reader.finished_unix_ns is not None


def test_a_trial_comes_back_with_its_result_rows_and_histograms(tmp_path: Path) -> None:
    written: list[TrialResult] = []

    def remember(label: str, block: int, result: TrialResult) -> TrialResult:
        written.append(result)
        return result

    study = SyntheticStudy(blocks=1, duration_s=1.0, event=TrialEvent(0.5, "connect", "refused"), change=remember)
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        trials = reader.trials()
        assert [trial.id for trial in trials] == [1, 2, 3]
        for trial, result in zip(trials, written, strict=True):
            assert trial.result.summary == result.summary
            assert trial.result.resources == result.resources
            assert trial.result.logs == result.logs
            assert reader.histograms(trial.id) == result.histograms
            assert reader.events(trial.id) == [TrialEvent(0.5, "connect", "refused")]
            rows = reader.intervals(trial.id)
            assert [row.idx for row in rows] == list(range(10))
            assert result.summary is not None
            assert sum(row.completed for row in rows) == result.summary.requests.completed
            merged = merge(reader.interval_histograms(trial.id))
            assert merged.total == result.summary.requests.completed
            samples = reader.readings(SampleRow, trial.id)
            assert samples[0].tier == "app"
            assert samples[-1].t_s == pytest.approx(1.0)
            assert {row.cpu for row in reader.readings(CpuSampleRow, trial.id)} == {0, 1}


def test_an_interval_keeps_every_number(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run.weir", INFO, CELLS) as writer:
        trial = begin(writer)
        writer.add_interval(trial, interval(0))
        writer.finish_trial(trial, VALID)
    with RunReader(tmp_path) as reader:
        (row,) = reader.intervals(trial)
        assert (row.queued, row.oldest_age_us, row.bytes_sent, row.bytes_received) == (2, 4.5, 10, 20)
        assert row.errors == {"connect": 0, "timeout": 0, "reset": 0, "protocol": 0, "check": 1}
        assert (row.p50_us, row.p99_us) == (1.0, None)
        assert reader.interval_histograms(trial) == [b"\0\1\2"]


def test_a_sample_keeps_every_number(tmp_path: Path) -> None:
    sockets = SocketCounts(established=1, time_wait=2, orphaned=3, in_use=4)
    network = NetworkSample(
        tcp_retransmits=1,
        listen_overflows=2,
        listen_drops=3,
        sockets=sockets,
        received_bytes=4,
        sent_bytes=5,
        loopback_bytes=6,
    )
    pool = PoolTimes(
        pool="http",
        threads=2,
        on_cpu_s=1,
        runnable_s=2,
        socket_io_s=3,
        event_wait_s=4,
        lock_s=5,
        accept_s=6,
        disk_s=7,
        sleep_s=8,
        other_s=9,
    )
    group = GroupSample(
        name="app", tier="app", processes=1, threads=2, cpu_user_s=3, cpu_system_s=4, rss_bytes=5, minor_faults=6, major_faults=7,
        voluntary_switches=8, involuntary_switches=9, descriptors=10, disk_read_bytes=11, disk_written_bytes=12, rchar_bytes=13,
        wchar_bytes=14, throttled_periods=15, throttled_s=16, pss_bytes=17, private_bytes=18, swap_bytes=19, network=network,
        threads_by_state=[pool],
    )  # fmt: skip
    waited = Pressure(some_s=1, full_s=2)
    sample = Sample(
        t_ns=0, groups=[group], cpus=[], network=network, pressure=Pressures(cpu=waited, memory=waited, io=waited),
        observer=ObserverCost(cpu_s=0.5, sweeps=7, thread_sweeps=6),
    )  # fmt: skip
    with RunWriter.create(tmp_path / "run.weir", INFO, CELLS) as writer:
        trial = begin(writer)
        writer.add_sample(trial, 0.5, sample)
        writer.add_sample(
            trial,
            0.6,
            Sample(t_ns=1, groups=[replace(group, network=None, threads_by_state=None)], cpus=[]),
        )
        writer.finish_trial(trial, VALID)
    with RunReader(tmp_path) as reader:
        first, second = reader.readings(SampleRow, trial)
        for name in SampleRow._fields:
            if name != "t_s":
                assert getattr(first, name) == getattr(second, name) == getattr(group, name)
        (state,) = reader.readings(ThreadStateRow, trial)
        assert (state.t_s, state.name, state.tier, state.pool, state.threads) == (0.5, "app", "app", "http", 2)
        assert [getattr(state, f"{name}_s") for name in THREAD_STATES] == list(range(1, 10))
        machine, own = reader.readings(NetworkSampleRow, trial)
        assert (machine.name, own.name) == ("", "app")
        assert (machine.tcp_retransmits, machine.loopback_bytes, machine.established, machine.in_use) == (1, 6, 1, 4)
        (pressure,) = reader.readings(MachineSampleRow, trial)
        assert (pressure.cpu_some_s, pressure.io_full_s, pressure.observer_cpu_s, pressure.sweeps) == (1, 2, 0.5, 7)


def test_text_that_is_not_utf8_is_kept_with_question_marks(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run.weir", INFO, CELLS) as writer:
        trial = begin(writer)
        writer.add_event(trial, TrialEvent(0.0, "died", "bad \udcff byte"))
        writer.finish_trial(trial, TrialResult(TrialVerdict.from_texts("invalid", ["said \udcff"])))
    with RunReader(tmp_path) as reader:
        assert reader.events(trial)[0].detail == "bad ? byte"
        assert reader.trials()[0].result.verdict.texts == ("said \udcff",)


def test_readers_see_a_trial_only_when_it_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "FLUSH_PERIOD_S", 0.0)
    with RunWriter.create(tmp_path / "run.weir", INFO, CELLS) as writer, RunReader(tmp_path) as reader:
        trial = begin(writer)
        for index in range(3):
            writer.add_interval(trial, interval(index))
        assert reader.trials() == []
        assert reader.intervals(trial) == []
        assert reader.ended is None
        writer.finish_trial(trial, VALID)
        assert [found.id for found in reader.trials()] == [trial]
        assert len(reader.intervals(trial)) == 3


def test_a_reader_that_has_read_everything_sees_what_was_finished_since(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run.weir", INFO, CELLS) as writer:
        for number in (1, 2):
            trial = begin(writer, block=number)
            for index in range(number):
                writer.add_interval(trial, interval(index))
            writer.finish_trial(trial, VALID)
            if number == 1:
                reader = RunReader(tmp_path / "run.weir")
            assert [one.id for one in reader.trials()] == list(range(1, number + 1))
            assert reader.answered(trial).completed.tolist() == [3] * number
            assert reader.answered(trial).rate_rps[-1] == pytest.approx(30.0)
            assert len(reader.intervals(trial)) == number
        reader.close()


def test_a_discarded_trial_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.weir"
    with RunWriter.create(path, INFO, CELLS) as writer:
        trial = begin(writer)
        writer.add_interval(trial, interval(0))
        writer.discard_trial(trial)
    assert rows_of(path, "trial") == 0
    assert rows_of(path, "interval") == 0


def test_a_trial_cannot_be_finished_twice(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run.weir", INFO, CELLS) as writer:
        trial = begin(writer)
        writer.finish_trial(trial, VALID)
        with pytest.raises(ValueError, match="already finished"):
            writer.finish_trial(trial, VALID)


def test_a_closed_run_is_a_single_file(tmp_path: Path) -> None:
    write_run(tmp_path / "run.weir", SMALL)
    assert [found.name for found in tmp_path.iterdir()] == ["run.weir"]


def test_closing_while_somebody_reads_keeps_everything(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.weir", INFO, CELLS)
    writer.finish_trial(begin(writer), VALID)
    with RunReader(tmp_path) as reader:
        assert len(reader.trials()) == 1
        writer.close("complete")
        assert len(reader.trials()) == 1
    with RunReader(tmp_path) as reader:
        assert reader.ended == "complete"


def test_an_exception_closes_the_run_as_interrupted(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), RunWriter.create(tmp_path / "run.weir", INFO, CELLS):
        raise KeyboardInterrupt
    with RunReader(tmp_path) as reader:
        assert reader.ended == "interrupted"


def test_ctrl_c_right_behind_the_beginning_of_a_transaction_closes_the_run_as_interrupted(tmp_path: Path) -> None:
    def interrupt() -> None:
        with RunWriter.create(tmp_path / "run.weir", INFO, CELLS) as writer:
            # No signal can arrive between BEGIN and the next line, so this code leaves the same state.
            writer._connection.execute("BEGIN IMMEDIATE")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    with RunReader(tmp_path) as reader:
        assert reader.ended == "interrupted"


def test_a_transaction_that_an_interruption_left_open_complains_of_nothing_once_the_run_is_closed(
    tmp_path: Path,
) -> None:
    writer = RunWriter.create(tmp_path / "run.weir", INFO, CELLS)
    left_open = writer._transaction()
    left_open.__enter__()
    writer.close("interrupted")
    # An error during garbage collection is an error of this test.
    del left_open
    gc.collect()
    with RunReader(tmp_path / "run.weir") as reader:
        assert reader.ended == "interrupted"


def test_resuming_deletes_what_was_not_finished_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.weir"
    writer = RunWriter.create(path, INFO, CELLS)
    writer.finish_trial(begin(writer), VALID)
    unfinished = begin(writer, block=1)
    writer.add_interval(unfinished, interval(0))
    writer.close("interrupted")
    with RunWriter.resume(path) as again:
        assert again.info == INFO
        assert list(again.cells) == CELLS
        again.finish_trial(begin(again, block=1), VALID)
    with RunReader(path) as reader:
        assert [trial.block for trial in reader.trials()] == [0, 1]
        assert all(reader.intervals(trial.id) == [] for trial in reader.trials())
        assert reader.ended == "complete"
    assert rows_of(path, "trial") == 2
    assert rows_of(path, "interval") == 0


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.weir"
    with RunWriter.create(path, INFO, CELLS), pytest.raises(WeirError, match="another weir that writes this run"):
        RunWriter.resume(path)


def test_a_run_is_never_overwritten(finished: Path) -> None:
    with pytest.raises(WeirError, match="found an existing file, expected none") as caught:
        RunWriter.create(finished, INFO, CELLS)
    assert "--resume" in caught.value.hint


KILLED_WRITER = """
import sys, pathlib
from tests.store.test_run_file import INFO, CELLS, VALID, begin, interval
from weir.store import RunWriter, writer
writer.FLUSH_PERIOD_S = 0.0
run = RunWriter.create(pathlib.Path(sys.argv[1]), INFO, CELLS)
trial = begin(run)
run.add_interval(trial, interval(0))
run.finish_trial(trial, VALID)
unfinished = begin(run, block=1)
print("writing", flush=True)
for index in range(10**9):
    run.add_interval(unfinished, interval(index))
    if index == 50:
        print("in the middle", flush=True)
"""


def kill_in_the_middle(path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src"), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_WRITER, path], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        assert process.stdout.readline() == "in the middle\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL


def test_a_writer_killed_in_the_middle_of_a_trial_loses_that_trial_only(tmp_path: Path) -> None:
    path = tmp_path / "run.weir"
    kill_in_the_middle(path)
    with RunReader(path) as reader:
        assert [trial.block for trial in reader.trials()] == [0]
        assert len(reader.intervals(1)) == 1
        assert reader.ended is None
    with RunWriter.resume(path) as again:
        again.finish_trial(begin(again, block=1), VALID)
    with RunReader(path) as reader:
        assert [trial.block for trial in reader.trials()] == [0, 1]


@pytest.fixture
def foreign_user() -> Iterator[None]:
    """Switches to a user without root's permissions."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder outside pytest's folder that other users can read."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        os.chmod(folder, 0o755)


def make_read_only(folder: Path) -> None:
    for file in folder.iterdir():
        file.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    folder.chmod(0o555)


def test_a_finished_run_opens_on_a_read_only_medium(
    finished: Path, open_folder: Path, request: pytest.FixtureRequest
) -> None:
    copied = Path(shutil.copy(finished, open_folder))
    make_read_only(open_folder)
    request.getfixturevalue("foreign_user")
    with RunReader(copied) as reader:
        assert len(reader.trials()) == 3


def test_what_a_killed_writer_left_opens_on_a_read_only_medium(
    tmp_path: Path, open_folder: Path, request: pytest.FixtureRequest
) -> None:
    kill_in_the_middle(tmp_path / "run.weir")
    for name in ("run.weir", "run.weir-wal"):
        shutil.copy(tmp_path / name, open_folder)
    make_read_only(open_folder)
    request.getfixturevalue("foreign_user")
    with RunReader(open_folder) as reader:
        assert len(reader.trials()) == 1


def test_a_run_is_found_by_its_folder_or_its_file(finished: Path) -> None:
    assert find_run(finished) == finished
    assert find_run(finished.parent) == finished


def refused(path: Path) -> WeirError:
    with pytest.raises(WeirError) as caught:
        RunReader(path)
    assert caught.value.exit_code is ExitCode.USAGE
    assert str(path) in caught.value.message
    return caught.value


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "absent.weir").message


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    assert "without run.weir" in refused(tmp_path).message


@pytest.mark.parametrize("content", [b"", b"hello, I am a text file and no database at all\n" * 40])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.weir"
    path.write_bytes(content)
    assert "file of another kind" in refused(path).message


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.weir"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE run (id INTEGER)")
    connection.close()
    assert "file of another kind" in refused(path).message
    with pytest.raises(WeirError, match="file of another kind"):
        RunWriter.resume(path)


def test_what_a_generator_said_and_what_the_kernel_saw_come_back(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run.weir", INFO, CELLS) as writer:
        writer.finish_trial(begin(writer), TrialResult(TrialVerdict(), reported_result=REPORTED, tap=TAP))
        writer.finish_trial(begin(writer), VALID)
    with RunReader(tmp_path) as reader:
        first, second = reader.trials()
    assert (first.result.reported_result, first.result.tap) == (REPORTED, TAP)
    assert (second.result.reported_result, second.result.tap) == (None, None)


def test_an_older_schema_is_refused(finished: Path) -> None:
    with sqlite3.connect(finished) as connection:
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    with pytest.raises(
        WeirError, match=f"found run file schema 3, expected {SCHEMA_NUMBER}: the file comes from an older weir"
    ):
        RunReader(finished)


def test_a_newer_schema_is_refused(finished: Path) -> None:
    connection = sqlite3.connect(finished)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    error = refused(finished)
    assert f"schema 99, expected {SCHEMA_NUMBER}" in error.message
    assert "upgrade" in error.hint


def read_everything(path: Path) -> None:
    with RunReader(path) as reader:
        for trial in reader.trials():
            reader.intervals(trial.id)


def test_a_truncated_file_is_refused_wherever_it_was_cut(finished: Path) -> None:
    whole = finished.read_bytes()
    for size in (100, 4096, len(whole) // 3, len(whole) - 4096, len(whole) - 1):
        finished.write_bytes(whole[:size])
        with pytest.raises(WeirError) as caught:
            read_everything(finished)
        assert str(finished) in caught.value.message


def test_a_row_that_no_weir_writes_is_explained(finished: Path) -> None:
    connection = sqlite3.connect(finished)
    connection.execute("UPDATE trial SET summary = '{}' WHERE id = 2")
    connection.commit()
    connection.close()
    with RunReader(finished) as reader, pytest.raises(WeirError, match="a row that weir did not write"):
        reader.trials()
