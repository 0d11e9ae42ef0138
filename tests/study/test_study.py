import tomllib
from collections import Counter
from pathlib import Path

import pytest

from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, OpenLoad
from weir.study.block_order import order_block
from weir.study.study import read_study
from weir.study.time_estimate import estimate_time
from weir.toml_file import list_data_files

STUDY = """
schema = 1
title = "T"
question = "Q?"
[matrix]
stacks = ["flask-gunicorn", "sanic"]
workloads = ["hello", "echo"]
connections = [4, 20]
[load]
duration_s = 5
[method]
blocks = 10
baseline = "sanic"
aa = "sanic"
[scales.quick.method]
blocks = 2
[scales.evidence]
"""


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_every_study_that_travels_with_weir_is_valid_at_every_scale() -> None:
    assert "sync-vs-async" in list_data_files("studies")
    for name in list_data_files("studies"):
        scales = tomllib.loads(Path(read_study(name, scale="quick").path).read_text())["scales"]
        assert {"quick", "evidence", "article"} <= set(scales)
        for scale in scales:
            study = read_study(name, scale=scale)
            assert study.cells(stack_cpus=1)
            assert study.indicative == (scale == "quick" or study.file.method.blocks < 10)


def test_the_matrix_is_crossed_and_the_aa_arm_comes_on_top(tmp_path: Path) -> None:
    cells = read_study(write(tmp_path, STUDY)).cells(stack_cpus=2)
    assert len(cells) == 2 * 2 * 2 + 2 * 2
    assert Counter(one.cell.arm for one in cells) == {"main": 8, "aa": 4}
    assert {one.cell.stack for one in cells if one.cell.arm == "aa"} == {"sanic"}
    assert {one.cell.load for one in cells} == {ClosedLoad(4), ClosedLoad(20)}
    assert all(one.cell.settings["workers"] == "2" for one in cells)
    assert [one.cell.id for one in cells] == list(range(1, 13))


def test_rates_make_the_loads_open(tmp_path: Path) -> None:
    text = STUDY.replace("connections = [4, 20]", "connections = [50]\nrate_rps = [100.0, 200]")
    loads = {one.cell.load for one in read_study(write(tmp_path, text)).cells(1)}
    assert loads == {OpenLoad(100.0, 50), OpenLoad(200.0, 50)}


def test_a_scale_overrides_key_by_key(tmp_path: Path) -> None:
    path = write(tmp_path, STUDY)
    quick, evidence = read_study(path, scale="quick"), read_study(path, scale="evidence")
    assert (quick.file.method.blocks, evidence.file.method.blocks) == (2, 10)
    assert quick.file.method.aa == "sanic"
    assert quick.indicative
    assert not evidence.indicative
    assert read_study(path).scale == "evidence"


def test_a_block_holds_every_cell_once_in_an_order_that_follows_from_the_seed(tmp_path: Path) -> None:
    cells = read_study(write(tmp_path, STUDY)).cells(1)
    orders = [[one.cell.id for one in order_block(cells, seed, block)] for seed in (1, 2) for block in (1, 2, 3)]
    assert all(sorted(order) == list(range(1, 13)) for order in orders)
    assert len({tuple(order) for order in orders}) == len(orders)
    assert [one.cell.id for one in order_block(cells, 1, 1)] == orders[0]


LONG_TRIALS = '[[override]]\nwhere = {{ stack = "{stack}" }}\nmethod = {{ warmup_s = 60 }}\n'


def test_the_short_trials_of_a_quick_run_have_a_head_start() -> None:
    study = read_study("sync-vs-async", scale="quick")
    cells = study.cells(1)
    head_start = study.head_start(cells)
    assert head_start is not None
    short = [one.cell for one in cells if one.cell.id in head_start.cell_ids]
    assert {(cell.stack, cell.arm) for cell in short} == {
        ("flask-gunicorn", "main"),
        ("flask-gunicorn", "aa"),
        ("sanic", "main"),
    }
    coming = estimate_time(study, cells)
    assert coming.first_answer_of == ("flask-gunicorn", "sanic")
    assert [set(block[: len(short)]) for block in coming.order[: head_start.blocks]] == [
        head_start.cell_ids
    ] * head_start.blocks
    assert coming.first_answer_s is not None
    assert coming.first_answer_s <= 60


