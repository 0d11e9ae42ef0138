"""Locust's command line is read as Locust reads it, and what weir does not have is named."""

from pathlib import Path

import pytest

from weir.compat.locust.options import locustfiles, parser, read, timespan_s
from weir.model.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, in which the test goes on, and a home without configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_short_and_long_flags_mean_the_same() -> None:
    short = read(
        ["-f", "a.py", "-H", "http://h", "-u", "5", "-r", "2.5", "-t", "1m30s", "-T", "x", "y", "-E", "z", "-L", "DEBUG", "-s", "3"],
        environment={},
    )
    long = read(
        [
            "--locustfile", "a.py", "--host", "http://h", "--users", "5", "--spawn-rate", "2.5", "--run-time", "90", "--tags", "x", "y",
            "--exclude-tags", "z", "--loglevel=DEBUG", "--stop-timeout", "3s",
        ],
        environment={},
    )  # fmt: skip
    assert short == long
    assert (short.num_users, short.spawn_rate, short.run_time, short.tags, short.stop_timeout) == (5, 2.5, 90, ["x", "y"], 3)


def test_user_classes_stand_anywhere() -> None:
    assert read(["One", "-u", "5", "Other", "--headless"], environment={}).user_classes == ["One", "Other"]


@pytest.mark.parametrize(("text", "seconds"), [("10", 10), ("300s", 300), ("20m", 1200), ("3h", 10800), ("1h30m", 5400), ("1m30s", 90)])
def test_times_are_locusts(text: str, seconds: float) -> None:
    assert timespan_s(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "10x", "s", "1s2m", "-1"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a time such as"):
        timespan_s(text)


def test_the_command_line_goes_before_variables_and_they_before_files(folder: Path) -> None:
    (folder / "locust.conf").write_text("# ours\nusers = 1\nspawn-rate: 2\nheadless = true\ntags = a b\nhost = http://file\n")
    (folder / "other.conf").write_text("spawn-rate 7\n")
    variables = {"LOCUST_USERS": "3", "LOCUST_HOST": "http://variable"}
    found = read(["-H", "http://line", "--config", "other.conf"], environment=variables)
    assert (found.num_users, found.spawn_rate, found.headless, found.tags, found.host) == (3, 7, True, ["a", "b"], "http://line")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--master"], "--processes N"),
        (["--worker", "--master-host=x"], "--processes N"),
        (["-c", "5"], "-u/--users"),
        (["--no-web"], "--headless"),
        (["--hatch-rate", "5"], "-r/--spawn-rate"),
        (["--json"], "weir report FILE.weir --json"),
        (["-u", "many"], "-u/--users"),
        (["-u", "0"], "-u/--users: found 0"),
        (["-t", "soon"], "-t/--run-time: found 'soon'"),
        (["--csv-full-history"], "--csv"),
    ],
)
def test_what_is_wrong_or_not_weirs_is_named(arguments: list[str], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(arguments, environment={})
    assert says in refused.value.message


def test_a_wrong_variable_and_a_wrong_key_say_where_they_stand(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"LOCUST_USERS: found 'x', expected a number"):
        read([], environment={"LOCUST_USERS": "x"})
    (folder / "locust.conf").write_text("user = 1\n")
    with pytest.raises(UsageError, match=r"locust\.conf: found the key 'user'"):
        read([], environment={})


def test_flags_that_the_file_adds_are_known_to_those_who_know_the_file() -> None:
    assert read(["--mine", "5"], environment={}).num_users is None
    with pytest.raises(UsageError, match="found --mine"):
        read(["--mine", "5"], environment={}, knows_all=True)
    of_all = parser()
    of_all.add_argument("--mine", type=int, env_var="MINE", include_in_web_ui=False)
    assert read([], of_all, {"MINE": "6"}, knows_all=True).mine == 6


def test_a_locustfile_is_found_without_its_suffix_and_in_folders_above(folder: Path) -> None:
    (folder / "locustfile.py").touch()
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    assert locustfiles("locustfile", below) == [folder / "locustfile.py"]
    (folder / "a" / "one.py").touch()
    (folder / "a" / "_not.py").touch()
    assert locustfiles("a", folder) == [folder / "a" / "one.py"]
    assert locustfiles("a/one.py, locustfile", folder) == [folder / "a" / "one.py", folder / "locustfile.py"]


def test_a_locustfile_that_is_missing_or_would_import_itself_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.py: found no such file"):
        locustfiles("none", folder)
    (folder / "locust.py").touch()
    with pytest.raises(UsageError, match="import itself"):
        locustfiles("locust.py", folder)
