"""The pages of results have charts drawn from the kept findings, and short paragraphs."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.results_charts import RATES, STUDIES, draw
from tests.conftest import REPOSITORY
from tests.support.markdown import name_of, prose

RESULTS = REPOSITORY / "docs" / "results"
PAGES = [RESULTS / "README.md", *(RESULTS / study / "README.md" for study in STUDIES)]
LINES, COLUMNS = 5, 120


def test_every_study_that_is_kept_has_a_chart_and_a_line_in_the_index() -> None:
    assert {path.parent.name for path in RESULTS.glob("*/findings.json")} == set(STUDIES)
    index = (RESULTS / "README.md").read_text()
    assert [study for study in STUDIES if f"({study}/README.md) |" not in index] == []


@pytest.mark.parametrize("study", STUDIES)
def test_the_chart_of_a_study_is_drawn_from_its_findings(study: str) -> None:
    chart = (RESULTS / study / "chart.svg").read_text()
    assert chart == draw(json.loads((RESULTS / study / "findings.json").read_text()), STUDIES[study])
    ElementTree.fromstring(chart)
    assert "](chart.svg)" in (RESULTS / study / "README.md").read_text()


def test_a_chart_shows_values_intervals_and_the_figures_of_the_article() -> None:
    findings = json.loads((RESULTS / "sync-vs-async" / "findings.json").read_text())
    assert "6.18 (5.82–6.56)" in draw(findings, STUDIES["sync-vs-async"])
    assert draw(findings, STUDIES["sync-vs-async"]).count('class="article"') == 3 + 1
    assert "19,759 (19,096–20,421)" in draw(findings, RATES)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paragraphs_of_results_are_short(page: Path) -> None:
    texts = re.split(r"\n\n|\n(?=- )", prose(page.read_text()))
    paragraphs = [text.splitlines() for text in texts if not text.startswith(("|", "!"))]
    assert [lines[0] for lines in paragraphs if len(lines) > LINES or max(map(len, lines), default=0) > COLUMNS] == []
