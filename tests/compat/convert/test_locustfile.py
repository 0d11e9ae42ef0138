"""Tests how locustfiles in their usual forms become scenarios."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weir.compat.convert.conversion import Conversion
from weir.compat.convert.locustfile import convert
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, Load, Think

Converted = Callable[..., Conversion]
HEAD = "import random\nfrom locust import HttpUser, FastHttpUser, task, between, constant, constant_pacing, constant_throughput\n"
HOST = ("--host", "http://h:1")


@pytest.fixture
def converted(tmp_path: Path) -> Converted:
    """Returns a function that reads the lines after the usual imports of a locustfile, with arguments of `locust`."""

    def convert_file(body: str, *arguments: str) -> Conversion:
        path = tmp_path / "locustfile.py"
        path.write_text(HEAD + body)
        return convert("locust", ["-f", str(path), *arguments])

    return convert_file


def user(*calls: str, wait: str = "", decorator: str = "@task") -> str:
    """Returns a user class with one task for each call, or for each list of lines."""
    tasks = "".join(
        f"    {decorator}\n    def t{index}(self):\n" + "".join(f"        {line}\n" for line in call.splitlines())
        for index, call in enumerate(calls)
    )
    waiting = f"    wait_time = {wait}\n" if wait else ""
    return f"class Mine(HttpUser):\n{waiting}{tasks}"


def requests(found: Conversion) -> list[dict[str, Any]]:
    assert found.scenario is not None
    return [
        step.model_dump(by_alias=True, exclude_defaults=True)
        for step in found.scenario.steps or found.scenario.requests
    ]


@pytest.mark.parametrize(
    ("call", "request_"),
    [
        ('self.client.get("/a?b=c")', {"path": "/a?b=c"}),
        ('self.client.get("/a", params={"b": "c d"}, name="an a")', {"path": "/a?b=c+d", "name": "an a"}),
        ('self.client.get(f"/a/{random.randint(1, 9)}")', {"path": "/a/{{int 1 9}}"}),
        ('self.client.get("/a/%i" % random.randint(1, 9))', {"path": "/a/{{int 1 9}}"}),
        ('self.client.get("/a/" + str(7))', {"path": "/a/7"}),
        ('self.client.get(PATH, headers={"A": "b"})', {"path": "/p", "headers": {"A": "b"}}),
        ('self.client.delete("/a")', {"method": "DELETE", "path": "/a"}),
        ('self.client.put("/a", "text")', {"method": "PUT", "path": "/a", "body": "text"}),
        ('self.client.post("/a", data="text")', {"method": "POST", "path": "/a", "body": "text"}),
        (
            'self.client.post("/a", json={"b": [1, None, True]})',
            {
                "method": "POST",
                "path": "/a",
                "body": '{"b": [1, null, true]}',
                "headers": {"Content-Type": "application/json"},
            },
        ),
        (
            'self.client.post("/a", {"b": "c d", "e": 1})',
            {
                "method": "POST",
                "path": "/a",
                "body": "b=c+d&e=1",
                "headers": {"Content-Type": "application/x-www-form-urlencoded"},
            },
        ),
    ],
)
def test_every_kind_of_request_is_said(call: str, request_: dict[str, Any], converted: Converted) -> None:
    found = converted('PATH = "/p"\n' + user(call), *HOST)
    assert requests(found) == [request_]
    assert found.spec.to_plan().request.target == "http://h:1"
    assert list(found.gaps) == []


@pytest.mark.parametrize(
    ("wait", "arguments", "load"),
    [
        ("", (), ClosedLoad(1.0)),
        ("between(1, 5)", ("-u", "50", "-r", "50"), ClosedLoad(50.0, Think(1, 5))),
        ("constant(2)", ("-u", "100", "-r", "10"), ClosedLoad(((0.0, 0.0), (10.0, 100.0)), Think(2, 2))),
        ("constant(0)", (), ClosedLoad(1.0)),
        ("constant_pacing(2)", (), ClosedLoad(1.0, pace_s=2)),
        ("constant_throughput(4)", (), ClosedLoad(1.0, pace_s=0.25)),
    ],
)
def test_users_come_and_wait_as_they_are_told(
    wait: str, arguments: tuple[str, ...], load: Load, converted: Converted
) -> None:
    found = converted(user('self.client.get("/")', wait=wait), *HOST, *arguments)
    assert found.spec.to_plan().load == load
    assert list(found.gaps) == []


def test_tasks_are_chosen_by_their_weights(converted: Converted) -> None:
    body = (
        user('self.client.get("/a")', decorator="@task(3)")
        + '    @task\n    def b(self):\n        """Says b."""\n        self.client.get("/b")\n'
    )
    found = converted(body, *HOST)
    assert [(step["path"], step["weight"]) for step in requests(found)] == [("/a", 3), ("/b", 1)]


def test_the_requests_of_the_one_task_are_steps(converted: Converted) -> None:
    body = user('self.client.get("/a")\nfor i in range(2):\n    self.client.get(f"/b/{i}")', wait="between(1, 2)")
    found = converted(body, "-H", "http://h:1/base/", "-t", "1m30s")
    assert [step["path"] for step in requests(found)] == ["/base/a", "/base/b/0", "/base/b/1"]
    assert requests(found)[-1]["think"] == {"uniform_s": [1.0, 2.0]}
    assert found.spec.to_plan().load == ClosedLoad(1.0)
    assert found.spec.to_plan().duration_s == 90.0


@pytest.mark.parametrize(
    ("body", "line", "what"),
    [
        (user('self.client.get("/")', 'r = self.client.get("/x")'), 9, "weir does not convert the use of a response"),
        (
            user('self.client.get("/")', 'if random.random() < 0.5:\n    self.client.get("/x")'),
            9,
            "only weir locust can run this statement",
        ),
        (user('self.client.get("/")', 'self.client.get("/x", catch_response=True)'), 9, "found catch_response="),
        (user('self.client.get("/")', 'self.client.get("http://elsewhere/")'), 9, "expected a path that begins with /"),
        (user('self.client.get("/")', "self.client.get(self.path)"), 9, "expected a constant value"),
        (
            user('self.client.get("/")', 'self.client.get("/a")\nself.client.get("/b")'),
            8,
            "found 2 requests in the task t1",
        ),
        (user('self.client.get("/")', wait="lambda self: 1"), 4, "found wait_time = lambda self: 1"),
        (
            user('self.client.get("/")') + "    def on_start(self):\n        self.client.get('/in')\n",
            7,
            "found on_start()",
        ),
        (
            user('self.client.get("/")') + "    class Below(TaskSet):\n        pass\n",
            7,
            "found the class Below in a user class",
        ),
        (
            user('self.client.get("/")') + "class Second(FastHttpUser):\n    pass\n",
            7,
            "found a second user class Second",
        ),
        (
            user('self.client.get("/")', "for i in range(10**9):\n    self.client.get('/')"),
            9,
            "expected a constant value",
        ),
        (user('self.client.get("/")', "for i in range(1000000):\n    self.client.get('/')"), 9, "expected at most 100"),
    ],
)
def test_what_cannot_be_said_is_told_with_its_line(body: str, line: int, what: str, converted: Converted) -> None:
    found = converted(body, *HOST)
    assert [gap.where.rpartition(":")[2] for gap in found.gaps] == [str(line)]
    assert what in found.gaps[0].what
    assert requests(found)[0]["path"] == "/"


def test_the_user_class_is_named_as_locust_has_it_named(converted: Converted) -> None:
    body = (
        user('self.client.get("/")')
        + "class Second(FastHttpUser):\n    @task\n    def a(self):\n        self.client.get('/second')\n"
    )
    found = converted(body, *HOST, "Second")
    assert requests(found) == [{"path": "/second"}]
    with pytest.raises(UsageError, match="found 'Third', expected one of the user classes: Mine, Second"):
        converted(body, *HOST, "Third")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("class Mine(HttpUser:\n", "locustfile.py:3: .*expected Python"),
        ("x = 1\n", "found no subclass of HttpUser or FastHttpUser"),
        (user("pass"), "found no request that weir can convert"),
        (
            "class Old(HttpLocust):\n    task_set = None\n",
            "locustfile.py:3: found HttpLocust, a class of Locust before version 1.0; expected HttpUser",
        ),
        ("x = " + "(" * 5000 + ")" * 5000, "expected Python|nested too deep"),
        ("x = " + "-" * 100_000 + "1", "expected Python|nested too deep"),
    ],
)
def test_what_is_no_locustfile_is_refused(body: str, problem: str, converted: Converted) -> None:
    with pytest.raises(UsageError, match=problem):
        converted(body, *HOST)


def test_a_host_is_asked_for(converted: Converted) -> None:
    with pytest.raises(UsageError, match="found no host, expected --host"):
        converted(user('self.client.get("/")'))
    assert converted(
        user('self.client.get("/")').replace("HttpUser):\n", "HttpUser):\n    host = 'http://x:2'\n")
    ).spec.urls == ("http://x:2",)
