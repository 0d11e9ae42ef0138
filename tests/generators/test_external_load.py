"""Tests how weir handles other programs that misbehave as generators."""

import os
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.generators.conftest import PutOnPath
from tests.support.observing import observer
from weir.generators import external_load as external
from weir.generators.engine import EngineLoad
from weir.generators.external_load import OUTPUT, ExternalLoad
from weir.generators.handle import LoadHandle
from weir.generators.registry import TOOLS, get_tool
from weir.model.errors import ExitCode, GeneratorError, UsageError
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.model.load_observer import LoadObserver
from weir.model.load_records import LoadEnd, LoadStarted

PLAN = LoadPlan(Request("GET", "http://127.0.0.1:1/"), ClosedLoad(2), 1.0)
REPORT = Path(__file__).parent.parent / "data" / "reports" / "hey.txt"


def run(folder: Path, plan: LoadPlan = PLAN, name: str = "hey", listener: LoadObserver | None = None) -> LoadEnd:
    with ExternalLoad(get_tool(name), plan, listener, folder=folder) as load:
        return load.result()


def failure(folder: Path, name: str = "hey") -> GeneratorError:
    with pytest.raises(GeneratorError) as raised:
        run(folder, name=name)
    assert raised.value.exit_code == ExitCode.TARGET
    assert str(folder / OUTPUT) in raised.value.message
    return raised.value


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves programs almost no time for their start and their end."""
    monkeypatch.setattr(external, "_END_GRACE_S", 0.2)
    monkeypatch.setitem(TOOLS, "hey", replace(get_tool("hey"), start_up_s=0.0))


def running(mark: str) -> list[str]:
    """Returns the processes with `mark` in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            found += [pid] if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    return found


def test_both_kinds_of_load_are_used_in_the_same_way() -> None:
    assert issubclass(EngineLoad, LoadHandle)
    assert issubclass(ExternalLoad, LoadHandle)


