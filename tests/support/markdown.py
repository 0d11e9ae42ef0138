"""The repository's Markdown as tests see it: pages, and what is fenced in them."""

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
    """The page's path in the repository."""
    return str(page.relative_to(REPOSITORY))


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    language: str
    code: str
    file: str | None
    """The file that it is, where the line before it says so: `stacks/tiny/stack.toml`:"""


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in their order."""
    found = []
    for match in FENCE.finditer(text):
        named = re.search(r"^`([^`\n]+)`:\n\n\Z", text[: match.start()], re.MULTILINE)
        found.append(Block(match[1], match[2], named[1] if named else None))
    return found


def prose(text: str) -> str:
    """The page without its fenced blocks."""
    return FENCE.sub("", text)
