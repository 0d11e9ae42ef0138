"""Kills, suspends and full disks during a run: finished trials stay, no half trial counts, no process is left, and the
resumed run has the result of an undisturbed one."""

import os
import pty
import random
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.conftest import END_S, StartWeir, Study, Weir
from tests.end_to_end.ordeal import (
    VICTIMS,
    Ordeal,
    Tally,
    accepted,
    finished_rows,
    opened,
    pids_of,
    read_until,
    wait_for_load,
)
from tests.support.tiers import cases
from weir.audit.laws import find_violations
from weir.audit.trial_results import build_reported_results
from weir.host import Host
from weir.store import RunReader

pytestmark = pytest.mark.usefixtures("stacks")
WEIR = Path(sysconfig.get_path("scripts")) / "weir"

KILLS_PER_RUN = 10
SOAK_KILLS = 210


def all_that_may_stay() -> str:
    """Returns tables that put a study's stacks into control groups and network namespaces, as far as this machine
    allows."""
    with Host() as host:
        able = host.capabilities()
    tables = "[cpus]\nquota = { app = 0.9 }\n" if able.limits.possible else ""
    return tables + (
        '[network]\nisolation = "netns"\nport = 8000\npublish = 8080\n' if able.port_translation.possible else ""
    )


def endure(
    tmp_path: Path,
    start_weir: StartWeir,
    study: Study,
    *,
    kills: int,
    seed: int,
    stacks: Sequence[str] = ("good", "other"),
    tables: str = "",
    kinds: Sequence[str] = VICTIMS,
) -> Tally:
    path = study(*stacks, blocks=3, duration_s=0.3, retries=50)
    path.write_text(path.read_text() + tables)
    ordeal = Ordeal(tmp_path, start_weir, path, seed=seed)
    calm = ordeal.undisturbed()
    assert len(calm) == 6
    # Every kind comes equally often, in random order.
    victims = [kinds[number % len(kinds)] for number in range(kills)]
    random.Random(seed).shuffle(victims)
    number = 0
    while ordeal.tally.kills.total() < kills:
        left = victims[ordeal.tally.kills.total() :]
        assert ordeal.endure(f"out-{number}", left[:KILLS_PER_RUN]) == calm
        number += 1
    return ordeal.tally


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", cases([len(VICTIMS), 4 * len(VICTIMS)], kept=1))
def test_kills_of_anything_at_any_moment_lose_no_finished_trial_and_leave_nothing(
    tmp_path: Path, start_weir: StartWeir, study: Study, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = endure(tmp_path, start_weir, study, kills=kills, seed=kills)
    assert min(tally.kills[victim] for victim in VICTIMS) == kills / len(VICTIMS)
    assert tally.survived > 0 or kills == len(VICTIMS)
    with capsys.disabled():
        print(f" {tally}", end=" ")


@pytest.mark.soak
def test_kills_leave_no_control_group_and_no_network(
    tmp_path: Path, start_weir: StartWeir, study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = all_that_may_stay()
    if not tables:
        pytest.skip("this machine gives neither control groups nor networks: `weir doctor` says why")
    tally = endure(tmp_path, start_weir, study, kills=60, seed=time.time_ns(), tables=tables)
    with capsys.disabled():
        print(f"\n{tally}")


@pytest.mark.soak
def test_kills_of_a_database_spoil_no_more_than_a_trial(
    tmp_path: Path,
    stacks: Path,
    start_weir: StartWeir,
    study: Study,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The user's cache keeps the databases' programs.
    monkeypatch.delenv("WEIR_CACHE")
    for name in ("one", "another"):
        folder = stacks / name
        folder.mkdir()
        (folder / "users_server.py").write_bytes(Path(__file__).with_name("users_server.py").read_bytes())
        (folder / "stack.toml").write_text(STACK_WITH_DATABASE.format(name=name))
    kinds = ("database", *VICTIMS)
    users = partial(study, workloads=["user-by-id"])
    tally = endure(tmp_path, start_weir, users, kills=18, seed=time.time_ns(), stacks=("one", "another"), kinds=kinds)
    with capsys.disabled():
        print(f"\n{tally}")


STACK_WITH_DATABASE = """
schema = 1
id = "{name}"
title = "{name}"
model = "thread per connection"
[run]
command = ["{{python}}", "users_server.py", "{{port}}", "{{postgres.url}}", "once"]
[services]
postgres = {{ dataset = "users" }}
[serves]
user-by-id = {{}}
"""


@pytest.mark.soak
def test_kills_by_the_hundred_lose_no_finished_trial_and_leave_nothing(
    tmp_path: Path, start_weir: StartWeir, study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = endure(tmp_path, start_weir, study, kills=SOAK_KILLS, seed=time.time_ns())
    with capsys.disabled():
        print(f"\n{tally}")


def verdicts(run: Path) -> list[tuple[str, str]]:
    with opened(run) as connection:
        return connection.execute("SELECT validity, reasons FROM trial ORDER BY id").fetchall()


def assert_physics_holds(run: Path) -> None:
    with RunReader(run) as reader:
        for trial in reader.trials():
            if trial.result.verdict.validity != "invalid":
                assert trial.result.summary is not None
                whole = trial.result.whole_load or trial.result.summary
                results = build_reported_results(
                    whole, trial.cell.load, trial.result.resources, cpus=len(reader.info.placement.stack)
                )
                assert [found for found in find_violations(*results) if found.kind == "impossible"] == []


def test_a_generator_that_was_suspended_is_rejected_with_that_reason_and_tried_again(
    tmp_path: Path, start_weir: StartWeir, study: Study
) -> None:
    process = start_weir("run", study("good", duration_s=3), "--out", "out")
    wait_for_load(tmp_path / "out" / "run.weir")
    (generator,) = pids_of("generator", process.pid)
    os.kill(generator, signal.SIGSTOP)
    # The length of the suspension.
    time.sleep(0.8)
    os.kill(generator, signal.SIGCONT)
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    first, *others = verdicts(tmp_path / "out" / "run.weir")
    assert first[0] == "invalid"
    assert "the generator stalled for" in first[1]
    assert others[-1][0] != "invalid", others
    with opened(tmp_path / "out" / "run.weir") as connection:
        assert connection.execute("SELECT count(*) FROM event WHERE trial_id = 1 AND kind = 'stalled'").fetchone() >= (
            1,
        )


@pytest.mark.parametrize("role", ["lab", "host"])
def test_a_lab_or_host_that_was_suspended_under_a_load_spoils_nothing(
    tmp_path: Path, start_weir: StartWeir, study: Study, role: str
) -> None:
    process = start_weir("run", study("good", duration_s=2), "--out", "out")
    wait_for_load(tmp_path / "out" / "run.weir")
    (suspended,) = pids_of(role, process.pid)
    os.kill(suspended, signal.SIGSTOP)
    # Longer than the rest of the load.
    time.sleep(1.5)
    os.kill(suspended, signal.SIGCONT)
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    run = tmp_path / "out" / "run.weir"
    assert list(accepted(run)) == [(1, 1)]
    finished_rows(run)
    assert_physics_holds(run)


def test_a_closed_terminal_is_an_interruption(tmp_path: Path, study: Study, weir: Weir) -> None:
    path = study("good", "other", blocks=2)
    terminal, inside = pty.openpty()

    def at_a_terminal() -> None:
        os.login_tty(inside)
        # nohup makes tests ignore SIGHUP, but weir at a terminal does not ignore it.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    process = subprocess.Popen([WEIR, "run", path, "--out", "out"], cwd=tmp_path, preexec_fn=at_a_terminal)
    os.close(inside)
    said = b""
    while b"trial 3 of 4" not in said:
        said += os.read(terminal, 65536)
    os.close(terminal)
    assert process.wait(END_S) == 130
    run = tmp_path / "out" / "run.weir"
    # On a busy machine trial 3 may end before the terminal is closed.
    assert 2 <= len(finished_rows(run)) < 4
    assert (tmp_path / "out" / "report.html").exists()
    assert weir("run", "--resume", "out").returncode == 0
    assert len(accepted(run)) == 4


@pytest.mark.thorough
def test_under_nohup_a_closed_terminal_is_nothing(tmp_path: Path, study: Study) -> None:
    command: list[str | Path] = ["nohup", WEIR, "run", study("good", blocks=2), "--out", "out"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        read_until(process.stderr, "trial 1 of 2")
        process.send_signal(signal.SIGHUP)
        _, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    assert len(accepted(tmp_path / "out" / "run.weir")) == 2


def test_a_run_goes_on_when_nobody_reads_its_progress_any_more(
    tmp_path: Path, start_weir: StartWeir, study: Study
) -> None:
    process = start_weir("run", study("good", "other"), "--out", "out")
    assert process.stderr is not None
    read_until(process.stderr, "trial 1 of 2")
    process.stderr.close()
    assert process.wait(END_S) == 0
    assert len(accepted(tmp_path / "out" / "run.weir")) == 2


FULL_DISK = """
mount -t tmpfs -o size=8m weir-test "$2" || exit
fill() { head -c 8m /dev/zero > "$2/filler" 2> /dev/null; }
[ -n "$3" ] || fill "$@"
mkfifo progress
"$1" run mine.toml --out disk/out > first.out 2> progress &
while read -r line; do
    echo "$line" >> first.err
    case "$line" in *"$3"*) [ -z "$3" ] || fill "$@";; esac
done < progress
wait $!; echo $? > first.code
cp -a disk/out full
rm "$2/filler"
if [ -f disk/out/run.weir ]; then "$1" run --resume disk/out; else "$1" run mine.toml --out disk/out; fi > second.out 2> second.err
echo $? > second.code
cp -a disk/out whole
"""


def run_on_a_disk_that_gets_full(tmp_path: Path, disk: str, *, when: str) -> tuple[str, Path, Path]:
    """Runs a study on a disk that is full once `when` is printed (or from the start if empty), and later has space
    again.

    Returns the first output, the run file at that moment, and the final run file.
    """
    (tmp_path / disk).mkdir(parents=True)
    unshare = shutil.which("unshare")
    assert unshare is not None
    script: list[str | Path] = ["sh", "-c", FULL_DISK, "sh", WEIR, disk, when]
    subprocess.run([unshare, "--mount", "--propagation", "private", *script], cwd=tmp_path, check=True)
    said = (tmp_path / "first.err").read_text()
    assert (tmp_path / "first.code").read_text() == "2\n", said
    assert "Traceback" not in said
    assert "try: check the space left on the disk" in said
    assert (tmp_path / "second.code").read_text() == "0\n", (tmp_path / "second.err").read_text()
    return said, tmp_path / "full" / "run.weir", tmp_path / "whole" / "run.weir"


needs_a_disk = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")


@pytest.mark.thorough
@needs_a_disk
@pytest.mark.needs("unshare")
def test_a_disk_that_is_full_from_the_start_makes_no_run(tmp_path: Path, study: Study) -> None:
    study("good")
    _, full, whole = run_on_a_disk_that_gets_full(tmp_path, "disk", when="")
    assert not full.exists()
    assert list(accepted(whole)) == [(1, 1)]


@needs_a_disk
@pytest.mark.needs("unshare")
def test_a_disk_that_gets_full_ends_a_run_and_what_was_finished_is_gone_on_with(tmp_path: Path, study: Study) -> None:
    study("good", "other", blocks=2)
    _, full, whole = run_on_a_disk_that_gets_full(tmp_path, "disk", when="trial 3 of")
    known = finished_rows(full)
    # On a busy machine trial 3 may end before the disk is full.
    assert 2 <= len(known) < 4
    assert finished_rows(whole).items() >= known.items()
    assert len(accepted(whole)) == 4


@needs_a_disk
@pytest.mark.needs("unshare")
def test_a_log_without_space_ends_a_run_and_is_not_the_servers_fault(tmp_path: Path, study: Study) -> None:
    study("good", "other")
    said, full, whole = run_on_a_disk_that_gets_full(tmp_path, "disk/out/logs", when="")
    assert "no space is left for the log" in said
    assert finished_rows(full) == {}
    assert len(accepted(whole)) == 2
