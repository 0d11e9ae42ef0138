"""`weir jmeter` and `weir k6`: the real tools with weir's record, and a script that stands for k6."""

import csv
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import StartWeir, Study, Weir
from tests.end_to_end.locust.conftest import Shop, intervals_of, shop
from tests.support.jmx import element, get, group, plan
from weir.generators.external_tool import Tool
from weir.store import RunReader

__all__ = ["shop"]
Installed = Callable[[str], Tool]


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def steps(load: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Returns the right and the failed requests of each name."""
    return {name: (step["ok"], step["failed"]) for name, step in load["steps"].items()}


def write_plan(folder: Path, shop: Shop, *, loops: int = 3, threads: int = 2) -> str:
    """Writes a plan with a transaction, a transaction with a sample of its own, and a missing page."""
    port = str(shop.server_address[1])
    inside = element("TransactionController", "Round", get("home", port=port), gui="TransactionControllerGui")
    parent = element(
        "TransactionController", "Parent", get("cart", "/cart", port=port), TransactionController__parent=True
    )
    samplers = [inside, parent, get("lost", "/missing", port=port)]
    (folder / "plan.jmx").write_text(plan(group(*samplers, threads=threads, loops=loops)))
    return "plan.jmx"


def test_jmeters_samples_are_recorded_by_name_and_its_own_files_stay(
    weir: Weir, shop: Shop, installed: Installed, tmp_path: Path
) -> None:
    installed("jmeter")
    done = weir(
        "jmeter", "--out", "a.weir", "--weir-json", "a.json", "--watch", f"{os.getpid()}",
        "-n", "-t", write_plan(tmp_path, shop), "-j", "own.log", "-Jjmeterengine.nongui.port=0",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    load = read(tmp_path / "a.json")
    assert steps(load) == {"Round": (6, 0), "home": (6, 0), "Parent": (6, 0), "cart": (6, 0), "lost": (0, 6)}
    assert Counter(shop.paths()) == {"/": 6, "/cart": 6, "/missing": 6}
    assert (load["requests"]["ok"], load["requests"]["failed"], load["errors"]["check"]) == (12, 6, 6)
    # JMeter's summary leaves out the request of the transaction with a sample of its own. So the counts agree.
    assert "summary =     12 in" in done.stdout
    assert "weir: verdict: suspect\nweir:   6 of 18 requests failed (check 6; limit 0)\n" in done.stderr
    assert "reports" not in done.stderr
    assert load["server"]["peak_processes"] >= 1
    assert load["generator"]["version"].startswith("JMeter 5.")
    assert load["generator"]["peak_rss_bytes"] > 50e6
    assert sum(interval.ok for interval in intervals_of(tmp_path / "a.weir")) == 12
    assert "2 connections" in weir("report", "a.weir").stdout
    assert "summary =" in (tmp_path / "own.log").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.json", "a.weir", "own.log", "plan.jmx"]


@pytest.mark.thorough
def test_new_rows_of_jmeters_own_table_are_read_from_where_jmeter_puts_them(
    weir: Weir, shop: Shop, installed: Installed, tmp_path: Path
) -> None:
    installed("jmeter")
    path = write_plan(tmp_path, shop)
    for _ in range(2):
        done = weir("jmeter", "--weir-json", "a.json", path, "-l", "own.jtl", "-Jjmeterengine.nongui.port=0")
        assert done.returncode == 0, done.stderr
        assert read(tmp_path / "a.json")["requests"]["sent"] == 18
    with (tmp_path / "own.jtl").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    assert {"URL", "Latency", "Connect", "sentBytes"} <= rows[0].keys()


def test_ctrl_c_ends_jmeter_and_keeps_its_samples(
    start_weir: StartWeir, shop: Shop, installed: Installed, tmp_path: Path
) -> None:
    installed("jmeter")
    path = write_plan(tmp_path, shop, loops=-1)
    process = start_weir("jmeter", "--out", "a.weir", "-n", "-t", path, "-Jjmeterengine.nongui.port=0")
    shop.wait_for(lambda: len(shop.asked) > 50, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "weir: verdict: " in err
    # JMeter writes the samples of a transaction only at the transaction's end.
    assert sum(interval.completed for interval in intervals_of(tmp_path / "a.weir")) >= 40


def test_a_plugin_that_a_plan_needs_is_named_with_the_line_that_installs_it(
    weir: Weir, installed: Installed, tmp_path: Path
) -> None:
    installed("jmeter")
    mine = element("org.example.Mine")
    (tmp_path / "plan.jmx").write_text(plan(element("kg.apc.jmeter.threads.UltimateThreadGroup"), mine, mine))
    done = weir("jmeter", "-n", "-t", "plan.jmx")
    assert done.returncode == 2
    assert "plan.jmx: needs JMeter plugins that are not installed:\n" in done.stderr
    assert "  kg.apc.jmeter.threads.UltimateThreadGroup (1 element)\n  org.example.Mine (2 elements)\n" in done.stderr
    assert re.search(
        r"try: mvn -q \S+:copy -Dartifact=kg\.apc:jmeter-plugins-casutg:LATEST -DoutputDirectory=\S+/lib/ext",
        done.stderr,
    )


@pytest.mark.thorough
def test_a_table_that_weir_cannot_read_is_named(weir: Weir, shop: Shop, installed: Installed, tmp_path: Path) -> None:
    installed("jmeter")
    options = ["-Jjmeter.save.saveservice.output_format=xml", "-Jjmeterengine.nongui.port=0"]
    done = weir("jmeter", "--out", "a.weir", write_plan(tmp_path, shop), "-l", "own.xml", *options)
    assert done.returncode == 0
    assert (
        "weir: nothing was recorded: weir cannot read the samples of JMeter: found no column 'timeStamp'" in done.stderr
    )
    assert not (tmp_path / "a.weir").exists()


def test_arguments_that_are_not_weirs_are_jmeters(weir: Weir, installed: Installed) -> None:
    installed("jmeter")
    assert "--testfile" in weir("jmeter", "--", "-?").stdout
    assert "--weir-json" in weir("jmeter", "--help").stdout


FAKE_K6 = r"""#!/bin/sh
for word; do case $word in --out=json=*) pipe=${word#--out=json=} ;; esac; done
[ -n "$pipe" ] || { echo "no load: $*"; exit 3; }
echo "own summary: $*"
point() { printf '{"metric":"%s","type":"Point","data":{"time":"%s%sZ","value":%s,"tags":{%s}}}\n' "$1" "$now" "$2" "$3" "$4"; }
now=$(date -u +%Y-%m-%dT%H:%M:%S)
{
    point http_req_duration .005 5.0 '"expected_response":"true","method":"GET","name":"/","status":"200"'
    point http_req_waiting .005 4.0 '"method":"GET","name":"/","status":"200"'
    point http_req_duration .009 2.0 '"expected_response":"false","method":"GET","name":"a,b","status":"404"'
    failed='"error":"dial: connection refused","expected_response":"false","method":"GET"'
    point http_req_duration .020 10.0 "$failed"',"name":"/","status":"0"'
    point vus .030 7 ''
    point dropped_iterations .030 4 ''
} >"$pipe"
cat >"$K6_SUMMARY_EXPORT" <<END
{"metrics": {"http_reqs": {"count": 4, "rate": 100}, "http_req_failed": {"passes": 2},
 "http_req_duration": {"avg": 90.0, "min": 1, "max": 100, "med": 5}}}
END
exit 99
"""


def put_k6(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Puts a shell script on the PATH that stands for k6."""
    (folder / "bin").mkdir()
    (folder / "bin" / "k6").write_text(script)
    (folder / "bin" / "k6").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")


@pytest.fixture
def fake_k6(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_k6(tmp_path, monkeypatch, FAKE_K6)


@pytest.mark.usefixtures("fake_k6")
def test_k6s_output_is_recorded_and_its_exit_code_stays(weir: Weir, tmp_path: Path) -> None:
    (tmp_path / "script.js").write_text("")
    done = weir("k6", "--out", "a.weir", "--weir-json", "a.json", "run", "--quiet", "script.js")
    assert done.returncode == 99
    assert re.fullmatch(r"own summary: run --out=json=\S+ --quiet script.js\n", done.stdout)
    load = read(tmp_path / "a.json")
    assert steps(load) == {"GET /": (1, 1), "GET a,b": (0, 1)}
    assert (load["errors"]["connect"], load["errors"]["check"], load["requests"]["unsent"]) == (1, 1, 4)
    assert load["response_time_us"]["max"] == pytest.approx(5000)
    assert load["duration_s"] == pytest.approx(0.020)
    assert "k6 reports 4 requests (2 failed), weir recorded 3 (2 failed)" in done.stderr
    assert "k6's own report is impossible (users = throughput × response time): 7 users" in done.stderr
    assert "7 connections" in weir("report", "a.weir").stdout


@pytest.mark.usefixtures("fake_k6")
def test_a_command_of_k6_without_a_load_is_passed_on(weir: Weir) -> None:
    done = weir("k6", "inspect", "script.js")
    assert (done.returncode, done.stdout) == (3, "no load: inspect script.js\n")


@pytest.mark.usefixtures("fake_k6")
def test_an_extension_that_a_script_needs_is_named_with_the_line_that_builds_it(weir: Weir, tmp_path: Path) -> None:
    (tmp_path / "script.js").write_text('import sql from "k6/x/sql";\n')
    done = weir("k6", "run", "script.js")
    assert done.returncode == 2
    assert "weir: script.js: needs the extension k6/x/sql, which " in done.stderr
    assert "xk6@latest build --with github.com/grafana/xk6-sql" in done.stderr


STUDY_K6 = r"""#!/bin/sh
for word; do case $word in --out=json=*) pipe=${word#--out=json=} ;; esac; done
echo "$*" >arguments.txt
now=$(date -u +%Y-%m-%dT%H:%M:%S)
tags='"expected_response":"true","method":"GET","name":"/","status":"200"'
for number in 1 2 3 4; do
    echo '{"metric":"http_req_duration","type":"Point","data":{"time":"'"$now.${number}Z"'","value":5.0,"tags":{'"$tags}}}"
done >"$pipe"
"""


def test_a_study_loads_its_stacks_with_a_script(
    weir: Weir, stacks: Path, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_k6(tmp_path, monkeypatch, STUDY_K6)
    (tmp_path / "script.js").write_text("")
    file = study("good", matrix='generators = ["k6"]', load='script = "script.js -e RATE={users}"', connections="[2]")
    done = weir("run", file, "--out", "run")
    assert done.returncode == 0, done.stderr
    with RunReader(tmp_path / "run") as reader:
        (trial,) = reader.trials()
        assert trial.cell.coordinates["script"].startswith("script.js -e 'RATE={users}' ")
        assert trial.result.summary is not None
        assert trial.result.summary.requests.ok == 4
        assert trial.result.summary.generator.version == "k6"
        assert [interval.ok for interval in reader.intervals(trial.id)] == [4]
    (arguments,) = (tmp_path / "run").rglob("arguments.txt")
    assert re.search(
        r"-e HOST=127\.\S+ -e PORT=\d+ -e USERS=2 -e RATE=2 " + re.escape(str(tmp_path / "script.js")),
        arguments.read_text(),
    )


def test_a_script_needs_a_generator_that_runs_scripts(weir: Weir, stacks: Path, study: Study, tmp_path: Path) -> None:
    (tmp_path / "script.js").write_text("")
    done = weir("run", study("good", load='script = "script.js"'))
    assert done.returncode == 2
    assert "load.script needs one of jmeter, k6, locust" in done.stderr
    done = weir("run", study("good", matrix='generators = ["k6"]', load='script = "other.js"'))
    assert "load.script: " in done.stderr
    assert "other.js: found no such file" in done.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("wrk", "script.js"), "--with: found 'wrk', expected one of jmeter, k6, locust"),
        (("k6", "other.js"), "--with: other.js: found no such file"),
        (
            ("k6", "script.js", "--rate", "5"),
            "-R/--rate: found together with --with, expected this setting in script.js",
        ),
    ],
)
def test_a_comparison_names_a_wrong_tool_or_script(
    given: tuple[str, ...], says: str, weir: Weir, tmp_path: Path
) -> None:
    (tmp_path / "script.js").write_text("")
    done = weir("compare", "--with", *given, "true {port}", "false {port}")
    assert done.returncode == 2
    assert says in done.stderr