@pytest.mark.parametrize(
    ("scale", "tail"),
    [
        ("evidence", LONG_TRIALS.format(stack="flask-gunicorn")),
        ("quick", ""),
        ("quick", LONG_TRIALS.format(stack="sanic")),
        ("quick", LONG_TRIALS.format(stack="flask-gunicorn") + "[scales.quick.method]\nbudget_s = 1000\n"),
    ],
    ids=["another scale", "no long trials", "the baseline's trials are long", "a budget"],
)
def test_without_a_first_answer_to_give_no_trial_has_a_head_start(tmp_path: Path, scale: str, tail: str) -> None:
    text = STUDY.replace('"flask-gunicorn", ', '"flask-gunicorn", "fastapi-uvicorn", ') + tail
    text = text.replace("[scales.quick.method]\nblocks = 2\n", "", 1) if "budget_s" in tail else text
    study = read_study(write(tmp_path, text), scale=scale)
    assert study.head_start(study.cells(1)) is None


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("connections", "conections", "matrix.conections: unknown key; did you mean 'connections'?"),
        ("duration_s = 5", 'duration_s = "5s"', "load.duration_s: found '5s'; should be a valid number"),
        ("duration_s = 5", "duration_s = 0", "load.duration_s: found 0; should be greater than 0"),
        (
            "connections = [4, 20]",
            "connections = [4, 0]",
            "matrix.connections: found [4, 0]; expected whole numbers of at least 1, not 0",
        ),
        (
            'stacks = ["flask-gunicorn", "sanic"]',
            'stacks = ["sanic", "sanic"]',
            "stacks: expected every name only once",
        ),
        ('baseline = "sanic"', 'baseline = "spring"', "method.baseline: found 'spring', expected one of matrix.stacks"),
        ('title = "T"', "", "title: missing"),
        (
            "[scales.evidence]",
            "[scales.evidence.method]\nblcks = 3",
            "method.blcks: unknown key; did you mean 'blocks'?",
        ),
        ("schema = 1", "schema = 2", "schema: found 2, expected 1"),
    ],
)
def test_a_study_with_a_mistake_is_refused_by_file_and_key(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = write(tmp_path, STUDY.replace(old, new, 1))
    with pytest.raises(UsageError) as error:
        read_study(path)
    assert path in error.value.message
    assert problem in error.value.message


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            '["flask-gunicorn", "sanic"]',
            '["flask-gunicorn", "sanic", "rails"]',
            "stack: found 'rails', expected one of",
        ),
        ('["hello", "echo"]', '["hello", "nonsense"]', "nonsense.toml: not found"),
    ],
)
def test_a_stack_or_workload_that_does_not_exist_is_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    study = read_study(write(tmp_path, STUDY.replace(old, new, 1)))
    with pytest.raises(UsageError) as error:
        study.cells(1)
    assert problem in error.value.message


def test_a_workload_that_a_stack_does_not_serve_is_named_with_those_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = tmp_path / "stacks" / "greeter" / "stack.toml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(
        'schema = 1\nid = "greeter"\ntitle = "G"\nmodel = "M"\n[run]\ncommand = ["serve", "{port}"]\n[serves]\nhello = {}\n'
    )
    monkeypatch.setenv("WEIR_STACKS", str(manifest.parent.parent))
    study = read_study(write(tmp_path, STUDY.replace('"flask-gunicorn"', '"greeter"')))
    with pytest.raises(UsageError, match=r"matrix\.workloads: found 'echo', expected a workload of greeter: hello"):
        study.cells(1)


def test_an_unknown_scale_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--scale: found 'huge', expected one of: quick, evidence"):
        read_study(write(tmp_path, STUDY), scale="huge")


def test_a_stack_whose_needs_are_not_met_is_left_out_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = tmp_path / "stacks" / "needy" / "stack.toml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(
        'schema = 1\nid = "needy"\ntitle = "N"\nmodel = "M"\n[build]\ncommand = "true"\nneeds = ["no-such-tool>=3"]\n'
        '[run]\ncommand = ["serve", "{port}"]\n[serves]\nhello = {}\necho = {}\n'
    )
    monkeypatch.setenv("WEIR_STACKS", str(manifest.parent.parent))
    study = read_study(write(tmp_path, STUDY.replace('"flask-gunicorn", ', '"flask-gunicorn", "needy", ')))
    left, said = study.without_unmet()
    assert said == ["needy is left out: it needs no-such-tool>=3, not found on the PATH"]
    assert {one.cell.stack for one in left.cells(1)} == {"flask-gunicorn", "sanic"}
    assert [one.cell.id for one in left.cells(1)] == list(range(1, 13))
    assert {one.cell.stack for one in study.cells(1)} > {"needy"}
    for text, problem in (
        (STUDY.replace('"flask-gunicorn"', '"needy"'), "nothing remains to compare: needy is left out"),
        (
            STUDY.replace('"flask-gunicorn"', '"needy"').replace('baseline = "sanic"', 'baseline = "needy"'),
            "method.baseline: needy is left",
        ),
    ):
        with pytest.raises(UsageError, match=problem) as error:
            read_study(write(tmp_path, text)).without_unmet()
        assert error.value.hint == "weir doctor"
