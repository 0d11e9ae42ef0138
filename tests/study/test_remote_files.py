"""Tests the files that travel with a study to another machine."""

from pathlib import Path

import pytest

from weir.model.errors import UsageError
from weir.stacks.build import build, find_build
from weir.stacks.manifest import read_stack
from weir.study.remote_files import collect_study_files
from weir.study.study import read_study

STUDY = """
schema = 1
title = "T"
question = "Q?"
[matrix]
stacks = ["sanic"]
workloads = ["hello"]
connections = [4, 20]
[method]
blocks = 1
baseline = "sanic"
[load]
duration_s = 5
"""
FEEDER = '[feeders.rows]\nformat = "csv"\nfile = "{}"\n'
STEPS = '[[steps]]\npath = "/{{csv rows.name}}"\n'


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_study_that_every_weir_has_goes_by_its_name() -> None:
    goes = collect_study_files(read_study("sync-vs-async"))
    assert (goes.study, goes.files) == ("sync-vs-async", {})


def test_of_its_stacks_and_their_variants_goes_along_what_was_built_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    study = read_study("socket-servers")
    assert collect_study_files(study).built == ()
    stack = read_stack("socket-thread")
    build(stack, lambda *_: 0)
    assert stack.id in study.file.matrix.stacks
    (folder,) = collect_study_files(study).built
    assert folder == find_build(stack)
    assert folder.parent == tmp_path / "cache" / "stacks" / "socket-thread"


def test_a_stack_that_only_the_other_machine_has_is_built_there(tmp_path: Path) -> None:
    text = STUDY.replace('"sanic"', '"only-there"')
    assert text != STUDY
    assert collect_study_files(read_study(str(write(tmp_path / "mine.toml", text)))).built == ()


def test_a_study_that_names_no_file_goes_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.toml", STUDY)
    write(tmp_path / "other.toml", "")
    goes = collect_study_files(read_study(str(path)))
    assert (goes.study, goes.files) == ("mine.toml", {"mine.toml": path})


def test_its_scenario_and_that_ones_rows_go_along_at_the_same_distance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "studies" / "mine.toml", STUDY + 'scenario = "../shop/buy.toml"')
    scenario = write(tmp_path / "shop" / "buy.toml", FEEDER.format("../rows/names.csv") + STEPS)
    rows = write(tmp_path / "rows" / "names.csv", "name\na\n")
    write(tmp_path / "rows" / "others.csv", "name\na\n")
    monkeypatch.chdir(tmp_path / "studies")
    goes = collect_study_files(read_study("mine.toml"))
    assert goes.study == "studies/mine.toml"
    assert {place: file.resolve() for place, file in goes.files.items()} == {
        "studies/mine.toml": tmp_path / "studies" / "mine.toml",
        "shop/buy.toml": scenario,
        "rows/names.csv": rows,
    }


def test_what_it_names_in_tables_and_overrides_and_at_its_scale_goes_along(tmp_path: Path) -> None:
    overridden = '[[override]]\nwhere = {connections = 20}\nload = {scenario = "other.toml"}\n'
    at_scale = '[scales.quick]\n[scales.long.load]\nscenario = "long.toml"\n'
    table = "[load.scenario.feeders.rows]\n" + FEEDER.format("rows.csv").partition("\n")[2]
    steps = '[[load.scenario.steps]]\npath = "/"\n'
    path = write(tmp_path / "mine.toml", f"{STUDY}{table}{steps}{overridden}{at_scale}")
    write(tmp_path / "other.toml", '[[steps]]\npath = "/"\n')
    write(tmp_path / "long.toml", FEEDER.format("long.csv") + STEPS)
    assert set(collect_study_files(read_study(str(path), scale="quick")).files) == {
        "mine.toml",
        "rows.csv",
        "other.toml",
    }
    assert set(collect_study_files(read_study(str(path), scale="long")).files) == {
        "mine.toml",
        "long.toml",
        "long.csv",
        "other.toml",
    }


def test_what_is_named_by_an_absolute_path_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.toml", STUDY + 'scenario = "buy.toml"')
    write(tmp_path / "buy.toml", FEEDER.format("/there/rows.csv") + STEPS)
    assert set(collect_study_files(read_study(str(path))).files) == {"mine.toml", "buy.toml"}
    path.write_text(STUDY + 'scenario = "/there/buy.toml"')
    assert set(collect_study_files(read_study(str(path))).files) == {"mine.toml"}


def test_a_scenario_that_is_not_there_is_missed_before_anything_travels(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.toml", STUDY + 'scenario = "buy.toml"')
    with pytest.raises(UsageError, match=r"buy\.toml: not found; expected a scenario"):
        collect_study_files(read_study(str(path)))