K6_SCRIPT = """
import http from 'k6/http';
export const options = { vus: 3, iterations: 12 };
export default function () {
    http.get(`${__ENV.SHOP}/`);
    http.get(`${__ENV.SHOP}/missing?${__ITER}`, { tags: { name: 'lost' } });
}
export function handleSummary(data) {
    return { stdout: 'own summary\\n', 'own.json': JSON.stringify(data.metrics.http_reqs.values.count) };
}
"""


@pytest.mark.thorough
def test_the_real_k6_writes_its_own_summary_and_weir_records_the_same_requests(
    weir: Weir, shop: Shop, installed: Installed, tmp_path: Path
) -> None:
    installed("k6")
    (tmp_path / "script.js").write_text(K6_SCRIPT)
    done = weir(
        "k6", "--weir-json", "a.json", "run", "--quiet", "-e", f"SHOP={shop.url}", "-o", "json=own.ndjson", "script.js"
    )
    assert (done.returncode, done.stdout) == (0, "own summary\n"), done.stderr
    assert (tmp_path / "own.json").read_text() == "24"
    assert steps(read(tmp_path / "a.json")) == {f"GET {shop.url}/": (12, 0), "GET lost": (0, 12)}
    assert "reports" not in done.stderr
    assert (tmp_path / "own.ndjson").read_text().count('"metric":"http_reqs"') >= 24
