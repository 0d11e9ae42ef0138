"""Tests the live page's server over real sockets: access, the headers of each response, and the buttons."""

import json
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.live.conftest import KEYS, Served
from tests.support.records import interval, started
from weir.live import Address, Controls, EventQueue, LiveServer, PageInfo, TrialStarted
from weir.live.security import HEADERS
from weir.model.errors import UsageError, WeirError

HOSTILE = '</script><script>window.owned = 1</script><img src=x onerror="window.owned = 1">\'"&{{ 7 * 7 }}<!--'
READING = (
    "/",
    "/live.js",
    "/live.css",
    "/news",
    "/log",
    "/runs",
    "/found",
    "/report",
    "/stop",
    "/skip",
    "/extend",
    "/start",
    "/nothing",
)


def begin(board: EventQueue, number: int = 1) -> None:
    board.begin_trial(TrialStarted(number=number, name="sanic", point="hello, 4 connections"))


def test_the_printed_address_opens_the_page_and_sets_a_cookie_that_no_script_and_no_other_site_can_use(
    served: Served,
) -> None:
    visitor = served()
    assert visitor.server.url == f"http://{visitor.host}/?token={KEYS.token}"
    answer = visitor.get(f"/?token={KEYS.token}", Cookie=None)
    assert answer.status == 200
    cookie = answer.headers["set-cookie"]
    assert cookie == f"weir-{visitor.server.address.port}={KEYS.token}; HttpOnly; SameSite=Strict; Path=/"
    assert visitor.get("/", Cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize("path", READING)
def test_without_the_token_nothing_is_shown(served: Served, path: str) -> None:
    answer = served().get(path, Cookie=None)
    assert answer.status == 403
    assert "set-cookie" not in answer.headers
    assert KEYS.token not in answer.text
    assert KEYS.form not in answer.text


@pytest.mark.parametrize("path", READING)
def test_a_name_that_leads_here_by_somebody_elses_dns_is_refused(served: Served, path: str) -> None:
    visitor = served()
    assert visitor.get(f"{path}?token={KEYS.token}", Host=f"evil.example:{visitor.server.address.port}").status == 421


@pytest.mark.parametrize("path", ["/", "/stop", "/nothing", "/report?run=x"])
def test_every_answer_carries_the_headers_that_keep_browsers_careful(served: Served, path: str) -> None:
    for answer in (served().get(path), served().get(path, Cookie=None), served().post(path)):
        for name, value in HEADERS.items():
            assert answer.headers[name.lower()] == value, (path, name)


def test_the_page_allows_no_inline_script_and_has_none(served: Served) -> None:
    answer = served().get("/")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "<script>" not in answer.text
    assert not re.search(r"\son\w+\s*=", answer.text)
    assert "style=" not in answer.text


class Pressed:
    """Buttons that note their presses."""

    def __init__(self, answer: bool = True) -> None:
        self.pressed: list[object] = []
        self._answer = answer

    def controls(self) -> Controls:
        return Controls(
            stop=lambda: self._press("stop"),
            skip=lambda: self._press("skip"),
            extend=lambda: self._press("extend"),
            start=self._start,
        )

    def _press(self, name: str) -> bool:
        self.pressed.append(name)
        return self._answer

    def _start(self, fields: Mapping[str, str]) -> None:
        if fields.get("url") == "wrong":
            raise UsageError("URL: found 'wrong', expected http://", hint="weir load --help")
        self.pressed.append(dict(fields))


@pytest.mark.parametrize(
    "path", ["/stop", "/skip", "/extend", "/start", "/stop?trial=1", "/start?url=http://127.0.0.1/"]
)
def test_a_get_changes_nothing(served: Served, path: str) -> None:
    buttons = Pressed()
    assert served(controls=buttons.controls()).get(path).status == 405
    assert buttons.pressed == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"Origin": None}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Cookie": None}, {"X-Weir-Form": None},
        {"X-Weir-Form": "x"}, {"Host": "evil.example"}, {"Content-Type": "text/plain"}, {"Content-Type": None},
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/stop", "/skip", "/extend", "/start"])
def test_a_post_that_is_not_the_pages_own_changes_nothing(
    served: Served, path: str, wrong: dict[str, str | None]
) -> None:
    buttons = Pressed()
    visitor = served(controls=buttons.controls())
    begin(visitor.board)
    assert visitor.post(path, {"trial": 1, "url": "http://127.0.0.1/"}, **wrong).status in (403, 415, 421)
    assert buttons.pressed == []


def test_the_buttons_do_what_they_were_given(served: Served) -> None:
    buttons = Pressed()
    visitor = served(controls=buttons.controls())
    begin(visitor.board, 3)
    assert visitor.post("/stop").status == 200
    assert visitor.post("/skip", {"trial": 3}).status == 200
    assert visitor.post("/extend").status == 200
    assert visitor.post("/start", {"url": "http://127.0.0.1:1/", "rate": "5"}).status == 200
    assert buttons.pressed == ["stop", "skip", "extend", {"url": "http://127.0.0.1:1/", "rate": "5"}]


def test_the_skip_button_of_a_trial_that_has_ended_does_not_skip_the_next(served: Served) -> None:
    buttons = Pressed()
    visitor = served(controls=buttons.controls())
    begin(visitor.board, 4)
    for asked in ({"trial": 3}, {}, {"trial": "4"}):
        assert visitor.post("/skip", asked).status == 409
    assert buttons.pressed == []


