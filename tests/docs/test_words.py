"""Phrases of an earlier private dialect do not come back."""

import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PHRASES = {
    r"\bprim(e|ed|ing)\b": "warm-up",
    r"\bwhoever\b": "the actor, by name",
    r"\bheld against\b": "compared with, checked against",
    r"\bso many\b": "a number of, at most N",
    r"\bas ever\b": "nothing",
    r"\bnobody's\b": "no user's, or the actor by name",
    r"\bwhat (came|becomes) of\b": "the result of, the end of",
    r"\bwhat (\w+) says? of\b": "the report of",
    r"\bbeside that\b": "also",
}
"""The better words by phrase."""


def files() -> list[Path]:
    folders = ("bench", "scripts", "src/weir", "tests")
    found = [path for folder in folders for path in (REPOSITORY / folder).rglob("*.py")]
    return [path for path in found if "_web" not in path.parts and path != Path(__file__)]


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_that_needs_a_second_reading_is_not_in_the_code(phrase: str) -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()}"
        for path in files()
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(phrase, line, re.IGNORECASE)
    ]
    assert found == [], f"write instead: {PHRASES[phrase]}"
