"""The view of `weir compare` at a terminal."""

import re
import shlex
import sys
from pathlib import Path

from tests.cli.test_terminal_progress import terminal
from tests.end_to_end.conftest import SERVER


def test_a_comparison_at_a_terminal_shows_its_side_and_rate_and_leaves_only_the_answer(tmp_path: Path) -> None:
    good, slow = (shlex.join([sys.executable, str(SERVER), "PORT", mode]) for mode in ("good", "slow"))
    sides = (good.replace("PORT", "{port}"), slow.replace("PORT", "{port}"))
    status, drawn, out = terminal(
        tmp_path,
        *("compare", *sides, "--warmup", "300ms", "-d", "500ms", "-c", "2", "--precision", "0.01%"),
        environment={"TERM": "xterm", "PYTHONIOENCODING": "utf-8", "WEIR_CACHE": str(tmp_path / "cache")},
        until=b"block 2: ",
    )
    assert status == 130
    assert re.search(r"block 1: server\.py good, [0-9,]+ req/s, at most \d+ s left", drawn)
    assert "server.py good: ready after " in drawn
    assert "as many requests as server.py good" in re.sub(r"\s+", " ", drawn)
    assert out.startswith("server.py ")
    # The view hides the cursor and shows it again at its end.
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l")