def test_a_button_that_has_nothing_to_end_says_so(served: Served) -> None:
    visitor = served(controls=Pressed(answer=False).controls())
    for path, message in (("/stop", "nothing is running"), ("/extend", "the last block has ended")):
        answer = visitor.post(path)
        assert (answer.status, answer.json()) == (409, {"message": message})


def test_a_page_without_buttons_has_nothing_behind_their_addresses(served: Served) -> None:
    visitor = served()
    begin(visitor.board)
    assert [visitor.post(path, {"trial": 1}).status for path in ("/stop", "/skip", "/extend", "/start")] == [404] * 4
    page = visitor.get("/").text
    assert 'id="stop"' not in page
    assert 'id="skip"' not in page
    assert 'id="extend"' not in page
    assert "<form" not in page


def test_what_is_wrong_with_a_form_is_said_with_what_to_try(served: Served) -> None:
    answer = served(controls=Pressed().controls()).post("/start", {"url": "wrong"})
    assert (answer.status, answer.json()) == (
        422,
        {"message": "URL: found 'wrong', expected http://", "hint": "weir load --help"},
    )


@pytest.mark.parametrize(
    "body",
    ["", "[]", '"url"', "{", "\x00", '{"url": 5}', '{"url": ["http://127.0.0.1/"]}', '{"url": "' + "x" * 70_000 + '"}'],
)
def test_a_form_that_is_no_object_of_texts_starts_nothing(served: Served, body: str) -> None:
    buttons = Pressed()
    visitor = served(controls=buttons.controls())
    headers = {"Origin": f"http://{visitor.host}", "X-Weir-Form": KEYS.form, "Content-Type": "application/json"}
    assert visitor.ask("POST", "/start", body=body, **headers).status in (400, 422)
    assert buttons.pressed == []


def test_who_comes_is_streamed_everything_and_then_the_news(served: Served) -> None:
    visitor = served(EventQueue(PageInfo(HOSTILE, HOSTILE)))
    stream = visitor.news()
    assert next(stream)["about"] == {"title": HOSTILE, "question": HOSTILE, "has_trials": True}
    begin(visitor.board)
    visitor.board.on_start(started())
    visitor.board.on_interval(interval(0, [1.0], length_s=0.5))
    while (news := next(stream))["now"] is None:
        pass
    assert news["points"]["rate_rps"] == [2]
    assert visitor.server._hub.viewers == 1


def test_a_server_that_ends_tells_the_last_news_and_ends_the_streams(served: Served) -> None:
    visitor = served()
    stream = visitor.news()
    next(stream)
    visitor.board.end("over")
    visitor.server.close()
    assert [news["ended"] for news in stream][-1] == "over"


def test_a_viewer_who_goes_is_forgotten(served: Served) -> None:
    visitor = served()
    next(visitor.news())
    visitor.close()
    while visitor.server._hub.viewers:
        # This request makes sure that the server's loop has continued.
        visitor.get("/")


def test_names_are_never_part_of_the_page(served: Served) -> None:
    visitor = served(EventQueue(PageInfo(HOSTILE, HOSTILE)))
    visitor.board.begin_trial(TrialStarted(number=1, name=HOSTILE, point=HOSTILE))
    assert HOSTILE[:9] + "<script>" not in visitor.get("/").text


def test_the_end_of_a_log_is_read_by_the_name_of_its_process_alone(served: Served, tmp_path: Path) -> None:
    visitor = served()
    begin(visitor.board)
    log, other = tmp_path / "app.log", tmp_path / "secret.log"
    log.write_bytes(b"x" * 20_000 + b"\n<b>started</b>\xff\n")
    other.write_text("secret")
    visitor.board.show_logs({"app": log, "app-2": tmp_path / "not yet.log"})
    answer = visitor.get("/log?name=app")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == "<b>started</b>\ufffd\n"
    assert visitor.get("/log?name=app-2").text == ""
    for name in ("secret", "../secret.log", str(other), "", "app/../secret"):
        answer = visitor.get(f"/log?name={name}")
        assert answer.status == 404
        assert "secret" not in answer.text


def test_the_thread_has_the_lowest_priority_and_the_cpus_of_weirs_control(served: Served) -> None:
    cpu = min(os.sched_getaffinity(0))
    served(cpus=[cpu]).get("/")
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "weir live"]
    assert thread.native_id is not None
    assert os.getpriority(os.PRIO_PROCESS, thread.native_id) == 19
    assert os.sched_getaffinity(thread.native_id) == {cpu}


def test_a_port_that_is_taken_is_said_with_the_flag(served: Served) -> None:
    taken = served().server.address
    with pytest.raises(UsageError, match=rf"--listen: cannot listen on 127\.0\.0\.1:{taken.port}"):
        LiveServer(EventQueue(PageInfo("x")), taken)


def test_a_server_on_every_address_says_an_address_that_can_be_opened(served: Served) -> None:
    server = served(address=Address("0.0.0.0")).server
    assert server.url.startswith(f"http://127.0.0.1:{server.address.port}/?token=")


def test_a_missing_bundle_is_said_with_the_command_that_builds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("weir.web_assets.files", lambda package: tmp_path)
    with pytest.raises(WeirError, match=r"live\.js: not found"):
        LiveServer(EventQueue(PageInfo("x")), Address())


def test_what_is_answered_to_the_page_is_json(served: Served) -> None:
    assert json.loads(served(controls=Pressed().controls()).post("/stop").text) == {}
