"""Tests the folder of runs: its runs are found, and no other files."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.live.conftest import Served
from tests.support.synthetic_load import SyntheticLoad, write_load
from tests.support.synthetic_run import FLASK, SANIC, SyntheticStudy, write_run
from weir import findings
from weir.live import RunFolder, TrialEnded, TrialStarted
from weir.live import runs as runs_module
from weir.live.runs import UnknownRunError
from weir.model.errors import WeirError
from weir.store import RunReader

HOSTILE = '</script><script>window.owned = 1</script><img src=x onerror="window.owned = 1">\'"&{{ 7 * 7 }}<!--'
STUDY = SyntheticStudy(duration_s=1.0, stacks=(FLASK, SANIC))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a run file."""
    return write_run(tmp_path_factory.mktemp("run") / "run.weir", STUDY).read_bytes()


@pytest.fixture
def root(tmp_path: Path, written: bytes) -> Path:
    """A folder with runs, beside another folder that must not be read."""
    for folder in ("runs/one", "runs/quick/two", "runs/empty", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("runs/one/run.weir", "runs/quick/two/run.weir", "runs/kept.weir", "outside/run.weir"):
        (tmp_path / file).write_bytes(written)
    (tmp_path / "runs/one/report.html").write_text("not from here")
    return tmp_path / "runs"


def names(folder: RunFolder) -> list[str]:
    return sorted(entry.name for entry in folder.entries())


def test_runs_are_found_in_folders_and_as_files(root: Path) -> None:
    assert names(RunFolder(root)) == ["kept.weir", "one", "quick/two"]


def test_a_folder_that_is_itself_a_run_has_that_run(root: Path) -> None:
    folder = RunFolder(root / "one")
    assert names(folder) == ["run.weir"]
    assert folder.find("run.weir") == root / "one" / "run.weir"


def test_a_folder_that_is_not_there_yet_has_no_runs(tmp_path: Path) -> None:
    assert names(RunFolder(tmp_path / "runs")) == []


def test_a_run_is_listed_with_what_it_was_about(root: Path) -> None:
    entry = next(entry for entry in RunFolder(root).entries() if entry.name == "one")
    assert (entry.kind, entry.ended, entry.problem) == ("run", "complete", "")
    assert entry.question.endswith("?")
    assert entry.started_unix_s == pytest.approx(1_760_000_000, abs=1)


def test_a_file_that_is_no_run_is_listed_with_what_is_wrong(root: Path) -> None:
    (root / "broken.weir").write_text("nothing of ours " * 100)
    entry = next(entry for entry in RunFolder(root).entries() if entry.name == "broken.weir")
    assert "found a file of another kind" in entry.problem
    with pytest.raises(WeirError, match="found a file of another kind"):
        RunFolder(root).found("broken.weir")


@pytest.mark.parametrize("column", ["title", "started_unix_ns", "ended", "study"])
@pytest.mark.parametrize("value", [b"\xff\x00", "x", 1e300])
def test_a_file_with_values_that_weir_does_not_write_keeps_no_other_from_being_listed(
    served: Served, root: Path, column: str, value: object
) -> None:
    with closing(sqlite3.connect(root / "one" / "run.weir")) as connection, connection:
        # A table of the same name and columns that accepts any value.
        connection.executescript(
            "CREATE TABLE other AS SELECT * FROM run; DROP TABLE run; ALTER TABLE other RENAME TO run"
        )
        connection.execute(f"UPDATE run SET {column} = ?", (value,))
    listed = served(runs=RunFolder(root)).get("/runs").json()["runs"]
    assert sorted(run["name"] for run in listed) == ["kept.weir", "one", "quick/two"]


def test_what_a_run_found_is_computed_once_until_its_file_changes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[Path] = []
    compute = findings.of_run

    def counted(reader: RunReader) -> findings.RunFindings:
        computed.append(reader.path)
        return compute(reader)

    monkeypatch.setattr(findings, "of_run", counted)
    folder = RunFolder(root)
    found = folder.found("one")
    assert "Sanic answers" in found.sentence
    assert (found.validity, found.indicative) == ("valid", True)
    assert folder.found("one") == found
    assert len(computed) == 1
    os.utime(root / "one" / "run.weir", (1, 1))
    folder.found("one")
    assert len(computed) == 2
    # Another process writes this run, so its content may change before the file does.
    (root / "one" / "run.weir-wal").write_bytes(b"")
    folder.found("one")
    assert len(computed) == 3


def test_a_report_is_made_from_the_run_file_and_not_read_from_beside_it(root: Path) -> None:
    page = RunFolder(root).report("one")
    assert "Sanic answers" in page
    assert "not from here" not in page


def test_a_load_has_an_entry_an_answer_and_a_report_as_a_run_has(tmp_path: Path) -> None:
    write_load(tmp_path / "load.weir", SyntheticLoad(reasons=("nothing was right",), validity="invalid"))
    folder = RunFolder(tmp_path)
    assert [(entry.name, entry.kind) for entry in folder.entries()] == [("load.weir", "load")]
    found = folder.found("load.weir")
    assert found.sentence.startswith("2,000 requests per second; half of the responses within ")
    assert (found.validity, found.indicative) == ("invalid", False)
    assert "nothing was right" in folder.report("load.weir")


OUTSIDE = [
    "..", ".", "", "/", "../outside", "../outside/run.weir", "one/../../outside", "one/report.html", "one/../one/report.html", "empty",
    "missing",
    "/etc/passwd", "//etc/passwd", "run.weir\0", "one\0/../../outside", "a" * 5000, "~", "%2e%2e/outside", "..\\outside", "quick",
]  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_leads_out_of_the_folder_or_to_what_is_no_run(root: Path, name: str) -> None:
    with pytest.raises(UnknownRunError):
        RunFolder(root).find(name)


def test_an_absolute_name_of_a_run_elsewhere_is_unknown(root: Path) -> None:
    for name in (str(root.parent / "outside"), str(root.parent / "outside" / "run.weir")):
        with pytest.raises(UnknownRunError):
            RunFolder(root).find(name)


def test_no_link_leads_out_of_the_folder(root: Path) -> None:
    outside = root.parent / "outside"
    (root / "linked").symlink_to(outside)
    (root / "linked.weir").symlink_to(outside / "run.weir")
    (root / "half").mkdir()
    (root / "half" / "run.weir").symlink_to(outside / "run.weir")
    (root / "circle").symlink_to(root / "circle")
    folder = RunFolder(root)
    assert names(folder) == ["kept.weir", "one", "quick/two"]
    for name in ("linked", "linked/run.weir", "linked.weir", "half", "half/run.weir", "circle"):
        with pytest.raises(UnknownRunError):
            folder.find(name)


def test_only_the_latest_runs_are_listed(tmp_path: Path, written: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "MOST_RUNS", 3)
    for number in range(6):
        path = tmp_path / f"{number}.weir"
        path.write_bytes(written)
        os.utime(path, (number, number))
    assert names(RunFolder(tmp_path)) == ["3.weir", "4.weir", "5.weir"]


def test_the_page_lists_runs_and_tells_what_each_found(served: Served, root: Path) -> None:
    visitor = served(runs=RunFolder(root))
    listed = visitor.get("/runs").json()["runs"]
    assert sorted(run["name"] for run in listed) == ["kept.weir", "one", "quick/two"]
    answer = visitor.get("/found?run=quick/two")
    assert answer.status == 200
    assert "Sanic answers" in answer.json()["sentence"]


def test_a_report_is_served_in_a_sandbox_with_the_policy_that_it_brings(served: Served, root: Path) -> None:
    answer = served(runs=RunFolder(root)).get("/report?run=one")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "'self'" not in policy
    assert "unsafe" not in policy
    for source in (part for part in policy.split() if part.startswith("'sha256-")):
        assert source in answer.text


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("path", ["/report", "/found"])
def test_no_request_reaches_what_is_no_run_of_the_folder(served: Served, root: Path, path: str, name: str) -> None:
    visitor = served(runs=RunFolder(root))
    for written in (name, quote(name, safe="/")):
        if written.isprintable() and " " not in written:
            answer = visitor.get(f"{path}?run={written}")
            assert answer.status in (404, 400), answer.text
    assert visitor.get(f"{path}?run=one&run={quote(name, safe='')}").status == 404


def test_while_a_load_goes_on_nothing_is_computed(served: Served, root: Path) -> None:
    visitor = served(runs=RunFolder(root))
    visitor.board.begin_trial(TrialStarted(number=1, name="http://127.0.0.1/", point="4 connections"))
    assert "after the end of the load" in visitor.get("/found?run=one").json()["later"]
    assert visitor.get("/report?run=one").status == 503
    assert visitor.get("/runs").status == 200
    visitor.board.end_trial(TrialEnded(validity="valid"))
    assert "Sanic answers" in visitor.get("/found?run=one").json()["sentence"]


def test_a_page_without_a_folder_shows_no_runs(served: Served) -> None:
    visitor = served()
    assert [visitor.get(path).status for path in ("/runs", "/found?run=one", "/report?run=one")] == [404] * 3
