"""Tests services on a separate node with its own address; the stack here calls them there."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.cluster.conftest import (
    Nodes,
    StartNodes,
    StartWeir,
    Weir,
    assert_losses_noticed_in_time,
    engines,
    running_nodes,
)
from tests.end_to_end import conftest as end_to_end
from tests.end_to_end.conftest import END_S
from tests.end_to_end.ordeal import command_line, read_until, wait_for_load
from tests.support.kept import kept_trials
from tests.support.listening import listening
from tests.support.ray_nodes import below
from weir.model.errors import ExitCode
from weir.paths import find_cache_folder
from weir.services.database import find_database_kind, parse_database_url
from weir.services.postgres import connect
from weir.store import CpuSampleRow, RunReader, SampleRow

pytestmark = [
    pytest.mark.usefixtures("stacks"),
    pytest.mark.thorough,
    pytest.mark.needs("ip"),
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

study = end_to_end.study
Study = end_to_end.Study

DELAY_S = 0.02
DELAY = f'[services.delay]\ndelay = "{DELAY_S * 1000:g}ms"'
SERVER = """
import itertools, json, sys, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

URLS = sys.argv[3:]
TURN = itertools.count()

def logged_in(url):
    if url.startswith("postgresql:"):
        import psycopg
        return psycopg.connect(url, autocommit=True)
    import pymysql
    at = urlsplit(url)
    return pymysql.connect(
        host=at.hostname, port=at.port, user=at.username, password=at.password, database=at.path[1:], autocommit=True
    )

