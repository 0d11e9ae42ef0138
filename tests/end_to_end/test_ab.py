"""`weir ab` compared with the real ab on the same servers: the same layout, exit codes and requests."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.nginx import running_nginx
from tests.end_to_end.conftest import END_S, StartWeir, Weir
from tests.support.ab_output import parse
from tests.support.request_bytes import bytes_sent_by
from tests.support.side_by_side import BODY, WEIR, Both, chosen_lines, running_servers, shape, side_by_side
from tests.support.tiers import cases
from weir.compat.ab import read_command_line
from weir.compat.flags import ToolError, ToolExit
from weir.compat.reports import read_report

SERVERS = {"silent": ["fault", "--kind", "silent"], "resetting": ["fault", "--kind", "reset"]}
LOCATIONS = """
        location = /missing { return 404 "nothing"; }
        location = /failing { return 500 "sorry"; }
        location = /empty { return 204; }
        location = /clock { return 200 $request_id$request_id; }
"""
LOADS = [
    "{url}",
    "-n 10 {url}",
    "-n10 -c2 {url}",
    "-n 10 -c 10 {url}",
    "-kn10 -c 2 {url}",
    "-kqn 10 {url}",
    "-n 150 -c 4 {url}",
    "-n 160 -c 4 {url}",
    "-n 160 -c 4 -q {url}",
    "-n 1200 -c 4 -k {url}",
    "-n 20 -d {url}",
    "-n 10 -i {url}empty",
    "-n 10 -i -k {url}",
    "-n 10 -m OPTIONS {url}",
    "-n 10 -m DELETE -k {url}",
    "-n 10 -p body.json -T application/json {url}",
    "-n 10 -c 2 -k -p body.json {url}",
    "-n 10 -u body.json {url}",
    "-n 10 -u body.json -m PATCH -T text/x {url}",
    "-n 10 -C a=b -C c=d {url}",
    "-n 10 -A user:password {url}",
    "-n 10 -H 'X-One: 1' -H X-Two:2 {url}",
    "-n 10 -H 'Host: example.org' -H 'User-Agent: me' -H 'Accept: a/b' {url}",
    "-n 10 -s 5 {url}",
    "-t 20 -n 10 {url}",
    "-n 10 -t 1 -k -c 2 {url}",
    "-n 10 -r {url}",
    "-n 10 -l {url}",
    "-n 10 -l -k {url}clock",
    "-n 10 -v 1 {url}",
    "-n 10 -B 127.0.0.2 {url}",
    "-n 10 -e percentages.csv {url}",
    "-n 10 -c 2 -k -e percentages.csv {url}",
    "-n 10 {url}missing",
    "-n 10 -k -c 2 {url}failing",
    "-n 10 {url}empty",
    "-n 10 {tls}",
    "-n 10 -k -c 2 {tls}",
    "-n 10 {tls_name}",
    "-n 10 {bare}/",
    "-n 10 {url}?a=b",
    "-n 10 -- {url}",
    "-n 10 -e /no/such/folder/x {url}",
    "http://127.0.0.1:1/",
    "-n 200 http://127.0.0.1:1/",
    "http://no-such-host.invalid/",
]
KEPT = {
    "{url}",
    "-n10 -c2 {url}",
    "-kqn 10 {url}",
    "-n 160 -c 4 {url}",
    "-n 10 -i {url}empty",
    "-n 10 -c 2 -k -p body.json {url}",
    "-n 10 -A user:password {url}",
    "-n 10 -t 1 -k -c 2 {url}",
    "-n 10 -l -k {url}clock",
    "-n 10 -v 1 {url}",
    "-n 10 -c 2 -k -e percentages.csv {url}",
    "-n 10 {url}missing",
    "-n 10 -k -c 2 {tls}",
    "-n 10 -e /no/such/folder/x {url}",
    "http://127.0.0.1:1/",
    "http://no-such-host.invalid/",
}
# ab ends at the first socket error unless it has the option to continue.
RESET = "-n 6 -c 2 http://{resetting}/"
SILENT = "-n 4 -c 2 -s 1 http://{silent}/"
WRONG = [
    "",
    "-h",
    "-kh {url}",
    "-n 0 {url}",
    "-n -5 {url}",
    "-n",
    "-c -1 {url}",
    "-c 5 -n 2 {url}",
    "-Y",
    "{url} extra",
    "{url} -n 2",
    "http://127.0.0.1",
    "http://:80/",
    "http://127.0.0.1:0/",
    "http://127.0.0.1:99999/",
    "''",
    "-",
    "-i -p body.json {url}",
    "-i -u body.json {url}",
    "-p missing {url}",
    "-u missing {url}",
]
COUNTED = ("Complete requests", "Keep-Alive requests", "HTML transferred", "Total transferred")
TIMED = (
    "Time taken for tests", "Requests per second", "Time per request", "Time per request (all)", "Transfer rate", "Connect", "Processing",
    "Waiting", "Total",
)  # fmt: skip
"""Lines whose values differ every time."""
TLS = {"SSL/TLS Protocol", "Server Temp Key", "TLS Server Name"}
"""Lines that weir leaves out."""
SENT = [
    "",
    "-k",
    "-i",
    "-m DELETE",
    "-p body.json",
    "-p body.json -T application/json -k",
    "-u body.json",
    "-u body.json -m PATCH",
    "-C a=b -C c=d",
    "-A user:password",
    "-H 'X-One: 1' -H 'X-Two: 2'",
    "-H 'host: example.org' -H 'User-Agent: me' -H 'accept: a/b'",
]

pytestmark = pytest.mark.needs("ab", "nginx", "openssl")


@pytest.fixture(scope="module")
def of_both(
    request: pytest.FixtureRequest, engine: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Both]]:
    """Returns a function that runs a line of `LOADS` with both programs."""
    with ExitStack() as stack:
        nginx = stack.enter_context(running_nginx(min(os.sched_getaffinity(0)), tls=True, locations=LOCATIONS))
        tls = str(nginx.tls_address)
        places = {
            "url": nginx.url,
            "tls": f"https://{tls}/",
            "tls_name": f"https://localhost:{tls.rpartition(':')[2]}/",
            "bare": nginx.address,
        }
        places |= stack.enter_context(running_servers(engine, SERVERS))
        yield stack.enter_context(
            side_by_side("ab", chosen_lines(request, LOADS), places, tmp_path_factory.mktemp("ab"))
        )


def layout(report: str) -> list[str]:
    """Returns the shape of a report, without ab's warnings, the TLS lines and the banner."""
    left_out = "|".join([r"(ERROR|WARNING): The median| deviation apart\.| These results are probably", *TLS])
    lines = [line for line in shape(report) if not re.match(left_out, line)]
    banner = next((number for number, line in enumerate(lines) if "This is ApacheBench, Version #.0" in line), None)
    if banner is None:
        return lines
    return [*lines[:banner], "This is ApacheBench", *lines[banner + 3 :]]


