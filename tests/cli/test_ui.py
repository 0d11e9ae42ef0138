"""Loads from the form are checked like flags at the prompt, read none of the machine's files, and run one at a time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weir.cli.ui import FormLoads, parse_form
from weir.live import TrialStarted
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, Think
from weir.store import RunReader

URL = "http://127.0.0.1:8000/"
Serve = Callable[..., str]


def plan_of_form(fields: dict[str, str]) -> LoadPlan:
    return parse_form(fields).to_plan()


def test_a_url_alone_is_the_load_that_it_is_at_the_prompt() -> None:
    plan = plan_of_form({"url": f" {URL} ", "rate_rps": "", "body": "  "})
    assert (plan.request.method, plan.request.target, plan.request.body) == ("GET", URL, None)
    assert plan.load == ClosedLoad(64)
    assert (plan.duration_s, plan.timeout_s, plan.requests) == (10.0, 2.0, None)


def test_fields_mean_what_their_flags_mean() -> None:
    plan = plan_of_form(
        {
            "url": URL,
            "users": "200",
            "ramp_s": "20s",
            "think": "1s",
            "duration_s": "1m",
            "timeout_s": "500ms",
            "requests": "1000",
        }
    )
    assert plan.load == ClosedLoad(((0.0, 0.0), (20.0, 200.0)), Think(1.0, 1.0))
    assert (plan.duration_s, plan.timeout_s, plan.requests) == (60.0, 0.5, 1000)
    plan = plan_of_form(
        {
            "url": URL,
            "rate_rps": "0s:10,30s:100",
            "connections": "8",
            "headers": "A: b\n\n C : d",
            "body": "x",
            "method": "put",
        }
    )
    assert plan.load == OpenLoad(((0.0, 10.0), (30.0, 100.0)), 8)
    assert (plan.request.method, plan.request.headers, plan.request.body) == ("PUT", (("A", "b"), ("C", "d")), b"x")
    assert plan.duration_s == 30.0


def test_a_body_without_a_method_is_posted() -> None:
    assert plan_of_form({"url": URL, "body": "{}"}).request.method == "POST"


def test_a_body_is_never_a_file_of_this_machine(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    assert plan_of_form({"url": URL, "body": f"@{secret}"}).request.body == f"@{secret}".encode()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "URL: found ''"),
        ({"url": "unix:/run/docker.sock:/"}, "URL: found 'unix:/run/docker.sock:/', expected http://HOST"),
        ({"url": "file:///etc/passwd"}, "URL: found 'file:///etc/passwd'"),
        ({"url": "127.0.0.1:8000"}, "URL: found '127.0.0.1:8000'"),
        ({"url": URL, "connections": "0"}, "-c/--connections: found '0', expected a whole number above 0"),
        ({"url": URL, "connections": "1e3"}, "-c/--connections: found '1e3'"),
        ({"url": URL, "connections": "9" * 5000}, "-c/--connections: found '999"),
        ({"url": URL, "requests": "-1"}, "-n/--requests: found '-1'"),
        ({"url": URL, "duration_s": "soon"}, "-d/--duration: found 'soon', expected a duration"),
        ({"url": URL, "rate_rps": "fast"}, "-R/--rate: found 'fast', expected a number above 0"),
        ({"url": URL, "rate_rps": "5", "users": "5"}, "--users: found together with -R/--rate"),
        ({"url": URL, "ramp_s": "5s"}, "--ramp: found without --users"),
        ({"url": URL, "method": "BREW"}, "-m/--method: found 'BREW'"),
        ({"url": URL, "headers": "no colon"}, "-H/--header: found 'no colon'"),
        ({"url": URL, "out": "/etc/x"}, "form: found a field 'out'"),
        ({"url": URL, "connect_to": "10.0.0.1:80"}, "form: found a field 'connect_to'"),
    ],
)
def test_what_is_wrong_is_said_as_at_the_prompt(fields: dict[str, str], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_of_form(fields)
    assert caught.value.message.startswith(problem)


def test_the_same_load_can_be_made_at_the_prompt() -> None:
    fields = {"url": URL, "rate_rps": "50", "duration_s": "5s", "headers": "A: b\nC: d", "body": "x"}
    assert parse_form(fields).to_arguments() == [URL, "-R", "50", "-d", "5s", "-H", "A: b", "-H", "C: d", "-b", "x"]


@pytest.fixture
def loads(tmp_path: Path) -> FormLoads:
    return FormLoads(tmp_path / "runs")


def wait_for(loads: FormLoads, phase: str) -> None:
    """Waits until a field of the board has a value; without one the test's timeout ends the wait."""
    while loads.board.snapshot()["phase"] != phase:
        pass


def test_a_load_is_kept_in_the_folder_of_runs_and_told_to_the_board(
    loads: FormLoads, tmp_path: Path, serve: Serve
) -> None:
    loads.start(
        {"url": f"http://{serve('null')}/", "requests": "500", "connections": "2", "headers": "Authorization: hunter2"}
    )
    wait_for(loads, "between")
    loads.close()
    told = loads.board.snapshot()
    assert told["now"]["answered"] == 500
    (row,) = told["trials"]
    assert (row["run"], row["failed"]) == ("load-1", 0)
    with RunReader(tmp_path / "runs" / "load-1") as reader:
        assert reader.ended == "complete"
        assert "-c 2 -n 500" in reader.info.command
        assert "hunter2" not in reader.info.command
        assert "hunter2" not in reader.info.study_text


def test_only_one_load_goes_on_at_a_time_and_it_can_be_stopped(loads: FormLoads, tmp_path: Path, serve: Serve) -> None:
    form = {"url": f"http://{serve('delay', '--wait', '5ms')}/", "duration_s": "1h", "connections": "2"}
    assert not loads.stop()
    loads.start(form)
    wait_for(loads, "load")
    with pytest.raises(UsageError, match="found a running load"):
        loads.start(form)
    assert not (tmp_path / "runs" / "load-2").exists()
    assert loads.stop()
    wait_for(loads, "between")
    with RunReader(tmp_path / "runs" / "load-1") as reader:
        assert reader.ended == "interrupted"
        assert len(reader.trials()) == 1
    loads.start(form)
    wait_for(loads, "load")
    loads.close()
    with RunReader(tmp_path / "runs" / "load-2") as reader:
        assert reader.ended == "interrupted"
    with pytest.raises(UsageError, match="found a running load"):
        loads.start(form)


def test_a_target_that_cannot_be_reached_is_told_and_leaves_nothing(
    loads: FormLoads, tmp_path: Path, free_port: Callable[[], int]
) -> None:
    loads.start({"url": f"http://127.0.0.1:{free_port()}/"})
    wait_for(loads, "between")
    (row,) = loads.board.snapshot()["trials"]
    assert (row["validity"], row["run"]) == ("invalid", None)
    assert row["reasons"]
    loads.close()
    assert list((tmp_path / "runs").iterdir()) == []


def test_the_board_knows_of_a_load_before_its_start_is_answered(loads: FormLoads, free_port: Callable[[], int]) -> None:
    """The page's next request after a start must not compute anything beside the load."""
    loads.start({"url": f"http://127.0.0.1:{free_port()}/"})
    facts = [fact for _, fact, _ in loads.board._facts]
    assert isinstance(facts[0], TrialStarted)
    loads.close()
