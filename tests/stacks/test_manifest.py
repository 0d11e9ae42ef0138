from pathlib import Path

import pytest

from weir.model.errors import UsageError
from weir.stacks.manifest import list_manifest_files, read_manifest, read_stack

MANIFEST = """
schema = 1
id = "thing"
title = "Thing"
model = "one process"
[run]
command = ["serve", "--port={port}"]
env = { CPUS = "{cpus}" }
[limits]
workers = { default = "cpus", arg = "--workers={value}" }
pool = { default = 100, env = "POOL" }
[serves]
hello = {}
[variants.fast]
args = ["--fast"]
env = { MODE = "fast" }
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "thing" / "stack.toml"
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_every_manifest_that_travels_with_weir_is_valid() -> None:
    assert {read_manifest(path).manifest.id for path in list_manifest_files()} >= {"flask-gunicorn", "sanic"}


def test_limits_follow_the_number_of_cpus_and_reach_the_command_and_the_environment(tmp_path: Path) -> None:
    stack = read_manifest(write(tmp_path, MANIFEST))
    settings = stack.settings(stack_cpus=3)
    fields = {"port": "8080", "cpus": "3"}
    assert settings == {"workers": "3", "pool": "100"}
    assert stack.command(settings, fields) == ["serve", "--port=8080", "--workers=3"]
    assert stack.environment(settings, fields) == {"CPUS": "3", "POOL": "100"}


def test_a_variant_adds_its_arguments_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, MANIFEST)
    monkeypatch.setenv("WEIR_STACKS", str(tmp_path))
    stack = read_stack("thing[fast]")
    assert stack.label == "thing[fast]"
    assert stack.command({}, {"port": "1"}) == ["serve", "--port=1", "--fast"]
    assert stack.environment({}, {"cpus": "1"}) == {"CPUS": "1", "MODE": "fast"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('title = "Thing"', 'titel = "Thing"', "titel: unknown key; did you mean 'title'?"),
        ('title = "Thing"', "", "title: missing; expected a value"),
        ('title = "Thing"', "title = 3", "title: found 3; should be a valid string"),
        ("schema = 1", "schema = 7", "schema: found 7, expected 1"),
        ('["serve", "--port={port}"]', '["serve"]', "expected '{port}'"),
        ("--port={port}", "--port={port} {database}", "unknown field '{database}'"),
        ("--workers={value}", "--workers", "expected '{value}'"),
        ('id = "thing"', 'id = "other"', "id: found 'other', expected 'thing'"),
        ("hello = {}", "hello = { pfad = '/' }", "serves.hello.pfad: unknown key"),
        ("schema = 1", "schema = ", "not valid TOML"),
        (
            "[variants.fast]",
            "[services.postgres]\n[variants.fast]\nservices.postgres = {}",
            "found 'postgres', expected other services",
        ),
        ('MODE = "fast"', 'MODE = "{postgres.url}"', "unknown field '{postgres.url}'"),
        (
            'args = ["--fast"]',
            "services.postgress = {}",
            "variants.fast.services: found 'postgress', expected one of: delay",
        ),
        (
            'args = ["--fast"]',
            "services.postgres-standby = {}",
            "found 'postgres-standby' without 'postgres', expected both",
        ),
        (
            'args = ["--fast"]',
            "services.delay.settings.dely = '1s'",
            "variants.fast.services.delay.settings: dely: unknown setting",
        ),
        (
            'args = ["--fast"]',
            "services.nginx.dataset = 'users'",
            "services.nginx.dataset: found 'users', expected none",
        ),
        ('args = ["--fast"]', "answers_wrong = 1", "variants.fast.answers_wrong: found 1"),
    ],
)
def test_a_manifest_with_a_mistake_is_refused_by_file_and_key(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = write(tmp_path, MANIFEST.replace(old, new, 1))
    with pytest.raises(UsageError) as error:
        read_manifest(path)
    assert str(path) in error.value.message
    assert problem in error.value.message


def test_a_variant_needs_services_of_its_own_beside_those_of_its_stack(tmp_path: Path) -> None:
    services = "[services.postgres]\n[variants.fast.services.postgres-standby]\n"
    stack = read_manifest(write(tmp_path, MANIFEST.replace('"fast" }', '"{postgres-standby.url}" }') + services))
    (variant,) = stack.variants()
    assert list(stack.services) == ["postgres"]
    assert list(variant.services) == ["postgres", "postgres-standby"]
    assert variant.environment({}, {"cpus": "1", "postgres-standby.url": "there"})["MODE"] == "there"


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        ("nope", "expected one of"),
        ("sanic[nope]", "found variant 'nope' of sanic"),
        ("sanic[", "expected ID or ID[VARIANT]"),
    ],
)
def test_a_stack_that_does_not_exist_is_named_with_those_that_do(label: str, problem: str) -> None:
    with pytest.raises(UsageError, match=r"stack: found") as error:
        read_stack(label)
    assert problem in error.value.message
    assert error.value.hint == "weir stacks list"