@pytest.mark.parametrize("line", cases(LOADS, kept=KEPT))
def test_the_report_of_a_load_has_abs_layout_and_exit_code(of_both: Callable[[str], Both], line: str) -> None:
    both = of_both(line)
    assert both.weir.code == both.tool.code, both.weir.err
    assert layout(both.weir.out) == layout(both.tool.out)


@pytest.mark.parametrize(
    "line", cases(LOADS, kept=KEPT, where=lambda line: not re.search("-t 1|:1/|invalid|/no/", line))
)
def test_standard_error_has_what_ab_says_there_before_what_weir_says(of_both: Callable[[str], Both], line: str) -> None:
    both = of_both(line)
    of_ab = both.tool.err.splitlines()
    found = both.weir.err.splitlines()
    assert found[: len(of_ab)] == of_ab
    assert all(text.startswith(("weir: ", "  try: ")) for text in found[len(of_ab) :])


@pytest.mark.parametrize("line", cases(LOADS, kept=KEPT, where=lambda line: not re.search("invalid|:1/", line)))
def test_what_parses_abs_report_parses_weirs(of_both: Callable[[str], Both], line: str) -> None:
    both = of_both(line)
    ab, weir = parse(both.tool.out), parse(both.weir.out)
    assert weir.version == ab.version
    assert weir.values.keys() == ab.values.keys() - TLS
    complete, concurrency = int(weir.values["Complete requests"]), int(weir.values["Concurrency Level"])
    same = {
        label: value
        for label, value in ab.values.items()
        if label not in {*TIMED, *TLS} and ("-t 1" not in line or label not in COUNTED)
    }
    if "Total body sent" in same and "-k" not in line:
        # HTTP/1.1 announces a connection's end with a header, HTTP/1.0 without one.
        same["Total body sent"] = str(int(same["Total body sent"]) + complete * len("Connection: close\r\n"))
    assert {label: weir.values[label] for label in same} == same
    assert weir.times_ms.keys() == ab.times_ms.keys()
    assert weir.percentages_ms.keys() == ab.percentages_ms.keys()
    assert list(weir.percentages_ms.values()) == sorted(weir.percentages_ms.values())
    each_ms = float(weir.values["Time per request (all)"])
    # Both figures are printed to the microsecond.
    assert float(weir.values["Time per request"]) == pytest.approx(each_ms * concurrency, abs=0.001 * concurrency)
    assert float(weir.values["Requests per second"]) == pytest.approx(1000 / each_ms, rel=0.001 + 0.001 / each_ms)


@pytest.mark.parametrize("line", cases(LOADS, kept=KEPT, where=lambda line: " -e " in line))
def test_the_files_of_both_have_one_layout(of_both: Callable[[str], Both], line: str) -> None:
    both = of_both(line)
    assert both.weir.files.keys() == both.tool.files.keys()
    for name, text in both.weir.files.items():
        assert shape(text) == shape(both.tool.files[name])


def test_a_reset_is_counted_and_has_abs_exit_code_where_ab_ends_at_it(of_both: Callable[[str], Both]) -> None:
    ends, goes_on = of_both(RESET), of_both(f"-r {RESET}")
    assert ends.weir.code == ends.tool.code == 104
    assert "without -r, ab ends at the first socket error" in ends.weir.err
    assert goes_on.weir.code == goes_on.tool.code == 0
    for both in (ends, goes_on):
        found = parse(both.weir.out)
        assert (found.values["Complete requests"], found.failures["Receive"]) == ("0", 6)


