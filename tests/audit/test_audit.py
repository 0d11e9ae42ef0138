"""Tests `weir audit` with published tables, reports of tools, a user's files, and files of other kinds."""

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest

from weir.audit.audit import audit_file

REPORTS = Path(__file__).parent.parent / "data" / "reports"


def weir(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sysconfig.get_path("scripts")) / "weir"), "audit", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def broken(name: str, law: str) -> set[str]:
    _, loads = audit_file(name)
    return {load.result.name for load in loads if any(violation.law == law for violation in load.violations)}


def test_the_means_that_hey_printed_after_a_million_results_are_impossible() -> None:
    assert broken("sync-vs-async", "users = throughput × response time") == {"Flask", "Sanic", "Tomcat", "Netty"}
    _, loads = audit_file("sync-vs-async")
    sanic = next(load for load in loads if load.result.name == "Sanic")
    assert "595.4 µs" in sanic.violations[0].found
    assert "hey divides the sum of all response times by 1,000,000" in sanic.violations[0].cause


def test_the_load_that_was_printed_for_the_hot_row_is_not_the_load_that_ran() -> None:
    assert broken("mvc-vs-webflux", "throughput ≤ users × loops ÷ ramp") == {"issue, MVC", "issue, WebFlux"}
    assert broken("mvc-vs-webflux", "users = throughput × response time") == {"issue, MVC", "issue, WebFlux"}
    assert broken("mvc-vs-webflux", "throughput ≤ users × loops ÷ (ramp + loops × response time)") == {"ping, WebFlux"}


def test_the_means_that_wrk_corrected_are_impossible() -> None:
    assert len(broken("api-capacity", "users = throughput × response time")) == 3
    raw = broken("blocking-vs-nonblocking", "users = throughput × response time")
    assert "MVC + JDBC, 400 connections" in raw
    assert len(raw) == 32


def test_where_nothing_is_known_of_the_users_nothing_is_found_and_that_is_said() -> None:
    done = weir("socket-servers")
    assert done.returncode == 0
    assert "add --users" in done.stdout


def test_what_the_report_does_not_say_can_be_told() -> None:
    assert weir(REPORTS / "hey.txt").returncode == 0
    done = weir(REPORTS / "hey.txt", "--users", "1", "--json", "-")
    assert done.returncode == 1
    (load,) = json.loads(done.stdout)["loads"]
    assert load["possible"] is False
    assert load["breaches"][0]["law"] == "users = throughput × response time"


def test_the_means_of_wrk_are_possible_only_with_a_pipeline_and_its_depth_can_be_given() -> None:
    done = weir(REPORTS / "wrk.txt")
    assert done.returncode == 0
    assert "ONLY WITH A PIPELINE" in done.stdout
    assert "at least 3 requests in flight" in done.stdout
    assert "add --pipeline N" in done.stdout
    assert weir(REPORTS / "wrk.txt", "--pipeline", "1").returncode == 1
    assert "PIPELINE" not in weir(REPORTS / "wrk.txt", "--pipeline", "16").stdout


def test_the_figures_that_were_read_are_shown_for_each_report_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    path.write_text((REPORTS / "oha.txt").read_text() + (REPORTS / "plow.txt").read_text())
    done = weir(path, "--json", "-")
    first, second = json.loads(done.stdout)["loads"]
    assert (first["tool"], first["read"]["requests"], first["name"]) == ("oha", 4998, "two.txt, line 1")
    assert (second["tool"], second["read"]["users"], second["possible"]) == ("plow", 20, True)
    assert "plow, 20 users, 100,010 requests, in 2.5 s" in weir(path).stdout


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("schema = 1\ntitle = 'x'\n", "found neither [[claim]]"),
        (
            "schema = 1\ntitle = 'x'\n[[claim]]\nname = 'a'\nmean = '6'\n",
            "claim.0.mean: found '6'; expected a time with its unit",
        ),
        ("schema = 1\ntitle = 'x'\n[[claim]]\nname = 'a'\nthroughput_rps = 'fast'\n", "throughput_rps: found 'fast'"),
        ("schema = 1\ntitle = 'x'\n[[claim]]\nname = 'a'\nquantiles = { half = '1 s' }\n", "expected percentiles"),
        ("schema = 1\ntitle = 'x'\n[[table]]\nfile = 'none.csv'\n", "none.csv: cannot be read"),
        ("schema = 1\ntitle = 'x'\n[[table]]\nfile = 'bad.csv'\n", "found the unknown column 'fast'"),
        ("schema = 1\ntitle = 'x'\n[[table]]\nfile = 'text.csv'\n", "line 3: users: found 'many'"),
    ],
)
def test_what_is_wrong_in_a_file_of_claims_is_said_with_its_key(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(content)
    (tmp_path / "bad.csv").write_text("name,fast\na,1\n")
    (tmp_path / "text.csv").write_text("name,users\na,1\nb,many\n")
    done = weir(path)
    assert done.returncode == 2
    assert problem in done.stderr


def test_what_is_no_file_and_no_report_is_an_error_that_names_what_is(tmp_path: Path) -> None:
    assert "blocking-vs-nonblocking" in weir("nowhere.txt").stderr
    (tmp_path / "text.txt").write_text("nothing of the kind")
    done = weir(tmp_path / "text.txt")
    assert done.returncode == 2
    assert "expected a report by one of wrk, wrk2, hey" in done.stderr
    (tmp_path / "cut.txt").write_text((REPORTS / "wrk.txt").read_text().replace("requests in", ""))
    assert (
        "line 1: found a report by wrk without the line '… requests in …, … read'" in weir(tmp_path / "cut.txt").stderr
    )
    assert weir(REPORTS / "hey.txt", "--ramp", "soon").returncode == 2
    assert weir(tmp_path).returncode == 2
