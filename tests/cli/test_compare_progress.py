"""The view of `weir compare` at a terminal."""

import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.cli.test_terminal_progress import terminal
from tests.end_to_end.conftest import SERVER
from weir.cli.compare_progress import CompareProgress
from weir.model.verdict import Reason, TrialVerdict


def test_a_reason_for_rejections_is_told_once_for_each_side() -> None:
    told: list[str] = []
    progress = CompareProgress(Path("run.weir"), 1.0, told.append, live=False)
    result: Any = SimpleNamespace(
        verdict=TrialVerdict((Reason("stalled", "invalid", "a stall", "none", "a busy machine"),))
    )
    for title in ("a", "a", "b"):
        planned: Any = SimpleNamespace(name=title, cell=SimpleNamespace(arm="main"))
        progress.on_trial_end(planned, result)
    assert [line.split(":")[1] for line in told] == [" a", " b"]


def test_a_comparison_at_a_terminal_shows_its_side_and_rate_and_leaves_only_the_answer(tmp_path: Path) -> None:
    good, slow = (shlex.join([sys.executable, str(SERVER), "PORT", mode]) for mode in ("good", "slow"))
    sides = (good.replace("PORT", "{port}"), slow.replace("PORT", "{port}"))
    status, drawn, out = terminal(
        tmp_path,
        *("compare", *sides, "--warmup", "300ms", "-d", "500ms", "-c", "2", "--precision", "0.01%"),
        environment={"TERM": "xterm", "PYTHONIOENCODING": "utf-8", "WEIR_CACHE": str(tmp_path / "cache")},
        # The first answer. On a busy machine a trial of the first block is made again later, and there is none before.
        until=b"as many",
    )
    assert status == 130
    assert re.search(r"block 1: server\.py good, [0-9,]+ req/s, at most \d+ s left", drawn)
    assert "server.py good: ready after " in drawn
    assert "as many requests as server.py good" in re.sub(r"\s+", " ", drawn)
    assert out.startswith("server.py ")
    # The view hides the cursor and shows it again at its end.
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l")
