"""The guide on studies is valid: its first study, and every later fragment added to that study."""

import os
import tomllib
from pathlib import Path
from typing import Any

from weir.study.study import parse_study


def merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {
        **base,
        **{key: merged(base.get(key, {}), value) if isinstance(value, dict) else value for key, value in more.items()},
    }


def test_every_study_that_the_guide_shows_is_valid(repository: Path) -> None:
    text = (repository / "docs" / "guides" / "studies.md").read_text().replace("4711", str(os.getpid()))
    blocks = [block.partition("```")[0] for block in text.split("```toml\n")[1:]]
    assert len(blocks) == 10
    cells = parse_study(repository / "threads.toml", "", tomllib.loads(blocks[0]), None).cells(1)
    assert [one.cell.stack_label for one in cells] == ["flask-gunicorn", "flask-gunicorn[gthread]"]
    for block in blocks[1:]:
        # Each fragment is added to the first study; an override is added to the matrix whose cells it describes.
        base = merged(tomllib.loads(blocks[0]), tomllib.loads(blocks[1]) if "[[override]]" in block else {})
        shown = merged(base, tomllib.loads(block))
        shown["method"]["baseline"] = shown["matrix"]["stacks"][0]
        assert parse_study(repository / "threads.toml", "", shown, None).cells(1)
