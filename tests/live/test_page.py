"""Tests the live page in a real browser: its content, hostile names, lost connections, many viewers, and its
buttons."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from tests.live.conftest import KEYS, Served, Visitor
from tests.support.page import HOSTILE, serious_barriers
from tests.support.records import group, interval, sample, started
from tests.support.synthetic_run import FLASK, SANIC, SyntheticStudy, write_run
from tests.support.tiers import cases
from weir.cli.ui import form_fields
from weir.live import Controls, EventQueue, LiveServer, PageInfo, RunFolder, TrialEnded, TrialStarted
from weir.model.errors import UsageError

ABOUT = PageInfo("Sync or async", "Which is better?")


@dataclass
class Watched:
    """An open page, with its messages and errors on the console."""

    page: Page
    complaints: list[str] = field(default_factory=list)


Look = Callable[..., Watched]


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """Returns a function that opens an address in a new browser context and waits until the page shows its first
    data."""
    with ExitStack() as stack:

        def opened(url: str, *, width: int = 1180, scheme: str = "light") -> Watched:
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
            )
            stack.callback(context.close)
            watched = Watched(context.new_page())
            watched.page.on("console", lambda message: watched.complaints.append(message.text))
            watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
            watched.page.goto(url)
            watched.page.wait_for_selector("html[data-ready=true]")
            return watched

        yield opened


def begin(board: EventQueue, number: int = 1, name: str = "sanic") -> None:
    board.begin_trial(
        TrialStarted(
            number=number,
            total=4,
            block=1,
            blocks=2,
            name=name,
            point="hello, 4 connections",
            duration_s=10.0,
            planned_s=15.0,
        )
    )
    board.on_start(started())


def noted(pressed: list[str], name: str) -> Callable[[], bool]:
    """Returns a button that adds its name to `pressed`."""

    def press() -> bool:
        pressed.append(name)
        return True

    return press


def tile(page: Page, title: str) -> str:
    return page.locator(".tile", has=page.locator("h3", has_text=re.compile(f"^{title} "))).locator("b").inner_text()


def feed(board: EventQueue, slices: int = 4, first: int = 0) -> None:
    for index in range(first, first + slices):
        board.on_interval(interval(index, [2.0] * 50, length_s=0.5))
        board.on_sample(sample(index * 0.5, group(cpu_s=0.25 * index, threads=5, pools={"worker": 0.5 * index})))
        board.on_sample(
            sample(index * 0.5 + 0.4, group(cpu_s=0.25 * index + 0.2, threads=5, pools={"worker": 0.5 * index + 0.3}))
        )


def test_a_run_is_shown_while_it_goes_on(served: Served, look: Look) -> None:
    board = EventQueue(ABOUT)
    watched = look(served(board).server.url)
    page = watched.page
    expect(page.locator("#question")).to_have_text("Which is better?")
    expect(page.locator("#what")).to_have_text("Preparing")
    board.on_step("building sanic")
    expect(page.locator("#steps li")).to_contain_text("building sanic")
    begin(board, 2)
    expect(page.locator("#what")).to_have_text("sanic")
    expect(page.locator("#point")).to_have_text("hello, 4 connections")
    expect(page.locator("#run-progress")).to_contain_text("trial 2 of 4 · block 1 of 2")
    feed(board)
    expect(page.locator("#progress-text")).to_have_text("2.0 s of 10 s, 8 s left")
    expect(page.locator("#run-progress")).to_contain_text("left")
    assert tile(page, "Throughput") == "100"
    assert float(tile(page, "p99")) == pytest.approx(2.0, rel=0.02)
    assert tile(page, "Answered") == "200"
    row = page.locator("#processes tr")
    expect(row).to_contain_text("app")
    expect(row).to_contain_text("worker × 1")
    expect(row).to_contain_text("waiting for events")
    board.end_trial(
        TrialEnded(
            validity="suspect",
            reasons=("no steady state",),
            throughput_rps=1234.5,
            p50_us=2000.0,
            p99_us=3000.0,
            failed=7,
        )
    )
    expect(page.locator("#trials tr")).to_have_text(re.compile(r"2.*sanic.*1,23\d.*2.*3.*7.*suspect.*no steady state"))
    board.end("The run is over.")
    expect(page.locator("#connection")).to_have_text("ended")
    expect(page.locator("#point")).to_have_text("The run is over.")
    assert watched.complaints == []


def test_every_chart_is_drawn_and_gets_more_points_as_they_come(served: Served, look: Look) -> None:
    board = EventQueue(ABOUT)
    begin(board)
    feed(board)
    watched = look(served(board).server.url)
    page = watched.page
    expect(page.locator(".chart[data-drawn=true] canvas")).to_have_count(4)
    expect(page.locator("#chart-tiers .u-series")).to_have_count(2)
    painted = "[...document.querySelectorAll('canvas')].map(canvas => canvas.toDataURL())"
    before = page.evaluate(painted)
    feed(board, 12, first=4)
    expect(page.locator("#progress-text")).to_contain_text("8.0 s")
    after = page.evaluate(painted)
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert watched.complaints == []


def test_who_comes_late_sees_what_was(served: Served, look: Look) -> None:
    board = EventQueue(ABOUT)
    begin(board)
    feed(board)
    url = served(board).server.url
    first = look(url)
    board.end_trial(TrialEnded(validity="valid"))
    begin(board, 2, name="flask")
    expect(first.page.locator("#what")).to_have_text("flask")
    second = look(url)
    for watched in (first, second):
        expect(watched.page.locator("#what")).to_have_text("flask")
        expect(watched.page.locator("#trials tr")).to_have_count(1)
        assert watched.complaints == []


def test_errors_are_shown_by_kind(served: Served, look: Look) -> None:
    board = EventQueue(ABOUT)
    begin(board)
    board.on_interval(interval(0, [1.0], errors={"timeout": 1200, "reset": 3}, queued=5))
    page = look(served(board).server.url).page
    expect(page.locator("#errors")).to_have_text("failed: timeout 1,200, reset 3 · 5 wait for a connection")
    assert tile(page, "Failed") == "1,203"


def test_hostile_names_are_text_and_nothing_else(served: Served, look: Look, tmp_path: Path) -> None:
    board = EventQueue(PageInfo(HOSTILE, HOSTILE))
    board.begin_trial(TrialStarted(number=1, name=HOSTILE, point=HOSTILE))
    log = tmp_path / "log"
    log.write_text(HOSTILE)
    board.show_logs({HOSTILE: log})
    board.on_start(started())
    board.on_interval(interval(0, [1.0], length_s=0.5))
    for at_s in (0.0, 0.4, 1.4):
        board.on_sample(sample(at_s, group(HOSTILE, tier=HOSTILE, cpu_s=at_s, pools={HOSTILE: at_s})))
    board.on_step(HOSTILE)
    url = served(board).server.url
    watched = look(url)
    board.end_trial(TrialEnded(validity="invalid", reasons=(HOSTILE,), run=HOSTILE))
    page = watched.page
    expect(page.locator("#trials tr")).to_contain_text(HOSTILE)
    for place in ("#question", "#what", "#point", "#processes tr th", "#steps li", "#logs summary", "#title"):
        expect(page.locator(place)).to_contain_text(HOSTILE)
    page.locator("#logs summary").click()
    expect(page.locator("#logs pre")).to_have_text(HOSTILE)
    assert page.evaluate("window.owned") is None
    assert page.locator("main img, main script").count() == 0
    assert page.title() == f"{HOSTILE} · weir"
    assert watched.complaints == []


@pytest.mark.parametrize("scheme", cases(["light", "dark"], kept=1))
def test_nothing_serious_is_found_by_a_check_of_accessibility(
    served: Served, look: Look, library: Callable[[Controls], Visitor], tmp_path: Path, scheme: str
) -> None:
    board = EventQueue(ABOUT, Controls(stop=lambda: True, skip=lambda: True, extend=lambda: True))
    log = tmp_path / "log"
    log.write_text("serving")
    begin(board)
    feed(board)
    board.on_interval(interval(4, [2.0], length_s=0.5, errors={"timeout": 3}))
    board.end_trial(
        TrialEnded(
            validity="suspect",
            reasons=("no steady state",),
            throughput_rps=1234.5,
            p50_us=2000.0,
            p99_us=3000.0,
            failed=7,
        )
    )
    begin(board, 2)
    feed(board)
    board.show_logs({"app": log})
    page = look(served(board).server.url, scheme=scheme).page
    expect(page.locator(".chart[data-drawn=true] canvas")).to_have_count(4)
    assert serious_barriers(page) == []
    page = look(library(Controls(start=lambda fields: None)).server.url, scheme=scheme).page
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    assert serious_barriers(page) == []


def test_the_token_leaves_the_address_bar_and_the_page_can_be_loaded_again(served: Served, look: Look) -> None:
    visitor = served()
    watched = look(visitor.server.url)
    assert watched.page.url == f"http://{visitor.host}/"
    watched.page.reload()
    watched.page.wait_for_selector("html[data-ready=true]")
    assert watched.complaints == []
    assert watched.page.evaluate("document.cookie") == ""


def test_a_page_that_has_lost_its_server_finds_it_again_and_has_missed_nothing(served: Served, look: Look) -> None:
    board = EventQueue(ABOUT)
    begin(board)
    feed(board)
    visitor = served(board)
    page = look(visitor.server.url).page
    expect(page.locator("#connection")).to_have_text("live")
    visitor.server.close()
    expect(page.locator("#connection")).to_have_text("connection lost, trying again")
    feed(board, 4, first=4)
    board.on_step("meanwhile")
    with LiveServer(board, visitor.server.address, keys=KEYS):
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator("#progress-text")).to_contain_text("4.0 s")
        expect(page.locator("#steps li")).to_contain_text("meanwhile")
        assert tile(page, "Answered") == "400"


def test_the_stop_button_asks_and_then_stops(served: Served, look: Look) -> None:
    pressed: list[str] = []
    board = EventQueue(ABOUT, Controls(stop=noted(pressed, "stop")))
    begin(board)
    watched = look(served(board).server.url)
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        if len(asked) == 1:
            dialog.dismiss()
        else:
            dialog.accept()

    watched.page.on("dialog", answer)
    watched.page.locator("#stop").click()
    assert pressed == []
    with watched.page.expect_response("**/stop") as response:
        watched.page.locator("#stop").click()
    assert response.value.status == 200
    assert pressed == ["stop"]
    assert asked[0].startswith("End it now")
    assert watched.complaints == []


def test_the_skip_button_skips_the_trial_that_it_is_shown_with(served: Served, look: Look) -> None:
    pressed: list[str] = []
    board = EventQueue(ABOUT, Controls(skip=noted(pressed, "skip")))
    page = look(served(board).server.url).page
    expect(page.locator("#skip")).to_be_disabled()
    begin(board, 3)
    expect(page.locator("#skip")).to_be_enabled()
    with page.expect_response("**/skip") as response:
        page.locator("#skip").click()
    assert response.value.status == 200
    assert pressed == ["skip"]
    board.end_trial(TrialEnded(validity="invalid", reasons=("skipped by the viewer",)))
    expect(page.locator("#skip")).to_be_disabled()


def test_the_button_for_one_more_block_says_what_comes_of_it_and_is_of_no_use_in_the_end(
    served: Served, look: Look
) -> None:
    answers = [True, False]
    board = EventQueue(ABOUT, Controls(extend=lambda: answers.pop(0)))
    page = look(served(board).server.url).page
    begin(board)
    page.locator("#extend").click()
    expect(page.locator("#control-done")).to_have_text("One more block comes after the others.")
    page.locator("#extend").click()
    expect(page.locator("#control-problem")).to_have_text("the last block has ended")
    expect(page.locator("#control-done")).to_have_text("")
    board.end("The run is over.")
    expect(page.locator("#extend")).to_be_disabled()


@pytest.mark.parametrize(("width", "scheme"), cases([(1180, "dark"), (390, "light"), (1180, "light")], kept=2))
def test_the_page_fits_its_window(served: Served, look: Look, width: int, scheme: str) -> None:
    board = EventQueue(ABOUT, Controls(stop=lambda: True, skip=lambda: True, extend=lambda: True))
    begin(board, name="a-stack-with-a-rather-long-name[and-a-variant-that-is-long-too]")
    feed(board)
    page = look(served(board).server.url, width=width, scheme=scheme).page
    expect(page.locator("#chart-tiers canvas")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 26)" if scheme == "dark" else "rgb(252, 252, 250)")


# --- Past runs and the form


@pytest.fixture
def library(served: Served, tmp_path: Path) -> Callable[[Controls], Visitor]:
    """Returns a function that serves a folder with two runs, of which one is unreadable."""
    (tmp_path / "one").mkdir()
    write_run(tmp_path / "one" / "run.weir", SyntheticStudy(duration_s=1.0, stacks=(FLASK, SANIC)))
    (tmp_path / "broken.weir").write_text("nothing of ours " * 100)
    return lambda controls: served(EventQueue(PageInfo("weir"), controls), runs=RunFolder(tmp_path))


@pytest.mark.timeout(400)
def test_past_runs_are_listed_with_their_answers_and_their_reports(
    library: Callable[[Controls], Visitor], look: Look
) -> None:
    watched = look(library(Controls()).server.url)
    page = watched.page
    expect(page.locator("#runs tr")).to_have_count(2)
    row = page.locator("#runs tr", has=page.locator("a"))
    # The process computes at nice 19, so it takes long on a busy machine.
    expect(row).to_contain_text("Sanic answers", timeout=300_000)
    expect(row).to_contain_text("indicative")
    expect(row).to_contain_text("2025-10-09")
    expect(page.locator("#runs tr", has_not=page.locator("a"))).to_contain_text("found a file of another kind")
    assert page.locator("#live").is_hidden()
    row.locator("a").click()
    expect(page.locator("h1")).to_contain_text("Sanic answers")
    page.wait_for_selector("html[data-ready=true]")
    assert page.locator("canvas").count() > 3
    # In the sandbox the report has no origin, so it cannot reach this server.
    assert page.evaluate("window.origin") == "null"
    assert watched.complaints == []


def test_a_form_starts_a_load_and_says_what_is_wrong_with_it(
    library: Callable[[Controls], Visitor], look: Look
) -> None:
    asked: list[dict[str, str]] = []

    def start(fields: Mapping[str, str]) -> None:
        asked.append(dict(fields))
        if "rate_rps" not in fields:
            raise UsageError(f"-R/--rate: missing {HOSTILE}", hint="100")
        begin(visitor.board, name=fields["url"])

    visitor = library(Controls(start=start, stop=lambda: True, form=form_fields()))
    watched = look(visitor.server.url)
    page = watched.page
    page.get_by_label("URL").fill("http://127.0.0.1:1/")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#form-problem")).to_have_text(f"-R/--rate: missing {HOSTILE} (try: 100)")
    page.get_by_label("or rate").fill(" 50 ")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#what")).to_have_text("http://127.0.0.1:1/")
    expect(page.locator("#form-problem")).to_have_text("")
    expect(page.get_by_role("button", name="Start")).to_be_disabled()
    assert asked == [{"url": "http://127.0.0.1:1/"}, {"url": "http://127.0.0.1:1/", "rate_rps": " 50 "}]
    visitor.board.end_trial(TrialEnded(validity="valid", throughput_rps=50.0, run="one"))
    expect(page.locator("#trials tr")).to_contain_text("its report")
    expect(page.get_by_role("button", name="Start")).to_be_enabled()
    # The browser itself reports the response with the error.
    assert [complaint for complaint in watched.complaints if "422" not in complaint] == []
