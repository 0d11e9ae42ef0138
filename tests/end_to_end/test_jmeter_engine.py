"""`weir jmeter --engine` as a user runs it, and compared with the real JMeter."""

import csv
import json
import re
import signal
import socketserver
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote_plus

import pytest

from tests.end_to_end.conftest import END_S, StartWeir, Weir
from tests.support.jmx import assertion, element, get, group, plan
from weir.compat.reports import read_report
from weir.generators.external_tool import Tool

STUDIES = Path(__file__).parents[2] / "studies" / "jmeter"
DATA = Path(__file__).parents[1] / "data" / "jmx"
SUMMARY = re.compile(
    r"^summary =\s+(\d+) in \d\d:\d\d:\d\d =\s+[\d.]+/s Avg:\s+\d+ Min:\s+\d+ Max:\s+\d+ Err:\s+(\d+) \(\d+\.\d\d%\)$",
    re.MULTILINE,
)
Serve = Callable[..., str]


def counts(out: str) -> tuple[int, int]:
    """Returns samples and errors from the last line of the summary."""
    found = SUMMARY.findall(out)
    assert found, out
    return int(found[-1][0]), int(found[-1][1])


def samples(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def aimed(address: str) -> list[str]:
    host, _, port = address.rpartition(":")
    return [f"-Jhost={host}", f"-Jport={port}"]


class Recorder(ThreadingHTTPServer):
    """A server that responds with a cookie and `ok`, and keeps its requests."""

    daemon_threads = True
    asked: list[tuple[str, str, dict[str, str], str]]

    def handle_error(self, request: object, client_address: object) -> None:
        """Reports no error: a client may leave."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        assert isinstance(self.server, Recorder)
        self.server.asked.append(
            (self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        )
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.send_header("Set-Cookie", "session=1")
        self.end_headers()
        self.wfile.write(b"ok")

    do_GET = do_POST = do_PUT = _answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Prints no log."""


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    socketserver.TCPServer.allow_reuse_address = True
    with Recorder(("127.0.0.1", 0), _Handler) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(("name", "threads", "loops"), [("ping", 20, 5), ("issue", 30, 30)])
def test_the_studys_plans_run_from_their_files_with_exactly_threads_times_loops(
    name: str, threads: int, loops: int, weir: Weir, serve: Serve, tmp_path: Path
) -> None:
    scaled = [f"-Jthreads={threads}", "-Jramp=1", *aimed(serve("null"))]
    done = weir(
        "jmeter",
        "--engine",
        "-n",
        "-t",
        STUDIES / f"mvc-vs-webflux-{name}.jmx",
        "-l",
        "out.jtl",
        "-j",
        "jmeter.log",
        *scaled,
    )
    assert done.returncode == 0, done.stderr
    assert counts(done.stdout) == (threads * loops, 0)
    rows = samples(tmp_path / "out.jtl")
    assert Counter(row["threadName"] for row in rows) == {f"Thread Group 1-{k + 1}": loops for k in range(threads)}
    assert {(row["label"], row["success"], row["responseCode"]) for row in rows} == {(name, "true", "200")}
    # The users come evenly over the ramp of 1 s, the first at its beginning.
    first = sorted(
        min(int(row["timeStamp"]) for row in rows if row["threadName"] == thread)
        for thread in {row["threadName"] for row in rows}
    )
    assert (first[-1] - first[0]) / 1000 == pytest.approx(1 - 1 / threads, abs=0.3)
    results = read_report((tmp_path / "out.jtl").read_text(), "out.jtl")
    assert results is not None
    assert results[0].requests == threads * loops
    assert weir("audit", "out.jtl").returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "Creating summariser <summary>"
    assert lines[-1] == "... end of run"
    assert "verdict: " in done.stderr
    assert f"--users {threads} --ramp 1s --loops {loops}" in done.stderr


def test_requests_are_those_that_the_plan_describes(weir: Weir, recorder: Recorder, tmp_path: Path) -> None:
    done = weir(
        "jmeter", "--engine", DATA / "shop.jmx", f"-Jport={recorder.server_port}", "-Jsuffix=s", "-l", "out.jtl"
    )
    assert done.returncode == 0, done.stderr
    assert counts(done.stdout) == (24, 0)
    assert Counter(row["label"] for row in samples(tmp_path / "out.jtl")) == {"login": 6, "search": 6, "order": 12}
    logins = [one for one in recorder.asked if one[:2] == ("POST", "/shop/login")]
    assert Counter(body.partition("&note")[0] for *_, body in logins) == {
        "name=ada&full=Lovelace%2C+Ada": 2, "name=bob&full=Bob+%26+Co": 2, "name=cyd&full=Cyd+%CE%A9": 2,
    }  # fmt: skip
    assert Counter(headers.get("cookie") for _, _, headers, _ in logins) == {None: 3, "session=1": 3}
    assert {(headers["x-token"], headers["x-login"], headers["accept"]) for _, _, headers, _ in logins} == {
        ("mine", "yes", "application/json")
    }
    orders = [(path, headers, json.loads(body)) for method, path, headers, body in recorder.asked if method == "PUT"]
    assert Counter((path, body["who"]) for path, _, body in orders) == {
        ("/order/1", "ada"): 4,
        ("/order/2", "bob"): 4,
        ("/order/3", "cyd"): 4,
    }
    assert {headers["x-token"] for _, headers, _ in orders} == {"secret s"}
    assert {body["n"] for _, _, body in orders} <= set(range(1, 10))
    assert len({body["of"]["id"] for _, _, body in orders}) == 12
    assert not any(path.startswith("/never") for _, path, _, _ in recorder.asked)


@pytest.fixture
def real_jmeter(installed: Callable[[str], Tool]) -> Path:
    """Returns JMeter's own program."""
    program = installed("jmeter").find()
    assert program is not None
    return program


def test_jmeter_itself_sends_the_same_and_writes_rows_alike(
    weir: Weir, recorder: Recorder, tmp_path: Path, real_jmeter: Path
) -> None:

    def asked() -> Counter[tuple[object, ...]]:
        # Random values differ, as does the client's name.
        found: Counter[tuple[object, ...]] = Counter(
            (
                method, unquote_plus(path), re.sub(r'"n": \d|[0-9a-f-]{36}', "", body),
                *(headers.get(name) for name in ("accept", "x-token", "x-login", "cookie", "content-type", "content-length")),
            )
            for method, path, headers, body in recorder.asked
        )  # fmt: skip
        recorder.asked.clear()
        return found

    arguments = ["-n", "-t", str(DATA / "shop.jmx"), f"-Jport={recorder.server_port}", "-Jjmeterengine.nongui.port=0"]
    done = weir("jmeter", "--engine", *arguments, "-l", "weir.jtl")
    assert done.returncode == 0, done.stderr
    of_weir = asked()
    theirs = subprocess.run(
        [real_jmeter, *arguments, "-l", "jmeter.jtl"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=END_S,
        check=True,
    )
    assert asked() == of_weir
    assert counts(theirs.stdout) == counts(done.stdout) == (24, 0)
    rows = [
        Counter(
            (row["label"], row["responseCode"], row["responseMessage"], row["threadName"], row["success"], row["bytes"])
            for row in samples(path)
        )
        for path in (tmp_path / "weir.jtl", tmp_path / "jmeter.jtl")
    ]
    assert rows[0] == rows[1]
    headings = [(tmp_path / name).read_text().splitlines()[0] for name in ("weir.jtl", "jmeter.jtl")]
    assert headings[0] == headings[1]


@pytest.mark.thorough
def test_jmeter_itself_judges_answers_alike(weir: Weir, recorder: Recorder, tmp_path: Path, real_jmeter: Path) -> None:
    # The body is ok, the status is 200.
    of_status = [
        (1, "2.."),
        (2, "0"),
        (2, "^3"),
        (8, "200"),
        (8, "201"),
        (16, "0"),
        (16, "30"),
        (8 + 4, "200"),
        (8 + 4, "404"),
        (2 + 4, "^2"),
    ]
    assertions = [
        *(
            assertion(kind | denied, text)
            for kind in (1, 2, 8, 16)
            for denied in (0, 4)
            for text in ("ok", "o", "^k", "nope")
        ),
        *(assertion(kind, "o", "nope") for kind in (2, 16, 2 + 32, 16 + 32, 2 + 4)),
        *(assertion(kind, text, field="response_code") for kind, text in of_status),
        assertion(8, "404", field="response_code", Assertion__assume_success=True),
    ]
    port = str(recorder.server_port)
    path = write(tmp_path, group(*(get(f"{n}", port=port, below=one) for n, one in enumerate(assertions))))
    assert weir("jmeter", "--engine", path, "-l", "weir.jtl").returncode == 0
    command = [str(real_jmeter), "-n", "-t", path, "-l", "jmeter.jtl", "-Jjmeterengine.nongui.port=0"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=END_S, check=True)
    judged = [
        [(row["label"], row["success"]) for row in samples(tmp_path / name)] for name in ("weir.jtl", "jmeter.jtl")
    ]
    assert judged[0] == judged[1]
    assert 10 < sum(success == "true" for _, success in judged[0]) < len(assertions) - 10
    messages = [[row["failureMessage"] for row in samples(tmp_path / name)] for name in ("weir.jtl", "jmeter.jtl")]
    # JMeter's message has the received text for equality, and the failed text of several. A request log has neither.
    differing = [(ours, theirs) for ours, theirs in zip(*messages, strict=True) if ours != theirs]
    assert all(theirs.startswith(ours.partition("/")[0]) for ours, theirs in differing), differing
    assert all(ours == "" or " to equal /" in ours for ours, _ in differing), differing


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["ping", "issue"])
def test_jmeter_itself_takes_the_studys_plans(name: str, serve: Serve, tmp_path: Path, real_jmeter: Path) -> None:
    arguments = [
        "-n",
        "-t",
        str(STUDIES / f"mvc-vs-webflux-{name}.jmx"),
        "-Jthreads=4",
        "-Jramp=1",
        "-Jloops=3",
        "-Jjmeterengine.nongui.port=0",
    ]
    done = subprocess.run(
        [real_jmeter, *arguments, *aimed(serve("null"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=END_S,
        check=True,
    )
    assert counts(done.stdout) == (12, 0)


def write(tmp_path: Path, *parts: str, is_serial: bool = False) -> str:
    (tmp_path / "plan.jmx").write_text(plan(*parts, is_serial=is_serial))
    return "plan.jmx"


def test_answers_that_break_assertions_are_errors_and_the_exit_code_is_0(
    weir: Weir, serve: Serve, tmp_path: Path
) -> None:
    host, _, port = serve("echo").rpartition(":")
    where = {"domain": host, "port": port, "method": "POST"}
    right = get(
        "right", given=[("", "hello", False)], below=assertion(2, "^h.l+o$") + assertion(16 + 4, "bye"), **where
    )
    wrong = get("wrong", given=[("", "goodbye", False)], below=assertion(16 + 4, "bye"), **where)
    done = weir("jmeter", "--engine", write(tmp_path, group(right, wrong, threads=2, loops=3)), "-l", "out.jtl")
    assert done.returncode == 0, done.stderr
    assert counts(done.stdout) == (12, 6)
    rows = samples(tmp_path / "out.jtl")
    assert Counter((row["label"], row["success"], row["failureMessage"]) for row in rows) == {
        ("right", "true", ""): 6, ("wrong", "false", "Test failed: text expected not to contain /bye/"): 6,
    }  # fmt: skip


def test_a_thread_that_stops_on_an_error_asks_no_more(weir: Weir, serve: Serve, tmp_path: Path) -> None:
    host, _, port = serve("fault", "--kind", "status-500").rpartition(":")
    sampler = get(domain=host, port=port)
    stop = group(sampler, sampler, threads=3, loops=5, on_sample_error="stopthread")
    assert counts(weir("jmeter", "--engine", write(tmp_path, stop)).stdout) == (3, 3)
    go_on = group(sampler, sampler, threads=3, loops=5)
    assert counts(weir("jmeter", "--engine", write(tmp_path, go_on)).stdout) == (30, 30)


def test_thread_groups_run_at_once_or_one_after_the_other_as_the_plan_says(
    weir: Weir, serve: Serve, tmp_path: Path
) -> None:
    host, _, port = serve("delay", "--wait", "100ms").rpartition(":")
    groups = [group(get(name, domain=host, port=port), name=name, threads=2, loops=3) for name in ("A", "B")]
    before = group(get("S", domain=host, port=port), kind="SetupThreadGroup", name="S")

    def begins_and_ends(is_serial: bool) -> dict[str, tuple[int, int]]:
        done = weir("jmeter", "--engine", write(tmp_path, *groups, before, is_serial=is_serial), "-f", "-l", "out.jtl")
        assert done.returncode == 0, done.stderr
        assert counts(done.stdout) == (13, 0)
        spans: dict[str, list[int]] = {}
        for row in samples(tmp_path / "out.jtl"):
            spans.setdefault(row["label"], []).extend(
                [int(row["timeStamp"]), int(row["timeStamp"]) + int(row["elapsed"])]
            )
        return {label: (min(span), max(span)) for label, span in spans.items()}

    together, serial = begins_and_ends(False), begins_and_ends(True)
    assert max(together["A"][0], together["B"][0]) < min(together["A"][1], together["B"][1])
    assert together["S"][1] <= min(together["A"][0], together["B"][0])
    assert serial["S"][1] <= serial["A"][0]
    assert serial["A"][1] <= serial["B"][0]


def test_a_duration_ends_a_plan_that_loops_for_ever_and_all_that_was_asked_is_answered(
    weir: Weir, serve: Serve, tmp_path: Path
) -> None:
    host, _, port = serve("delay", "--wait", "600ms").rpartition(":")
    sampler = get(domain=host, port=port, response_timeout="5000")
    done = weir(
        "jmeter",
        "--engine",
        write(tmp_path, group(sampler, threads=4, loops=-1, scheduler=True, duration="1")),
        "-l",
        "out.jtl",
    )
    assert done.returncode == 0, done.stderr
    # Each of the four users makes requests at 0 and 0.6 s, also on a busy machine. The time is over at 1.2 s.
    assert counts(done.stdout) == (8, 0)
    assert len(samples(tmp_path / "out.jtl")) == 8


def test_rows_are_added_to_a_file_that_is_there_unless_it_is_to_be_emptied(
    weir: Weir, serve: Serve, tmp_path: Path
) -> None:
    host, _, port = serve("null").rpartition(":")
    path = write(tmp_path, group(get(domain=host, port=port), loops=2))
    lengths = []
    for flags in ([], [], ["-f"]):
        assert weir("jmeter", "--engine", "-n", "-t", path, "-l", "out.jtl", *flags).returncode == 0
        lengths.append(len((tmp_path / "out.jtl").read_text().splitlines()))
    assert lengths == [3, 5, 3]


def test_properties_come_from_files_and_flags_in_jmeters_order(weir: Weir, serve: Serve, tmp_path: Path) -> None:
    host, _, port = serve("null").rpartition(":")
    (tmp_path / "a.properties").write_text(f"# where\nhost = {host}\nport:{port}\nloops=9\nthreads=9\n")
    (tmp_path / "b.properties").write_text("loops=7\n\n! the end\n")
    sampler = get(domain="${__P(host)}", port="${__P(port)}")
    path = write(tmp_path, group(sampler, threads="${__P(threads)}", loops="${__P(loops)}"))
    done = weir("jmeter", "--engine", path, "-q", "a.properties", "-q", "b.properties", "-J", "threads=2")
    assert counts(done.stdout) == (14, 0), done.stderr


def test_a_plan_of_one_thread_group_on_the_engine_is_kept_for_a_report(
    weir: Weir, serve: Serve, tmp_path: Path
) -> None:
    host, _, port = serve("null").rpartition(":")
    sampler = get("Home", domain=host, port=port)
    done = weir("jmeter", "--engine", "--out", "a.weir", write(tmp_path, group(sampler, loops=5)))
    assert done.returncode == 0, done.stderr
    assert "weir: --engine: weir's engine runs the plan" in done.stderr
    assert "5 answered" in weir("report", "a.weir").stdout
    several = weir("jmeter", "--engine", "--out", "b.weir", write(tmp_path, group(sampler), group(sampler)))
    assert several.returncode == 2
    assert "found 2 thread groups, expected one" in several.stderr


def test_what_the_engine_does_not_support_is_left_to_jmeter_itself(weir: Weir, tmp_path: Path) -> None:
    path = write(tmp_path, group(get(), element("OnceOnlyController", "Once", get("login"))))
    refused = weir("jmeter", "--engine", path)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "plan.jmx: weir's engine cannot run this plan exactly (2 HTTP samplers):" in refused.stderr
    assert "OnceOnlyController 1, first at line 4 ('Once'): the engine does not support this element" in refused.stderr
    assert "try: run the plan with JMeter" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "err"),
    [
        (["right.jmx", "-r"], 2, "unrecognized arguments: -r"),
        (["-n"], 2, "found 0 test plans, expected one"),
        (["right.jmx", "-t", "right.jmx"], 2, "found 2 test plans"),
        (["wrong.jmx"], 2, "wrong.jmx: not valid XML"),
        (["right.jmx", "-q", "nope.properties"], 2, "nope.properties: cannot be read"),
        (["right.jmx", "-l", "no/out.jtl"], 2, "no/out.jtl: cannot be written"),
        (["right.jmx"], 3, "127.0.0.1:1"),
    ],
)
def test_what_is_wrong_with_a_plan_for_the_engine_is_said(
    arguments: list[str], code: int, err: str, weir: Weir, tmp_path: Path
) -> None:
    (tmp_path / "right.jmx").write_text(plan(group(get(port="1"))))
    (tmp_path / "wrong.jmx").write_text("<jmeter")
    done = weir("jmeter", "--engine", *arguments)
    assert done.returncode == code, done.stderr
    assert err in done.stderr


def test_ctrl_c_ends_a_plan_and_reports_what_there_was(
    start_weir: StartWeir, recorder: Recorder, tmp_path: Path
) -> None:
    path = write(tmp_path, group(get(port=str(recorder.server_port)), threads=2, loops=-1))
    running = start_weir("jmeter", "--engine", path, "-l", "out.jtl")
    # With two users the third request comes after a response.
    while len(recorder.asked) < 3:
        assert running.poll() is None, running.communicate()[1]
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=200)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert out.endswith("... end of run\n")
    rows = samples(tmp_path / "out.jtl")
    assert rows
    assert {row["success"] for row in rows} == {"true"}