class Asks(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        if not URLS[0].startswith("http:"):
            self.databases = [logged_in(url) for url in URLS]

    def do_GET(self):
        if URLS[0].startswith("http:"):
            with urllib.request.urlopen(URLS[0]) as answer:
                body = answer.read()
        else:
            asked = int(self.path.rpartition("/")[2])
            with self.databases[next(TURN) % len(URLS)].cursor() as cursor:
                cursor.execute("SELECT id, name, email FROM users WHERE id = %s", (asked,))
                body = json.dumps(dict(zip(("id", "name", "email"), cursor.fetchone()))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

ThreadingHTTPServer((sys.argv[2], int(sys.argv[1])), Asks).serve_forever()
"""
DATABASES = {
    "reads": ("postgres",),
    "reads-mariadb": ("mariadb",),
    "reads-twice": ("postgres", "postgres-standby"),
}
"""The services from which each stack reads."""


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks that call an upstream, one of them behind a proxy, and stacks that read from a database."""
    asking: dict[str, tuple[str, tuple[str, ...], str, str]] = {
        "asks": ("[services.delay]", ("{delay.url}",), "/", "ping"),
        "asks-behind": ("[services.delay]\n[services.nginx]", ("{delay.url}",), "/", "ping"),
    }
    for name, (first, *others) in DATABASES.items():
        services = f'[services.{first}]\ndataset = "users"\n[services.nginx]\n' + "".join(
            f"[services.{other}]\n" for other in others
        )
        asking[name] = (services, tuple(f"{{{service}.url}}" for service in (first, *others)), "/user/1", "user-by-id")
    for name, (services, urls, ready, workload) in asking.items():
        folder = tmp_path / "stacks" / name
        folder.mkdir(parents=True)
        (folder / "server.py").write_text(SERVER)
        command = json.dumps(["{python}", "server.py", "{port}", "{host}", *urls])
        (folder / "stack.toml").write_text(
            f"""
schema = 1
id = "{name}"
title = "A server that {name}"
model = "thread per connection"
[run]
command = {command}
ready = {{ path = "{ready}", timeout_s = 20 }}
{services}
[serves]
{workload} = {{}}
"""
        )
    monkeypatch.setenv("WEIR_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(scope="module")
def apart() -> Iterator[Nodes]:
    """A head for stacks, a node for loads and a node for services, each with its own address."""
    with running_nodes({}, {"weir_load": 1}, {"weir_service": 1}, namespaces=True) as found:
        yield found


def test_the_check_of_a_cluster_shows_the_node_for_services(weir: Weir, apart: Nodes) -> None:
    done = weir("cluster", "check", apart.address, "--json")
    assert done.returncode == 0, done.stderr
    assert [node["roles"] for node in json.loads(done.stdout)["nodes"]] == [[], ["load"], ["service"]]


def command_lines_below(ancestor: int) -> Iterator[tuple[int, list[str]]]:
    """Yields the descendants of a process with their command lines. A stack's environment does not tell whose it is."""
    for pid in below(ancestor):
        if words := command_line(pid):
            yield pid, words


def names_of_samples(out: Path) -> set[tuple[str, str]]:
    (trial,) = kept_trials(out)
    with RunReader(out / "run.weir") as reader:
        return {(row.tier, row.name) for row in reader.readings(SampleRow, trial.id)}


def test_an_upstream_runs_on_the_node_for_services_and_is_measured_there(
    study: Study, weir: Weir, apart: Nodes, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    node = f"{apart.address.rpartition('.')[0]}.3"
    on_cluster = ("--cluster", apart.address, "--agents", "1")
    done = weir("run", study("asks", workloads=["ping"], rest=DELAY, duration_s=1), "--out", out, *on_cluster)
    assert done.returncode == 0, done.stderr
    assert f"services: on {node}" in done.stderr
    (trial,) = kept_trials(out)
    with RunReader(out / "run.weir") as reader:
        info, samples = reader.info, [row for row in reader.readings(SampleRow, trial.id) if row.tier == "delay"]
        machine = reader.readings(CpuSampleRow, trial.id)
    assert info.placement.services_on == node
    assert info.placement.services == ()
    assert list(info.environment["services_on"]) == [node]
    assert names_of_samples(out) == {("app", "app"), ("delay", f"delay@{node}")}
    summary, resources = trial.result.summary, trial.result.resources
    assert summary is not None
    assert summary.response_time_us.p50 is not None
    assert summary.response_time_us.p50 / 1e6 >= DELAY_S
    assert resources is not None
    # Thread times are in nanoseconds. CPU time is counted in ticks, and this load may fill none.
    assert 0 < sum(pool.in_state["on_cpu"] for pool in resources.tiers["delay"].pools) < 1
    # The samples use the load's time axis, from before the load until after it.
    assert min(row.t_s for row in samples) < 0.5
    assert max(row.t_s for row in samples) > summary.duration_s - 0.5
    # Each CPU has one reading per moment, so no readings of the other machine are among them.
    assert len({(row.t_s, row.cpu) for row in machine}) == len(machine)
    assert f"{node}:" in (out / trial.result.logs["delay"]).read_text()
    assert engines() == []

    done = weir("run", "--resume", out, *on_cluster, "--services-here")
    assert done.returncode == ExitCode.USAGE
    assert f"machine of the services: found 'this machine', expected '{node}' as in the run" in done.stderr
    done = weir("run", "--resume", out, *on_cluster)
    assert done.returncode == 0, done.stderr


def test_services_stay_beside_their_stack_where_that_is_asked_for(
    study: Study, weir: Weir, apart: Nodes, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    file = study("asks", workloads=["ping"], rest=DELAY)
    done = weir("run", file, "--out", out, "--cluster", apart.address, "--agents", "1", "--services-here")
    assert done.returncode == 0, done.stderr
    assert names_of_samples(out) == {("app", "app"), ("delay", "delay")}


@pytest.mark.parametrize("stack", ["asks", pytest.param("asks-behind", marks=pytest.mark.needs("nginx"))])
def test_only_what_agents_ask_listens_where_they_reach_it_and_on_no_other_address(
    stack: str, study: Study, start_weir: StartWeir, apart: Nodes, tmp_path: Path
) -> None:
    file = study(stack, workloads=["ping"], rest=DELAY, duration_s=3600)
    process = start_weir("run", file, "--out", tmp_path / "run", "--cluster", apart.address, "--agents", "1")
    assert process.stderr is not None
    read_until(process.stderr, "trial 1 of 1")
    wait_for_load(tmp_path / "run" / "run.weir")
    found = {
        "app" if "server.py" in words else "nginx": listening(pid)
        for pid, words in command_lines_below(process.pid)
        if "server.py" in words or words[0].startswith("nginx: ")
    }
    process.send_signal(signal.SIGINT)
    process.communicate()
    head = apart.address.partition(":")[0]
    assert found == ({"app": {head}} if stack == "asks" else {"app": {"127.0.0.1"}, "nginx": {head}})


@pytest.mark.needs("nginx")
@pytest.mark.parametrize(
    "stack", ["reads", pytest.param("reads-mariadb", marks=pytest.mark.needs("mvn")), "reads-twice"]
)
def test_databases_run_on_the_node_for_services_and_a_proxy_beside_its_stack(
    stack: str, study: Study, weir: Weir, apart: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The user's cache keeps the databases' programs for all tests.
    monkeypatch.delenv("WEIR_CACHE")
    out = tmp_path / "run"
    node = f"{apart.address.rpartition('.')[0]}.3"
    before = set(data_folders())
    done = weir(
        "run",
        study(stack, workloads=["user-by-id"], duration_s=1),
        "--out",
        out,
        "--cluster",
        apart.address,
        "--agents",
        "1",
    )
    assert done.returncode == 0, done.stderr
    assert f"services: on {node}" in done.stderr
    databases = DATABASES[stack]
    assert names_of_samples(out) == {("app", "app"), ("nginx", "nginx"), *((one, f"{one}@{node}") for one in databases)}
    (trial,) = kept_trials(out)
    assert {work.service for work in trial.result.work} == set(databases)
    # Both databases were read, and together they returned one row per request.
    rows = [work.rows or 0 for work in trial.result.work]
    (requests,) = {work.requests for work in trial.result.work}
    assert min(rows) > 0
    assert requests <= sum(rows) <= requests + max(work.edge_requests for work in trial.result.work)
    assert trial.result.resources is not None
    for one in databases:
        # Thread times are in nanoseconds. CPU time is counted in ticks, and this load may fill none.
        assert sum(pool.in_state["on_cpu"] for pool in trial.result.resources.tiers[one].pools) > 0
        assert node in (out / trial.result.logs[one]).read_text()
    # No data folders of the services are left on the node.
    assert set(data_folders()) == before
    assert engines() == []


@pytest.mark.needs("nginx", "nsenter")
def test_a_database_elsewhere_lets_nobody_else_in_and_keeps_nobody_waiting_when_its_machine_is_cut_off(
    study: Study, start_weir: StartWeir, start_nodes: StartNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = start_nodes({}, {"weir_load": 1}, {"weir_service": 1}, namespaces=True)
    monkeypatch.delenv("WEIR_CACHE")
    file = study("reads", workloads=["user-by-id"], duration_s=3600)
    process = start_weir("run", file, "--out", tmp_path / "run", "--cluster", cluster.address, "--agents", "1")
    assert process.stderr is not None
    said = read_until(process.stderr, "trial 1 of 1")
    wait_for_load(tmp_path / "run" / "run.weir")
    (url,) = {
        word
        for _, words in command_lines_below(process.pid)
        if "server.py" in words
        for word in words
        if word.startswith("postgresql:")
    }
    log_in = [sys.executable, "-c", "import sys; from psycopg import connect; connect(sys.argv[1]).close()", url]
    assert subprocess.run(log_in).returncode == 0
    refused = subprocess.run(
        ["nsenter", f"--net=/proc/{cluster.raylets[1]}/ns/net", *log_in],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert refused.returncode != 0
    assert f'no pg_hba.conf entry for host "{cluster.address.rpartition(".")[0]}.2"' in refused.stdout

    with connect(parse_database_url("URL", url, find_database_kind("postgres"))) as connection:
        subprocess.run(
            ["nsenter", f"--net=/proc/{cluster.raylets[2]}/ns/net", "ip", "link", "set", "eth0", "down"], check=True
        )
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == ExitCode.TARGET, said + err
    assert "is lost" in err
    assert_losses_noticed_in_time(err)


def data_folders() -> list[Path]:
    """Returns the data folders of services on any node of this machine."""
    return [*Path(tempfile.gettempdir()).glob("weir-services-*"), *find_cache_folder().glob("services/weir-services-*")]


def test_cpus_of_this_machine_are_of_no_use_to_services_elsewhere(
    study: Study, weir: Weir, apart: Nodes, tmp_path: Path
) -> None:
    file = study("asks", workloads=["ping"], rest=f"{DELAY}\n[cpus]\nservices = 1")
    done = weir("run", file, "--out", tmp_path / "run", "--cluster", apart.address, "--agents", "1")
    assert done.returncode == ExitCode.USAGE
    assert "cpus.services: found 1 together with a node for services" in done.stderr
    assert "try: add --services-here, or omit cpus.services" in done.stderr


def test_a_load_ends_when_the_node_for_services_is_lost(
    study: Study, start_weir: StartWeir, start_nodes: StartNodes, tmp_path: Path
) -> None:
    cluster = start_nodes({}, {"weir_load": 1}, {"weir_service": 1}, namespaces=True)
    file = study("asks", workloads=["ping"], rest=DELAY, duration_s=3600)
    process = start_weir("run", file, "--out", tmp_path / "run", "--cluster", cluster.address, "--agents", "1")
    assert process.stderr is not None
    said = read_until(process.stderr, "trial 1 of 1")
    wait_for_load(tmp_path / "run" / "run.weir")
    os.kill(cluster.raylets[2], signal.SIGKILL)
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == ExitCode.TARGET, said + err
    assert "is lost" in err
    assert engines() == []


def test_a_run_whose_node_for_services_is_lost_ends_with_what_was_finished(
    study: Study, start_weir: StartWeir, start_nodes: StartNodes, tmp_path: Path
) -> None:
    cluster = start_nodes({}, {"weir_load": 1}, {"weir_service": 1}, namespaces=True)
    out = tmp_path / "run"
    file = study("asks", workloads=["ping"], rest=DELAY, duration_s=2, blocks=2)
    process = start_weir("run", file, "--out", out, "--cluster", cluster.address, "--agents", "1")
    assert process.stderr is not None
    said = read_until(process.stderr, "trial 2 of 2")
    os.kill(cluster.raylets[2], signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == ExitCode.TARGET, said + err
    assert "is lost" in err
    assert "weir has kept all finished work" in err
    with RunReader(out / "run.weir") as reader:
        assert len(reader.trials()) == 1
    assert engines() == []
