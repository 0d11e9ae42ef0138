"""Tests the conversion of one thread group of a test plan; `tests/compat/jmx` tests the reading of plans."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.jmx import constant_timer, data_set, element, get, group, plan
from weir.cli.commands import app
from weir.compat.convert.conversion import Conversion
from weir.compat.convert.jmx import convert
from weir.compat.jmx.complaint import NotExactError
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad
from weir.scenario import read_scenario

Converted = Callable[..., Conversion]


@pytest.fixture
def converted(tmp_path: Path) -> Converted:
    """Returns a function that converts a plan of some elements, with further arguments."""

    def convert_plan(*elements: str, arguments: tuple[str, ...] = ()) -> Conversion:
        path = tmp_path / "plan.jmx"
        path.write_text(plan(*elements))
        return convert("jmx", [str(path), *arguments])

    return convert_plan


def test_a_thread_group_is_a_scenario_and_its_users(converted: Converted) -> None:
    users = group(get("a", "/a"), constant_timer("500"), get("b", "/b"), threads="${__P(threads,5)}", loops=3, ramp=10)
    found = converted(users, arguments=("-Jthreads=20", "-n"))
    assert isinstance(found.spec.to_plan().load, ClosedLoad)
    assert (found.spec.to_plan().load.connections, found.spec.loops) == (20, 6)
    assert found.spec.to_plan().request.target == "http://127.0.0.1:8080"
    assert found.scenario is not None
    assert [(step.name, step.path) for step in found.scenario.steps] == [("a", "/a"), ("b", "/b")]


def test_one_of_several_thread_groups_is_chosen(converted: Converted) -> None:
    groups = group(get("a", "/a"), name="Buyers"), group(get("b", "/b"), name="Readers")
    with pytest.raises(UsageError, match=r"found 2 thread groups \(Buyers, Readers\), expected one") as caught:
        converted(*groups)
    assert caught.value.hint.endswith("plan.jmx --only Buyers")
    chosen = converted(*groups, arguments=("--only", "Readers"))
    assert chosen.scenario is not None
    assert chosen.scenario.steps[0].name == "b"
    with pytest.raises(UsageError, match="--only: found 'Sellers', expected one of the thread groups: Buyers, Readers"):
        converted(*groups, arguments=("--only", "Sellers"))


def test_a_plan_that_the_engine_cannot_run_exactly_is_not_converted(converted: Converted) -> None:
    with pytest.raises(NotExactError, match=r"JSR223PreProcessor 1, first at line 3 \('script'\)"):
        converted(group(get(below=element("JSR223PreProcessor", "script"))))


def test_rows_of_a_data_set_are_written_beside_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("users.csv").write_text("name\nada\nbob\n")
    Path("plan.jmx").write_text(plan(group(data_set("users.csv"), get(path="/${name}"))))
    with pytest.raises(UsageError, match="expected -o FILE"):
        app(["convert", "jmx", "plan.jmx"], standalone_mode=False)
    Path("out").mkdir()
    app(["convert", "-o", "out/shop.toml", "jmx", "plan.jmx"], standalone_mode=False)
    (feeder,) = read_scenario(Path("out/shop.toml"))["feeders"].values()
    assert Path(feeder["file"]).parent == tmp_path / "out"
    assert Path(feeder["file"]).read_text() == '"name"\n"ada"\n"bob"\n'
    with pytest.raises(UsageError, match="weir never overwrites"):
        app(["convert", "-o", "out/again.toml", "jmx", "plan.jmx"], standalone_mode=False)
    assert not Path("out/again.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "jmx: found 0 files, expected one"),
        (["a.jmx", "b.jmx"], "jmx: found 2 files, expected one"),
        (["a.jmx", "-Jthreads"], "-J: found '-Jthreads', expected -JNAME=VALUE"),
        (["a.jmx", "--what"], "jmx: found '--what', expected a file and -JNAME=VALUE"),
        (["nowhere.jmx"], "nowhere.jmx: "),
    ],
)
def test_arguments_that_cannot_be_read_are_told(arguments: list[str], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        convert("jmx", arguments)
    assert problem in caught.value.message
