"""Tests loads from agents on a real cluster of several nodes."""

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Nodes, StartNodes, StartWeir, Weir, agents, assert_losses_noticed_in_time, engines
from tests.support.ray_nodes import CLOCK_AHEAD_S, below
from tests.support.tiers import cases
from weir.generators.null_server import NullServer
from weir.model.errors import ExitCode
from weir.model.hdr_batch import merge
from weir.model.load_records import FEWER_AGENTS, LIVE_PERCENTILES, LOST_AGENT
from weir.store import RunReader

Serve = Callable[..., str]


def summary(weir: Weir, nodes: Nodes, *arguments: str) -> dict[str, Any]:
    done = weir("load", *arguments, "--cluster", nodes.address, "--json", "-")
    assert done.returncode == 0, done.stderr
    # Ray's own messages do not reach the user.
    assert "logging.cc" not in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("count", cases([2, 3, 7], kept=1))
def test_agents_ask_exactly_what_the_load_has(count: int, weir: Weir, nodes: Nodes, serve: Serve) -> None:
    found = summary(
        weir, nodes, f"http://{serve('null')}/", "-n", "10000", "-c", "50", "--agents", str(count), "--share-nodes"
    )
    assert found["requests"]["ok"] == found["requests"]["completed"] == 10_000
    assert len(found["agents"]) == count
    assert sum(agent["requests"]["ok"] for agent in found["agents"]) == 10_000
    assert not {LOST_AGENT, FEWER_AGENTS} & set(found["verdict"]["kinds"])


def test_a_rate_is_shared_out_and_kept(weir: Weir, nodes: Nodes, serve: Serve) -> None:
    found = summary(weir, nodes, f"http://{serve('null')}/", "-R", "1000", "-c", "20", "-d", "2s", "--agents", "2")
    assert found["requests"]["intended"] == 2000
    assert [agent["requests"]["intended"] for agent in found["agents"]] == [1000, 1000]
    # The error is half of the shortest round trip, which takes longer on a busy machine.
    assert all(0 < agent["clock_error_us"] < 100_000 for agent in found["agents"])


def test_shares_are_as_uneven_as_they_are_told_to_be(weir: Weir, nodes: Nodes, serve: Serve) -> None:
    found = summary(
        weir, nodes, f"http://{serve('null')}/", "-R", "900", "-c", "30", "-d", "1s", "--agent-threads", "2,1"
    )
    assert [agent["requests"]["intended"] for agent in found["agents"]] == [600, 300]


CPU = min(os.sched_getaffinity(0))


@pytest.mark.parametrize(("count", "bound"), cases([(1, [[CPU]]), (2, [[], []])], kept=1))
def test_a_load_that_is_bound_is_so_on_agents_that_have_cpus_for_themselves(
    count: int, bound: list[list[int]], weir: Weir, nodes: Nodes, serve: Serve
) -> None:
    found = summary(
        weir, nodes, f"http://{serve('null')}/", "-n", "100", "-c", "2", "--cpus", str(CPU), "--agents", str(count)
    )
    assert [agent["generator"]["cpus"] for agent in found["agents"]] == bound


@pytest.mark.thorough
def test_the_histogram_of_agents_is_that_of_one_generator_where_the_server_always_takes_the_same_time(
    start_weir: StartWeir, nodes: Nodes, serve: Serve, tmp_path: Path
) -> None:
    words = ["load", f"http://{serve('delay', '--wait', '2s')}/", "-c", "21", "-n", "42", "--timeout", "20s"]
    on_cluster = ["--cluster", nodes.address, "--agents", "3", "--share-nodes"]
    alone, together = tmp_path / "alone.weir", tmp_path / "together.weir"
    loads = [start_weir(*words, "--out", alone), start_weir(*words, *on_cluster, "--out", together)]
    for load in loads:
        _, err = load.communicate(timeout=200)
        assert load.returncode == 0, err
    for file in (alone, together):
        with RunReader(file) as reader:
            (trial,) = reader.trials()
            found = merge(reader.interval_histograms(trial.id))
        assert found.total == 42
        assert trial.result.summary is not None
        # Each connection sends two requests, one after the other, and the server delays each for 2 s. So the duration of
        # the load limits each response time, also on a busy machine. The width of a bucket is at most 0.1 %.
        longest_ns = (trial.result.summary.duration_s - 2) * 1e9
        assert 2e9 * 0.999 <= found.min <= found.max <= longest_ns * 1.001


