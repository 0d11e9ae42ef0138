"""Links between pages work, and the index leads to every page (to pages of results through their index)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.reference.tables import anchor
from tests.support.markdown import PAGES, name_of, prose

LINK = re.compile(r"\]\(([^()\s]+)\)")


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yields the files that a page links to, each with its anchor, which may be empty."""
    text = re.sub(r"`[^`\n]*`", "", prose(page.read_text()))
    for target in LINK.findall(text):
        if not re.match(r"[a-z]+:", target):
            path, _, fragment = target.partition("#")
            yield (page.parent / path).resolve() if path else page, fragment


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page.read_text()), re.MULTILINE)
    return {anchor(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)).removeprefix("#") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    dead = [
        f"{path}#{fragment}"
        for path, fragment in links(page)
        if not path.exists() or (fragment and fragment not in anchors(path))
    ]
    assert dead == []


def test_the_index_names_every_page(repository: Path) -> None:
    index = repository / "docs" / "README.md"
    linked = {path for path, _ in [*links(index), *links(repository / "docs" / "results" / "README.md")]}
    assert [
        name_of(page) for page in PAGES if page != index and repository / "docs" in page.parents and page not in linked
    ] == []


def test_a_dead_link_and_a_dead_anchor_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Here `it` is\n\n[a](#here-it-is) [b](#there) [c](none.md) `[d](e.md)` [f](https://example.org)\n"
    )
    assert list(links(page)) == [(page, "here-it-is"), (page, "there"), (tmp_path / "none.md", "")]
    assert anchors(page) == {"here-it-is"}
