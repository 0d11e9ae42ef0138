"""Tests the report of a kept load: its page in a browser, the sentences under its charts, and its Markdown and CSV."""

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
from weir.findings import LoadFindings, of_run
from weir.model.load import ClosedLoad, OpenLoad
from weir.model.run_types import TrialEvent
from weir.objective import Judged, parse_objective
from weir.report import begin_charts, exports, sentences, write_html
from weir.report.timeseries import NamedLine
from weir.store import RunReader

EVERYTHING = SyntheticLoad(
    load=OpenLoad(2000.0, 4),
    errors={"timeout": 30, "reset": 10},
    steps=("log in", "search"),
    events=(TrialEvent(1.0, "stall", "nothing was answered"),),
    reasons=("the generator was busy 97% of the time",),
    objectives=(
        Judged(parse_objective("p99<50ms"), 8_900.0, True).to_json(),
        Judged(parse_objective("errors<0.1%"), 0.005, False).to_json(),
    ),
)
TITLES = [
    "Throughput over time", "Percentiles over time", "Requests in flight over time", "Latency distribution", "Failed requests over time",
    "CPU over time", "Utilisation of the machine's CPUs", "Memory over time", "Disk and network", "Thread states",
]  # fmt: skip


def report_of(folder: Path, load: SyntheticLoad) -> Path:
    """Writes the report of `load` into `folder`; returns the path."""
    with RunReader(write_load(folder / "load.weir", load)) as reader:
        write_html(reader, of_run(reader), folder / "load.html")
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
def test_every_chart_is_drawn_without_a_request_or_a_complaint(
    browser: Browser, report: Path, width: int, scheme: str
) -> None:
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
    assert told["Throughput over time"] == (
        "Each slice has 2,000 to 2,000 responses per second. The grey line is the offered rate."
    )
    assert "at worst" in told["Percentiles over time"]
    assert told["Failed requests over time"] == (
        "Share of the intended requests that failed: the server 0.50 %. Highest rate in a slice: 300 per second of timeout (at 0.35 s)."
    )
    assert told["Requests in flight over time"].startswith(
        "Each value is the highest number in a slice, read at the ends of intervals. At most: the server 3."
    )
    assert told["Latency distribution"].startswith(
        "A line ends where fewer than 100 requests are slower. The second line is the service time"
    )
    assert told["CPU over time"] == "On average the server's app tier used 0.50 CPUs, 33 % of this time in the kernel."
    assert (
        told["Utilisation of the machine's CPUs"]
        == "Busy on average under the server: CPU 0 (load) 60 %, CPU 1 60 %, steal 1.0 %."
    )
    assert told["Memory over time"].startswith("At the end the server's app tier 30.0 MB. ")
    assert told["Disk and network"].startswith("Highest mean: the server 10 MB/s (loopback). The loopback device")
    assert told["Thread states"] == "On average 100 % of the server's 2.00 threads are waiting for events."


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
        # Twice the target and the event, three times the environment, once step, reason and command. The study's text
        # has it as JSON.
        assert (page.locator("main").text_content() or "").count(HOSTILE) >= 10
        assert r"window.owned = 1\">" in (page.locator("pre").text_content() or "")
        assert watched.requests == [path.as_uri()]
        assert watched.complaints == []


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (SyntheticLoad(), "2,000 requests per second; half of the responses within 3.00 ms, 99 % within 8.8"),
        (SyntheticLoad(watched=False), "2,000 requests per second"),
        (SyntheticLoad(finished=False, watched=False), "2,000 requests per second"),
        (SyntheticLoad(intervals=1), "2,000 requests per second"),
        (SyntheticLoad(intervals=0, finished=False, watched=False), "0 requests per second: no response arrived"),
    ],
    ids=["closed", "not watched", "broken off", "one interval", "nothing"],
)
def test_loads_of_every_kind_have_a_page(browser: Browser, tmp_path: Path, load: SyntheticLoad, words: str) -> None:
    with opened(browser, report_of(tmp_path, load)) as watched:
        assert watched.page.locator("h1").inner_text().startswith(words)
        assert watched.complaints == []


def test_several_tiers_are_told_by_their_names(tmp_path: Path) -> None:
    with RunReader(write_load(tmp_path / "load.weir")) as reader:
        series = begin_charts(reader)()[0].series
    (server,) = series.stacks
    two = replace(server, memory_mb=[NamedLine("app", [10.0, 20.0]), NamedLine("database", [None, 90.0, 90.5])])
    assert sentences.memory_sentence(replace(series, stacks=[two])).startswith(
        "At the end the server's app tier 20.0 MB (10.0 at the start) and the server's database tier 90.5 MB. "
    )


