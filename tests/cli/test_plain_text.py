"""Tests output to a terminal or a pipe without Unicode."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.side_by_side import WEIR
from tests.support.synthetic_run import SyntheticStudy, write_run
from weir.cli.plain_text import plain, use_plain_text
from weir.model.errors import ExitCode

NO_UNICODE = (
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "ascii:strict"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run.weir", SyntheticStudy(blocks=2, duration_s=1.0))


@pytest.mark.usefixtures("bundle")
@pytest.mark.parametrize("environment", NO_UNICODE, ids=str)
def test_an_answer_is_told_in_ascii_where_there_is_nothing_else(run: Path, environment: dict[str, str]) -> None:
    done = subprocess.run([WEIR, "report", run], capture_output=True, env=os.environ | environment)
    assert done.returncode == ExitCode.DONE, done.stderr
    told = done.stdout.decode("ascii")
    assert "CPU us/req" in told
    assert "x as many requests per second as Flask (95 % interval " in told
    # The study's question ends with a question mark. Any other question mark would replace a lost character.
    assert told.count("?") == 1
    # The HTML page is a separate file, always in UTF-8.
    assert "µs" in (run.parent / "report.html").read_text("utf-8")


def test_an_error_names_what_was_written_as_far_as_it_can_be_read() -> None:
    done = subprocess.run(
        [WEIR, "report", "runs/α–β"], capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == ExitCode.USAGE
    assert "runs/?-?" in done.stderr.decode("ascii")


def test_an_encoding_that_has_a_sign_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    monkeypatch.setattr(sys, "stderr", None)
    use_plain_text()
    print("3–4 µs, 2 × 5…", end="", flush=True)
    assert written.getvalue().decode("latin-1") == "3-4 µs, 2 × 5..."


def test_a_stream_in_utf_8_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="UTF-8")
    monkeypatch.setattr(sys, "stdout", stream)
    use_plain_text()
    assert stream.errors == "strict"


def test_each_sign_that_weir_prints_has_one_in_ascii() -> None:
    assert plain("– − µ ÷ × … ≤ ≥ ± → “a”\u00a0b") == '- - u / x ... <= >= +/- -> "a" b'
