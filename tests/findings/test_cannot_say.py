"""Tests runs with too little data: every command gives the reason, and no number or traceback."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.synthetic_run import FLASK, SANIC, SyntheticStudy, judged, write_run
from weir.cli.commands import app
from weir.model.errors import WeirError
from weir.model.load import ClosedLoad
from weir.model.run_types import TrialResult

STUDY = SyntheticStudy(aa=None, blocks=2, duration_s=1.0, loads=[ClosedLoad(4), ClosedLoad(16)])


def asked(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit | WeirError), done.exception
    return done


def rejected(label: str, block: int, result: TrialResult) -> TrialResult:
    return judged(result, "invalid", "it answered wrong")


def never_together(label: str, block: int) -> bool:
    return (label == "sanic") == (block == 1)


@pytest.mark.parametrize(
    ("why", "study", "said"),
    [
        ("one block", replace(STUDY, blocks=1), "no interval, so no claim"),
        ("every trial rejected", replace(STUDY, change=rejected), "No answer: none of 8 trials is usable."),
        (
            "no block has both",
            replace(STUDY, skip=never_together),
            "The servers cannot be compared: no block has a usable trial of both.",
        ),
        ("no spread", replace(STUDY, stacks=[replace(one, variation=0.0) for one in (FLASK, SANIC)]), "req"),
        (
            "nothing was run",
            replace(STUDY, skip=lambda label, block: True, ended="interrupted"),
            "No answer: no trial was finished.",
        ),
    ],
)
def test_a_poor_run_says_what_it_lacks(tmp_path: Path, why: str, study: SyntheticStudy, said: str) -> None:
    path = write_run(tmp_path / "run.weir", study)
    done = asked("findings", path)
    assert done.exit_code == 0, why
    assert said in done.stdout, why
    assert asked("findings", path, "--json").exit_code == 0
    assert asked("report", path).exit_code == 0


def test_one_block_has_places_of_crossings_and_no_intervals(tmp_path: Path) -> None:
    crossing = replace(SANIC, throughput_rps=2_450, growth=lambda n: n / 8)
    path = write_run(tmp_path / "run.weir", replace(STUDY, stacks=(FLASK, crossing), blocks=1))
    done = asked("breakeven", "sanic", "flask-gunicorn", path)
    assert done.exit_code == 0
    assert "no interval with fewer than 10 blocks" in done.stdout


def test_stacks_that_never_met_have_no_break_even(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run.weir", replace(STUDY, skip=never_together))
    done = asked("breakeven", "sanic", "flask-gunicorn", path)
    assert done.exit_code == 0
    assert done.stdout.startswith("No break-even: ")


def damaged(path: Path) -> Path:
    path.write_bytes(write_run(path.with_name("whole.weir"), replace(STUDY, blocks=1)).read_bytes()[:5_000])
    return path


def foreign(path: Path) -> Path:
    path.write_text("stack,rps\nflask,1\n")
    return path


@pytest.mark.parametrize("make", [damaged, foreign])
@pytest.mark.parametrize("command", [["findings"], ["breakeven", "a", "b"], ["confirm"], ["gate", "RUN"]])
def test_a_truncated_or_foreign_file_is_named(
    tmp_path: Path, make: Callable[[Path], Path], command: Sequence[str]
) -> None:
    path = make(tmp_path / "run.weir")
    done = CliRunner().invoke(app, [*(str(path) if word == "RUN" else word for word in command), str(path)])
    assert isinstance(done.exception, WeirError), done.exception
    assert str(path) in done.exception.message
