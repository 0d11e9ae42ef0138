"""`weir compare` as a user runs it, with real servers that weir starts by their commands."""

import json
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.end_to_end.conftest import SERVER, StartWeir, Weir
from tests.end_to_end.test_load_transport import make_certificates
from weir.model.errors import ExitCode
from weir.store import RunReader

Serve = Callable[..., str]
# On a busy machine a program may take seconds to end.
PATIENT = ("--ready-timeout", "60s")
SHORT = ("--warmup", "300ms", "-d", "500ms", "-c", "2", "--budget", "3m", "--precision", "90%")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ELSEWHERE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("NO_COLOR", "1")


def list_command_lines() -> Iterator[str]:
    """Yields the command line and the environment of every process."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (folder / "cmdline").read_text() + (folder / "environ").read_text()


def server(mode: str, port: str = "{port}") -> str:
    return shlex.join([sys.executable, str(SERVER), port, mode]).replace("'{port}'", "{port}")


def test_two_commands_are_answered_with_an_interval_and_kept_in_every_form(tmp_path: Path, weir: Weir) -> None:
    conditions = ["--fail-if", "throughput<0.9", "--fail-if", "throughput>1.1"]
    files = ["--json", "a.json", "--md", "a.md", "--html", "a.html", "--save", "study.toml", "--out", "out"]
    done = weir("compare", server("good"), server("slowest"), *SHORT, *files, *conditions)
    assert done.returncode == 1, done.stderr
    assert "server.py good answers " in done.stdout
    assert "as many requests as server.py slowest" in done.stdout
    assert "throughput<0.9: true for server.py slowest" in done.stderr
    assert "throughput>1.1: false for server.py slowest" in done.stderr
    found = json.loads((tmp_path / "a.json").read_text())
    # A request takes 3 ms on one side and 100 ms on the other.
    (ratio,) = [one["ratio"] for one in found["points"][0]["comparisons"] if one["metric"] == "throughput_rps"]
    assert ratio < 0.5
    assert (tmp_path / "a.md").read_text().startswith("**server.py good answers ")
    assert "server.py slowest" in (tmp_path / "a.html").read_text()
    with RunReader(tmp_path / "out" / "run.weir") as reader:
        assert {trial.cell.stack_label for trial in reader.trials()} >= {"server-py-good", "server-py-slowest"}
    assert weir("study", "check", "study.toml").returncode == 0
    scales = tomllib.loads((tmp_path / "study.toml").read_text())["scales"]
    assert set(scales) == {"quick", "evidence"}


def test_urls_are_compared_and_their_processes_observed(weir: Weir, serve: Serve) -> None:
    fast, slow = (f"http://{serve('delay', '--wait', wait)}/" for wait in ("1ms", "50ms"))
    done = weir("compare", slow, fast, *SHORT, "--json", "-")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (ratio,) = [one["ratio"] for one in found["points"][0]["comparisons"] if one["metric"] == "throughput_rps"]
    assert ratio > 2


@pytest.mark.needs("openssl")
def test_commands_that_speak_https_are_compared(tmp_path: Path, weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    make_certificates(tmp_path)
    monkeypatch.setenv("SERVER_TLS", str(tmp_path))
    done = weir("compare", server("good"), server("slowest"), *SHORT, "--https", "--cacert", "ca.pem")
    assert done.returncode == 0, done.stderr
    assert "server.py good answers " in done.stdout
    untrusted = weir("compare", server("good"), server("slowest"), *SHORT, *PATIENT, "--https", "--out", "untrusted")
    assert untrusted.returncode == 3, untrusted.stderr
    assert "server.py good: no connection" in untrusted.stderr
    assert "certificate is not trusted" in untrusted.stderr


@pytest.mark.needs("openssl")
def test_the_sides_see_the_client_certificate_and_so_does_the_saved_study(
    tmp_path: Path, weir: Weir, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificates(tmp_path)
    monkeypatch.setenv("SERVER_TLS", str(tmp_path))
    monkeypatch.setenv("SERVER_ASKS_CLIENTS", "yes")
    sides = (server("good"), server("slowest"), *SHORT, "--https", "--insecure")
    certificate = ("--cert", "client.pem", "--key", "client.key")
    done = weir("compare", *sides, *certificate, "--save", "study.toml")
    assert done.returncode == 0, done.stderr
    assert "server.py good answers " in done.stdout
    load = tomllib.loads((tmp_path / "study.toml").read_text())["load"]
    assert (load["tls_certificate"], load["tls_key"]) == (str(tmp_path / "client.pem"), str(tmp_path / "client.key"))
    assert weir("study", "check", "study.toml").returncode == 0
    without = weir("compare", *sides, *PATIENT, "--out", "without")
    assert without.returncode == 3, without.stderr
    assert "server.py good: GET /: found no client certificate, which the server requires" in without.stderr
    assert "try: --cert FILE --key FILE" in without.stderr
    # weir may quote any line of this log, because the server writes while weir reads.
    assert "Traceback" not in (tmp_path / "cache" / "commands" / "server-py-good-compare.log").read_text()
    mixed = weir("compare", *sides, *PATIENT, "--cert", "client.pem", "--key", "ca.key", "--out", "mixed")
    assert mixed.returncode == 2, mixed.stderr
    assert "expected an unencrypted key of this certificate: key values mismatch" in mixed.stderr


def test_each_value_of_a_variable_is_a_side(weir: Weir) -> None:
    command = ["env", "UNUSED={host}:{port} ", sys.executable, str(SERVER), "{port}", "{MODE}"]
    done = weir("compare", "--env", "MODE=good,slow", *SHORT, "--", *command)
    assert done.returncode == 0, done.stderr
    assert "MODE=good" in done.stdout
    assert "MODE=slow" in done.stdout


@pytest.mark.needs("git")
def test_a_command_is_compared_at_two_commits(tmp_path: Path, weir: Weir) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--quiet")
    for mode in ("good", "slowest"):
        (tmp_path / "server.py").write_text(SERVER.read_text().replace("sys.argv[2]", repr(mode)))
        git("add", "server.py")
        git("commit", "--quiet", "-m", mode)
    (tmp_path / "server.py").write_text(SERVER.read_text().replace("sys.argv[2]", repr("good")))
    done = weir(
        "compare",
        "--git",
        "HEAD~1",
        "HEAD",
        ".",
        *SHORT,
        "--budget",
        "12s",
        "--",
        sys.executable,
        "server.py",
        "{port}",
    )
    # On a busy machine the short budget may leave no valid trial.
    assert done.returncode in (ExitCode.DONE, ExitCode.NOT_VALID), done.stderr
    for name in ("HEAD~1", "HEAD", "working tree"):
        assert name in done.stdout
    with RunReader(tmp_path / "runs" / "compare-1") as reader:
        assert {trial.cell.stack_label for trial in reader.trials()} >= {"head-1", "head", "working-tree"}


@pytest.mark.parametrize(
    ("sides", "code", "parts"),
    [
        ([server("good"), "sh -c 'exit 7'", *PATIENT], 3, ["exit 7: the process ended with exit status 7 before it was ready"]),
        ([server("dies-under-load"), server("good"), *PATIENT, "--warmup", "2s"], 3, ["the process ended ", " during the warm-up"]),
        ([server("good", "8123"), server("good")], 3, ["the process listens on 8123, expected", "write {port}"]),
        (["./no-such-server {port}", server("good")], 3, ["no-such-server: ", "found no program", "/no-such-server\n"]),
        ([server("never-listens"), server("good")], 3, ["the process listens on no port"]),
        ([server("good"), server("answers-wrong")], 3, ["the servers respond differently", "--any-answer"]),
        ([server("good"), server("slow"), "--workload", "echo", *PATIENT], 3, ["server.py good: workload echo: POST "]),
        (["http://127.0.0.1:9/", server("good")], 3, ["127.0.0.1:9", "weir load http://127.0.0.1:9/"]),
        ([server("good")], 2, ["SIDE: found 1, expected two or more"]),
        (["sanic", "flask-gunicorn"], 2, ["--workload: missing, expected a workload that sanic serves"]),
        (["sanic", "flask-gunicorn", "--workload", "no"], 2, ["--workload: found 'no', expected one of cpu, echo, "]),
        ([server("good"), "--env", "A=1,2"], 2, ["--env: found no command"]),
        ([server("good"), server("slow"), "--fail-if", "speed<1"], 2, ["--fail-if: found 'speed<1'", "throughput, p50"]),
        ([server("good"), server("slow"), "--cpus", "0"], 2, ["No such option: --cpus"]),
        ([server("good"), server("slow"), "--poisson"], 2, ["--poisson: found without -R/--rate", "weir compare --help"]),
        (["'", server("slow")], 2, ["expected a valid shell command"]),
        ([server("good"), server("slow"), "--watch", "1"], 2, ["expected a process id for each URL (0)"]),
        (["--git", "main", "--", "x"], 2, ["--git: found 1 commits"]),
        ([server("good"), server("slow"), "--insecure"], 2, ["--insecure: found without HTTPS, expected --https"]),
        ([server("good"), server("slow"), "-m", "POST", "-b", "{{x}}"], 2, ["body: found", "--scenario FILE"]),
        ([server("good"), server("slow"), "--json", "-", "--md", "-"], 2, ["--md: found - together with --json -"]),
        ([server("good"), server("slow"), "--save", "none/study.toml"], 2, ["--save: found none/study.toml"]),
        ([server("good"), server("slow"), "--html", "."], 2, ["--html: found the folder ., expected a file"]),
        ([server("good"), server("slow"), "--path", "a"], 2, ["--path: found 'a', expected a path that begins with /"]),
        ([server("good"), server("slow"), "--ready", "a"], 2, ["--ready: found 'a', expected a path that begins with /"]),
        ([server("good"), server("slow"), "--cert", "ca.pem"], 2, ["--cert: found 'ca.pem', expected a readable file"]),
        ([server("good"), server("slow"), "--with", "k6", "no.js"], 2, ["--with: no.js: found no such file"]),
    ],
    ids=[
        "ends", "ends under load", "listens elsewhere", "no program", "listens nowhere", "other answers", "another workload", "no server",
        "one side", "no workload", "unknown workload", "no command", "unknown metric", "CPUs", "no rate", "open quote", "no URL",
        "one commit", "TLS", "placeholder", "both on one stream", "no folder", "a folder", "no slash", "no slash before ready",
        "no certificate",
        "no script",
    ],
)  # fmt: skip
def test_a_side_that_fails_is_told_with_the_next_command(
    tmp_path: Path, weir: Weir, sides: list[str], code: int, parts: list[str]
) -> None:
    done = weir("compare", "--ready-timeout", "3s", *sides)
    assert done.returncode == code, done.stderr
    for part in parts:
        assert part in done.stderr
    assert not (tmp_path / "runs").exists()


def test_ctrl_c_before_the_first_trial_ends_prints_no_result(start_weir: StartWeir) -> None:
    process = start_weir("compare", server("good"), server("slow"), *SHORT, "-d", "1m", "--budget", "1h")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("weir: measuring each generator's limit"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.endswith("weir: no trial has ended, so there is no result\nweir: interrupted\n")


def test_ctrl_c_prints_what_is_known_and_leaves_nothing_running(tmp_path: Path, start_weir: StartWeir) -> None:
    process = start_weir("compare", server("good"), server("slow"), *SHORT, "--budget", "10m", "--precision", "0.01%")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("after block 2"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "to print the result again: weir report " in err
    assert err.endswith("weir: interrupted\n")
    assert "server.py good" in out
    assert not [line for line in list_command_lines() if str(SERVER) in line and str(tmp_path) in line]
