"""`weir study check` and `weir load` accept the output of `weir convert`; input that it cannot read is reported."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.asked import plan_asked_for
from weir.cli.commands import app
from weir.compat import convert as converters
from weir.compat.study_export import format_scenario
from weir.model.errors import UsageError
from weir.scenario import Scenario, read_scenario

URL = "http://127.0.0.1:8000"
COMMAND_LINES = [
    f"wrk -t12 -c400 -d30s {URL}",
    f"wrk -t12 -c400 -d30s --latency {URL}/",
    f"wrk -c 100 -d 5 --latency {URL}/users/random",
    f"wrk -c 1k -d1h {URL}",
    f"wrk -t2 -c10 -d2m -H 'Authorization: Bearer abc' -H 'Accept: */*' {URL}/a?b=c&d=e",
    f"wrk -c 10 -T 5s {URL}",
    f"wrk --connections 50 --threads 2 --duration 10s --timeout 1s {URL}",
    f"wrk2 -t2 -c100 -d30s -R1000 --latency {URL}/",
    f"wrk2 -c 100 -d 30 -R 1000 -U {URL}/index.html",
    f"wrk2 -t4 -c400 -d1m -R2k -H 'Host: example.org' {URL}/",
    f"hey {URL}/",
    f"hey -n 1000 -c 10 {URL}/",
    f'hey -z 5m -c 20 -m POST -T application/json -d \'{{"text": "hello"}}\' {URL}/echo',
    f"hey -z 10s -q 5 -c 2 {URL}/",
    f"hey -n 200 -c 50 -H 'X-A: 1' -A text/html -U agent -a user:pass {URL}/",
    f"hey -z 30s -disable-keepalive -t 0 {URL}/",
    f"hey -n 100 -c 10 -cpus 2 -host example.org -disable-compression {URL}/",
    f"ab -n 100 -c 10 {URL}/",
    f"ab -k -t 30 -c 50 {URL}/index.html",
    f"ab -n 1000 -c 10 -C a=b -H 'X-A: 1' -A user:pass {URL}/",
    f"ab -n 10 -i {URL}/",
    f"ab -n 100 -c 5 -s 3 -m DELETE {URL}/item/1",
    f"ab -r -l -k -n 5000 -c 100 -q {URL}/?a=1&b=2",
]

Convert = Callable[..., str]


@pytest.fixture
def convert(capsys: pytest.CaptureFixture[str]) -> Convert:
    """Returns a function that returns the output of `weir convert` for words."""

    def run(*words: str) -> str:
        app(["convert", *words], standalone_mode=False)
        return capsys.readouterr().out

    return run


def without_comments(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_the_study_of_a_command_line_is_one_that_study_check_takes(
    line: str, convert: Convert, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "converted.toml"
    text = convert(*shlex.split(line))
    path.write_text(text)
    app(["study", "check", str(path)], standalone_mode=False)
    assert "4 trials (4 blocks of 1)" in capsys.readouterr().out
    content = tomllib.loads(text)
    assert content["external"]["server"]["url"] == URL
    assert text.startswith(f"# Made by: weir convert {shlex.join(shlex.split(line))}\n# - ")


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_whole_command_line_may_be_one_word(line: str, convert: Convert) -> None:
    assert convert(line) == convert(*shlex.split(line))
    assert convert(line.replace(" -", " \\\n  -")) == convert(line)


@pytest.mark.parametrize(
    ("line", "native"),
    [
        (COMMAND_LINES[2], f"weir load {URL}/users/random -c 100 -d 5s"),
        (COMMAND_LINES[7], f"weir load {URL}/ -c 100 -d 30s -t 2 -R 1000"),
        (COMMAND_LINES[13], f"weir load {URL}/ -c 2 -d 10s --pace 200ms --timeout 20s"),
    ],
)
def test_a_command_line_is_said_as_weir_load(line: str, native: str, convert: Convert) -> None:
    (found,) = without_comments(convert("--command", *shlex.split(line))).splitlines()
    assert set(shlex.split(native)) <= set(shlex.split(found))


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_weir_load_makes_of_the_command_line_what_the_tool_was_asked_for(
    line: str, convert: Convert, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, *arguments = shlex.split(line)
    (native,) = without_comments(convert("--command", tool, *arguments)).splitlines()
    assert plan_asked_for(shlex.split(native)[2:], monkeypatch) == converters.convert(tool, arguments).spec.to_plan()


def test_what_differs_stands_on_top(convert: Convert) -> None:
    said = convert(f"hey -z 10s -q 5 -c 2 {URL}/")
    assert "# - a closed loop: each connection waits for its response" in said
    assert "# - -q is the rate of each worker: one request in 0.2 s, at most 10 requests/s in total" in said
    assert "a closed loop" not in convert(f"wrk2 -c 2 -d 1 -R 10 {URL}")


def test_a_body_from_a_file_is_in_the_study_and_a_file_on_the_command_line(convert: Convert, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text('{"text": "hello"}')
    line = [
        "hey",
        "-z",
        "5m",
        "-c",
        "20",
        "-m",
        "POST",
        "-T",
        "application/json",
        "-D",
        str(tmp_path / "request.json"),
        f"{URL}/echo",
    ]
    study = tomllib.loads(convert(*line))
    assert study["workload"]["asked"]["request"]["body"] == '{"text": "hello"}'
    assert f"-b @{tmp_path / 'request.json'}" in convert("--command", *line)


def test_a_test_plan_is_a_scenario_and_a_study(
    convert: Convert, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Path(__file__).parents[2] / "studies/jmeter/mvc-vs-webflux-ping.jmx"
    words = ["jmx", "-Jthreads=5", str(plan)]
    (tmp_path / "scenario.toml").write_text(convert(*words))
    assert read_scenario(tmp_path / "scenario.toml")
    (tmp_path / "study.toml").write_text(convert("--study", *words))
    # A flag of weir may also follow the tool's words, because no tool has a flag of this name.
    assert without_comments((tmp_path / "study.toml").read_text()) == without_comments(convert(*words, "--study"))
    app(["study", "check", str(tmp_path / "study.toml")], standalone_mode=False)
    assert "4 trials (4 blocks of 1)" in capsys.readouterr().out
    with pytest.raises(UsageError, match="--command: found users with several requests"):
        convert("--command", *words)


def test_it_is_written_to_a_new_file_and_never_over_one(convert: Convert, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    assert convert("-o", str(path), "wrk", "-c10", "-d1s", URL) == ""
    assert tomllib.loads(path.read_text())["load"]["duration_s"] == 1
    with pytest.raises(UsageError, match="weir never overwrites"):
        convert("-o", str(path), "wrk", "-c10", "-d1s", URL)
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        convert("-o", str(tmp_path / "nowhere" / "study.toml"), "wrk", "-c10", "-d1s", URL)


def test_a_line_break_in_an_argument_stays_in_the_comment(convert: Convert) -> None:
    text = convert("hey", "-m", "POST", "-d", "a\n[matrix]", f"{URL}/")
    assert tomllib.loads(text)["workload"]["asked"]["request"]["body"] == "a\n[matrix]"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["siege", "-c", "1"], "found 'siege', expected one of wrk, wrk2, hey, ab, jmx, har"),
        (["wrk -c '1"], 'cannot read the command line "wrk -c \'1": No closing quotation'),
        (["--command", "--study", "wrk", "-c1", URL], "--command: found together with --study"),
        (["hey", "-n", "5", "-c", "10", URL], "-n: found 5, expected at least 10, one for each worker (-c)"),
        (["wrk", "-t1", "-c1", "https://127.0.0.1/"], "URL: found 'https://127.0.0.1/', expected http://HOST"),
    ],
)
def test_what_cannot_be_read_is_told(words: list[str], problem: str, convert: Convert) -> None:
    with pytest.raises(UsageError) as caught:
        convert(*words)
    assert problem in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["shop/a.js"], "weir k6 run shop/a.js"),
        (["k6", "run", "shop/a.js"], "weir k6 run shop/a.js"),
        (["k6 run shop/a.js"], "weir k6 run shop/a.js"),
        (["locust", "-f", "users.py"], "weir locust -f users.py"),
        (["users.py"], "weir locust -f users.py"),
    ],
)
def test_a_script_is_left_to_its_own_tool(words: list[str], command: str, convert: Convert) -> None:
    with pytest.raises(UsageError, match="runs its own scripts") as caught:
        convert(*words)
    assert caught.value.hint == command


def test_the_version_of_a_tool_is_passed_on(convert: Convert) -> None:
    assert convert("ab", "-V").startswith("This is ApacheBench")


def test_a_scenario_is_written_so_that_it_is_read_back(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/guides/scenarios.md").read_text()
    found = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert found is not None
    (tmp_path / "users.csv").write_text("id,name\n1,ada\n")
    (tmp_path / "shop.toml").write_text(found.group(1))
    shop = Scenario.model_validate(tomllib.loads(found.group(1)))
    (tmp_path / "again.toml").write_text(format_scenario(shop))
    assert read_scenario(tmp_path / "again.toml") == read_scenario(tmp_path / "shop.toml")


COLLECTION = {"item": [{"name": "a", "request": {"url": "http://127.0.0.1:8000/?token=s3cr3t-77"}}]}


def test_the_scenario_of_a_collection_runs_and_shows_no_secret(
    convert: Convert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(json.dumps(COLLECTION))
    convert("postman", "c.json", "--var", "password=s3cr3t-88", "-o", "c.toml")
    text = Path("c.toml").read_text()
    made = "# Made by: weir convert postman c.json --var password=...\n# - host: http://127.0.0.1:8000/\n"
    assert text.startswith(made)
    assert "# weir load http://127.0.0.1:8000/ -d 10s --scenario c.toml\n" in text
    assert "s3cr3t" not in text
    monkeypatch.setenv("TOKEN", "x")
    assert read_scenario(Path("c.toml"))["steps"][0]["path"] == "/?token={{env TOKEN}}"


def test_an_unknown_form_is_answered_with_the_possible_ones(convert: Convert) -> None:
    with pytest.raises(UsageError, match=r"found 'insomnia', expected one of wrk, .*, har, openapi, postman"):
        convert("insomnia", "a.json")
    with pytest.raises(UsageError) as error:
        convert("shop.har")
    assert error.value.hint == "weir convert har shop.har"
