"""Tests the packages that `uv build` makes, and their work outside the checkout.

The wheels of the engine and the recorder are built in place, so they reuse the compiled code of `make setup`. The tests
build the sdists too. Wheels from sdists need a second compilation, so this is a soak test.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from weir.model.errors import ExitCode

# Without `make setup`, the wheels' builds compile the engine and the recorder.
pytestmark = pytest.mark.timeout(600)
PACKAGES = ("weirbench", "weirbench-engine", "weirbench-locust")
DATA_FOLDERS = ("stacks", "services", "datasets", "workloads", "studies")


def run(command: Sequence[str | Path], cwd: Path, codes: Sequence[int] = (0,)) -> str:
    """Returns the standard output of a program that ends with one of `codes`; its standard error if 0 is not among
    them. The program does not see this test's environment."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "WEIR_", "VIRTUAL_ENV"))
    }
    result = subprocess.run(
        command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert result.returncode in codes, f"{command} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}"
    return result.stdout if 0 in codes else result.stderr


@pytest.fixture(scope="module")
def uv(repository: Path) -> Path:
    return repository / ".venv" / "bin" / "uv"


def build(uv: Path, repository: Path, package: str, kind: str, out: Path) -> Path:
    python = repository / ".venv" / "bin" / "python"
    run(
        [
            uv,
            "build",
            "--quiet",
            "--no-build-isolation",
            "--python",
            python,
            "--package",
            package,
            kind,
            "--out-dir",
            out,
        ],
        cwd=repository,
    )
    (built,) = out.glob(f"{package.replace('-', '_')}-[0-9]*{'.whl' if kind == '--wheel' else '.tar.gz'}")
    return built


@pytest.fixture(scope="module")
def wheels(uv: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    out = tmp_path_factory.mktemp("wheels")
    return tuple(build(uv, repository, package, "--wheel", out) for package in PACKAGES)


@pytest.fixture(scope="module")
def installed(uv: Path, repository: Path, wheels: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a virtual environment with only the three wheels and their dependencies; returns its folder of programs."""
    away = tmp_path_factory.mktemp("away")
    run([uv, "venv", "--quiet", "--python", repository / ".venv" / "bin" / "python", "venv"], cwd=away)
    run(
        [
            uv,
            "pip",
            "install",
            "--quiet",
            "--python",
            "venv",
            "--constraint",
            repository / "requirements" / "dev.txt",
            *wheels,
        ],
        cwd=away,
    )
    return away / "venv" / "bin"


def names_in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def names_in_sdist(sdist: Path) -> set[str]:
    """Returns the names below the top folder of the sdist."""
    with tarfile.open(sdist) as archive:
        return {name.split("/", 1)[-1] for name in archive.getnames()}


def data_files(repository: Path) -> set[str]:
    """Returns the tracked files of the data folders."""
    return set(run(["git", "ls-files", *DATA_FOLDERS], cwd=repository).split())


def test_the_wheel_carries_every_stack_workload_and_study(wheels: tuple[Path, ...], repository: Path) -> None:
    names = names_in_wheel(wheels[0])
    files = data_files(repository)
    assert {path.split("/")[0] for path in files} == set(DATA_FOLDERS)
    assert {f"weir/_data/{path}" for path in files} <= names


def test_the_wheel_carries_the_web_bundle(wheels: tuple[Path, ...]) -> None:
    names = names_in_wheel(wheels[0])
    assert any(name.startswith("weir/_web/") and name.endswith(".js") for name in names)


def test_each_wheel_carries_the_whole_license(wheels: tuple[Path, ...], repository: Path) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith("licenses/LICENSE"))
            assert archive.read(name) == (repository / "LICENSE").read_bytes()


def test_a_build_of_the_web_bundle_replaces_its_files_at_once(repository: Path) -> None:
    script = repository / "src" / "weir" / "_web" / "report.js"
    with script.open("rb") as before:
        run([repository / ".venv" / "bin" / "python", "hatch_build.py", "build"], cwd=repository)
        assert before.read() == script.read_bytes()
        assert os.fstat(before.fileno()).st_ino != script.stat().st_ino


def test_the_wheels_have_the_same_version(wheels: tuple[Path, ...]) -> None:
    ours, engine, recorder = (wheel.name.split("-")[1] for wheel in wheels)
    assert ours == engine == recorder
    with zipfile.ZipFile(wheels[0]) as archive:
        metadata = archive.read(f"weirbench-{ours}.dist-info/METADATA").decode()
    for package in PACKAGES[1:]:
        assert f"Requires-Dist: {package}=={ours}" in metadata


def test_one_wheel_of_the_recorder_serves_each_python_from_3_10_on(wheels: tuple[Path, ...]) -> None:
    assert "-cp310-abi3-" in wheels[2].name


def test_an_installed_weir_shows_its_help_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    assert "weir" in run([installed / "weir", "--help"], cwd=tmp_path)


def test_an_installed_weir_finds_its_stacks_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    listed = json.loads(run([installed / "weir", "stacks", "list", "--json"], cwd=tmp_path))
    assert {"flask-gunicorn", "sanic"} <= {
        stack["id"] for stack in (listed["stacks"] if isinstance(listed, dict) else listed)
    }


def test_an_installed_engine_says_its_version(installed: Path, wheels: tuple[Path, ...], tmp_path: Path) -> None:
    assert run([installed / "weir-engine", "--version"], cwd=tmp_path).split() == [
        "weir-engine",
        wheels[1].name.split("-")[1],
    ]


@pytest.mark.thorough
def test_without_the_extras_loads_runs_and_reports_work_and_a_cluster_and_locust_name_them(
    installed: Path, serve: Callable[..., str], tmp_path: Path
) -> None:
    assert not list((installed.parent / "lib").glob("python*/site-packages/ray"))
    url = f"http://{serve('null')}/"
    found = json.loads(
        run(
            [installed / "weir", "load", url, "-n", "100", "-c", "2", "--out", "load.weir", "--json", "-"], cwd=tmp_path
        )
    )
    assert found["requests"]["ok"] == 100
    assert "req/s" in run([installed / "weir", "report", "load.weir"], cwd=tmp_path)
    (tmp_path / "study.toml").write_text(
        """
schema = 1
title = "One stack"
question = "Does it answer?"
[matrix]
stacks = ["socket-thread"]
workloads = ["hello"]
connections = [1]
[load]
duration_s = 1
[method]
blocks = 2
warmup_s = 0.2
baseline = "socket-thread"
"""
    )
    # Two blocks of a second are too few for a claim, so the run may be not valid.
    run(
        [installed / "weir", "run", "study.toml", "--out", "run"],
        cwd=tmp_path,
        codes=(ExitCode.DONE, ExitCode.NOT_VALID),
    )
    assert (tmp_path / "run" / "report.html").is_file()
    for words in (
        ["load", url, "--cluster", "127.0.0.1:1"],
        ["run", "study.toml", "--cluster", "127.0.0.1:1"],
        ["cluster", "check"],
    ):
        said = run([installed / "weir", *words], cwd=tmp_path, codes=(ExitCode.USAGE,))
        assert "Ray is not installed here" in said
        assert "weirbench[cluster]" in said
    said = run([installed / "weir", "locust", "--version"], cwd=tmp_path, codes=(ExitCode.USAGE,))
    assert re.search(r"found no Locust, expected locust>=.*\s+try: pip install 'weirbench\[locust\]'", said)
    assert run([installed / "weir", "locust", "--python", sys.executable, "--version"], cwd=tmp_path).startswith(
        "locust 2."
    )


def test_the_sdist_carries_the_bundle_built_and_its_sources(uv: Path, repository: Path, tmp_path: Path) -> None:
    names = names_in_sdist(build(uv, repository, "weirbench", "--sdist", tmp_path))
    assert any(name.startswith("src/weir/_web/") and name.endswith(".js") for name in names)
    assert {"web/package.json", "hatch_build.py"} <= names
    assert data_files(repository) <= names
    assert not any("node_modules" in name for name in names)


def test_the_recorders_sdist_carries_its_source(uv: Path, repository: Path, tmp_path: Path) -> None:
    names = names_in_sdist(build(uv, repository, "weirbench-locust", "--sdist", tmp_path))
    assert {"Cargo.lock", "LICENSE", "locust-recorder/src/lib.rs"} <= names


def test_the_engines_sdist_carries_the_whole_workspace(uv: Path, repository: Path, tmp_path: Path) -> None:
    names = names_in_sdist(build(uv, repository, "weirbench-engine", "--sdist", tmp_path))
    crates = {f"engine/crates/{folder.name}/Cargo.toml" for folder in (repository / "engine" / "crates").iterdir()}
    assert {"Cargo.toml", "Cargo.lock", "LICENSE", *crates} <= names


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_make_wheels_builds_wheels_from_the_sdists(uv: Path, repository: Path, tmp_path: Path) -> None:
    run([uv, "build", "--quiet", "--all-packages", "--out-dir", tmp_path], cwd=repository)
    kinds = sorted(
        (path.name.split("-")[0], path.suffix) for path in tmp_path.iterdir() if path.suffix in {".whl", ".gz"}
    )
    assert kinds == [(package.replace("-", "_"), kind) for package in PACKAGES for kind in (".gz", ".whl")]
