"""`weir hey` compared with the real hey on the same servers: the same layout, exit codes and bytes sent."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median

import pytest

from bench.nginx import running_nginx
from tests.end_to_end.conftest import END_S, StartWeir, Weir
from tests.support.hey_output import parse
from tests.support.request_bytes import bytes_sent_by
from tests.support.side_by_side import BODY, WEIR, Both, chosen_lines, running_servers, shape, side_by_side
from tests.support.tiers import cases
from weir.compat.flags import ToolError, ToolExit
from weir.compat.hey import read_command_line
from weir.compat.reports import read_report

SERVERS = {"garbage": ["fault", "--kind", "garbage"], "silent": ["fault", "--kind", "silent"]}
LOCATIONS = """
        location = /missing { return 404 "nothing"; }
        location = /moved { return 302 /; }
        location = /failing { return 500 "sorry"; }
        location = /empty { return 204; }
"""
LOADS = [
    "{url}",
    "-n 20 -c 2 {url}",
    "-n=20 -c=4 {url}",
    "--n 20 --c=4 {url}",
    "-n 21 -c 4 {url}",
    "-n 5 -c 5 {url}",
    "-n 1 -c 1 {url}",
    "-n 8 -c 4 -q 50 {url}",
    "-z 1s -c 2 {url}",
    "-z=0.9s -c 2 -n 1 {url}",
    "-z 0h0m.8s100ms -c 3 {url}",
    "-z 1s -c 2 -q 20 {url}",
    "-n 8 -c 2 -m POST -T application/json -D body.json {url}",
    "-z 1s -c 2 -m POST -T application/json -D body.json {url}",
    "-n 8 -c 2 -m post -d hello {url}",
    "-n 8 -c 2 -m PUT -d hello -T text/plain {url}",
    "-n 8 -c 2 -m PATCH -d hello {url}",
    "-n 8 -c 2 -m DELETE {url}",
    "-n 8 -c 2 -m OPTIONS {url}",
    "-n 8 -c 2 -m HEAD {url}empty",
    "-n 8 -c 2 -H 'X-One: 1' -H 'X-Two: 2' {url}",
    "-n 8 -c 2 -A text/html {url}",
    "-n 8 -c 2 -a user:password {url}",
    "-n 8 -c 2 -host example.org {url}",
    "-n 8 -c 2 -t 5 {url}",
    "-n 8 -c 2 -t 0 {url}",
    "-n 8 -c 2 -t=-1 {url}",
    "-n 8 -c 2 -disable-keepalive {url}",
    "-n 8 -c 2 -disable-keepalive=true {url}",
    "-n 8 -c 2 -disable-compression {url}",
    "-n 8 -c 2 -disable-redirects {url}moved",
    "-n 8 -c 2 -cpus 1 {url}",
    "-n 8 -c 2 -cpus 2 {url}",
    "-n 8 -c 2 -o csv {url}",
    "-n 8 -c 2 -o csv -disable-keepalive {url}missing",
    "-n 8 -c 2 {url}missing",
    "-n 8 -c 2 {url}failing",
    "-n 8 -c 2 {url}empty",
    "-n 8 -c 2 -d '' {url}",
    "-n 8 -c 2 -- {url}",
    "-n 8 -c 2 {url} -n nonsense -m",
    "-n 8 -c 2 {tls}",
    "-n 8 -c 2 -disable-keepalive {tls}",
    "-n 8 -c 2 -n 4 {url}?a=b",
    "-n 8 -c 2 http://{refused}/",
    "-n 8 -c 2 -o csv http://{refused}/",
    "-n 8 -c 2 http://{garbage}/",
    "-n 2 -c 2 -t 1 http://{silent}/",
]
KEPT = {
    "-n 20 -c 2 {url}",
    "-n 21 -c 4 {url}",
    "-n 8 -c 4 -q 50 {url}",
    "-z 1s -c 2 {url}",
    "-z 1s -c 2 -q 20 {url}",
    "-n 8 -c 2 -m POST -T application/json -D body.json {url}",
    "-n 8 -c 2 -m HEAD {url}empty",
    "-n 8 -c 2 -a user:password {url}",
    "-n 8 -c 2 -disable-keepalive {url}",
    "-n 8 -c 2 -disable-redirects {url}moved",
    "-n 8 -c 2 -o csv {url}",
    "-n 8 -c 2 {url}missing",
    "-n 8 -c 2 -disable-keepalive {tls}",
    "-n 8 -c 2 http://{refused}/",
    "-n 8 -c 2 http://{garbage}/",
    "-n 2 -c 2 -t 1 http://{silent}/",
}
FOLLOWED = "-n 8 -c 2 {url}moved"
WRONG = [
    "",
    "-n x {url}",
    "-n",
    "-z 5 {url}",
    "-q fast {url}",
    "-bogus {url}",
    "-disable-keepalive=2 {url}",
    "-n 0 {url}",
    "-c 0 {url}",
    "-z 1s -c 0 {url}",
    "-n 2 -c 3 {url}",
    "-n 2 -c 2 -D missing {url}",
    "-n 2 -c 2 -D / {url}",
    "-n 2 -c 2 127.0.0.1:1/",
    "-n 2 -c 2 http://[::1/",
    "-n 2 -c 2 http://127.0.0.1:x/",
]
# hey 0.1.4 sends no Authorization and another User-Agent, so the test does not compare these two.
SENT = [
    "",
    "-m POST",
    "-m POST -d hello -T application/json",
    "-m POST -D body.json -T application/json",
    "-d hello",
    "-m HEAD",
    "-m DELETE",
    "-m OPTIONS",
    "-m PUT -d x",
    "-host example.org:80",
    "-disable-compression",
    "-disable-keepalive",
    "-A a/b",
    "-H 'x-one-TWO: 1' -H 'Accept: a/b' -H 'host: other' -H 'content-length: 9'",
    "-H 'X-One: 1' -H 'X-One: 2' -H 'B: 1' -H 'a: 2'",
    "-H 'accept-encoding: br'",
    "-H 'Range: bytes=0-1'",
    "-H 'Connection: upgrade' -disable-keepalive",
    "-H 'Content-Type: a/b'",
    "-H 'X_y:   padded   '",
]

pytestmark = pytest.mark.needs("hey", "nginx", "openssl")


@pytest.fixture(scope="module")
def of_both(
    request: pytest.FixtureRequest, engine: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Both]]:
    """Returns a function that runs a line of `LOADS` with both programs."""
    with ExitStack() as stack:
        nginx = stack.enter_context(running_nginx(min(os.sched_getaffinity(0)), tls=True, locations=LOCATIONS))
        places = {"url": nginx.url, "tls": f"https://{nginx.tls_address}/", "refused": "127.0.0.1:1"}
        places |= stack.enter_context(running_servers(engine, SERVERS))
        yield stack.enter_context(
            side_by_side("hey", chosen_lines(request, LOADS), places, tmp_path_factory.mktemp("hey"))
        )


def layout(report: str) -> list[str]:
    """Returns the shape of a report without the texts of errors, which differ."""
    return [re.sub(r'^( \[#\]\t\w+ "\S+":).*', r"\1", line) for line in shape(report)]


@pytest.mark.parametrize("line", cases(LOADS, kept=KEPT))
def test_the_report_of_a_load_has_heys_layout_and_exit_code(of_both: Callable[[str], Both], line: str) -> None:
    both = of_both(line)
    assert both.weir.code == both.tool.code == 0, both.weir.err
    assert layout(both.weir.out) == layout(both.tool.out)
    assert all(text.startswith(("weir: ", "  try: ")) for text in both.weir.err.splitlines())


@pytest.mark.parametrize("line", cases(LOADS, kept=KEPT, where=lambda line: "-o csv" not in line))
def test_what_parses_heys_report_parses_weirs(of_both: Callable[[str], Both], line: str) -> None:
    both = of_both(line)
    hey, weir = parse(both.tool.out), parse(both.weir.out)
    assert weir.summary.keys() == hey.summary.keys()
    assert weir.details_s.keys() == hey.details_s.keys()
    assert weir.statuses.keys() == hey.statuses.keys()
    assert len(weir.histogram) == len(hey.histogram)
    answered = sum(weir.statuses.values())
    assert sum(count for _, count in weir.histogram) == answered
    assert list(weir.latencies_s) == [10, 25, 50, 75, 90, 95, 99] * (answered > 0)
    assert list(weir.latencies_s.values()) == sorted(weir.latencies_s.values())
    if "-z" not in line:
        assert weir.statuses == hey.statuses
        assert weir.summary.get("Total data") == hey.summary.get("Total data")
        assert sum(weir.errors.values()) == sum(hey.errors.values()) or "refused" in line
    assert weir.summary.get("Size/request") == hey.summary.get("Size/request")


@pytest.mark.parametrize("line", WRONG)
def test_what_cannot_begin_has_heys_exit_code_and_weirs_words(tmp_path: Path, line: str) -> None:
    words = shlex.split(line.replace("{url}", "http://127.0.0.1:1/"))
    from_hey = subprocess.run(["hey", *words], cwd=tmp_path, capture_output=True, text=True, timeout=END_S)
    with pytest.raises(ToolError) as raised:
        read_command_line("hey", words)
    assert raised.value.code == from_hey.returncode
    assert re.search("found |cannot be read", raised.value.message)


def test_help_has_heys_exit_code() -> None:
    from_hey = subprocess.run(["hey", "-help"], capture_output=True, text=True, timeout=END_S)
    with pytest.raises(ToolExit) as raised:
        read_command_line("hey", ["-help"])
    assert raised.value.code == from_hey.returncode


@pytest.mark.parametrize("flags", SENT)
def test_what_is_sent_is_what_hey_sends_byte_for_byte(tmp_path: Path, flags: str) -> None:
    (tmp_path / "body.json").write_text(BODY)

    def sent(*program: str) -> bytes:
        return bytes_sent_by(
            lambda address: [*program, "-n=1", "-c=1", *shlex.split(flags), f"http://{address}/p/a?q=1#part"], tmp_path
        )

    assert sent(WEIR, "hey") == sent("hey")


def test_credentials_and_agents_are_sent_which_hey_0_1_4_forgets(tmp_path: Path) -> None:
    sent = bytes_sent_by(
        lambda address: [WEIR, "hey", "-n", "1", "-c", "1", "-a", "user:password", "-U", "me", f"http://{address}/"],
        tmp_path,
    )
    assert b"\r\nAuthorization: Basic dXNlcjpwYXNzd29yZA==\r\n" in sent
    assert b"\r\nUser-Agent: me hey/0.0.1\r\n" in sent


def test_the_articles_own_command_line_runs_unchanged(
    tmp_path: Path, start_weir: StartWeir, serve: Callable[..., str]
) -> None:
    (tmp_path / "request.json").write_text(BODY)
    process = start_weir(
        *shlex.split('hey -z 5m -c 20 -m POST -T "application/json" -D request.json'),
        f"http://{serve('echo')}/bench/receive_data",
    )
    # The test interrupts the load of five minutes, as a user does; hey and weir then report their results so far.
    wait_for_load(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    found = parse(out)
    assert found.statuses.keys() == {200}
    assert found.summary["Size/request"] == len(BODY)
    assert "weir load http://" in err


def wait_for_load(pid: int) -> None:
    """Waits until the engine of a `weir` reports that its load has begun, and at least 0.1 s more."""
    written: set[str] = set()
    while len(written) < 5:
        for task in Path(f"/proc/{pid}/task").iterdir():
            # A thread or a child may have just ended.
            with suppress(OSError):
                for child in (task / "children").read_text().split():
                    written.add(Path(f"/proc/{child}/io").read_text().splitlines()[1])


def test_that_redirects_are_not_followed_is_said_unless_they_are_not_to_be(of_both: Callable[[str], Both]) -> None:
    assert "8 responses were redirects; hey follows" in of_both(FOLLOWED).weir.err
    assert "hey follows" not in of_both("-n 8 -c 2 -disable-redirects {url}moved").weir.err


def test_what_weir_does_not_do_names_what_there_is_instead(weir: Weir) -> None:
    for flags, instead in (
        (("-h2",), "h2load"),
        (("-x", "http://127.0.0.1:1"), "--connect-to"),
        (("-m", "TRACE"), "GET"),
        (("-o", "json"), "weir load --json"),
    ):
        done = weir("hey", *flags, "http://127.0.0.1:1/")
        assert (done.returncode, done.stdout) == (2, "")
        assert instead in done.stderr


def test_requests_per_second_counts_answers_alone_and_says_so(weir: Weir, serve: Callable[..., str]) -> None:
    address = serve("times", "--distribution", "constant:1ms", "--fault", "garbage", "--fault-share", "0.5")
    done = weir("hey", "-n", "100", "-c", "2", f"http://{address}/")
    found = parse(done.stdout)
    answered, failed = sum(found.statuses.values()), sum(found.errors.values())
    assert answered + failed == 100
    assert found.summary["Requests/sec"] == pytest.approx(answered / found.summary["Total"], rel=0.01)
    counted = re.search(r"would print ([\d.]+)", done.stderr)
    assert counted is not None
    assert float(counted[1]) == pytest.approx(100 / found.summary["Total"], rel=0.01)


def test_every_answer_has_a_row_whose_parts_make_up_its_time(weir: Weir, serve: Callable[..., str]) -> None:
    done = weir("hey", "-n", "200", "-c", "4", "-o", "csv", f"http://{serve('delay', '--wait', '2ms')}/")
    head, *rows = [line.split(",") for line in done.stdout.splitlines()]
    assert head[0] == "response-time"
    assert len(rows) == 200
    others_s = []
    for total, _, _, _, waiting, reading, status, offset in rows:
        assert float(total) >= 0.002
        others_s.append(float(total) - float(waiting) - float(reading))
        assert status == "200"
        assert float(offset) >= 0
    # A time has four decimals. On a busy machine the generator may send a few requests late, which is in no part.
    assert min(others_s) >= -0.0002
    assert median(others_s) < 0.002


@pytest.mark.parametrize(
    "line",
    [
        "-n 8 -c 2 -m POST -T application/json -D body.json {url}",
        "-n 8 -c 4 -q 50 {url}",
        "-n 8 -c 2 -disable-keepalive {tls}",
    ],
)
def test_the_native_command_line_runs_and_does_the_same(
    tmp_path: Path, weir: Weir, of_both: Callable[[str], Both], line: str
) -> None:
    (tmp_path / "body.json").write_text(BODY)
    native = of_both(line).weir.err.rpartition("the same with weir load: weir ")[2]
    done = weir(*shlex.split(native), "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == {"200": 8}


def test_weirs_reader_of_reports_reads_both(of_both: Callable[[str], Both]) -> None:
    both = of_both("-n 20 -c 2 {url}")
    for out in (both.tool.out, both.weir.out):
        results = read_report(out, "hey")
        assert results is not None
        assert (results[0].tool, results[0].requests, results[0].failed) == ("hey", 20, 0)


@pytest.mark.parametrize(
    ("line", "kind"), [("-n 8 -c 2 http://{garbage}/", "protocol"), ("-n 2 -c 2 -t 1 http://{silent}/", "timeout")]
)
def test_weirs_reader_of_reports_knows_the_kinds_of_failures(
    of_both: Callable[[str], Both], line: str, kind: str
) -> None:
    results = read_report(of_both(line).weir.out, "hey")
    assert results is not None
    assert results[0].errors.keys() == {kind}