def test_a_tool_that_is_not_there_is_said_with_the_way_to_get_it(
    stands_for: PutOnPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(UsageError, match=re.escape("hey: not found on the PATH")) as raised:
        run(tmp_path / "kept")
    assert raised.value.hint == "apt-get install hey"


def test_a_load_that_a_tool_cannot_make_is_refused_before_it_is_started(stands_for: PutOnPath, tmp_path: Path) -> None:
    stands_for("hey", "touch started")
    with pytest.raises(UsageError, match=re.escape("generator = 'hey': hey cannot pipeline requests.")):
        run(tmp_path / "kept", replace(PLAN, pipeline=4))
    assert not (tmp_path / "kept").exists()


def test_a_tool_that_ends_badly_fails_with_its_output_kept(stands_for: PutOnPath, tmp_path: Path) -> None:
    stands_for("hey", "echo first; echo the reason >&2; exit 3")
    error = failure(tmp_path / "kept")
    assert error.message.startswith("hey: the program ended with exit status 3; the tool's output: ")
    assert error.message.endswith("the reason")
    assert (tmp_path / "kept" / OUTPUT).read_text() == "first\nthe reason\n"


def test_a_tool_that_crashes_fails(stands_for: PutOnPath, tmp_path: Path) -> None:
    stands_for("hey", "kill -SEGV $$")
    assert failure(tmp_path / "kept").message.startswith("hey: the program ended by signal 11; ")


def test_a_tool_that_hangs_is_killed_with_all_that_it_started(
    stands_for: PutOnPath, tmp_path: Path, impatient: None
) -> None:
    stands_for("hey", "echo about to hang\ntrap '' TERM INT\nsleep 1000.123 &\nsleep 1000.123")
    error = failure(tmp_path / "kept")
    assert error.message.startswith("hey: the program did not end after a load of 1 s, and weir killed it; ")
    assert error.message.endswith("about to hang")
    assert running("1000.123") == []


def test_words_that_are_no_report_fail(stands_for: PutOnPath, tmp_path: Path) -> None:
    stands_for("hey", "echo All is well.")
    error = failure(tmp_path / "kept")
    assert error.message.startswith("hey: weir cannot read the tool's report: ")
    assert error.message.endswith("All is well.")


def test_a_report_that_should_lie_in_a_file_and_does_not_fails(stands_for: PutOnPath, tmp_path: Path) -> None:
    stands_for("oha", "true")
    assert "report.json" in failure(tmp_path / "kept", "oha").message


NO_REPORTS = (
    "[]",
    "{}",
    '{"summary": {}}',
    "nonsense",
    '{"summary": {"total": 1, "requestsPerSec": 1}, "latencyPercentiles": 1}',
)


@pytest.mark.parametrize("report", NO_REPORTS)
def test_a_report_that_is_not_what_it_should_be_fails(stands_for: PutOnPath, tmp_path: Path, report: str) -> None:
    stands_for("oha", f"echo '{report}' > report.json")
    assert failure(tmp_path / "kept", "oha").message.startswith("oha: weir cannot read the tool's report: ")


def test_what_cannot_be_run_at_all_fails(stands_for: PutOnPath, tmp_path: Path) -> None:
    stands_for("hey", "")
    (tmp_path / "bin" / "hey").write_bytes(b"\x7fELF and no more")
    with pytest.raises(GeneratorError, match="hey"):
        run(tmp_path / "kept")


def test_a_load_that_is_stopped_gives_what_it_came_to(stands_for: PutOnPath, tmp_path: Path) -> None:
    stands_for("hey", f"trap 'cat {REPORT}; exit 1' INT\ntouch ready\nwhile :; do sleep 0.01; done")
    begun: list[LoadStarted] = []
    with ExternalLoad(
        get_tool("hey"), replace(PLAN, duration_s=100.0), observer(on_start=begun.append), folder=tmp_path
    ) as load:
        while not (tmp_path / "ready").exists():
            assert not load.wait(0.01)
        load.stop()
        end = load.result()
    assert end.stopped == "signal"
    assert end.summary.requests.ok > 0
    assert [one.pid for one in begun] == [load.pid]


def test_a_load_that_does_not_stop_is_killed(
    stands_for: PutOnPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "_END_GRACE_S", 0.2)
    stands_for("hey", "trap '' INT\ntouch ready\nwhile :; do sleep 0.01; done")
    with ExternalLoad(get_tool("hey"), replace(PLAN, duration_s=100.0), folder=tmp_path) as load:
        while not (tmp_path / "ready").exists():
            assert not load.wait(0.01)
        load.stop()
        with pytest.raises(GeneratorError, match="the program ignored the stop signal, and weir killed it"):
            load.result()


def test_closing_a_load_ends_its_program(stands_for: PutOnPath, tmp_path: Path) -> None:
    stands_for("hey", "touch ready; exec sleep 1000.456")
    with ExternalLoad(get_tool("hey"), replace(PLAN, duration_s=100.0), folder=tmp_path) as load:
        while not (tmp_path / "ready").exists():
            assert not load.wait(0.01)
    assert running("1000.456") == []


def test_a_tool_runs_on_the_plans_cpus_with_nothing_of_the_users(
    stands_for: PutOnPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "K6_VUS", "LOCUST_USERS"):
        monkeypatch.setenv(name, "1")
    stands_for("hey", f"grep Cpus_allowed_list /proc/self/status > cpus; env > environment; cat {REPORT}")
    cpu = max(os.sched_getaffinity(0))
    run(tmp_path, replace(PLAN, cpus=(cpu,)))
    assert (tmp_path / "cpus").read_text().split() == ["Cpus_allowed_list:", str(cpu)]
    names = {line.partition("=")[0] for line in (tmp_path / "environment").read_text().splitlines()}
    assert names - {"PWD", "SHLVL", "OLDPWD", "_"} == {"PATH", "LC_ALL", "TZ", "HOME"}


def test_what_a_tool_uses_counts_from_the_beginning_of_its_load(stands_for: PutOnPath, tmp_path: Path) -> None:
    burn = "timeout {}s sh -c 'while :; do :; done'"
    stands_for(
        "k6",
        f"{burn.format(0.5)}\necho weir: the load begins\n{burn.format(0.3)}\ncat {REPORT.with_name('k6.json')} > report.json",
    )
    begun: list[LoadStarted] = []
    end = run(tmp_path, name="k6", listener=observer(on_start=begun.append))
    assert (begun[0].backend, begun[0].version) == ("k6", "k6")
    # The program's one thread can use one CPU, and its line may be read late. With the work before the load it would be
    # two and a half CPUs.
    assert 0.0 < end.summary.generator.cpu_fraction < 1.8
    assert end.summary.generator.peak_rss_bytes > 1_000_000