def test_what_is_kept_of_it_is_what_one_generator_would_have_kept(
    weir: Weir, nodes: Nodes, serve: Serve, tmp_path: Path
) -> None:
    file = tmp_path / "shared.weir"
    url = f"http://{serve('delay', '--wait', '20ms')}/"
    done = weir(
        "load", url, "-c", "10", "-d", "2s", "--cluster", nodes.address, "--agents", "2", "--out", file, "--json", "-"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    with RunReader(file) as reader:
        trial = reader.trials()[0].id
        intervals, kept = reader.intervals(trial), merge(reader.interval_histograms(trial))
    assert sum(one.completed for one in intervals) == found["requests"]["completed"]
    assert [one.start_s for one in intervals] == sorted({one.start_s for one in intervals})
    # Compares with all responses of the same load, up to the width of a bucket.
    of_all = dict(zip(LIVE_PERCENTILES, kept.quantiles(LIVE_PERCENTILES.values()), strict=True))
    for name, value_ns in of_all.items():
        assert found["response_time_us"][name] == pytest.approx(value_ns / 1e3, rel=0.002), name
    report = weir("report", file)
    assert report.returncode == 0, report.stderr


def test_a_scenario_gives_each_row_of_a_feeder_to_one_user_of_all(weir: Weir, nodes: Nodes, tmp_path: Path) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    rows = tmp_path / "rows.csv"
    rows.write_text("name\n" + "".join(f"user-{index}\n" for index in range(40)))
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        """
[feeders.rows]
format = "csv"
file = "rows.csv"
mode = "sequential"
[[steps]]
name = "who"
path = "/{{csv rows.name}}"
"""
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        found = summary(weir, nodes, url, "--scenario", str(scenario), "--users", "8", "--loops", "5", "--agents", "2")
        server.shutdown()
        thread.join()
    assert found["steps"]["who"]["ok"] == 40
    assert sorted(asked) == sorted(f"/user-{index}" for index in range(40))


def test_check_shows_nodes_and_clocks(weir: Weir, nodes: Nodes) -> None:
    done = weir("cluster", "check", nodes.address, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sorted(node["roles"] for node in found["nodes"]) == [[], ["load"], ["load"]]
    assert {node["engine"] for node in found["nodes"]} == {"weir-engine 0.1.0"}
    assert len(found["pairs"]) == 6
    for pair in found["pairs"]:
        # All nodes have this machine's clock.
        assert abs(pair["clock_offset_us"]) <= pair["clock_error_us"] + 1
    shown = weir("cluster", "check", nodes.address)
    assert "round trip" in shown.stdout


@pytest.mark.thorough
@pytest.mark.needs("ip", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
def test_nodes_with_addresses_and_clocks_of_their_own_load_a_server_over_the_network_at_one_time(
    weir: Weir, start_nodes: StartNodes
) -> None:
    nodes = start_nodes({}, {"weir_load": 1}, {"weir_load": 1}, namespaces=True)
    head = nodes.address.partition(":")[0]
    with NullServer(address=head) as server:
        found = summary(weir, nodes, f"http://{server.address}/", "-R", "2000", "-c", "20", "-d", "2s", "--agents", "2")
    assert found["requests"]["ok"] == 4_000
    agents_by_name = {agent["name"]: agent for agent in found["agents"]}
    assert len(agents_by_name) == 2
    assert head not in agents_by_name
    # Each agent got a start time on its own clock. With a wrong clock it would begin CLOCK_AHEAD_S late.
    for number, agent in enumerate(sorted(found["agents"], key=lambda agent: agent["clock_offset_us"]), start=1):
        ahead_us = number * CLOCK_AHEAD_S * 1e6
        assert agent["clock_offset_us"] == pytest.approx(ahead_us, abs=agent["clock_error_us"] + 1)
        # The error is half of the shortest round trip, which takes longer on a busy machine.
        assert agent["clock_error_us"] < 100_000
        assert agent["began_late_us"] < CLOCK_AHEAD_S * 1e6 / 100
    # The load ends with its last response, which comes within the timeout.
    assert 1.9 < found["duration_s"] < 2 + 2 + 0.1
    assert not {LOST_AGENT, FEWER_AGENTS} & set(found["verdict"]["kinds"])


# --- Failures


def started(start_weir: StartWeir, nodes: Nodes, url: str, log: Path) -> Any:
    """Starts a load of a minute from two agents."""
    on_cluster = ("--cluster", nodes.address, "--agents", "2")
    # A load that lost an agent does not count as one that missed this objective.
    return start_weir("load", url, "-c", "4", "-d", "60s", *on_cluster, "--hdr", log, "--objective", "p99<=1us")


def begun(start_weir: StartWeir, nodes: Nodes, url: str, log: Path) -> Any:
    """Starts the same load and waits for its first intervals."""
    process = started(start_weir, nodes, url, log)
    while not (log.is_file() and any(line[:1].isdigit() for line in log.read_text().splitlines())):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def gone(what: Callable[[], list[int]], within_s: float = 30.0) -> bool:
    until = time.monotonic() + within_s
    while what() and time.monotonic() < until:
        time.sleep(0.05)
    return not what()


def test_a_killed_agent_ends_the_load_and_is_named(
    start_weir: StartWeir, nodes: Nodes, serve: Serve, tmp_path: Path
) -> None:
    process = begun(start_weir, nodes, f"http://{serve('null')}/", tmp_path / "log")
    os.kill(agents()[0], signal.SIGKILL)
    out, err = process.communicate(timeout=200)
    assert process.returncode == ExitCode.NOT_VALID, err
    assert "is lost" in out
    assert_losses_noticed_in_time(out)
    assert "verdict: invalid" in out
    # Ray's own messages about the loss do not reach the user.
    assert "raylet" not in out + err
    assert gone(engines)


@pytest.mark.thorough
def test_a_killed_engine_is_said_to_be_its_agents(
    start_weir: StartWeir, nodes: Nodes, serve: Serve, tmp_path: Path
) -> None:
    process = begun(start_weir, nodes, f"http://{serve('null')}/", tmp_path / "log")
    os.kill(engines()[0], signal.SIGKILL)
    _, err = process.communicate(timeout=200)
    assert process.returncode == ExitCode.TARGET, err
    assert re.search(r"\S+: weir-engine load ended unexpectedly by signal 9", err), err
    assert gone(engines)


@pytest.mark.thorough
def test_an_agent_whose_engine_stands_still_is_lost_after_two_seconds(
    start_weir: StartWeir, nodes: Nodes, serve: Serve, tmp_path: Path
) -> None:
    process = begun(start_weir, nodes, f"http://{serve('null')}/", tmp_path / "log")
    os.kill(engines()[0], signal.SIGSTOP)
    out, err = process.communicate(timeout=200)
    assert process.returncode == ExitCode.NOT_VALID, err
    assert "no interval for" in out
    assert_losses_noticed_in_time(out)
    for engine in engines():
        os.kill(engine, signal.SIGCONT)
    assert gone(engines)


@pytest.mark.thorough
def test_a_killed_node_ends_the_load_and_is_named(
    start_weir: StartWeir, start_nodes: StartNodes, serve: Serve, tmp_path: Path
) -> None:
    nodes = start_nodes({}, {"weir_load": 1}, {"weir_load": 1})
    process = begun(start_weir, nodes, f"http://{serve('null')}/", tmp_path / "log")
    # A machine that fails takes the raylet and its workers at once. Without the raylet, workers live for some seconds.
    for victim in (nodes.raylets[1], *below(nodes.raylets[1])):
        os.kill(victim, signal.SIGKILL)
    out, err = process.communicate(timeout=200)
    assert process.returncode == ExitCode.NOT_VALID, err
    assert "is lost" in out
    assert_losses_noticed_in_time(out)
    assert gone(engines)


@pytest.mark.thorough
@pytest.mark.needs("ip", "nsenter")
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_node_that_sends_nothing_any_more_is_lost_in_time(
    start_weir: StartWeir, start_nodes: StartNodes, serve: Serve, tmp_path: Path
) -> None:
    nodes = start_nodes({}, {"weir_load": 1}, {"weir_load": 1}, namespaces=True)
    with NullServer(address=nodes.address.partition(":")[0]) as server:
        process = begun(start_weir, nodes, f"http://{server.address}/", tmp_path / "log")
        # No connection is closed, and Ray waits much longer than weir.
        subprocess.run(
            ["nsenter", f"--net=/proc/{nodes.raylets[1]}/ns/net", "ip", "link", "set", "eth0", "down"], check=True
        )
        out, err = process.communicate(timeout=200)
    assert process.returncode == ExitCode.NOT_VALID, err
    assert "is lost" in out
    assert_losses_noticed_in_time(out)
    assert gone(engines)


KILLS = [pytest.param(seed, marks=pytest.mark.thorough if seed < 6 else pytest.mark.soak) for seed in range(36)]


@pytest.mark.parametrize("seed", KILLS)
def test_a_kill_at_any_moment_leaves_nothing_running(
    seed: int, start_weir: StartWeir, start_nodes: StartNodes, nodes: Nodes, serve: Serve, tmp_path: Path
) -> None:
    who, is_under_way = ("agent", "driver", "node")[seed % 3], seed // 3 % 2 == 1
    # The kill comes during the cluster's joining and the placement of agents, or after the load's first interval.
    moment_s = random.Random(seed).uniform(0.0 if is_under_way else 0.5, 4.0)
    cluster = start_nodes({}, {"weir_load": 1}, {"weir_load": 1}) if who == "node" else nodes
    # No agent of the load before is left.
    assert gone(agents)
    begin = begun if is_under_way else started
    process = begin(start_weir, cluster, f"http://{serve('null')}/", tmp_path / "log")
    time.sleep(moment_s)
    if is_under_way:
        assert len(engines("load")) == 2
    victims = [process.pid] if who == "driver" else list(cluster.raylets[1:]) if who == "node" else agents()
    for victim in victims[:1]:
        os.kill(victim, signal.SIGKILL)
    if not victims:
        # There was no agent yet that could be killed.
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert "Traceback" not in err
    assert "raylet" not in out + err
    if who != "driver" and victims:
        # If Ray has not started the agent yet, it starts another one, and the load is complete. If an agent is lost
        # before the load, the output says so.
        is_told = "verdict: valid" in out or "generated this load" in out
        is_whole = (
            who == "agent" and not is_under_way and process.returncode in (ExitCode.DONE, ExitCode.MISSED) and is_told
        )
        assert is_whole or process.returncode in (ExitCode.NOT_VALID, ExitCode.TARGET), (process.returncode, out, err)
    assert gone(engines)
    assert gone(agents)


def test_an_interruption_ends_the_load_and_tells_what_there_is(
    start_weir: StartWeir, nodes: Nodes, serve: Serve, tmp_path: Path
) -> None:
    process = begun(start_weir, nodes, f"http://{serve('null')}/", tmp_path / "log")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert "req/s" in out
    assert gone(engines)


def test_a_target_that_nobody_can_reach_is_told_as_from_one_machine(
    weir: Weir, nodes: Nodes, free_port: Callable[[], int]
) -> None:
    done = weir("load", f"http://127.0.0.1:{free_port()}/", "-d", "1s", "--cluster", nodes.address, "--agents", "2")
    assert done.returncode == ExitCode.TARGET
    assert "refused" in done.stderr
    assert gone(engines)


def test_more_agents_than_there_is_room_for_are_refused_with_what_there_is(
    weir: Weir, nodes: Nodes, serve: Serve
) -> None:
    url = f"http://{serve('null')}/"
    done = weir("load", url, "--cluster", nodes.address, "--agents", "3")
    assert done.returncode == ExitCode.USAGE
    assert "room for 2 of 3 agents" in done.stderr
    assert "--share-nodes" in done.stderr
    done = weir("load", url, "--cluster", nodes.address, "--agents", "9", "--share-nodes")
    assert done.returncode == ExitCode.USAGE
    assert "room for 8 of 9 agents" in done.stderr


def test_what_several_agents_cannot_do_is_refused(weir: Weir, nodes: Nodes, serve: Serve) -> None:
    url = f"http://{serve('null')}/"
    done = weir("load", url, "--until-failure", "--cluster", nodes.address, "--agents", "2")
    assert done.returncode == ExitCode.USAGE
    assert "--until-failure: found several agents" in done.stderr
    done = weir("load", url, "-c", "1", "--cluster", nodes.address, "--agents", "2")
    assert done.returncode == ExitCode.USAGE
    assert "1 connections for 2 load threads" in done.stderr
    assert gone(engines)


def test_where_there_is_no_cluster_the_next_step_is_told(weir: Weir, free_port: Callable[[], int]) -> None:
    done = weir("load", "http://127.0.0.1:1/", "--cluster", f"127.0.0.1:{free_port()}")
    assert done.returncode == ExitCode.TARGET
    assert "expected a Ray cluster" in done.stderr
    assert "ray start" in done.stderr


@pytest.mark.parametrize("flags", [("--agents", "2"), ("--agent-threads", "1,1"), ("--share-nodes",)])
def test_flags_of_a_cluster_need_one(flags: tuple[str, ...], weir: Weir) -> None:
    done = weir("load", "http://127.0.0.1:1/", *flags)
    assert done.returncode == ExitCode.USAGE
    assert f"{flags[0]}: found without --cluster" in done.stderr


def test_addresses_of_this_machine_are_refused_for_loads_of_others(weir: Weir) -> None:
    done = weir(
        "load",
        "http://127.0.0.1:1/",
        "--cluster",
        "127.0.0.1:1",
        "--bind",
        "127.0.0.2,127.0.0.3",
        "--bind",
        "127.0.0.4",
    )
    assert done.returncode == ExitCode.USAGE
    assert "--bind: found 127.0.0.2,127.0.0.3,127.0.0.4 and --cluster" in done.stderr
    assert "leave out --bind" in done.stderr


@pytest.mark.parametrize("shares", ["2,x", "0,1", "2,1,1"])
def test_shares_that_are_none_are_refused(shares: str, weir: Weir, nodes: Nodes) -> None:
    done = weir("load", "http://127.0.0.1:1/", "--cluster", nodes.address, "--agents", "2", "--agent-threads", shares)
    assert done.returncode == ExitCode.USAGE
    assert f"--agent-threads: found '{shares}'" in done.stderr


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from weir.cluster import ray_cluster
    from weir.model.errors import UsageError

    monkeypatch.setattr(ray_cluster, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="Ray is not installed here") as raised, ray_cluster.join_cluster("auto"):
        pass
    assert raised.value.hint == "pip install 'weirbench[cluster]'"
