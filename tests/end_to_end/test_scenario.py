"""Tests scenarios in Python and TOML, and runs the guide's example."""

import doctest
import json
import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import weir.scenario
from tests.end_to_end.conftest import Weir
from weir.model.errors import UsageError
from weir.model.template import pieces
from weir.scenario import Scenario, read_scenario
from weir.services.dataset import render

GUIDE = Path(__file__).parents[2] / "docs/guides/scenarios.md"
TEMPLATES = json.loads((Path(__file__).parents[1] / "data/templates.json").read_text())


def guide(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_example_in_the_docstring_holds() -> None:
    found = doctest.testmod(weir.scenario)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("text", TEMPLATES["valid"])
def test_what_the_engine_takes_as_a_template_workloads_take_too(text: str) -> None:
    render(text, random.Random(1))


@pytest.mark.parametrize("text", TEMPLATES["wrong"])
def test_what_the_engine_refuses_as_a_template_is_refused_here(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        list(pieces(text))


def test_the_guides_toml_and_python_are_the_same_plan(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    exec(guide("python"), names)
    in_python = names["shop"]
    assert isinstance(in_python, Scenario)
    in_toml = Scenario.model_validate(tomllib.loads(guide("toml")))
    assert in_toml.to_plan(tmp_path) == in_python.to_plan(tmp_path)


def test_the_guides_scenario_runs(tmp_path: Path, weir: Weir, serve: Callable[..., str]) -> None:
    (tmp_path / "shop.toml").write_text(guide("toml"))
    (tmp_path / "users.csv").write_text("id,name\n1,ada\n2,ada\n")
    done = weir(
        "load", f"http://{serve('echo')}/", "--scenario", "shop.toml", "-c", "2", "-d", "500ms", "--json", "result.json"
    )
    assert done.returncode == 0, done.stderr
    assert "none failed" in done.stdout
    assert "login" in done.stdout
    result = json.loads((tmp_path / "result.json").read_text())
    assert list(result["steps"]) == ["login", "GET /user/{{csv users.id}}?page={{int 1 9}}"]
    assert result["steps"]["login"]["ok"] > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[steps]]\npath = "/{{int 9 1}}"', "steps.0.path: .*unknown placeholder"),
        ('[[steps]]\npath = "/"\nchekc = {}', "did you mean 'check'"),
        ("", "expected either steps or requests"),
        (
            '[[steps]]\npath = "/"\nextract.a = {json = "/a", header = "b"}',
            "steps.0.extract.a.*expected exactly one of json, header and regex",
        ),
        (
            '[[steps]]\npath = "/"\n[feeders.u]\nformat = "csv"\nfile = "nowhere.csv"',
            "feeders.u.file: .*expected a file",
        ),
    ],
)
def test_a_mistake_is_said_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"wrong.toml: .*{message}"):
        read_scenario(path)
