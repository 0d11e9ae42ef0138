"""Tests `weir load --out`: a kept load, and its report by `weir report`."""

import json
import shutil
import signal
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import StartWeir, Weir
from tests.end_to_end.ordeal import wait_for_load
from weir.model.hdr import counts_in
from weir.store import CpuSampleRow, RunReader, SampleRow

Serve = Callable[..., str]


def test_a_kept_load_gives_the_same_text_and_the_same_figures_again(tmp_path: Path, weir: Weir, serve: Serve) -> None:
    url = f"http://{serve('delay', '--wait', '5ms')}/"
    asked = ["-R", "200", "-c", "8", "-d", "1s", "--objective", "p50<1s", "--out", "a.weir", "--json", "a.json"]
    done = weir("load", url, *asked)
    assert done.returncode == 0, done.stderr
    assert "weir report a.weir" in done.stderr
    again = weir("report", "a.weir")
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    found = json.loads(weir("report", "a.weir", "--json").stdout)
    assert found.pop("run")["plan"]["load"] == {"open": {"rate_rps": 200.0, "connections": 8}}
    assert found == json.loads((tmp_path / "a.json").read_text())
    page = (tmp_path / "a.html").read_text()
    assert url in page
    assert "p50&lt;1s" in page


def test_a_kept_load_has_every_answer_in_the_histograms_of_its_intervals(
    tmp_path: Path, weir: Weir, serve: Serve
) -> None:
    done = weir("load", f"http://{serve('null')}/", "-n", "1234", "-c", "4", "--out", "folder", "--json", "-")
    assert done.returncode == 0, done.stderr
    with RunReader(tmp_path / "folder") as reader:
        assert reader.ended == "complete"
        (trial,) = reader.trials()
        assert sum(row.completed for row in reader.intervals(trial.id)) == 1234
        assert sum(sum(counts_in(data).values()) for data in reader.interval_histograms(trial.id)) == 1234
        assert sum(counts_in(reader.histograms(trial.id)["response_time_ns"]).values()) == 1234
    assert not (tmp_path / "folder" / "run.weir-wal").exists()


def test_the_report_of_a_moved_load_has_the_same_bytes(tmp_path: Path, weir: Weir, serve: Serve) -> None:
    weir("load", f"http://{serve('null')}/", "-d", "300ms", "--out", "a.weir")
    weir("report", "a.weir")
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "a.weir", tmp_path / "elsewhere" / "b.weir")
    weir("report", "elsewhere/b.weir")
    assert (tmp_path / "elsewhere" / "b.html").read_bytes() == (tmp_path / "a.html").read_bytes()


def test_a_killed_load_leaves_a_file_that_says_that_it_is_unfinished(
    tmp_path: Path, start_weir: StartWeir, weir: Weir, serve: Serve
) -> None:
    process = start_weir(
        "load", f"http://{serve('null')}/", "-c", "2", "-d", "1h", "--until-failure", "--out", "a.weir"
    )
    wait_for_load(tmp_path / "a.weir")
    process.kill()
    process.wait()
    shown = weir("report", "a.weir")
    assert shown.returncode == 0, shown.stderr
    assert "unfinished" in shown.stdout
    assert "answered, none failed" in shown.stdout
    assert "unfinished" in (tmp_path / "a.html").read_text()
    found = json.loads(weir("report", "a.weir", "--json").stdout)
    assert found["requests"]["completed"] > 0
    assert found["response_time_us"]["p99"] > 0
    assert found["run"]["finished"] is False


def test_an_interrupted_load_keeps_what_was_measured(
    tmp_path: Path, start_weir: StartWeir, weir: Weir, serve: Serve
) -> None:
    process = start_weir("load", f"http://{serve('null')}/", "-c", "2", "-d", "1h", "--out", "a.weir", "--json", "-")
    wait_for_load(tmp_path / "a.weir")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == 130
    found = json.loads(weir("report", "a.weir", "--json").stdout)
    assert found["run"]["ended"] == "interrupted"
    assert found["run"]["finished"] is True
    assert found["requests"] == json.loads(out)["requests"]


def test_a_file_is_never_written_over(tmp_path: Path, weir: Weir, serve: Serve) -> None:
    (tmp_path / "a.weir").write_text("mine")
    (tmp_path / "notes").write_text("mine")
    for name in ("a.weir", "notes"):
        done = weir("load", f"http://{serve('null')}/", "-d", "1s", "--out", name)
        assert done.returncode == 2
        assert f"--out: {name}: found a file" in done.stderr
        assert "try: " in done.stderr
        assert (tmp_path / name).read_text() == "mine"


def test_a_load_that_never_started_leaves_no_file(tmp_path: Path, weir: Weir, free_port: Callable[[], int]) -> None:
    assert weir("load", f"http://127.0.0.1:{free_port()}/", "--out", "a.weir").returncode == 3
    assert weir("load", f"http://127.0.0.1:{free_port()}/", "--out", "folder").returncode == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("user", "secrets"),
    [
        ("", ["-H", "Authorization: Bearer hunter2", "-H", "X-Api-Key: hunter2"]),
        ("", ["--user", "anna:hunter2"]),
        ("", ["--user=anna:hunter2"]),
        ("anna:hunter2@", []),
    ],
)
def test_a_kept_load_has_no_secret_in_it(
    tmp_path: Path, weir: Weir, serve: Serve, user: str, secrets: list[str]
) -> None:
    flags = [*secrets, "-H", "Accept: text/plain", "-d", "200ms", "--out", "a.weir"]
    assert weir("load", f"http://{user}{serve('null')}/", *flags).returncode == 0
    weir("report", "a.weir")
    assert b"hunter2" not in (tmp_path / "a.weir").read_bytes()
    page = (tmp_path / "a.html").read_text()
    assert "hunter2" not in page
    assert b64encode(b"anna:hunter2").decode() not in page
    assert "text/plain" in page


def test_a_load_cannot_be_resumed(weir: Weir, serve: Serve) -> None:
    weir("load", f"http://{serve('null')}/", "-d", "200ms", "--out", "a.weir")
    done = weir("run", "--resume", "a.weir")
    assert done.returncode == 2
    assert "found a single load" in done.stderr


def test_the_server_s_samples_are_kept_with_watch(
    tmp_path: Path, weir: Weir, serve: Serve, start_weir: StartWeir
) -> None:
    watched = start_weir("load", f"http://{serve('null')}/", "-R", "10", "-d", "1h")
    done = weir("load", f"http://{serve('null')}/", "-d", "1s", "--watch", str(watched.pid), "--out", "a.weir")
    assert done.returncode == 0, done.stderr
    with RunReader(tmp_path / "a.weir") as reader:
        (trial,) = reader.trials()
        assert {row.name for row in reader.readings(SampleRow, trial.id)} == {str(watched.pid)}
        assert reader.readings(CpuSampleRow, trial.id)
        assert trial.result.resources is not None
