"""The report of one kept load: its page in a browser, the sentences under its charts, and its figures as Markdown and as CSV."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from typer.testing import CliRunner

from tests.support.page import HOSTILE, opened, serious_barriers
from tests.support.synthetic_load import SyntheticLoad, write_load
from weir.cli.commands import app
from weir.findings import of_load
from weir.model.load import ClosedLoad, OpenLoad
from weir.model.run import TrialEvent
from weir.objective import Judged, objective
from weir.report import load_exports, load_sentences, write_load_html
from weir.report.lines import NamedLine
from weir.report.load_series import load_series
from weir.store import RunReader

EVERYTHING = SyntheticLoad(
    load=OpenLoad(2000.0, 4),
    errors={"timeout": 30, "reset": 10},
    steps=("log in", "search"),
    events=(TrialEvent(1.0, "stall", "nothing was answered"),),
    reasons=("the generator was busy 97% of the time",),
    objectives=(Judged(objective("p99<50ms"), 8_900.0, True).to_json(), Judged(objective("errors<0.1%"), 0.005, False).to_json()),
)
TITLES = [
    "Throughput over time", "Percentiles over time", "Failed requests over time", "Requests under way over time", "Latency distribution",
    "CPU of the server over time", "Utilisation of the machine's CPUs", "Memory of the server over time", "Disk and network",
    "What the server's threads were doing",
]  # fmt: skip


def report_of(folder: Path, load: SyntheticLoad) -> Path:
    """The report of `load`, written into `folder`."""
    with RunReader(write_load(folder / "load.weir", load)) as reader:
        write_load_html(reader, of_load(reader), folder / "load.html")
    return folder / "load.html"


@pytest.fixture(scope="module")
def report(bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of(tmp_path_factory.mktemp("report"), EVERYTHING)


def painted(page: Page) -> list[bool]:
    found: list[bool] = page.evaluate(
        """() => [...document.querySelectorAll("canvas")].map(canvas =>
            canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(value => value !== 0))"""
    )
    return found


@pytest.mark.parametrize(("width", "scheme"), [(1180, "light"), (390, "dark")])
def test_every_chart_is_drawn_without_a_request_or_a_complaint(browser: Browser, report: Path, width: int, scheme: str) -> None:
    with opened(browser, report, width=width, scheme=scheme) as watched:
        page = watched.page
        assert page.locator(".chart").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))") == TITLES
        assert painted(page) == [True] * len(TITLES)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert watched.requests == [report.as_uri()]
        assert watched.complaints == []


def test_every_chart_has_a_sentence_below_it_that_holds_its_figures(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        notes = watched.page.locator(".chart").evaluate_all(
            """all => all.map(one => {
                let next = one.nextElementSibling;
                while (next && !next.matches("p.note, .chart, h3")) next = next.nextElementSibling;
                return next && next.matches("p.note") ? next.innerText : "";
            })"""
        )
        told = dict(zip(TITLES, notes, strict=True))
    assert (
        told["Throughput over time"]
        == "Between 2,000 and 2,000 answers per second in a slice. The grey line is the rate that was asked for."
    )
    assert "at worst" in told["Percentiles over time"]
    assert told["Failed requests over time"] == (
        "40 of 8,040 requests failed (0.50 %): timeout 30 and reset 10. The most in a slice: 300 per second of timeout (at 0.35 s)."
    )
    assert told["Requests under way over time"].startswith("At the end of each interval, the highest of a slice; at most: in flight 3.")
    # From 1 ms to 9 ms, evenly on a logarithmic scale: 8.8 ÷ 3.
    assert told["Latency distribution"].startswith("The 99th percentile of the response time is 2.9× its median. Drawn as far as")
    assert told["CPU of the server over time"] == "On average the server used 0.50 CPUs, 33 % of it in the kernel."
    assert told["Utilisation of the machine's CPUs"] == "Busy on average: CPU 0 (load) 60 % and CPU 1 60 %. The hypervisor took 1.0 %."
    assert told["Memory of the server over time"].startswith("At the end the server held 30.0 MB. ")
    assert told["Disk and network"].startswith("The most on average: 10 MB/s (loopback). The loopback device")
    assert told["What the server's threads were doing"] == "On average the server had 2.00 threads, 100 % of them waiting for events."


def test_nothing_serious_is_found_by_a_check_of_accessibility(browser: Browser, report: Path) -> None:
    for scheme in ("light", "dark"):
        with opened(browser, report, scheme=scheme) as watched:
            assert serious_barriers(watched.page) == []


def test_hostile_text_in_every_field_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    bad = replace(
        EVERYTHING, target=f"http://127.0.0.1/{HOSTILE}", steps=(HOSTILE, "other"), events=(TrialEvent(1.0, HOSTILE, HOSTILE),),
        reasons=(HOSTILE,), command=HOSTILE, environment={HOSTILE: HOSTILE, "list": [HOSTILE]}, generator=HOSTILE,
    )  # fmt: skip
    path = report_of(tmp_path, bad)
    with opened(browser, path) as watched:
        page = watched.page
        assert page.evaluate("window.owned") is None
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2
        assert painted(page) == [True] * len(TITLES)
        # Target twice, step, event twice, reason, command, environment three times, version; the study's text says it as JSON does.
        assert (page.locator("main").text_content() or "").count(HOSTILE) >= 10
        assert r"window.owned = 1\">" in (page.locator("pre").text_content() or "")
        assert watched.requests == [path.as_uri()]
        assert watched.complaints == []


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (SyntheticLoad(), "2,000 requests per second; half of the answers within 3.00 ms, 99 % within 8.8"),
        (SyntheticLoad(watched=False), "2,000 requests per second"),
        (SyntheticLoad(finished=False, watched=False), "2,000 requests per second"),
        (SyntheticLoad(intervals=1), "2,000 requests per second"),
        (SyntheticLoad(intervals=0, finished=False, watched=False), "0 requests per second: nothing was answered"),
    ],
    ids=["closed", "not watched", "broken off", "one interval", "nothing"],
)
def test_loads_of_every_kind_have_a_page(browser: Browser, tmp_path: Path, load: SyntheticLoad, words: str) -> None:
    with opened(browser, report_of(tmp_path, load)) as watched:
        assert watched.page.locator("h1").inner_text().startswith(words)
        assert watched.complaints == []


def test_several_tiers_are_told_by_their_names(tmp_path: Path) -> None:
    with RunReader(write_load(tmp_path / "load.weir")) as reader:
        answered = load_series(reader, of_load(reader)).answered
    two = replace(answered, memory_mb=[NamedLine("app", [10.0, 20.0]), NamedLine("database", [None, 90.0, 90.5])])
    assert load_sentences.memory_sentence(two).startswith(
        "At the end the app tier held 20.0 MB, after 10.0 at the start; the database tier held 90.5 MB. "
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_load(tmp_path_factory.mktemp("kept") / "load.weir", EVERYTHING)


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("json", "{"), ("md", "## http://127.0.0.1:8000/\n\n**2,000 requests per second; "), ("csv", "target,load,part,"),
        ("jmeter", "Label,"), ("locust", "Type,Name"), ("hgrm", "# http://127.0.0.1:8000/"),
    ],
)  # fmt: skip
def test_the_prompt_prints_each_form_and_nothing_else(kept: Path, form: str, begins: str) -> None:
    done = CliRunner().invoke(app, ["report", str(kept), "--format", form])
    assert done.exit_code == 0
    assert done.stdout.startswith(begins)
    assert not kept.with_suffix(".html").exists()


def test_the_table_has_a_row_for_every_figure(kept: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(CliRunner().invoke(app, ["report", str(kept), "--format", "csv"]).stdout)))
    with RunReader(kept) as reader:
        summary = of_load(reader).summary
    assert {(row["target"], row["load"]) for row in rows} == {("http://127.0.0.1:8000/", EVERYTHING.load.label)}
    found = {(row["part"], row["name"], row["metric"]): (row["unit"], row["value"]) for row in rows}
    assert len(found) == len(rows)
    assert found["load", "", "throughput_rps"] == ("req/s", repr(summary.throughput_rps))
    assert found["load", "", "errors.timeout"] == ("requests", "30")
    assert found["load", "", "status.200"] == ("requests", "8000")
    assert found["load", "", "response_time_us.p99_9"] == ("µs", repr(summary.response_time_us.p99_9))
    assert found["load", "", "cpu_us_per_request"] == ("µs", "250.0")
    assert found["step", "search", "response_time_us.p99"] == ("µs", repr(summary.response_time_us.p99))
    # Of a clock without samples there is nothing to say.
    assert not [key for key in found if key[2].startswith("schedule_lag")]


def test_markdown_holds_the_clocks_the_outcomes_and_what_weakens_it(kept: Path) -> None:
    text = CliRunner().invoke(app, ["report", str(kept), "--format", "md"]).stdout
    assert " ms** [suspect]\n" in text
    assert "| clock, ms | mean | p50 |" in text
    assert "| response time | 3.6" in text
    assert "| failed: timeout | 30 |" in text
    assert "| search | 8,000 | 0 | 3.00 | 8.8" in text
    assert "- errors<0.1% missed\n" in text
    assert "- the generator was busy 97% of the time\n" in text


def test_a_name_with_a_bar_and_a_line_break_stays_one_cell(tmp_path: Path) -> None:
    with RunReader(write_load(tmp_path / "load.weir", SyntheticLoad(steps=("a|b\nc",), load=ClosedLoad(1)))) as reader:
        text = load_exports.markdown(of_load(reader))
    assert "\n| a\\|b c | 8,000 |" in text


def test_a_load_that_broke_off_says_so_in_its_markdown(tmp_path: Path) -> None:
    with RunReader(write_load(tmp_path / "load.weir", SyntheticLoad(finished=False))) as reader:
        found = of_load(reader)
        assert "[suspect, unfinished]" in load_exports.markdown(found)
        assert "requests.ok,requests,8000" in load_exports.table(found)
