"""The Korean pages have the same code, sections, tables, figures and links as the English pages."""

import re
from pathlib import Path

import pytest

from tests.support.markdown import blocks, prose

PAIRS = {"README.md": "README.ko.md", "docs/tutorial.md": "docs/ko/tutorial.md"}


@pytest.fixture(params=list(PAIRS.items()), ids=list(PAIRS))
def pair(request: pytest.FixtureRequest, repository: Path) -> tuple[str, str]:
    """A page's English and Korean texts."""
    english, korean = request.param
    return (repository / english).read_text(), (repository / korean).read_text()


def test_the_code_blocks_are_the_same(pair: tuple[str, str]) -> None:
    english, korean = map(blocks, pair)
    assert korean == english
    assert english


def test_the_sections_and_tables_are_the_same(pair: tuple[str, str]) -> None:
    english, korean = ([len(level) for level in re.findall(r"^(#+) ", prose(text), re.MULTILINE)] for text in pair)
    assert korean == english
    english_rows, korean_rows = (len(re.findall(r"^\|", prose(text), re.MULTILINE)) for text in pair)
    assert korean_rows == english_rows


def test_the_command_lines_in_the_prose_are_the_same(pair: tuple[str, str]) -> None:
    english, korean = (set(re.findall(r"`((?:make|weir) [^`]+)`", prose(text))) for text in pair)
    assert korean == english


def test_the_figures_are_the_same(pair: tuple[str, str]) -> None:
    # Measured figures have a decimal point or a comma for thousands.
    english, korean = (sorted(re.findall(r"\d+[.,]\d+", prose(text))) for text in pair)
    assert korean == english


def test_each_page_leads_to_the_other(repository: Path) -> None:
    for english, korean in PAIRS.items():
        assert f"[한국어]({Path(korean).relative_to(Path(english).parent)})" in (repository / english).read_text()
        back = "../tutorial.md" if "/" in korean else english
        assert f"[English]({back})" in (repository / korean).read_text()
