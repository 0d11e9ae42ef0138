"""Tests `scripts/phase`, which prints one line for each phase of a Makefile target."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Phase = Callable[..., "subprocess.CompletedProcess[str]"]
TESTS = """
test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.20s
SKIPPED [2] tests/a.py:7: wrk2 is not installed
left out: the report in a browser: no chromium
3 passed, 2 skipped, 9 deselected in 70.21s (0:01:10)
"""


@pytest.fixture
def phase(repository: Path, tmp_path: Path) -> Phase:
    """Returns a function that runs a phase in a folder of the test's own."""
    script = tmp_path / "scripts" / "phase"
    script.parent.mkdir()
    shutil.copy(repository / "scripts" / "phase", script)
    return lambda *words: subprocess.run([script, *words], capture_output=True, text=True, check=False)


def test_a_phase_prints_its_time_and_the_counts_of_its_tests_and_what_was_left_out(
    phase: Phase, tmp_path: Path
) -> None:
    done = phase("the tests", "printf", "%s", TESTS)
    line, *left_out = done.stdout.splitlines()
    assert re.fullmatch(r"the tests +0:\d\d  15 passed, 2 skipped", line)
    assert left_out == [
        "    SKIPPED [2] tests/a.py:7: wrk2 is not installed",
        "    left out: the report in a browser: no chromium",
    ]
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "target" / "phases" / "the-tests.log").read_text() == TESTS


def test_a_phase_that_fails_shows_its_output_with_the_path_of_all_of_it_and_keeps_its_exit_code(
    phase: Phase, tmp_path: Path
) -> None:
    done = phase("a try", "sh", "-c", "echo boom; echo '1 failed, 4 passed in 0.10s'; exit 7")
    assert done.returncode == 7
    assert re.fullmatch(r"a try +0:\d\d  4 passed, 1 failed  FAILED \(exit code 7\)\n", done.stdout)
    assert done.stderr.startswith("boom\n")
    assert str(tmp_path / "target" / "phases" / "a-try.log") in done.stderr


def test_the_counts_of_several_phases_are_added_up(phase: Phase) -> None:
    phase("the tests", "printf", "%s", TESTS)
    phase("a try", "echo", "1 failed, 4 passed, 1 error in 0.10s")
    assert phase("--sum", "the tests", "a try", "none").stdout == "tests: 19 passed, 2 failed, 2 skipped\n"
