"""The time for the report of a run of 1,000 trials: from the run file to findings, to a page, and to charts in a
browser."""

import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright

from bench.machine import WEIR
from bench.result import Bar, Found, Table
from bench.setting import Setting
from tests.support.browser import chromium
from tests.support.synthetic_run import FLASK, NETTY, SANIC, SyntheticStudy, write_run
from weir.findings import of_run
from weir.model.load import ClosedLoad
from weir.report import begin_charts, render_html
from weir.store import RunReader

CONNECTIONS = (
    1,
    2,
    4,
    8,
    12,
    16,
    24,
    32,
    48,
    64,
    80,
    96,
    128,
    160,
    192,
    256,
    320,
    384,
    448,
    512,
    640,
    768,
    896,
    1024,
    1280,
)
BLOCKS = 10
TRIAL_S = 10.0
BAR_RENDERED_S = 2.0
BAR_DRAWN_S = 1.0
BAR_BYTES = 2_000_000
COMMAND = "weir report --format html"
DRAWN = "drawn, the first thirty charts"
ALL_DRAWN = "drawn, every chart"
_DRAW_ALL = """() => new Promise(done => {
    // As before printing; canvases are painted in microtasks, which come before the next task.
    dispatchEvent(new Event("beforeprint"));
    setTimeout(() => done(performance.now()));
})"""


def measure_report(setting: Setting) -> Found:
    """Measures four stacks at 25 numbers of connections in ten blocks; a trial has ten seconds in intervals of 0.1
    s."""
    plain = replace(FLASK, name="plain", title="Plain")
    study = SyntheticStudy(
        stacks=(FLASK, SANIC, NETTY, plain),
        loads=[ClosedLoad(n) for n in CONNECTIONS],
        aa=None,
        blocks=BLOCKS,
        duration_s=TRIAL_S,
    )
    print("report: writing a run of 1,000 trials …", file=sys.stderr)
    path = write_run(setting.folder / "run.weir", study)
    page = setting.folder / "report.html"
    # Python keeps compiled modules, as in every installation that has run before.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {COMMAND: [], "of it findings": [], "of it the page": [], DRAWN: [], ALL_DRAWN: []}
    for _ in range(setting.rounds):
        with RunReader(path) as reader:
            began = time.perf_counter()
            charts = begin_charts(reader)
            findings = of_run(reader)
            found = time.perf_counter()
            page.write_text(render_html(reader, findings, charts=charts))
            times["of it findings"].append(found - began)
            times["of it the page"].append(time.perf_counter() - found)
        for name, seconds in _drawn_s(page).items():
            times[name].append(seconds)
        began = time.perf_counter()
        subprocess.run(
            [WEIR, "report", str(path), "--format", "html"],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=120,
            env=environment,
        )
        times[COMMAND].append(time.perf_counter() - began)
    middle = {name: median(values) for name, values in times.items() if values}
    size = page.stat().st_size
    rows = [
        [name, f"{value:.2f}", f"{min(times[name]):.2f} to {max(times[name]):.2f}"] for name, value in middle.items()
    ]
    drawn_s = middle.get(DRAWN)
    return Found(
        "The report of a run of 1,000 trials: 4 stacks at 25 loads in 10 blocks, 10 s each in intervals of 0.1 s",
        Table(["from the run file", "seconds", "range"], rows),
        [
            Bar(
                f"rendered within {BAR_RENDERED_S:g} s, by the command and with its start",
                f"{middle[COMMAND]:.2f} s",
                middle[COMMAND] <= BAR_RENDERED_S,
            ),
            Bar(f"at most {BAR_BYTES / 1e6:g} MB", f"{size / 1e6:.2f} MB", size <= BAR_BYTES),
            Bar(
                f"first thirty charts drawn within {BAR_DRAWN_S:g} s of its opening",
                "no Chromium" if drawn_s is None else f"{drawn_s:.2f} s",
                None if drawn_s is None else drawn_s <= BAR_DRAWN_S,
            ),
        ],
        measured={**times, "bytes": size},
    )


def _drawn_s(page: Path) -> dict[str, float]:
    """Returns the seconds from the page's opening to its first charts and to all charts, by the browser's clock. The
    dict is empty if no browser is installed."""
    program = chromium()
    if program is None:
        return {}
    with (
        sync_playwright() as playwright,
        closing(playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])) as browser,
    ):
        opened = browser.new_page()
        opened.goto(page.as_uri())
        opened.wait_for_selector("html[data-ready=true]")
        drawn_ms: float = opened.evaluate("performance.getEntriesByName('drawn')[0].startTime")
        waited_ms: float = opened.evaluate("performance.now()")
        all_drawn_ms: float = opened.evaluate(_DRAW_ALL)
        return {DRAWN: drawn_ms / 1e3, ALL_DRAWN: (drawn_ms + all_drawn_ms - waited_ms) / 1e3}
