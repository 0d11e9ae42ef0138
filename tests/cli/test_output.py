"""Tests output to a closed terminal or a full disk, and the places of line breaks."""

import errno
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.side_by_side import WEIR
from tests.support.synthetic_load import write_load
from tests.support.synthetic_run import SyntheticStudy, write_run
from weir.cli import output
from weir.model.errors import ExitCode, UsageError


@pytest.fixture(autouse=True)
def _loud_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.stderr, "quiet", False)


def test_an_interruption_is_not_lost_to_a_terminal_that_takes_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def print_(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            # Rich does the same when it writes its last output at exit.
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(output.stderr, "print", print_)
    with pytest.raises(KeyboardInterrupt):
        output.say("trial 3 of 4")


def test_what_is_said_of_an_interruption_is_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def print_(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(output.stderr, "print", print_)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        output.say("ended early; weir has kept all finished work")


def test_progress_that_nobody_reads_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def print_(*_: object, **__: object) -> None:
        raise OSError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(output.stderr, "print", print_)
    output.say("trial 3 of 4")
    assert output.stderr.quiet


@pytest.mark.parametrize("arguments", ["--version", "wrk -v", "stacks list"])
def test_a_standard_output_that_is_closed_is_an_error_and_no_defect(arguments: str) -> None:
    done = subprocess.run(["sh", "-c", f"{WEIR} {arguments} >&-"], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert done.stderr.splitlines() == [
        "weir: standard output: cannot be written: Bad file descriptor",
        "  try: redirect standard output to a file or to /dev/null",
    ]


def test_a_load_of_a_front_end_ends_with_the_same_error(serve: Callable[..., str]) -> None:
    command = f"{WEIR} wrk -d1s http://{serve('null')}/ >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "weir: standard output: cannot be written: Bad file descriptor" in done.stderr


def test_errors_without_a_standard_error_keep_their_exit_code() -> None:
    done = subprocess.run(["sh", "-c", f"{WEIR} wrk --no-such 2>&-"], capture_output=True, text=True, check=False)
    assert done.returncode not in (ExitCode.DONE, ExitCode.DEFECT)


@pytest.mark.parametrize("arguments", [["--version"], ["stacks", "list"], ["study", "schema"]], ids=" ".join)
def test_data_for_which_there_is_no_space_is_told_and_is_no_defect(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([WEIR, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert done.stderr.splitlines() == [
        "weir: standard output: cannot be written: No space left on device",
        "  try: check the space left on the disk",
    ]


def told_at_a_terminal(command: Sequence[str | Path], columns: int) -> list[str]:
    """Returns the lines that `command` prints at a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    settings = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        command, stdout=theirs, stderr=subprocess.DEVNULL, env=settings | {"TERM": "xterm", "NO_COLOR": "1"}
    )
    os.close(theirs)
    told = b""
    # After the last program has ended, reading from its terminal fails.
    with suppress(OSError):
        while part := os.read(ours, 65536):
            told += part
    os.close(ours)
    assert process.wait() == ExitCode.DONE
    return re.sub(r"\x1b\[[\d;]*m", "", told.decode()).splitlines()


@pytest.mark.usefixtures("bundle")
def test_a_paragraph_breaks_between_words_at_a_terminal_and_is_one_line_for_whatever_else_reads_it(
    tmp_path: Path,
) -> None:
    run = write_run(tmp_path / "run.weir", SyntheticStudy(blocks=2, duration_s=1.0))
    piped = subprocess.run([WEIR, "report", run], capture_output=True, text=True, check=True).stdout
    paragraph = next(line for line in piped.splitlines() if "physics audit" in line)
    assert len(paragraph) > 300
    lines = told_at_a_terminal([WEIR, "report", run], 80)
    assert max(map(len, lines)) <= 80
    assert paragraph in " ".join(" ".join(lines).split())


def test_findings_break_between_words_at_a_terminal(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run.weir", SyntheticStudy(blocks=2, duration_s=1.0))
    lines = told_at_a_terminal([WEIR, "findings", run], 60)
    piped = subprocess.run([WEIR, "findings", run], capture_output=True, text=True, check=True).stdout
    assert max(map(len, piped.splitlines())) > 80
    assert max(map(len, lines)) <= 60
    assert " ".join(lines).split() == piped.split()


@pytest.mark.usefixtures("bundle")
def test_the_text_of_a_load_breaks_between_words_and_goes_on_further_in(tmp_path: Path) -> None:
    kept = write_load(tmp_path / "load.weir")
    lines = told_at_a_terminal([WEIR, "report", kept], 60)
    piped = subprocess.run([WEIR, "report", kept], capture_output=True, text=True, check=True).stdout
    long = next(line for line in piped.splitlines() if len(line) > 60)
    at = lines.index(next(line for line in lines if long.startswith(line) and line.strip()))
    assert lines[at + 1].startswith(long[: len(long) - len(long.lstrip())] + "    ")
    assert max(map(len, lines)) <= 60
    assert " ".join(lines).split() == piped.split()


@pytest.mark.parametrize("flag", ["--json", "--weir-json"])
def test_a_result_that_cannot_be_written_is_an_error_at_its_flag(flag: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^{flag}: {tmp_path}/none/a.json: cannot be written: No such file"):
        output.write_json({}, f"{tmp_path}/none/a.json", flag)
