"""The report is complete, small, self-contained and reproducible, and harmless with any content of the run file."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.page import HOSTILE, opened, serious_barriers
from tests.support.synthetic_generator import SyntheticGenerator
from tests.support.synthetic_run import ENVIRONMENT, FLASK, NETTY, SANIC, SyntheticStudy, judged, write_run
from tests.support.tiers import cases
from weir import web_assets
from weir.findings import of_run
from weir.findings import regression as gate
from weir.model.errors import WeirError
from weir.model.load import ClosedLoad
from weir.model.run_types import Limits, PublishedFigure, TrialEvent, TrialResult, UpperBound
from weir.model.service_work import ServiceWork, StatementWork
from weir.objective import Judged, parse_objective
from weir.report import render_html, write_html
from weir.report.page import embed_json, open_bytecode_cache
from weir.store import RunReader

pytestmark = pytest.mark.usefixtures("bundle")

STUDY = SyntheticStudy(duration_s=4.0, stacks=(FLASK, SANIC, NETTY))


def report_of(folder: Path, study: SyntheticStudy) -> Path:
    """Writes the report of `study` into `folder`; returns the path."""
    with RunReader(write_run(folder / "run.weir", study)) as reader:
        write_html(reader, of_run(reader), folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of(tmp_path_factory.mktemp("report"), STUDY)


def test_the_same_run_file_gives_the_same_bytes(report: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / "copied.weir"
    copy.write_bytes((report.parent / "run.weir").read_bytes())
    with RunReader(copy) as reader:
        assert render_html(reader, of_run(reader)).encode() == report.read_bytes()
    assert str(report.parent) not in report.read_text()


def test_a_cache_folder_that_cannot_be_made_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "file" / "cache"))
    assert open_bytecode_cache() is None
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "new"))
    assert open_bytecode_cache() is not None
    assert (tmp_path / "new" / "templates").is_dir()


def test_the_report_is_under_a_megabyte(report: Path) -> None:
    assert report.stat().st_size < 1_000_000


def test_a_long_run_stays_under_a_megabyte(tmp_path: Path) -> None:
    """A trial has five minutes in intervals of a second, as in the scale `article`."""
    study = SyntheticStudy(stacks=(FLASK, SANIC, NETTY), blocks=5, duration_s=300.0, interval_s=1.0)
    assert report_of(tmp_path, study).stat().st_size < 1_000_000


def test_every_chart_is_drawn_without_a_request_or_a_complaint(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        page = watched.page
        # Throughput over time, requests under way, the distribution; for each of three stacks: percentiles, CPU by tier
        # and by CPU, memory, disk and network, and threads.
        assert page.locator("canvas").count() == 21
        painted = page.evaluate(
            """() => [...document.querySelectorAll("canvas")].map(canvas => {
                const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
                return data.some(value => value !== 0);
            })"""
        )
        assert painted == [True] * 21
        assert watched.requests == [report.as_uri()]
        assert watched.complaints == []


@pytest.mark.parametrize(("width", "scheme"), cases([(1180, "dark"), (390, "light"), (1180, "light")], kept=2))
def test_the_page_fits_its_window(browser: Browser, report: Path, width: int, scheme: str) -> None:
    with opened(browser, report, width=width, scheme=scheme) as watched:
        assert watched.page.evaluate("document.documentElement.scrollWidth") == width
        ground = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(20, 23, 26)" if scheme == "dark" else "rgb(252, 252, 250)")


def test_no_interval_of_the_answer_is_broken_at_the_end_of_a_line(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        intervals = watched.page.locator("h1 .whole")
        assert intervals.count() > 0
        for width in range(300, 700, 10):
            watched.page.set_viewport_size({"width": width, "height": 800})
            lines = intervals.evaluate_all("all => all.map(one => one.getClientRects().length)")
            assert set(lines) == {1}


def test_the_answer_stands_first_and_every_section_follows_in_order(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        assert watched.page.locator("h1").inner_text().startswith("Compared with Flask, ")
        headings = watched.page.locator("h2").evaluate_all("all => all.map(one => one.firstChild.textContent.trim())")
        assert headings == [
            "Comparison", "Throughput", "Throughput over time", "Response-time percentiles over time", "Requests in flight",
            "Latency distribution", "Resources", "CPU over time, by tier", "Thread states", "CPU and memory against p99",
            "Bottlenecks", "Where the spread comes from", "What ran", "To keep in mind", "In the style of other tools", "Trials",
            "How it was measured",
        ]  # fmt: skip


def test_what_ran_is_told_with_the_size_that_it_was_built_into(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        rows = watched.page.get_by_label("What ran").locator("tbody tr").all_inner_texts()
        assert [row.split("\t") for row in rows] == [
            ["Flask", "30.0", "–", "Python 3.12.3"],
            ["Sanic", "30.0", "1.00×", "Python 3.12.3"],
            ["Spring WebFlux", "19.5", "0.649×", "openjdk 17.0.15 2025-04-15"],
        ]


def test_generators_stand_side_by_side_with_what_the_kernel_saw_and_what_their_times_are(
    browser: Browser, tmp_path: Path
) -> None:
    locust = SyntheticGenerator("locust", reach=0.05, says=7.5, cpu_fraction=0.99)
    study = SyntheticStudy(stacks=(SANIC,), aa=None, duration_s=2.0, generators=(SyntheticGenerator("weir"), locust))
    with opened(browser, report_of(tmp_path, study)) as watched:
        page = watched.page
        assert page.locator("h1").inner_text().startswith("Sanic on echo, 20 connections: locust 0.0")
        table = page.get_by_label("Generators on Sanic on echo, 20 connections")
        weir, other = (row.split("\t") for row in table.locator("tbody tr").all_inner_texts())
        assert len(weir) == len(other) == 11
        assert weir[0].startswith("weir")
        assert "reference" in weir[0]
        assert [other[column].split("\n")[0] for column in (0, 4, 7, 10)] == ["locust", "7.5", "7.5", "50,000"]
        section = page.locator("#generators").inner_text()
        assert "locust 1.0: from here to there" in section
        # If a generator reports no course over time, the server's own processes are drawn.
        assert page.locator("h2.point").all_inner_texts() == ["generator weir", "generator locust"]
        headings = page.locator("h2").evaluate_all("all => all.map(one => one.firstChild.textContent.trim())")
        assert headings.count("Throughput over time") == headings.count("Latency distribution") == 1
        assert headings.count("CPU over time, by tier") == 2
        assert watched.complaints == []


def test_a_run_over_several_loads_draws_its_curves_with_their_ticks_and_where_they_cross(
    browser: Browser, tmp_path: Path
) -> None:
    level = replace(FLASK, throughput_rps=20_000, cpu_us_per_request=40)
    rising = replace(SANIC, throughput_rps=20_000, cpu_us_per_request=20, growth=lambda n: (n / 20) ** 0.2)
    study = SyntheticStudy(
        stacks=(level, rising), loads=[ClosedLoad(n) for n in (4, 16, 64)], aa=None, blocks=10, duration_s=1.0
    )
    path = tmp_path / "report.html"
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        write_html(reader, of_run(reader), path)
    with opened(browser, path) as watched:
        section = watched.page.locator("section", has=watched.page.locator("[data-kind=curve]"))
        assert re.search(r"Sanic and Flask cross at (19|2\d)(\.\d)? connections \(", section.inner_text())
        chart = watched.page.locator("[data-kind=curve]").first
        chart.focus()
        watched.page.keyboard.press("Home")
        assert "4 connections" in chart.locator(".u-legend").inner_text()
        # Charts: throughput, p99, mean, CPUs in use, CPU per request, memory.
        assert watched.page.locator("[data-kind=curve] canvas").count() == 6
        assert watched.complaints == []


def test_charts_over_time_share_their_cursor_and_the_keyboard_moves_it(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        charts = watched.page.locator(".chart")
        charts.nth(0).focus()
        watched.page.keyboard.press("End")
        watched.page.keyboard.press("ArrowLeft")
        first = charts.nth(0).locator(".u-legend .u-series").nth(0).inner_text()
        assert re.search(r"3\.85 s", first)
        assert "req/s" in charts.nth(0).locator(".u-legend").inner_text()
        # Other charts over time show their values at the same moment: percentiles and states of threads.
        assert re.search(r"\d ms", charts.nth(1).locator(".u-legend").inner_text())
        threads = watched.page.locator("[data-kind=threads]").first.locator(".u-legend").inner_text()
        assert re.search(r"on a CPU\s*0\.\d+ threads", threads)
        assert re.search(r"waiting for events\s*1\.\d+ threads", threads)
        watched.page.keyboard.press("Escape")
        assert "req/s" not in charts.nth(0).locator(".u-legend").inner_text()


def test_areas_differ_by_pattern_and_the_legend_shows_it(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        markers = watched.page.locator("[data-kind=threads]").first.locator(".u-marker.area")
        pictures = markers.evaluate_all("all => all.map(one => getComputedStyle(one).backgroundImage)")
        assert len(set(pictures)) == len(pictures) == 2
        assert all(picture.startswith('url("data:image/png') for picture in pictures)


def test_nothing_serious_is_found_by_a_check_of_accessibility(browser: Browser, report: Path, tmp_path: Path) -> None:
    for path in (report, report_of(tmp_path, MATRIX)):
        for scheme in ("light", "dark"):
            with opened(browser, path, scheme=scheme) as watched:
                assert serious_barriers(watched.page) == []


def test_charts_far_below_are_drawn_when_they_come_near_and_all_of_them_for_paper(
    browser: Browser, tmp_path: Path
) -> None:
    with opened(browser, report_of(tmp_path, MATRIX)) as watched:
        page = watched.page
        charts = page.locator(".chart:not(.empty)").count()
        assert 30 <= page.locator("canvas").count() < charts
        page.locator(".chart").last.scroll_into_view_if_needed()
        page.wait_for_function("() => [...document.querySelectorAll('.chart')].at(-1).querySelector('canvas')")
        page.pdf()
        assert page.locator("canvas").count() == charts
        assert watched.complaints == []


def test_the_page_says_that_it_is_drawn_when_its_first_charts_are_painted(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    page.add_init_script(
        """const mark = performance.mark.bind(performance);
        performance.mark = name => {
            const pixels = canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            window.painted = [...document.querySelectorAll("canvas")].map(canvas => pixels(canvas).some(value => value !== 0));
            return mark(name);
        };"""
    )
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready=true]")
    assert page.evaluate("window.painted") == [True] * 21
    page.close()


def test_the_widths_of_all_charts_are_read_before_any_of_them_is_drawn(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    page.add_init_script(
        """window.steps = [];
        const width = Object.getOwnPropertyDescriptor(Element.prototype, "clientWidth");
        Object.defineProperty(Element.prototype, "clientWidth", {...width, get() {
            if (!document.documentElement.dataset.ready) window.steps.push("width");
            return width.get.call(this);
        }});
        const create = document.createElement;
        document.createElement = function (...of) {
            if (of[0] === "canvas") window.steps.push("canvas");
            return create.apply(this, of);
        };"""
    )
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready=true]")
    steps: list[str] = page.evaluate("window.steps")
    assert steps[:21] == ["width"] * 21
    assert set(steps[21:]) == {"canvas"}
    page.close()


def test_points_far_below_are_laid_out_when_they_come_near_and_all_of_them_for_paper(
    browser: Browser, tmp_path: Path
) -> None:
    with opened(browser, report_of(tmp_path, MATRIX)) as watched:
        page = watched.page
        last = page.locator("section").last
        is_laid_out = "one => one.firstElementChild.checkVisibility({contentVisibilityAuto: true})"
        assert not last.evaluate(is_laid_out)
        assert page.locator("#answer").evaluate(is_laid_out)
        page.emulate_media(media="print")
        assert last.evaluate(is_laid_out)
        page.emulate_media(media="screen")
        # The browser also lays out sections above, which may move this one out of view again.
        scrolled = "one => { one.scrollIntoView(); return (" + is_laid_out + ")(one); }"
        page.wait_for_function(f"() => ({scrolled})([...document.querySelectorAll('section')].at(-1))")


def test_the_toggle_changes_the_theme_and_redraws_the_charts(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        page = watched.page

        def picture() -> str:
            drawn: str = page.evaluate("document.querySelector('canvas').toDataURL()")
            return drawn

        light = picture()
        page.get_by_role("button", name="Theme").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        page.get_by_role("button", name="Theme: light").click()
        page.wait_for_function("light => document.querySelector('canvas').toDataURL() !== light", arg=light)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
        assert watched.complaints == []


def test_a_dark_page_prints_on_white(browser: Browser, report: Path) -> None:
    with opened(browser, report, scheme="dark") as watched:
        page = watched.page
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(252, 252, 250)"
        assert len(page.pdf()) > 10_000


def test_without_scripts_the_answer_and_the_tables_are_still_there(browser: Browser, report: Path) -> None:
    with opened(browser, report, scripts=False) as watched:
        assert watched.page.locator("h1").inner_text().startswith("Compared with Flask, ")
        assert watched.page.locator("table.numbers").count() == 9
        assert watched.page.locator("#theme").is_hidden()


def test_the_command_can_be_copied(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        watched.page.get_by_role("button", name="Copy").click()
        assert watched.page.evaluate("getSelection().toString()") == "weir run sync-vs-async --scale quick --seed 1"


WORK = ServiceWork(
    service=HOSTILE, requests=100, edge_requests=1, statements=100, control_statements=2, rows=100, bytes={HOSTILE: 1000}, note=HOSTILE,
    by_statement=(StatementWork(HOSTILE, 100, 100, data=True), StatementWork(HOSTILE, 2, None, data=False)), rows_differ=HOSTILE,
)  # fmt: skip


def spoiled(label: str, block: int, result: TrialResult) -> TrialResult:
    """Returns `result` with hostile text in all text fields."""
    assert result.summary is not None
    use = replace(result.summary.generator, version=HOSTILE, clock=HOSTILE)
    missed = Judged(replace(parse_objective("p99<50ms"), text=HOSTILE), 60_000.0, False).to_json()
    bad = replace(
        result, logs={HOSTILE: HOSTILE}, isolation=HOSTILE, runtime=HOSTILE, work=(WORK,), discrepancies=(HOSTILE,),
        summary=replace(result.summary, generator=use, target=HOSTILE, objectives=[missed]),
    )  # fmt: skip
    return judged(bad, "invalid" if block == 1 else "suspect", HOSTILE)


def hostile_everywhere(study: SyntheticStudy) -> SyntheticStudy:
    """Returns `study` with hostile text in all text fields of a run."""
    bad = replace(SANIC, name=HOSTILE, title=HOSTILE, model=HOSTILE, variant=HOSTILE)
    return replace(
        study, stacks=(FLASK, bad), duration_s=1.0, title=HOSTILE, question=HOSTILE, study_text=HOSTILE, workloads=(HOSTILE,),
        claims=(HOSTILE,), environment={HOSTILE: HOSTILE, "list": [HOSTILE]}, shared=(HOSTILE,), change=spoiled, command=HOSTILE,
        published=(PublishedFigure(HOSTILE, HOSTILE, 1.0, HOSTILE, HOSTILE),), event=TrialEvent(0.5, HOSTILE, HOSTILE),
        limits={HOSTILE: Limits(cpus=0.5)}, upper_bounds={HOSTILE: (UpperBound("stack", 20_000.0, HOSTILE),)},
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["one point", "generators", "coordinates"])
def test_hostile_text_in_every_field_runs_nothing(browser: Browser, tmp_path: Path, kind: str) -> None:
    generators = (SyntheticGenerator("weir"), SyntheticGenerator(HOSTILE)) if kind == "generators" else ()
    coordinates = ({HOSTILE: HOSTILE}, {HOSTILE: "other"}) if kind == "coordinates" else ({},)
    path = report_of(tmp_path, hostile_everywhere(SyntheticStudy(generators=generators, coordinates=coordinates)))
    with opened(browser, path) as watched:
        page = watched.page
        assert page.evaluate("window.owned") is None
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2
        assert page.locator("canvas").count() >= 15
        assert "{{ 7 * 7 }}" in page.locator("h1").inner_text()
        assert page.locator("#command").text_content() == HOSTILE
        assert watched.requests == [path.as_uri()]
        assert watched.complaints == []


def test_hostile_text_of_a_run_that_it_is_compared_with_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with RunReader(write_run(tmp_path / "run.weir", hostile_everywhere(SyntheticStudy()))) as reader:
        found = gate.compare_runs(reader, reader, gate.METRICS, 0.05, any_environment=True)
        against = replace(
            found, base=HOSTILE, head=HOSTILE, differences=(HOSTILE,), only_in_one=(HOSTILE,), sentence=HOSTILE
        )
        write_html(reader, of_run(reader), path, against)
    with opened(browser, path) as watched:
        page = watched.page
        assert page.evaluate("window.owned") is None
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2
        assert page.locator("h2", has_text="Against").text_content() == f"Against {HOSTILE}"
        assert watched.complaints == []


def test_the_data_island_survives_whatever_it_holds() -> None:
    text = embed_json({"name": HOSTILE})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"name": HOSTILE}


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (SyntheticStudy(skip=lambda label, block: True, ended=None), "No answer: no trial was finished."),
        (SyntheticStudy(duration_s=1.0, blocks=1), "no interval, so no claim."),
        (SyntheticStudy(duration_s=1.0, loads=(ClosedLoad(10), ClosedLoad(20))), "With 10 connections: "),
        (SyntheticStudy(duration_s=1.0, published=(), claims=(), shared=(), environment={}), "Sanic answers"),
        (
            SyntheticStudy(duration_s=1.0, change=lambda label, block, result: replace(result, resources=None)),
            "Sanic answers",
        ),
        (
            SyntheticStudy(duration_s=1.0, stacks=(SANIC,), aa=None, baseline=None, environment=ENVIRONMENT),
            "no other stack",
        ),
    ],
)
def test_runs_of_every_kind_have_a_report(browser: Browser, tmp_path: Path, study: SyntheticStudy, words: str) -> None:
    path = report_of(tmp_path, study)
    with opened(browser, path) as watched:
        assert words in watched.page.locator("h1").inner_text()
        assert watched.complaints == []


def test_a_missing_bundle_is_said_with_the_command_that_builds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(web_assets, "files", lambda package: tmp_path)
    with pytest.raises(WeirError, match=r"report\.js: not found") as caught:
        web_assets.load_web_assets()
    assert "make setup" in caught.value.hint


def test_a_report_that_cannot_be_written_is_said(report: Path, tmp_path: Path) -> None:
    with RunReader(report.parent) as reader, pytest.raises(WeirError, match="cannot write the report"):
        write_html(reader, of_run(reader), tmp_path / "no" / "such" / "folder.html")


MATRIX = SyntheticStudy(
    duration_s=1.0,
    interval_s=0.2,
    loads=(ClosedLoad(4), ClosedLoad(20), ClosedLoad(100)),
    coordinates=({"threads": "50"}, {"threads": "200"}),
    objectives=(("p99<50ms", True), ("p99<40ms", False)),
)


@pytest.mark.parametrize("width", cases([390, 1180], kept=1))
def test_a_matrix_begins_with_all_its_points_and_leads_to_each(browser: Browser, tmp_path: Path, width: int) -> None:
    with opened(browser, report_of(tmp_path, MATRIX), width=width) as watched:
        page = watched.page
        assert page.evaluate("document.documentElement.scrollWidth") == width
        links = page.locator("section a[href^='#point-']")
        assert links.all_inner_texts() == [
            f"{n} connections, threads {threads}" for n in (4, 20, 100) for threads in (50, 200)
        ]
        for index, label in enumerate(links.all_inner_texts(), start=1):
            assert page.locator(f"#point-{index}").inner_text() == label
        missed = page.locator("section:has(h2:text-is('Objectives')) tbody tr:has-text('missed')")
        assert missed.count() == 12
        assert "threads = 50 or 200" in (page.locator("dl").first.text_content() or "")
        assert watched.complaints == []
