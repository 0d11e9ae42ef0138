"""The JSON Schema of study files agrees with the types."""

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from weir.study.schema import build_json_schema
from weir.toml_file import list_data_files

STUDY = """
schema = 1
title = "T"
question = "Q?"
[matrix]
stacks = ["sanic", "mine"]
workloads = ["hello"]
connections = "4, 50..500 step 50"
limits.workers = [1, 2]
[load]
duration_s = 1
[method]
blocks = 2
baseline = "sanic"
[objective]
hold = ["p99<50ms"]
[external.mine]
url = "http://127.0.0.1:1"
serves = ["hello"]
[[override]]
where = { stack = "sanic", connections = [4, 50] }
load = { timeout_s = 5 }
method = { warmup_s = 1 }
[scales.quick.load]
duration_s = 1
[[scales.quick.override]]
where = { stack = "sanic" }
load = { pipeline = 2 }
"""


def complaints(content: dict[str, Any]) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(build_json_schema()).iter_errors(content)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(build_json_schema())


@pytest.mark.parametrize("path", list_data_files("studies").values(), ids=lambda path: path.stem)
def test_the_schema_accepts_every_study_that_travels_with_weir(path: Path) -> None:
    assert complaints(tomllib.loads(path.read_text())) == []


def test_the_schema_accepts_everything_that_a_study_may_hold() -> None:
    assert complaints(tomllib.loads(STUDY)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('title = "T"', 'titel = "T"'),
        ("limits.workers = [1, 2]", "limits.workers = [0]"),
        ("timeout_s = 5 }", "timeout = 5 }"),
        ("warmup_s = 1 }", "blocks = 1 }"),
        ("[scales.quick.load]\nduration_s = 1", "[scales.quick.load]\nduration = 1"),
        ("load = { pipeline = 2 }", "load = { pipelines = 2 }"),
        ('serves = ["hello"]', 'serve = ["hello"]'),
        ("duration_s = 1", "duration_s = 0"),
        ('question = "Q?"\n', ""),
    ],
)
def test_the_schema_rejects_what_the_types_reject(old: str, new: str) -> None:
    assert old in STUDY
    assert complaints(tomllib.loads(STUDY.replace(old, new, 1)))