def test_sections_without_anything_to_show_are_left_out(browser: Browser, report: Path, tmp_path: Path) -> None:
    headings = "all => all.map(one => one.firstChild.textContent.trim())"
    with opened(browser, report) as watched:
        assert watched.page.locator("h2").evaluate_all(headings) == [
            "Objectives", "Throughput over time", "Response-time percentiles over time", "Requests in flight", "Latency distribution",
            "Failed requests over time", "CPU over time, by tier", "Thread states", "Clocks", "Requests",
            "In the style of other tools", "How it was measured",
        ]  # fmt: skip
        assert watched.page.get_by_label("Objectives").locator("tbody").inner_text().split() == [
            "p99<50ms", "8.90", "ms", "met", "errors<0.1%", "0.500", "%", "missed",
        ]  # fmt: skip
    with opened(browser, report_of(tmp_path, SyntheticLoad(finished=False, watched=False))) as watched:
        assert watched.page.locator("h2").evaluate_all(headings) == [
            "Throughput over time", "Response-time percentiles over time", "Requests in flight", "Latency distribution", "Clocks",
            "Requests", "How it was measured",
        ]  # fmt: skip
        assert watched.page.locator(".badge").all_inner_texts()[:2] == ["suspect", "unfinished"]


def test_a_load_whose_verdict_is_invalid_is_still_shown(tmp_path: Path) -> None:
    with RunReader(
        write_load(tmp_path / "load.weir", SyntheticLoad(validity="invalid", reasons=("nothing was right",)))
    ) as reader:
        found, (charts,) = of_run(reader), begin_charts(reader)()
    assert (found.answer.validity, found.answer.reasons) == ("invalid", ("nothing was right",))
    assert [stack.name for stack in charts.series.stacks] == ["the server"]


def test_an_open_load_draws_both_clocks_and_the_rate_that_it_asks_for(tmp_path: Path) -> None:
    with RunReader(write_load(tmp_path / "open.weir", EVERYTHING)) as reader:
        opened_series = begin_charts(reader)()[0].series
    with RunReader(write_load(tmp_path / "closed.weir", SyntheticLoad())) as reader:
        closed_series = begin_charts(reader)()[0].series
    assert set(opened_series.offered_rps) == {2000}
    assert opened_series.stacks[0].service_ms == opened_series.stacks[0].distribution_ms
    assert (closed_series.offered_rps, closed_series.stacks[0].service_ms) == ([], [])


def test_a_load_with_few_requests_has_slices_that_are_long_enough_for_a_p99(tmp_path: Path) -> None:
    with RunReader(write_load(tmp_path / "load.weir")) as reader:
        series = begin_charts(reader)()[0].series
    assert series.coarse_time_s[1] - series.coarse_time_s[0] == pytest.approx(0.6)
    assert None not in series.stacks[0].p99_ms


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_load(tmp_path_factory.mktemp("kept") / "load.weir", EVERYTHING)


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("json", "{"), ("md", "## http://127.0.0.1:8000/\n\n**2,000 requests per second; "), ("csv", "workload,load,point,stack,"),
        ("jmeter", "Label,"), ("locust", "Type,Name"), ("hgrm", "# http://127.0.0.1:8000/"),
    ],
)  # fmt: skip
def test_the_prompt_prints_each_form_and_nothing_else(kept: Path, form: str, begins: str) -> None:
    done = CliRunner().invoke(app, ["report", str(kept), "--format", form])
    assert done.exit_code == 0
    assert done.stdout.startswith(begins)
    assert not kept.with_suffix(".html").exists()


def test_a_load_is_not_compared_with_another_run(kept: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(kept), "--compare", str(kept)])
    assert done.exit_code != 0
    assert "found a single load, expected a run of a study" in str(done.exception)
    assert not kept.with_suffix(".html").exists()


def test_the_table_has_a_row_for_every_figure(kept: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(CliRunner().invoke(app, ["report", str(kept), "--format", "csv"]).stdout)))
    with RunReader(kept) as reader:
        load = of_run(reader)
    assert isinstance(load, LoadFindings)
    summary, target = load.summary, "http://127.0.0.1:8000/"
    assert {(row["stack"], row["name"], row["load"]) for row in rows} == {(target, target, EVERYTHING.load.label)}
    found = {row["metric"]: (row["unit"], row["value"]) for row in rows}
    assert len(found) == len(rows)
    assert found["throughput_rps"] == ("req/s", repr(summary.throughput_rps))
    assert found["errors.timeout"] == ("requests", "30")
    assert found["status.200"] == ("requests", "8000")
    assert found["response_time_us.p99_9"] == ("µs", repr(summary.response_time_us.p99_9))
    assert found["cpu_us_per_request"] == ("µs", "250.0")
    assert found["server.pss_bytes"] == ("bytes", "25000000")
    assert found["steps.search.response_time_us.p99"] == ("µs", repr(summary.response_time_us.p99))
    assert found["steps.search.completed"] == ("requests", "8000")
    # A clock without samples has no figures.
    assert not [key for key in found if key.startswith("schedule_lag")]


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
        text = exports.render_markdown(of_run(reader))
    assert "\n| a\\|b c | 8,000 |" in text


def test_a_load_that_broke_off_says_so_in_its_markdown(tmp_path: Path) -> None:
    with RunReader(write_load(tmp_path / "load.weir", SyntheticLoad(finished=False))) as reader:
        found = of_run(reader)
        assert "[suspect, unfinished]" in exports.render_markdown(found)
        assert "requests.ok,requests,8000,,,1," in exports.render_csv(found)
