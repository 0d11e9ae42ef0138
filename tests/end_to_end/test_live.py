"""`--live` and `weir ui` as a user meets them: real loads and runs in a real browser."""

import http.client
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.end_to_end.conftest import END_S, StartWeir, Study, Weir, servers_of
from tests.end_to_end.ordeal import read_until
from tests.support.kept import kept_trials
from weir.model.run_types import StopReason
from weir.store import RunReader

HOUR_S = 3600
MOST_GROWTH_BYTES = 20_000_000
Serve = Callable[..., str]
Look = Callable[[str], Page]


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """Returns a function that opens an address. In the end a page may only have complained that weir is gone."""
    complaints: list[str] = []
    with ExitStack() as stack:

        def opened(url: str) -> Page:
            context = browser.new_context()
            stack.callback(context.close)
            page = context.new_page()
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("dialog", lambda dialog: dialog.accept())
            page.goto(url)
            page.wait_for_selector("html[data-ready=true]")
            return page

        yield opened
    assert [complaint for complaint in complaints if "ERR_" not in complaint] == []


def address(process: "subprocess.Popen[str]") -> str:
    """Returns the page's address from weir's output."""
    assert process.stderr is not None
    found = re.search(r"live: (http://\S+)", read_until(process.stderr, "weir: live: "))
    assert found is not None
    return found.group(1)


def number(page: Page, title: str) -> float:
    text = page.locator(".tile", has=page.locator("h3", has_text=re.compile(f"^{title} "))).locator("b").inner_text()
    return float(text.replace(",", "").replace("–", "0"))


def test_a_load_is_shown_while_it_goes_on_and_the_stop_button_ends_it_with_its_result(
    start_weir: StartWeir, serve: Serve, look: Look, tmp_path: Path
) -> None:
    url = f"http://{serve('delay', '--wait', '5ms')}/"
    process = start_weir("load", url, "-c", "4", "-d", "1h", "--live", "--out", "a.weir")
    page = look(address(process))
    expect(page.locator("#what")).to_have_text(url)
    expect(page.locator("#progress-text")).to_have_text(re.compile(r"^[1-9]\d*\.\d s of 3600 s"))
    expect(page.locator(".chart[data-drawn=true] canvas")).to_have_count(3)
    # The server's delay and the timeout limit both figures, in requests per second and in milliseconds.
    assert 0 < number(page, "Throughput") < 2 * 4 / 0.005
    assert 4.9 < number(page, "p50") <= 2000
    page.locator("#stop").click()
    expect(page.locator("#point")).to_have_text("The load has ended. The terminal shows the result.")
    out, err = process.communicate(timeout=END_S)
    assert process.returncode == 130
    assert "req/s" in out
    assert "Traceback" not in err
    with RunReader(tmp_path / "a.weir") as reader:
        assert reader.ended == "interrupted"
        assert reader.trials()[0].result.summary is not None


@pytest.mark.soak
@pytest.mark.timeout(2 * HOUR_S)
def test_an_hour_of_ten_intervals_a_second_makes_neither_the_server_nor_the_browser_grow(
    start_weir: StartWeir, serve: Serve, look: Look
) -> None:
    process = start_weir("load", f"http://{serve('null')}/", "-c", "4", "-R", "200", "-d", f"{HOUR_S}s", "--live")
    page = look(address(process))
    sizes = []
    # The drawing code is loaded, and the charts have reached their maximum number of points.
    for reached_s in (HOUR_S / 6, HOUR_S - 20):
        page.wait_for_function(
            "reached => parseFloat(document.querySelector('#progress-text').textContent) >= reached",
            arg=reached_s,
            timeout=HOUR_S * 1000,
        )
        page.context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
        sizes.append(
            {"weir": private_bytes(process.pid), "browser": private_bytes(max(renderers(), key=private_bytes))}
        )
    process.communicate(timeout=END_S)
    assert process.returncode == 0
    before, after = sizes
    grown = {name: after[name] - size for name, size in before.items()}
    assert max(grown.values()) < MOST_GROWTH_BYTES, grown


def renderers() -> Iterator[int]:
    """Returns this test browser's processes that draw pages: one draws the test's page, the others are empty, one of
    them for the browser's own window."""
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            if b"--type=renderer" in command and b"--top-chrome-webui" not in command and is_below(int(folder.name)):
                yield int(folder.name)


def is_below(pid: int) -> bool:
    """Returns whether this process is an ancestor of process `pid`."""
    while pid > 1 and pid != os.getpid():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid == os.getpid()


