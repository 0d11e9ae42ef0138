"""Finds the repository's Markdown pages and their fenced blocks."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import REPOSITORY

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "README.ko.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]


def name_of(page: Path) -> str:
    """Returns the page's path in the repository."""
    return str(page.relative_to(REPOSITORY))


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    language: str
    code: str
    file: str | None
    """The file with this content, if the line before names it, such as `stacks/tiny/stack.toml`:"""


def blocks(text: str) -> list[Block]:
    """Yields the fenced blocks of a page in their order."""
    found = []
    for match in FENCE.finditer(text):
        named = re.search(r"^`([^`\n]+)`:\n\n\Z", text[: match.start()], re.MULTILINE)
        found.append(Block(match[1], match[2], named[1] if named else None))
    return found


def prose(text: str) -> str:
    """Returns the page without its fenced blocks."""
    return FENCE.sub("", text)