def test_a_server_that_says_nothing_has_abs_exit_code(of_both: Callable[[str], Both]) -> None:
    both = of_both(SILENT)
    assert both.weir.code == both.tool.code == 70007 & 255
    assert parse(both.weir.out).failures["Exceptions"] == 4


@pytest.mark.parametrize("line", WRONG)
def test_what_cannot_begin_has_abs_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    (tmp_path / "body.json").write_text(BODY)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace("{url}", "http://127.0.0.1:1/"))
    from_ab = subprocess.run(["ab", *words], capture_output=True, text=True, timeout=END_S)
    with pytest.raises((ToolError, ToolExit)) as raised:
        read_command_line("ab", words)
    assert raised.value.code == from_ab.returncode  # type: ignore[attr-defined]


def test_its_version_is_said_where_parsers_look_for_it() -> None:
    from_ab = subprocess.run(["ab", "-V"], capture_output=True, text=True, timeout=END_S)
    with pytest.raises(ToolExit) as raised:
        read_command_line("ab", ["-V"])
    assert raised.value.code == from_ab.returncode == 0
    assert (
        raised.value.text.partition(" [")[0] == from_ab.stdout.partition(" <")[0] == "This is ApacheBench, Version 2.3"
    )


@pytest.mark.parametrize("flags", SENT)
def test_what_is_sent_is_what_ab_sends_but_for_its_version_and_the_end_of_the_connection(
    tmp_path: Path, flags: str
) -> None:
    (tmp_path / "body.json").write_text(BODY)

    def sent(*program: str) -> bytes:
        return bytes_sent_by(
            lambda address: [*program, "-n", "1", *shlex.split(flags), f"http://{address}/p/a?q=1"], tmp_path
        )

    of_weir = sent(WEIR, "ab")
    assert of_weir.replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1).replace(b"Connection: close\r\n", b"", 1) == sent(
        "ab"
    )
    assert (b"Connection: close\r\n" in of_weir) == ("-k" not in flags)


def test_what_weir_does_not_do_names_what_there_is_instead(weir: Weir) -> None:
    for flags, instead in (
        (("-X", "127.0.0.1:1"), "--connect-to"),
        (("-b", "1000"), "tcp_rmem"),
        (("-f", "TLS1"), "TLS 1.2 or 1.3"),
        (("-Z", "AES"), "ciphers"),
        (("-I",), "IP address"),
        (("-w",), "weir report"),
        (("-g", "answers.tsv"), "--hdr"),
    ):
        done = weir("ab", *flags, "http://127.0.0.1:1/")
        assert (done.returncode, done.stdout) == (22, "")
        assert instead in done.stderr


def test_progress_is_told_while_the_load_runs(start_weir: StartWeir, serve: Callable[..., str]) -> None:
    process = start_weir("ab", "-n", "10000", "-c", "2", "-k", f"http://{serve('delay', '--wait', '2ms')}/")
    assert process.stdout is not None
    assert process.stderr is not None
    assert [process.stdout.readline() for _ in range(5)][-1] == "Benchmarking 127.0.0.1 (be patient)\n"
    assert process.stderr.readline() == "Completed 1000 requests\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=END_S)
    # ab has the same exit code after Ctrl-C.
    assert process.returncode == 1, err
    assert "Complete requests:" in out


def test_answers_of_another_length_are_failures_unless_they_may_be(
    of_both: Callable[[str], Both], weir: Weir, serve: Callable[..., str]
) -> None:
    address = serve("times", "--distribution", "constant:1ms", "--fault", "status-500", "--fault-share", "0.5")
    done = weir("ab", "-n", "200", "-k", f"http://{address}/")
    found = parse(done.stdout)
    assert found.failures["Length"] == int(found.values["Failed requests"]) > 0
    assert done.returncode == 0
    any_length = parse(weir("ab", "-n", "200", "-k", "-l", f"http://{address}/").stdout)
    assert (any_length.values["Failed requests"], any_length.failures) == ("0", {})
    assert any_length.values["Document Length"] == "Variable"


@pytest.mark.parametrize(
    "line", ["-n 10 -c 2 -k -p body.json {url}", "-n 10 -A user:password {url}", "-n 10 -k -c 2 {tls}"]
)
def test_the_native_command_line_runs_and_does_the_same(
    tmp_path: Path, weir: Weir, of_both: Callable[[str], Both], line: str
) -> None:
    (tmp_path / "body.json").write_text(BODY)
    native = of_both(line).weir.err.rpartition("the same with weir load: weir ")[2]
    done = weir(*shlex.split(native), "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == {"200": 10}


def test_weirs_reader_of_reports_reads_both(of_both: Callable[[str], Both]) -> None:
    both = of_both("-n10 -c2 {url}")
    for out in (both.tool.out, both.weir.out):
        results = read_report(out, "ab")
        assert results is not None
        assert (results[0].tool, results[0].users, results[0].requests, results[0].failed) == ("ab", 2, 10, 0)
