"""Reading a script as people write them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weir.compat.conversion import Conversion
from weir.compat.k6 import read

Converted = Callable[..., Conversion]
HEAD = "import http from 'k6/http';\nimport { check, sleep, group } from 'k6';\n"
USER = "export default function () { http.get('http://h:1/'); }\n"


@pytest.fixture
def converted(tmp_path: Path) -> Converted:
    """A function that reads a script, below the usual imports, with arguments of `k6 run`."""

    def convert(script: str, *arguments: str, head: str = HEAD) -> Conversion:
        path = tmp_path / "script.js"
        path.write_text(head + script)
        return read([str(path), *arguments])

    return convert


def steps(found: Conversion) -> list[dict[str, Any]]:
    """The steps, each with what it was given."""
    assert found.scenario is not None
    return [step.model_dump(by_alias=True, exclude_defaults=True) for step in found.scenario.steps]


def users(body: str) -> str:
    return f"export default function () {{ {body} }}"


def gaps(found: Conversion) -> list[str]:
    return [f"{gap.where.rpartition('/')[2]}: {gap.what}" for gap in found.gaps]
