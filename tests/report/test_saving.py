"""Tests the buttons below charts: they save the chart's values as CSV, and the chart as a picture."""

import csv
from base64 import b64encode
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator

from tests.support.page import opened
from tests.support.synthetic_run import FLASK, NETTY, SANIC, SyntheticStudy, write_run
from tests.support.tiers import cases
from weir.findings import of_run
from weir.report import write_html
from weir.store import RunReader

pytestmark = pytest.mark.usefixtures("bundle")

COLOURS = """async source => {
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    const pixels = new Uint32Array(pen.getImageData(0, 0, image.width, image.height).data.buffer);
    return [...new Set(pixels)].map(one => `rgb(${one & 255}, ${(one >> 8) & 255}, ${(one >> 16) & 255})`);
}"""
"""Returns the set of colours in a picture."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of three stacks."""
    folder = tmp_path_factory.mktemp("report")
    with RunReader(
        write_run(folder / "run.weir", SyntheticStudy(duration_s=4.0, stacks=(FLASK, SANIC, NETTY)))
    ) as reader:
        write_html(reader, of_run(reader), folder / "report.html")
    return folder / "report.html"


def test_the_values_behind_a_chart_are_saved_as_csv(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        page = watched.page
        with page.expect_download() as saving:
            page.get_by_role("button", name="CSV of Throughput over time").click()
        assert saving.value.suggested_filename == "throughput-over-time-req-s.csv"
        rows = list(csv.reader(saving.value.path().read_text().splitlines()))
        assert rows[0][:3] == ["time", "Flask (req/s)", "Flask, fastest trial (req/s)"]
        assert len(rows) == 41
        assert float(rows[1][0]) == pytest.approx(0.05)
        assert 1_000 < float(rows[1][1]) < 5_000
        with page.expect_download() as saving:
            page.get_by_role("button", name="CSV of Thread states threads: Flask").click()
        head, first, *_ = saving.value.path().read_text().splitlines()
        assert head == "time,on a CPU (threads),waiting for events (threads)"
        # The CSV has each state's own number, not the height in the stacked chart.
        assert sum(map(float, first.split(",")[1:])) == pytest.approx(2, rel=0.02)
        assert watched.requests == [report.as_uri()]


def test_a_chart_is_saved_as_a_picture_with_its_title_and_sentence(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        page = watched.page
        chart = page.locator("canvas").first.evaluate("canvas => [canvas.width, canvas.height]")
        with page.expect_download() as saving:
            page.get_by_role("button", name="PNG of Throughput over time").click()
        data = saving.value.path().read_bytes()
        assert data.startswith(b"\x89PNG")
        width, height = (int.from_bytes(data[at : at + 4]) for at in (16, 20))
        assert width > chart[0]
        # The picture has a title, three names and the sentence in addition to the chart.
        assert height > chart[1] + 100
        assert watched.complaints == []


def test_charts_that_are_part_of_the_page_are_saved_as_csv(browser: Browser, report: Path) -> None:
    with opened(browser, report) as watched:
        page = watched.page

        def saved(button: Locator) -> list[list[str]]:
            with page.expect_download() as saving:
                button.click()
            return list(csv.reader(saving.value.path().read_text().splitlines()))

        head, *rows = saved(page.get_by_role("button", name="CSV of Throughput", exact=True))
        assert head == ["of", "what", "req/s", "low", "high"]
        means = {of: [value, low, high] for of, what, value, low, high in rows if what == "all"}
        assert set(means) == set(page.locator(".strip").nth(1).locator(".strip-name").all_inner_texts())
        mean, low, high = map(float, means["Flask"])
        trials = [float(value) for of, what, value, *_ in rows if (of, what) == ("Flask", "trial")]
        assert len(trials) >= 2
        assert low < mean < high
        # The values are read from the axis on which they are drawn.
        assert sum(trials) / len(trials) == pytest.approx(mean, rel=0.01)
        head, *rows = saved(page.get_by_role("button", name="CSV of Requests per second, times Flask", exact=True))
        assert [row[0] for row in rows] == page.locator(".answer .strip-name").all_inner_texts()
        assert all(float(row[3]) <= float(row[2]) <= float(row[4]) for row in rows)
        head, *rows = saved(page.locator(".planes .chart-tools button", has_text="CSV").first)
        assert head[:3] == ["stack", "load", "p99 ms"]
        assert all(float(row[2]) > 0 and float(row[3]) > 0 for row in rows)
        assert len(rows) == page.locator(".plane").first.locator(".spot").count() > 1
        assert watched.complaints == []


@pytest.mark.parametrize("name", cases(["Requests per second, times Flask", "Throughput"], kept=1))
def test_charts_that_are_part_of_the_page_are_saved_as_they_stand_there(
    browser: Browser, report: Path, name: str
) -> None:
    with opened(browser, report) as watched:
        page = watched.page
        with page.expect_download() as saving:
            page.get_by_role("button", name=f"PNG of {name}", exact=True).click()
        data = b64encode(saving.value.path().read_bytes()).decode()
        colours = page.evaluate(COLOURS, f"data:image/png;base64,{data}")
        wanted = page.locator(".strip .mean").first.evaluate("one => getComputedStyle(one).fill")
        ink = page.locator(".strip-value b").first.evaluate("one => getComputedStyle(one).color")
        assert {wanted, ink} <= set(colours)
        assert watched.complaints == []
