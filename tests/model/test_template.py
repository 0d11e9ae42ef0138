"""`{{env NAME}}` stands for an environment variable, which weir reads only when it starts the engine."""

from pathlib import Path

import pytest

from weir.model.errors import UsageError
from weir.model.template import fill_environment, pieces
from weir.scenario import read_scenario

STEP = {"path": "/a?k={{env KEY}}", "headers": [["Authorization", "Bearer {{ env KEY }}"]], "body": "{{env OTHER}}"}


def test_values_of_the_environment_replace_the_placeholders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "a b/&")
    monkeypatch.setenv("OTHER", "x&y")
    filled = fill_environment({"steps": [STEP]})["steps"][0]
    # A value cannot change the form of the path.
    assert filled["path"] == "/a?k=a%20b%2F%26"
    assert filled["headers"] == [["Authorization", "Bearer a b/&"]]
    assert filled["body"] == "x&y"


def test_every_missing_variable_is_named_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY", raising=False)
    monkeypatch.setenv("OTHER", "{{seq}}")
    with pytest.raises(UsageError) as error:
        fill_environment({"steps": [STEP]})
    assert "\n  KEY: steps[0].path, steps[0].headers[0][1]\n  OTHER: steps[0].body" in error.value.message
    assert error.value.hint == "export KEY=... OTHER=..."


def test_a_scenario_file_with_a_missing_variable_is_refused_and_a_plan_never_has_the_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.toml"
    path.write_text('[[steps]]\npath = "/{{env WEIR_TEST_KEY}}"\n')
    monkeypatch.delenv("WEIR_TEST_KEY", raising=False)
    with pytest.raises(UsageError, match=r"shop.toml: found \{\{env NAME\}\}, expected these environment variables"):
        read_scenario(path)
    monkeypatch.setenv("WEIR_TEST_KEY", "hidden")
    assert read_scenario(path)["steps"][0]["path"] == "/{{env WEIR_TEST_KEY}}"


@pytest.mark.parametrize("template", ["{{env A B}}", "{{env 1A}}", "{{env A-B}}"])
def test_a_name_that_no_variable_can_have_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="unknown placeholder"):
        list(pieces(template))
