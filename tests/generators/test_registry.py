"""Tests tools' command lines for a plan, refused plans, and records made from tools' output."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from weir.generators.normalize import build_load_end
from weir.generators.registry import GENERATORS, TOOLS, get_tool
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, Request, Session, Think, Tls
from weir.model.load_records import GeneratorUse, LoadSummary
from weir.model.reported_result import Figure, ReportedResult

URL = "http://127.0.0.1:8080/a?b=1"
PLAN = LoadPlan(Request("GET", URL), ClosedLoad(8), 5.0, timeout_s=2.0, threads=2)
POST = replace(PLAN, request=Request("POST", URL, (("Content-Type", "application/json"), ("X-A", "b c")), b'{"a": 1}'))
OPEN = replace(PLAN, load=OpenLoad(2000.0, 8))

COMMANDS = [
    ("wrk", PLAN, f"-t2 -c8 -d5s --timeout 2s --latency {URL}"),
    ("wrk", replace(PLAN, threads=3), f"-t2 -c8 -d5s --timeout 2s --latency {URL}"),
    ("wrk", replace(PLAN, keep_alive=False), f"-t2 -c8 -d5s --timeout 2s --latency -H Connection:_close {URL}"),
    ("wrk", POST, f"-t2 -c8 -d5s --timeout 2s --latency -H Content-Type:_application/json -H X-A:_b_c -s request.lua {URL}"),
    ("wrk2", OPEN, f"-R2000 -t2 -c8 -d5s --timeout 2s --latency {URL}"),
    ("hey", PLAN, f"-z 5000ms -c 8 -cpus 2 -t 2 -m GET -disable-compression -disable-redirects {URL}"),
    ("hey", replace(PLAN, requests=800, keep_alive=False),
     f"-n 800 -c 8 -cpus 2 -t 2 -m GET -disable-compression -disable-redirects -disable-keepalive {URL}"),
    ("hey", POST,
     "-z 5000ms -c 8 -cpus 2 -t 2 -m POST -disable-compression -disable-redirects -H Content-Type:_application/json -H X-A:_b_c -D body "
     + URL),
    ("ab", PLAN, f"-q -r -l -t 5 -n 5000000 -c 8 -s 2 -e percentiles.csv -k {URL}"),
    ("ab", replace(PLAN, requests=800, keep_alive=False), f"-q -r -l -t 5 -n 800 -c 8 -s 2 -e percentiles.csv {URL}"),
    ("ab", POST, f"-q -r -l -t 5 -n 5000000 -c 8 -s 2 -e percentiles.csv -k -p body -T application/json -H X-A:_b_c {URL}"),
    ("ab", replace(PLAN, request=Request("DELETE", URL)), f"-q -r -l -t 5 -n 5000000 -c 8 -s 2 -e percentiles.csv -k -m DELETE {URL}"),
    ("ab", replace(PLAN, request=Request("HEAD", URL)), f"-q -r -l -t 5 -n 5000000 -c 8 -s 2 -e percentiles.csv -k -i {URL}"),
    ("oha", PLAN,
     "-z 5000ms -c 8 -t 2000ms -m GET --disable-compression --redirect 0 --no-tui --output-format json --output report.json "
     f"--worker-threads 2 {URL}"),
    ("oha", OPEN,
     "-z 5000ms -q 2000 --latency-correction -c 8 -t 2000ms -m GET --disable-compression --redirect 0 --no-tui --output-format json "
     f"--output report.json --worker-threads 2 {URL}"),
    ("h2load", PLAN, f"-D 5 --h1 -t 2 -c 8 -H :method:_GET {URL}"),
    ("h2load", replace(POST, requests=800),
     f"-n 800 --h1 -t 2 -c 8 -H :method:_POST -H Content-Type:_application/json -H X-A:_b_c -d body {URL}"),
    ("k6", PLAN, "run --quiet --no-color --no-usage-report --address  script.js"),
    ("jmeter", PLAN,
     "-n -t plan.jmx -l samples.jtl -j jmeter.log -Jjmeterengine.nongui.port=0 -Jjmeter.save.saveservice.output_format=csv "
     "-Jjmeter.save.saveservice.response_message=false -Jjmeter.save.saveservice.data_type=false "
     "-Jjmeter.save.saveservice.assertion_results_failure_message=false -Jjmeter.save.saveservice.thread_counts=false "
     "-Jjmeter.save.saveservice.url=false -Jjmeter.save.saveservice.idle_time=false"),
    ("locust", PLAN,
     "-f locustfile.py -u 8 -r 8 --headless --only-summary --exit-code-on-error 0 --host http://127.0.0.1:8080"),
]  # fmt: skip
"""An underscore stands for a space within an argument."""


@pytest.mark.parametrize(("name", "plan", "expected"), COMMANDS)
def test_a_plan_becomes_the_tools_command_line(name: str, plan: LoadPlan, expected: str, tmp_path: Path) -> None:
    assert get_tool(name).unsupported_reason(plan) is None
    assert [
        argument.replace(" ", "_") for argument in get_tool(name).build_arguments(plan, tmp_path)
    ] == expected.split(" ")


@pytest.mark.parametrize("name", ["wrk", "hey", "ab", "oha", "h2load", "k6", "jmeter", "locust"])
def test_a_body_goes_byte_for_byte_through_a_file(name: str, tmp_path: Path) -> None:
    body = bytes(range(256))
    get_tool(name).build_arguments(replace(POST, request=replace(POST.request, body=body)), tmp_path)
    assert (tmp_path / "body").read_bytes() == body


def test_k6s_script_says_what_the_plan_says(tmp_path: Path) -> None:
    plan = replace(POST, load=OpenLoad(2000.0, 8), expected_status=(200, 201), keep_alive=False)
    assert get_tool("k6").unsupported_reason(plan) is None
    get_tool("k6").build_arguments(plan, tmp_path)
    script = (tmp_path / "script.js").read_text()
    for said in (
        '"executor": "constant-arrival-rate"', '"rate": 2000', '"maxVUs": 8', '"duration": "5000ms"', '"noConnectionReuse": true',
        "const right = [200, 201];", "open(\"body\", 'b')", '"X-A": "b c"', '"timeout": "2000ms"', f'http.request("POST", "{URL}"',
    ):  # fmt: skip
        assert said in script


def test_jmeters_plan_is_what_the_plan_says_whatever_characters_it_has(tmp_path: Path) -> None:
    request = Request("PUT", "http://127.0.0.1:8080/a?b=1&c=<>", (("X-A", '"<&>"'),), b"x")
    get_tool("jmeter").build_arguments(replace(PLAN, request=request, keep_alive=False, requests=80), tmp_path)
    root = ElementTree.fromstring((tmp_path / "plan.jmx").read_text())
    said = {element.get("name"): element.text for element in root.iter() if element.get("name")}
    assert said["ThreadGroup.num_threads"] == "8"
    assert (said["ThreadGroup.duration"], said["LoopController.loops"]) == ("5", "10")
    assert (said["HTTPSampler.domain"], said["HTTPSampler.port"], said["HTTPSampler.protocol"]) == (
        "127.0.0.1",
        "8080",
        "http",
    )
    assert (said["HTTPSampler.path"], said["HTTPSampler.method"]) == ("/a?b=1&c=<>", "PUT")
    assert (said["Header.name"], said["Header.value"]) == ("X-A", '"<&>"')
    assert said["HTTPSampler.use_keepalive"] == "false"
    assert said["HTTPSampler.response_timeout"] == "2000"
    assert said["File.path"] == str(tmp_path / "body")


def test_locusts_file_says_what_the_plan_says(tmp_path: Path) -> None:
    get_tool("locust").build_arguments(replace(POST, keep_alive=False), tmp_path)
    script = (tmp_path / "locustfile.py").read_text()
    compile(script, "locustfile.py", "exec")
    headers = {"Content-Type": "application/json", "X-A": "b c", "Connection": "close"}
    assert f"self.client.request('POST', '/a?b=1', data=BODY, headers={headers!r}, allow_redirects=False)" in script
    assert "network_timeout = 2.0" in script
    assert "spawn_later(5.0," in script


REFUSED = [
    (replace(PLAN, scenario={}), "follow a scenario", set()),
    (replace(PLAN, targets=(URL, URL)), "send requests to several targets", set()),
    (replace(PLAN, pipeline=2), "pipeline requests", set()),
    (replace(PLAN, request=Request("GET", "unix:/s:/")), "connect to a Unix socket", set()),
    (replace(PLAN, address="127.0.0.2:1"), "connect to another address than the URL's", set()),
    (replace(PLAN, local_addresses=("127.0.0.2",)), "connect from given addresses", set()),
    (replace(PLAN, kernel_timestamps=True), "take the kernel's timestamps", set()),
    (replace(PLAN, request_log="log"), "write a log of its requests", set()),
    (replace(PLAN, until_first_failure=True), "end at the first failure", set()),
    (replace(PLAN, keep_alive=False), "make a connection for each request",
     {"wrk", "wrk2", "hey", "ab", "oha", "k6", "jmeter", "locust"}),
    (replace(PLAN, tls=Tls(ca="ca.pem")), "use given TLS authorities, certificates or server names", set()),
    (replace(PLAN, tls=Tls(insecure=True)), "TLS", set(TOOLS)),
    (replace(PLAN, requests=800), "end after a number of requests", {"hey", "ab", "oha", "h2load", "k6", "jmeter"}),
    (replace(PLAN, load=ClosedLoad(8, think=Think(1, 1))), "pause between a response and the next request", set()),
    (replace(PLAN, load=ClosedLoad(8, pace_s=1)), "start a user's requests at a fixed pace", set()),
    (replace(PLAN, load=ClosedLoad(8, requests_per_user=5)), "have users who leave after some requests", {"jmeter"}),
    (replace(PLAN, load=ClosedLoad(((0.0, 1.0), (5.0, 8.0)))), "change the number of its users", set()),
    (OPEN, "send requests at a rate without waiting for responses", {"wrk2", "oha", "k6"}),
    (replace(PLAN, load=OpenLoad(((0.0, 1.0), (5.0, 8.0)), 8)), "change its rate", set()),
    (replace(PLAN, load=OpenLoad(9.0, 8, "poisson")), "draw Poisson arrivals", set()),
    (replace(PLAN, load=OpenLoad(9.0, 8, session=Session(2))), "generate arrivals of sessions", set()),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "words", "able"), REFUSED)
@pytest.mark.parametrize("name", TOOLS)
def test_what_a_tool_cannot_do_is_said_in_a_sentence(name: str, plan: LoadPlan, words: str, able: set[str]) -> None:
    said = get_tool(name).unsupported_reason(plan) or ""
    assert (f"{get_tool(name).title} cannot {words}." in said) == (name not in able)


@pytest.mark.parametrize(
    ("name", "plan", "sentence"),
    [
        ("wrk", replace(PLAN, duration_s=0.5), "wrk needs a duration in whole seconds, at least 1, found 0.5."),
        ("hey", replace(PLAN, timeout_s=1.5), "hey needs a timeout in whole seconds, at least 1, found 1.5."),
        ("hey", replace(PLAN, requests=801), "hey splits requests equally among 8 workers, found 801 requests."),
        ("h2load", replace(PLAN, requests=7), "h2load cannot send fewer requests than it has connections."),
        ("wrk2", PLAN, "wrk2 cannot run a closed loop: it needs a rate."),
        (
            "wrk2",
            replace(PLAN, load=OpenLoad(0.5, 8)),
            "wrk2 needs a rate in whole requests per second, at least 1, found 0.5.",
        ),
        ("k6", replace(OPEN, requests=100), "k6 cannot end after a number of requests at a rate."),
        ("jmeter", replace(PLAN, requests=801), "JMeter splits requests equally among 8 threads, found 801 requests."),
    ],
)
def test_nothing_is_rounded_to_what_a_tool_can_do(name: str, plan: LoadPlan, sentence: str) -> None:
    assert get_tool(name).unsupported_reason(plan) == sentence


def test_an_unknown_generator_is_told_the_names_of_all() -> None:
    assert GENERATORS == ("weir", "wrk", "wrk2", "hey", "ab", "oha", "k6", "h2load", "jmeter", "locust")
    with pytest.raises(UsageError, match=re.escape("generator: found 'siege', expected one of weir, wrk, wrk2,")):
        get_tool("siege")


def said(plan: LoadPlan = PLAN, **result: object) -> LoadSummary:
    values: dict[str, object] = {"requests": 100, "failed": 0, "throughput_rps": Figure(50.0)}
    generator = GeneratorUse(version="x 1", cpu_fraction=0.25, peak_rss_bytes=1, threads=2, cpus=[], clock="c")
    whole = ReportedResult(name="x", **{**values, **result})  # type: ignore[arg-type]
    return build_load_end(plan, whole, generator, load_s=4.0, stopped="duration").summary


def test_of_what_a_tool_does_not_say_nothing_is_made_up() -> None:
    summary = said(mean_s=Figure(0.25))
    assert summary.duration_s == 2.0
    assert (summary.response_time_us.mean, summary.response_time_us.p99) == (250_000.0, None)
    assert summary.service_time_us == summary.schedule_lag_us
    assert summary.service_time_us.mean is None


def test_a_time_that_was_rounded_to_nothing_is_not_said() -> None:
    summary = said(mean_s=Figure(0.0, 0.001), max_s=Figure(0.002, 0.001))
    assert (summary.response_time_us.mean, summary.response_time_us.max) == (None, 2000.0)


def test_statuses_are_right_or_wrong_by_the_plan() -> None:
    statuses = {"200": 90, "404": 6}
    summary = said(failed=4, statuses=statuses, errors={"reset": 4})
    assert (summary.requests.ok, summary.requests.completed, summary.requests.failed) == (90, 96, 10)
    assert (summary.errors.check, summary.errors.reset) == (6, 4)
    assert (
        said(replace(PLAN, expected_status=(404,)), failed=4, statuses=statuses, errors={"reset": 4}).requests.ok == 6
    )


def test_what_failed_in_no_way_had_no_answer_and_what_was_dropped_was_never_sent() -> None:
    counts = said(failed=5, errors={"timeout": 2}, unsent=7).requests
    assert (counts.intended, counts.sent, counts.ok, counts.failed, counts.unanswered, counts.unsent) == (
        107,
        100,
        95,
        2,
        3,
        7,
    )


def test_failures_that_a_tool_counts_beside_its_requests_were_sent_too() -> None:
    counts = said(failed=9, errors={"connect": 1, "reset": 5, "timeout": 4, "check": 5}).requests
    assert (counts.intended, counts.ok, counts.failed, counts.completed) == (106, 91, 15, 96)