def private_bytes(pid: int) -> int:
    """Returns the private memory of a process in bytes."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(size) * 1024 for size in re.findall(r"^Private_(?:Clean|Dirty): +(\d+) kB$", rollup, re.MULTILINE))


def test_a_load_that_nobody_looks_at_ends_as_without_a_page(weir: Weir, serve: Serve) -> None:
    done = weir("load", f"http://{serve('null')}/", "-n", "200", "-c", "2", "--live")
    assert done.returncode == 0, done.stderr
    assert "200 answered" in done.stdout
    assert "?token=" in done.stderr
    assert "?token=" not in done.stdout


@pytest.mark.usefixtures("stacks")
def test_a_run_is_shown_trial_by_trial_with_the_processes_of_its_stack(
    start_weir: StartWeir, study: Study, look: Look, tmp_path: Path
) -> None:
    process = start_weir("run", study("good", "other", duration_s=2), "--live", "--out", "out")
    page = look(address(process))
    expect(page.locator("#question")).to_have_text("Which is better?")
    expect(page.locator("#run-progress")).to_contain_text(re.compile("trial [12] of 2"))
    expect(page.locator("#point")).to_have_text("hello, 4 connections")
    expect(page.locator("#processes tr")).to_contain_text("app")
    expect(page.locator("#processes tr")).to_contain_text("× ")
    expect(page.locator("#chart-tiers canvas")).to_have_count(1)
    page.locator("#logs summary").click()
    expect(page.locator("#logs pre")).to_contain_text("this is")
    expect(page.locator("#point")).to_contain_text("The run is over. Its report:")
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    with RunReader(tmp_path / "out") as reader:
        expect(page.locator("#trials tr")).to_have_count(len(reader.trials()))
    assert len(kept_trials(tmp_path / "out")) == 2


@pytest.mark.usefixtures("stacks")
def test_a_trial_that_is_skipped_is_kept_as_rejected_and_tried_again(
    start_weir: StartWeir, study: Study, look: Look, tmp_path: Path
) -> None:
    process = start_weir("run", study("good", duration_s=3600, retries=1), "--live", "--out", "out")
    page = look(address(process))
    for attempt in (1, 2):
        expect(page.locator("#run-progress")).to_contain_text(f"trial {attempt} of")
        expect(page.locator("#progress-text")).to_contain_text(" of 3600 s")
        page.locator("#skip").click()
        expect(page.locator("#trials tr")).to_have_count(attempt)
        expect(page.locator("#trials tr").first).to_contain_text("skipped by the viewer")
    _, err = process.communicate(timeout=END_S)
    # The only cell has no trial that counts, but not because of the stack.
    assert process.returncode == 4, err
    with RunReader(tmp_path / "out") as reader:
        trials = reader.trials()
        assert all(reader.intervals(trial.id) for trial in trials)
    assert [(trial.block, trial.attempt) for trial in trials] == [(1, 1), (1, 2)]
    assert {trial.result.verdict.texts for trial in trials} == {("skipped by the viewer",)}
    assert {trial.result.verdict.validity for trial in trials} == {"invalid"}
    assert servers_of(tmp_path) == []


@pytest.mark.usefixtures("stacks")
def test_a_run_goes_on_for_a_block_that_somebody_asks_for_and_says_so(
    start_weir: StartWeir, study: Study, look: Look, weir: Weir, tmp_path: Path
) -> None:
    process = start_weir("run", study("slow", duration_s=1, warmup_s=4), "--live", "--out", "out")
    page = look(address(process))
    expect(page.locator("#run-progress")).to_contain_text("trial 1 of 1 · block 1 of 1")
    page.locator("#extend").click()
    expect(page.locator("#run-progress")).to_contain_text("trial 2 of 2 · block 2 of 2")
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    assert {trial.block for trial in kept_trials(tmp_path / "out")} == {1, 2}
    with RunReader(tmp_path / "out") as reader:
        made = len(reader.trials())
        assert reader.stopped == StopReason("blocks", 2, "2 blocks: 1 as asked, and 1 more that you asked for", added=1)
    assert "added 1 block to" in " ".join(weir("report", "out").stdout.split())
    resumed = weir("run", "--resume", "out")
    assert resumed.returncode == 0, resumed.stderr
    with RunReader(tmp_path / "out") as reader:
        assert reader.stopped is not None
        assert (len(reader.trials()), reader.stopped.added) == (made, 1)


@pytest.mark.thorough
@pytest.mark.usefixtures("stacks")
def test_a_trial_that_is_skipped_while_it_is_warmed_up_has_no_load(
    start_weir: StartWeir, study: Study, look: Look, tmp_path: Path
) -> None:
    process = start_weir("run", study("good", duration_s=0.5, warmup_s=3600, retries=0), "--live", "--out", "out")
    page = look(address(process))
    expect(page.locator("#logs summary")).to_have_count(1)
    page.locator("#logs summary").click()
    expect(page.locator("#logs pre")).to_contain_text("this is good")
    page.locator("#skip").click()
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 4, err
    with RunReader(tmp_path / "out") as reader:
        (trial,) = reader.trials()
        assert trial.result.verdict.texts == ("skipped by the viewer",)
        assert reader.intervals(trial.id) == []


@pytest.mark.usefixtures("stacks")
def test_the_stop_button_ends_a_run_as_ctrl_c_does(
    start_weir: StartWeir, study: Study, look: Look, weir: Weir, tmp_path: Path
) -> None:
    process = start_weir("run", study("good", "other", blocks=2, duration_s=1), "--live", "--out", "out")
    page = look(address(process))
    expect(page.locator("#run-progress")).to_contain_text(re.compile("trial [2-4] of 4"))
    page.locator("#stop").click()
    expect(page.locator("#point")).to_have_text(re.compile("^Ended early"))
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "weir run --resume" in err
    assert servers_of(tmp_path) == []
    resumed = weir("run", "--resume", "out", "--live")
    assert resumed.returncode == 0, resumed.stderr
    assert len(kept_trials(tmp_path / "out")) == 4


@pytest.mark.timeout(400)
def test_a_load_from_the_form_is_shown_kept_and_listed(
    start_weir: StartWeir, serve: Serve, look: Look, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    process = start_weir("ui", "mine")
    page = look(address(process))
    page.get_by_label("URL").fill(f"http://{serve('delay', '--wait', '2ms')}/")
    page.get_by_label("Connections").fill("2")
    page.get_by_label("Duration").fill("1h")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#progress-text")).to_contain_text(" of 3600 s")
    page.locator("#stop").click()
    expect(page.locator("#trials tr")).to_contain_text("its report")
    row = page.locator("#runs tr")
    # The process computes at nice 19, so it takes long on a busy machine.
    expect(row).to_contain_text("requests per second", timeout=300_000)
    expect(row).to_contain_text("interrupted")
    row.locator("a").click()
    expect(page.locator("h1")).to_contain_text("requests per second")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    with RunReader(tmp_path / "mine" / "load-1") as reader:
        assert reader.ended == "interrupted"


def test_ctrl_c_ends_the_load_that_a_form_has_started_and_keeps_it(
    start_weir: StartWeir, serve: Serve, look: Look, tmp_path: Path
) -> None:
    process = start_weir("ui")
    page = look(address(process))
    page.get_by_label("URL").fill(f"http://{serve('null')}/")
    page.get_by_label("Duration").fill("1h")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#progress-text")).to_contain_text(" of 3600 s")
    process.send_signal(signal.SIGINT)
    expect(page.locator("#connection")).to_have_text("ended")
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    with RunReader(tmp_path / "runs" / "load-1") as reader:
        assert reader.ended == "interrupted"
        assert len(reader.trials()) == 1


def test_without_the_token_of_the_printed_address_nobody_is_let_in(start_weir: StartWeir, tmp_path: Path) -> None:
    process = start_weir("ui", "--listen", "127.0.0.1")
    parts = urlsplit(address(process))
    assert parts.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30)
    connection.request("GET", "/")
    assert connection.getresponse().status == 403
    connection.close()
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["load", "http://127.0.0.1:1/", "--listen", "0.0.0.0"], "--listen: found '0.0.0.0' without --live"),
        (["run", "sync-vs-async", "--listen", "0.0.0.0"], "--listen: found '0.0.0.0' without --live"),
        (
            ["load", "http://127.0.0.1:1/", "--live", "--listen", "a b"],
            "--listen: found 'a b', expected an address of this machine",
        ),
        (
            ["load", "http://127.0.0.1:1/", "--live", "--listen", "192.0.2.1"],
            "--listen: cannot listen on 192.0.2.1:0",
        ),
        (["ui", "missing"], "FOLDER: missing: found no folder, expected a folder of runs"),
    ],
)
def test_what_is_wrong_is_said_with_the_flag(weir: Weir, arguments: list[str], problem: str) -> None:
    done = weir(*arguments)
    assert done.returncode == 2
    assert problem in done.stderr
